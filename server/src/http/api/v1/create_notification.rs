//! `POST /teams/{team}/notifications`: tells a team somewhere else too.

use super::keyed::{Key, Refused};
use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::notification::{NotificationEvent, NotificationView};
use serde::Serialize;
use utoipa::ToSchema;

/// Where a team wants to be told, and of what.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewNotification {
    /// Who is told, for people.
    label: String,
    /// The address that is called by `POST`.
    url: String,
    /// What is told of; one or more.
    events: Vec<NotificationEvent>,
}

/// Makes an address where the team is told. The signing secret stands in the first answer only.
#[utoipa::path(post, path = "/teams/{team}/notifications", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        Key,
    ),
    request_body = NewNotification,
    responses(
        (status = 201, description = "Made, or a repeat of what was", body = NotificationView),
        Refused,
    ))]
pub(super) async fn create_notification(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.create_notification(&caller, &team, arrival, body))).await
}
