//! `POST /teams/{team}/resources/{type}/{name}/secrets/{output}/reveal`: shows a secret output.

use super::shown;
use crate::http::{
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::problem::Problem;
use portal::service::says_nothing;
use serde::Serialize;
use utoipa::ToSchema;

/// A secret output in clear.
#[derive(Serialize, ToSchema)]
pub(super) struct Revealed {
    /// The secret.
    value: String,
}

/// Shows a secret output to who may see it. Nothing is changed, so no key is needed; who looked is written down.
#[utoipa::path(post, path = "/teams/{team}/resources/{type}/{name}/secrets/{output}/reveal", tag = "resources",
    security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("type" = String, Path, description = "The resource's type"),
        ("name" = String, Path, description = "The resource's name"),
        ("output" = String, Path, description = "The output's name"),
    ),
    responses(
        (status = 200, body = Revealed),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn reveal_secret(
    State(state): State<AppState>,
    PathOf((team, kind, name, output)): PathOf<(String, String, String, String)>,
    MaybeBody(WithBody { caller, arrival: _, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    says_nothing(&body)?;
    let value = state.portal.reveal(&caller, &team, &kind, &name, &output).await?;
    Ok(shown(&Revealed { value }))
}
