//! `GET /teams/{team}/submissions?key=…`: did my request happen?

use super::shown;
use crate::http::{
    auth::Known,
    path::PathOf,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::RequestView};

/// The request that the caller's own key made in this team. Nothing is told of anybody else's keys.
#[utoipa::path(get, path = "/teams/{team}/submissions", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("key" = String, Query, description = "The key that was sent"),
    ),
    responses(
        (status = 200, body = RequestView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn look_up_key(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    let mut sent = Parameters::of(&uri);
    let key = sent.one("key")?;
    sent.done()?;
    let key = key.ok_or_else(|| wrong("key", "is needed: the key that was sent"))?;
    Ok(shown(&state.portal.look_up(&caller, &team, key.as_bytes()).await?))
}
