//! `PATCH /teams/{team}/notifications/{id}`: changes what a team is told there.

use super::keyed::{Key, Refused};
use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::notification::{NotificationEvent, NotificationView};
use serde::Serialize;
use utoipa::ToSchema;

/// What is to be otherwise.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NotificationPatch {
    /// Who is told, for people.
    label: Option<String>,
    /// The address that is called by `POST`.
    url: Option<String>,
    /// What is told of; one or more.
    events: Option<Vec<NotificationEvent>>,
    /// Whether anything is sent.
    enabled: Option<bool>,
}

/// Changes one; what is not named stays. `enabled: true` sends again what was switched off.
#[utoipa::path(patch, path = "/teams/{team}/notifications/{id}", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        Key,
    ),
    request_body = NotificationPatch,
    responses(
        (status = 200, description = "Changed, or a repeat of what was", body = NotificationView),
        Refused,
    ))]
pub(super) async fn change_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.change_notification(&caller, &team, &id, arrival, body))).await
}
