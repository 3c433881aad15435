//! `GET /teams/{team}/hooks`: a team's hooks.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{hook::HookView, problem::Problem, view::Page};
use utoipa::IntoParams;

/// Which part of a list is wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct Part {
    /// How many, 1 to 1000; 50 where it is not said.
    size: Option<u32>,
    /// Where the page begins: what an earlier one gave as `next`.
    cursor: Option<String>,
}

/// How many a page is to hold, and where it begins.
pub(super) fn part(uri: &Uri) -> Result<(u32, Option<String>)> {
    let mut query = Parameters::of(uri);
    let size = query.read("size", "is a number from 1 to 1000")?.unwrap_or(50);
    let cursor = query.one("cursor")?;
    query.done()?;
    Ok((size, cursor))
}

/// A team's hooks, newest first, without their secrets and samples.
#[utoipa::path(get, path = "/teams/{team}/hooks", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        Part,
    ),
    responses(
        (status = 200, body = Page<HookView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_hooks(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    let (size, cursor) = part(&uri)?;
    Ok(shown(&state.portal.hooks(&caller, &team, size, cursor).await?))
}
