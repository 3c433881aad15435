//! `GET /teams/{team}/hooks/{id}/deliveries`: what was delivered to a hook lately.

use super::{
    list_hooks::{Part, part},
    shown,
};
use crate::http::{auth::Known, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{hook::DeliveryView, problem::Problem, view::Page};

/// The last genuine events that were delivered to a hook and what became of them, newest first, for owners of the team.
/// Of each hook the last 100 are kept, for 30 days at the longest.
#[utoipa::path(get, path = "/teams/{team}/hooks/{id}/deliveries", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Part,
    ),
    responses(
        (status = 200, body = Page<DeliveryView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_deliveries(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, id)): PathOf<(String, String)>,
    uri: Uri,
) -> Result<Response> {
    let (size, cursor) = part(&uri)?;
    Ok(shown(&state.portal.deliveries(&caller, &team, &id, size, cursor).await?))
}
