//! `GET /teams/{team}/notifications/{id}`: one of the addresses where a team is told.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{notification::NotificationView, problem::Problem};

/// Where a team is told: one of them, without its secret.
#[utoipa::path(get, path = "/teams/{team}/notifications/{id}", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
    ),
    responses(
        (status = 200, body = NotificationView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_notification(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, id)): PathOf<(String, String)>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.notification(&caller, &team, &id).await?))
}
