//! `GET /requests`: all requests that one may see.

use super::{
    list_team_requests::{Listing, search},
    shown,
};
use crate::http::{auth::Known, problem::Result, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{
    problem::Problem,
    view::{Page, RequestView},
};
use portal::service::{ListOf, RequestQuery};

/// All requests that the caller may see, newest first.
#[utoipa::path(get, path = "/requests", tag = "requests", security(("token" = []), ("session" = [])),
    params(Listing),
    responses(
        (status = 200, body = Page<RequestView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_requests(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    let query = RequestQuery { scope: ListOf::All, search: search(&uri)? };
    Ok(shown(&state.portal.requests(&caller, query).await?))
}
