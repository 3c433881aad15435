//! `PATCH /teams/{team}/resources/{type}/{name}`: changes what a resource is meant to be.

use super::{create_request::InQuery, shown};
use crate::http::{
    answer::guarded,
    arrive::{WithBody, WithPatch},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{
    plan::PlanView,
    problem::Problem,
    view::{Object, RequestView},
};
use portal::service::Target;
use utoipa::ToSchema;

/// The parameters to change, as a merge patch (RFC 7396): a member replaces, an object merges, `null` removes.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
#[expect(dead_code, reason = "describes the body, which is read as JSON")]
pub(super) struct Patch(Object);

/// Changes the parameters of a resource. The change becomes a request; changes of one resource are carried out in the
/// order in which they were taken in, and one that fails is taken back.
///
/// Needs `If-Match` with the resource's `ETag`: 428 without it or with `*`, 412 when it is another version's or no entity
/// tag. A repeat with the same key gets the first answer, whatever version there is by then.
#[utoipa::path(patch, path = "/teams/{team}/resources/{type}/{name}", tag = "resources",
    security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("type" = String, Path, description = "The resource's type"),
        ("name" = String, Path, description = "The resource's name"),
        ("Idempotency-Key" = String, Header,
            description = "1 to 255 visible ASCII characters of the caller's making; a dry run needs none"),
        ("If-Match" = String, Header, description = "The resource's ETag when it was looked at"),
        InQuery,
    ),
    request_body(content((Patch = "application/merge-patch+json"), (Patch = "application/json"))),
    responses(
        (status = 200, description = "Of a dry run, the plan", body = PlanView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView,
            headers(("ETag" = String, description = "The version that the change made"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 412, body = Problem, content_type = "application/problem+json"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
        (status = 428, body = Problem, content_type = "application/problem+json"),
        (status = 429, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn update_resource(
    State(state): State<AppState>,
    PathOf((team, kind, name)): PathOf<(String, String, String)>,
    WithPatch(WithBody { caller, arrival, body, mut query }): WithPatch,
) -> Result<Response> {
    let labels = query.all("labels");
    let dry_run = query.dry_run()?;
    query.done()?;
    let target = Target { team, kind, name };
    if dry_run {
        return Ok(shown(&state.portal.plan_update(&caller, &target, &arrival, &body, labels).await?));
    }
    guarded(&state, Box::pin(state.portal.update(&caller, target, arrival, body, labels))).await
}
