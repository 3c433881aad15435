//! `POST /teams/{team}/hooks/{id}/rotate`: gives a hook a new secret.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::hook::HookView;
use serde::Serialize;
use utoipa::ToSchema;

/// How the secret is to be changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rotation {
    /// How long the secret before the new one still counts, as `24h` or `0s`; at most 30 days.
    old_secret_ends_after: Option<String>,
}

/// Gives a hook a new secret, for owners of the team. It stands in the first answer only. The one before counts on for a
/// day, or as long as the body says; 409 while an earlier one still does.
#[utoipa::path(post, path = "/teams/{team}/hooks/{id}/rotate", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Key,
    ),
    request_body = Option<Rotation>,
    responses(
        (status = 200, description = "Changed, or a repeat of that", body = HookView),
        Refused,
    ))]
pub(super) async fn rotate_hook(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.rotate_hook(&caller, &team, &id, arrival, body))).await
}
