//! `POST /requests/{id}/retry`: tries a failed request again.

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

/// Opens the next attempt of a failed request. It reserves the name again, or is refused.
#[utoipa::path(post, path = "/requests/{id}/retry", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Done, or so already", body = RequestView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        Refused,
    ))]
pub(super) async fn retry_request(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.retry(&caller, &id, arrival, body))).await
}
