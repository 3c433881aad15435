//! `POST /teams/{team}/notifications`: tells a team somewhere else too.

use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::{
    notification::{NotificationEvent, NotificationView},
    problem::Problem,
};
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
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters of the caller's making"),
    ),
    request_body = NewNotification,
    responses(
        (status = 201, description = "Made, or a repeat of what was", body = NotificationView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn create_notification(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.create_notification(&caller, &team, arrival, body))).await
}
