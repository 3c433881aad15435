//! `GET /teams/{team}/hooks/{id}/deliveries/{delivery}`: one delivery with its payload.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{hook::DeliveryView, problem::Problem};

/// One delivery with the headers that the mapping may read and the payload as it came, its first 64 KiB, for owners of the
/// team.
#[utoipa::path(get, path = "/teams/{team}/hooks/{id}/deliveries/{delivery}", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        ("delivery" = String, Path, description = "The delivery's ID"),
    ),
    responses(
        (status = 200, body = DeliveryView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_delivery(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf((team, id, delivery)): PathOf<(String, String, String)>,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.delivery(&caller, &team, &id, &delivery).await?))
}
