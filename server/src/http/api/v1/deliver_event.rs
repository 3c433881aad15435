//! `POST /hooks/{id}`: the door for an outside system's events.

use crate::http::{answer::guarded, arrive::Delivered, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::{problem::Problem, view::RequestView};

/// Takes an event in. It is known by its signature, and no token is needed. The first delivery asks for what the hook's
/// mapping makes of it; every repeat under the same identity gets the first answer. The same identity with another
/// payload is refused (422), and so is an event that the mapping does not fit, which then does not count as seen.
///
/// An event that the hook's condition leaves out, and GitHub's ping, is acknowledged: 200 with `"outcome":"ignored"`.
#[utoipa::path(post, path = "/hooks/{id}", tag = "hooks", security(("signature" = [])),
    params(
        ("id" = String, Path, description = "The hook's ID"),
    ),
    request_body(content_type = "application/json", description = "The event, as its sender makes it"),
    responses(
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        (status = 200, description = "Already there as asked (Keyturn-Outcome: existing), or an event that does not count"),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
        (status = 429, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn deliver_event(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    Delivered(event): Delivered,
) -> Result<Response> {
    guarded(&state, Box::pin(state.portal.deliver(&id, event))).await
}
