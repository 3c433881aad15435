//! `PATCH /teams/{team}/hooks/{id}`: changes a hook.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{WithBody, WithPatch},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{
    hook::{HookDefinition, HookView},
    problem::Problem,
};

/// Changes a hook by a merge patch (RFC 7396), for owners of the team. `If-Match` names the version that was looked at;
/// with it nobody's change is lost unseen.
#[utoipa::path(patch, path = "/teams/{team}/hooks/{id}", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Key,
        ("If-Match" = Option<String>, Header, description = "The version that was looked at, as \"3\""),
    ),
    request_body(content((HookDefinition = "application/merge-patch+json"), (HookDefinition = "application/json"))),
    responses(
        (status = 200, description = "Changed, or a repeat of that", body = HookView),
        (status = 412, body = Problem, content_type = "application/problem+json"),
        Refused,
    ))]
pub(super) async fn change_hook(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    WithPatch(WithBody { caller, arrival, body, query }): WithPatch,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.change_hook(&caller, &team, &id, arrival, body))).await
}
