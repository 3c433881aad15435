//! `POST /requests/{id}/reject`: refuses to let a request be carried out that waits for that.

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
use serde::Serialize;
use utoipa::ToSchema;

/// Why it is rejected.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rejection {
    /// In at most 1000 characters.
    reason: String,
}

/// Refuses to let a request be carried out that waits for approval; its name is free then. Whoever asked for it never decides
/// about it. Rejecting again answers 200 with Keyturn-Outcome: existing.
#[utoipa::path(post, path = "/requests/{id}/reject", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        Key,
    ),
    request_body = Rejection,
    responses(
        (status = 200, description = "Rejected before", body = RequestView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        Refused,
    ))]
pub(super) async fn reject_request(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.reject(&caller, &id, arrival, body))).await
}
