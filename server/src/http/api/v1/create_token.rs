//! `POST /tokens`: makes a token for the caller.

use super::keyed::{Key, Refused};
use crate::http::{answer::guarded, arrive::WithBody, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::view::TokenView;
use serde::Serialize;
use utoipa::ToSchema;

/// What the new token is to be.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewToken {
    /// What the caller calls it.
    label: String,
    /// After what time it ends, as `90d`.
    expires: Option<String>,
}

/// Makes a token. It stands in the first answer only; a repeat gets the answer without it.
#[utoipa::path(post, path = "/tokens", tag = "tokens", security(("token" = []), ("session" = [])),
    params(
        Key,
    ),
    request_body = NewToken,
    responses(
        (status = 201, description = "Made, or a repeat of what was", body = TokenView),
        Refused,
    ))]
pub(super) async fn create_token(
    State(state): State<AppState>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.create_token(&caller, arrival, body))).await
}
