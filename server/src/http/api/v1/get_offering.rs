//! `GET /offerings/{id}`: one entry of the catalog.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::OfferingView};

/// One offering, with its JSON Schema and its guard policy.
#[utoipa::path(get, path = "/offerings/{id}", tag = "catalog", security(("token" = []), ("session" = [])),
    params(("id" = String, Path, description = "The offering's ID")),
    responses(
        (status = 200, body = OfferingView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_offering(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.offering(&caller, &id)?))
}
