//! `GET /requests/{id}/chain`: the requests that a request belongs together with.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{chain::ChainView, problem::Problem};

/// The chain that a request belongs to: its root and all that descends from that, each after its parent; at most 200.
#[utoipa::path(get, path = "/requests/{id}/chain", tag = "requests", security(("token" = []), ("session" = [])),
    params(("id" = String, Path, description = "The request's ID")),
    responses(
        (status = 200, body = ChainView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_chain(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.chain(&caller, &id).await?))
}
