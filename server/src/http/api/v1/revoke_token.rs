//! `DELETE /tokens/{id}`: revokes one of the caller's tokens.

use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::problem::Problem;

/// Revokes a token. It is refused from the next call on.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The token's ID"),
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters of the caller's making"),
    ),
    responses(
        (status = 204, description = "Revoked, or so already"),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn revoke_token(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, query, body: _ }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.revoke_token(&caller, &id, arrival))).await
}
