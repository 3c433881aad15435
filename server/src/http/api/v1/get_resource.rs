//! `GET /teams/{team}/resources/{type}/{name}`: one resource, with its version as `ETag`.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{
    extract::State,
    http::{HeaderValue, Uri, header},
    response::Response,
};
use domain::{problem::Problem, view::ResourceDetail};

/// One living resource, with its last requests. Its `ETag` changes with every accepted change, and again when one is
/// taken back.
#[utoipa::path(get, path = "/teams/{team}/resources/{type}/{name}", tag = "resources",
    security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("type" = String, Path, description = "The resource's type"),
        ("name" = String, Path, description = "The resource's name"),
    ),
    responses(
        (status = 200, body = ResourceDetail, headers(("ETag" = String))),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_resource(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, kind, name)): PathOf<(String, String, String)>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let found = state.portal.resource(&caller, &team, &kind, &name).await?;
    let mut response = shown(&found);
    if let Ok(etag) = HeaderValue::from_str(&found.resource.etag().to_string()) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}
