//! `GET /requests`: all requests that one may see.

use super::list_team_requests::Listing;
use crate::http::{auth::Known, export::listed, problem::Result, state::AppState};
use axum::{
    extract::State,
    http::{HeaderMap, Uri},
    response::Response,
};
use domain::{
    problem::Problem,
    view::{Page, RequestView},
};
use portal::service::ListOf;
use utoipa::IntoParams;

/// Whose requests are asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
struct Whose {
    /// `true`: only requests that the caller made itself; `false`, or left out: all that it may see.
    mine: Option<bool>,
}

/// All requests that the caller may see, newest first.
#[utoipa::path(get, path = "/requests", tag = "requests", security(("token" = []), ("session" = [])),
    params(Listing, Whose),
    responses(
        (status = 200, content((Page<RequestView> = "application/json"), (String = "text/csv"),
                               (RequestView = "application/x-ndjson"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_requests(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    listed(&state, &caller, ListOf::All, &uri, &headers).await
}
