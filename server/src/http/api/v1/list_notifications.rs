//! `GET /teams/{team}/notifications`: where a team is told of what happens.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{notification::NotificationView, problem::Problem};
use serde::Serialize;
use utoipa::ToSchema;

/// Where a team is told.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Notifications {
    /// Every one, newest first, without its secret.
    results: Vec<NotificationView>,
    /// How many there are; at most 20.
    total: usize,
}

/// Where a team is told of what happens to its requests, newest first. For owners.
#[utoipa::path(get, path = "/teams/{team}/notifications", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
    ),
    responses(
        (status = 200, body = Notifications),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_notifications(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let results = state.portal.notifications(&caller, &team).await?;
    Ok(shown(&Notifications { total: results.len(), results }))
}
