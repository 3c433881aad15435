//! `GET /offerings`: the catalog.

use super::shown;
use crate::http::{auth::Known, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::OfferingView};
use serde::Serialize;
use utoipa::ToSchema;

/// The catalog's entries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Offerings {
    /// Every entry, sorted by ID.
    results: Vec<OfferingView>,
    /// How many there are.
    total: usize,
}

/// Every offering, with its JSON Schema and its guard policy.
#[utoipa::path(get, path = "/offerings", tag = "catalog", security(("token" = []), ("session" = [])), responses(
    (status = 200, body = Offerings),
    (status = 401, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list_offerings(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let results = state.portal.offerings(&caller);
    Ok(shown(&Offerings { total: results.len(), results }))
}
