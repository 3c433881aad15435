//! `GET /teams/{team}/notifications/{id}/deliveries`: what was and is to be sent to one address.

use super::{list_team_requests::page_size, shown};
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{notification::NotificationDeliveryView, problem::Problem, view::Page};

/// What was and is to be sent there, newest first, with the last tries of each.
#[utoipa::path(get, path = "/teams/{team}/notifications/{id}/deliveries", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        ("size" = Option<u32>, Query, description = "How many a page, 1 to 1000; 50 if not said"),
        ("cursor" = Option<String>, Query, description = "What the page before gave as `next`"),
    ),
    responses(
        (status = 200, body = Page<NotificationDeliveryView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_notification_deliveries(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, id)): PathOf<(String, String)>,
    uri: Uri,
) -> Result<Response> {
    let mut sent = Parameters::of(&uri);
    let size = page_size(&mut sent)?;
    let cursor = sent.one("cursor")?;
    sent.done()?;
    let page = state.portal.notification_deliveries(&caller, &team, &id, size, cursor.as_deref()).await?;
    Ok(shown(&page))
}
