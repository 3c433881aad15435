//! `GET /orphans`: what succeeded elsewhere after its request had come to another end.

use super::{
    list_hooks::{Part, part},
    shown,
};
use crate::http::{auth::Known, problem::Result, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{callback::OrphanView, problem::Problem, view::Page};

/// What succeeded elsewhere after its request had come to another end, newest first; for administrators. Kept as long as
/// keys and their tombstones, from the report on.
#[utoipa::path(get, path = "/orphans", tag = "callbacks", security(("token" = []), ("session" = [])),
    params(Part),
    responses(
        (status = 200, body = Page<OrphanView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_orphans(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    let (size, cursor) = part(&uri)?;
    Ok(shown(&state.portal.orphans(&caller, size, cursor).await?))
}
