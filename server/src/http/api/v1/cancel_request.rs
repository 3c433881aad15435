//! `POST /requests/{id}/cancel`: stops a request.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::view::RequestView;

/// Stops a request. Cancelling again answers 200 with Keyturn-Outcome: existing.
#[utoipa::path(post, path = "/requests/{id}/cancel", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Done, or so already", body = RequestView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        Refused,
    ))]
pub(super) async fn cancel_request(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.cancel(&caller, &id, arrival, body))).await
}
