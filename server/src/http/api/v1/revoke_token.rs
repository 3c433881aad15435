//! `DELETE /tokens/{id}`: revokes one of the caller's tokens.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};

/// Revokes a token. It is refused from the next call on.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The token's ID"),
        Key,
    ),
    responses(
        (status = 204, description = "Revoked, or so already"),
        Refused,
    ))]
pub(super) async fn revoke_token(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    arrival.says_all(&body)?;
    guarded(&state, Box::pin(state.portal.revoke_token(&caller, &id, arrival))).await
}
