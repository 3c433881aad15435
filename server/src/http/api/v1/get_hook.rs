//! `GET /teams/{team}/hooks/{id}`: one hook.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{
    extract::State,
    http::{HeaderValue, Uri, header},
    response::Response,
};
use domain::{hook::HookView, problem::Problem};

/// One hook, without its secrets. Its sample is shown to owners only.
#[utoipa::path(get, path = "/teams/{team}/hooks/{id}", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
    ),
    responses(
        (status = 200, body = HookView, headers(("ETag" = String, description = "Its version"))),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_hook(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, id)): PathOf<(String, String)>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let hook = state.portal.hook(&caller, &team, &id).await?;
    let mut response = shown(&hook);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", hook.version)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}
