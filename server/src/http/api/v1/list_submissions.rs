//! `GET /requests/{id}/submissions`: every arrival of a request.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::SubmissionsView};

/// Every arrival of a request, with what the guard made of it; oldest first.
#[utoipa::path(get, path = "/requests/{id}/submissions", tag = "requests", security(("token" = []), ("session" = [])),
    params(("id" = String, Path, description = "The request's ID")),
    responses(
        (status = 200, body = SubmissionsView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_submissions(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.submissions(&caller, &id).await?))
}
