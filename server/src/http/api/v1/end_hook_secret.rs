//! `POST /teams/{team}/hooks/{id}/end-old-secret`: ends a rotation.

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

/// Ends the secret before the current one at once, for owners of the team. Where there is none left that is no error.
#[utoipa::path(post, path = "/teams/{team}/hooks/{id}/end-old-secret", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Ended, or a repeat of that", body = HookView),
        Refused,
    ))]
pub(super) async fn end_hook_secret(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, body, query }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.end_hook_secret(&caller, &team, &id, arrival, body))).await
}
