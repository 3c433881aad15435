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
use domain::view::TokenView;

/// Revokes a token. It is refused from the next call on.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The token's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Ended before, under another key", body = TokenView),
        (status = 204, description = "Done now, or a repeat of what was"),
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
