//! `POST /requests/{id}/resolve`: a person says what became of a request of which nobody can tell.

use super::keyed::{Key, Refused};
use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::{state::Resolution, view::RequestView};
use serde::Serialize;
use utoipa::ToSchema;

/// What a person decides.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Decision {
    /// `adopt`, `retry` or `abandon`.
    resolution: Resolution,
    /// Closes it without asking its provisioner again; for administrators, with `abandon` and a reason.
    force: Option<bool>,
    /// Why it is closed by force.
    reason: Option<String>,
}

/// Decides about a request whose outcome is unknown.
#[utoipa::path(post, path = "/requests/{id}/resolve", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        Key,
    ),
    request_body = Decision,
    responses(
        (status = 200, description = "Done, or so already", body = RequestView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        Refused,
    ))]
pub(super) async fn resolve_request(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.resolve(&caller, &id, arrival, body))).await
}
