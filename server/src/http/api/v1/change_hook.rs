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
    hook::{HookView, Sample, Signing},
    problem::Problem,
    view::Object,
};
use serde::Serialize;
use utoipa::ToSchema;

/// What is to be otherwise: a member replaces, `parameters` and `labels` merge, and `null` takes away.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HookPatch {
    /// What its owners call it.
    title: Option<String>,
    /// The offering that its events ask for.
    offering: Option<String>,
    /// The header that holds an event's identity; `null` for the usual one of its signature.
    identity: Option<String>,
    /// How its events are signed.
    signature: Option<Signing>,
    /// Which events count, as an expression.
    when: Option<String>,
    /// The resource's name, as a template.
    name: Option<String>,
    /// The offering's parameters.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Object>,
    /// Labels of the request, as templates.
    #[schema(value_type = Option<Object>)]
    labels: Option<Object>,
    /// The request's correlation ID, as a template.
    correlation_id: Option<String>,
    /// An example of an event, replaced as a whole.
    sample: Option<Sample>,
}

/// Changes a hook by a merge patch (RFC 7396), for owners of the team. `If-Match` names the version that was looked at;
/// with it nobody's change is lost unseen.
#[utoipa::path(patch, path = "/teams/{team}/hooks/{id}", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Key,
        ("If-Match" = Option<String>, Header, description = "The version that was looked at, as \"3\""),
    ),
    request_body(content((HookPatch = "application/merge-patch+json"), (HookPatch = "application/json"))),
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
