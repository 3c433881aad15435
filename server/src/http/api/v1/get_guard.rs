//! `GET /guard`: the published guard policy.

use super::shown;
use crate::http::{problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::view::GuardView;

/// How keys are written, how long they are kept, and how the portal's own senders retry. Public.
#[utoipa::path(get, path = "/guard", tag = "guard", responses((status = 200, body = GuardView)))]
pub(super) async fn get_guard(State(state): State<AppState>, uri: Uri) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.guard_policy()))
}
