//! `POST /teams/{team}/hooks`: makes a hook.

use super::keyed::{Key, Refused};
use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::hook::{HookDefinition, HookView};

/// Makes a hook, for owners of the team. Its secret stands in the first answer only; a repeat gets the answer without it.
///
/// `identity` may be left out: it is `webhook-id`, `x-github-delivery` or `idempotency-key` then, by `signature`. What the
/// mapping cannot mean is refused with its place, also when it does not fit `sample`.
#[utoipa::path(post, path = "/teams/{team}/hooks", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        Key,
    ),
    request_body = HookDefinition,
    responses(
        (status = 201, description = "Made, or a repeat of what was", body = HookView),
        Refused,
    ))]
pub(super) async fn create_hook(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.create_hook(&caller, &team, arrival, body))).await
}
