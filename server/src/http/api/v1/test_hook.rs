//! `POST /teams/{team}/hooks/{id}/test`: tries a hook with an event of one's own.

use super::{keyed::Refused, shown};
use crate::http::{
    answer::guarded,
    arrive::WithBody,
    path::PathOf,
    problem::{Refusal, Result},
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{
    hook::{HookTrial, Sample},
    view::RequestView,
};
use portal::service::Tested;
use serde::Serialize;
use utoipa::ToSchema;

/// A test event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TestEvent {
    /// Headers and payload.
    #[serde(flatten)]
    event: Sample,
    /// `true` sends the event by the hook's own door, signed with its secret.
    send: Option<bool>,
}

/// Tries a hook, for owners of the team: what the event would ask for, or where the mapping does not fit it. Nothing is
/// claimed or stored, and no key is needed.
///
/// With `"send": true` the event is signed and delivered for real, under the call's `Idempotency-Key` as its identity, and
/// the answer is what its sender would get.
#[utoipa::path(post, path = "/teams/{team}/hooks/{id}/test", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        ("Idempotency-Key" = Option<String>, Header, description = "The event's identity; needed with send"),
    ),
    request_body = TestEvent,
    responses(
        (status = 200, description = "What it would do; with send, that it does not count", body = HookTrial),
        (status = 202, description = "Sent, and taken in", body = RequestView),
        Refused,
    ))]
pub(super) async fn test_hook(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    WithBody { caller, arrival, body, query }: WithBody,
) -> Result<Response> {
    query.done()?;
    match state.portal.test_hook(&caller, &team, &id, arrival, body).await.map_err(Refusal)? {
        Tested::Tried(trial) => Ok(shown(&*trial)),
        Tested::Sent(answered) => guarded(&state, std::future::ready(Ok(*answered))).await,
    }
}
