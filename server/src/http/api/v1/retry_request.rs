//! `POST /requests/{id}/retry`: tries a failed request again.

use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{problem::Problem, view::RequestView};

/// Opens the next attempt of a failed request. It reserves the name again, or is refused.
#[utoipa::path(post, path = "/requests/{id}/retry", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters of the caller's making"),
    ),
    responses(
        (status = 200, description = "Done, or so already", body = RequestView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn retry_request(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.retry(&caller, &id, arrival, body))).await
}
