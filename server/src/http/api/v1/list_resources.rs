//! `GET /teams/{team}/resources`: what a team has.

use super::{list_team_requests::page_size, shown};
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{
    problem::Problem,
    view::{Page, ResourceView},
};

/// The living resources of a team, newest first.
#[utoipa::path(get, path = "/teams/{team}/resources", tag = "resources", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("size" = Option<u32>, Query, description = "How many rows, 1 to 1000; 50 without it"),
        ("cursor" = Option<String>, Query, description = "What the page before gave as next"),
    ),
    responses(
        (status = 200, body = Page<ResourceView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_resources(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    let mut sent = Parameters::of(&uri);
    let size = page_size(&mut sent)?;
    let cursor = sent.one("cursor")?;
    sent.done()?;
    Ok(shown(&state.portal.resources(&caller, &team, size, cursor).await?))
}
