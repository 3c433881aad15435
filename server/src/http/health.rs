//! Whether the server lives, whether it can take work, and what it counted. Public; nothing here tells of anybody.

use super::{problem::Result, state::AppState};
use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
async fn healthz() -> impl IntoResponse {
    ([(header::CACHE_CONTROL, "no-store")], Json(Health { status: "ok" }))
}

/// Whether submissions can be taken in: the database can be written.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, body = Health),
    (status = 503, description = "The database cannot be written", body = domain::problem::Problem),
))]
async fn readyz(State(state): State<AppState>) -> Result<Response> {
    state.portal.ready().await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Health { status: "ready" })).into_response())
}

/// Counters in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, content_type = "text/plain", body = String)))]
async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], state.counters.text())
}
