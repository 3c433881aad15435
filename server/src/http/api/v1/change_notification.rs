//! `PATCH /teams/{team}/notifications/{id}`: changes what a team is told there.

use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::{
    notification::{NotificationEvent, NotificationView},
    problem::Problem,
};
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
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters of the caller's making"),
    ),
    request_body = NotificationPatch,
    responses(
        (status = 200, description = "Changed, or a repeat of what was", body = NotificationView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn change_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.change_notification(&caller, &team, &id, arrival, body))).await
}
