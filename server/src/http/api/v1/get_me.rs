//! `GET /me`: who is asking.

use super::shown;
use crate::http::{auth::Known, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::MeView};

/// Who is asking, and the teams where they belong.
#[utoipa::path(get, path = "/me", tag = "people", security(("token" = []), ("session" = [])), responses(
    (status = 200, body = MeView),
    (status = 401, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn get_me(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    Ok(shown(&state.portal.me(&caller)))
}
