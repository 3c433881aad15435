//! `GET /tokens`: the caller's own tokens.

use super::shown;
use crate::http::{auth::Known, problem::Result, query::Parameters, state::AppState};
use axum::{extract::State, http::Uri, response::Response};
use domain::{problem::Problem, view::TokenView};
use serde::Serialize;
use utoipa::ToSchema;

/// The caller's own tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tokens {
    /// Every token, newest first, without the token itself.
    results: Vec<TokenView>,
    /// How many there are.
    total: usize,
}

/// The caller's own tokens, without the tokens themselves.
#[utoipa::path(get, path = "/tokens", tag = "tokens", security(("token" = []), ("session" = [])), responses(
    (status = 200, body = Tokens),
    (status = 401, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list_tokens(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let results = state.portal.tokens(&caller).await?;
    Ok(shown(&Tokens { total: results.len(), results }))
}
