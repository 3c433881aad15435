//! `POST /teams/{team}/resources/{type}/{name}/actions/{action}`: does with a resource what its offering defines.

use super::{create_request::InQuery, shown};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
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

/// The action's own parameters, by its schema in the offering; may be left out where it has none.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
#[expect(dead_code, reason = "describes the body, which is read as JSON")]
pub(super) struct Input(Object);

/// Does an action of its offering with a resource. One that changes the resource's parameters, as by adding to them, does
/// so once for each key.
///
/// `If-Match` is honoured where it is sent; `*` stands for any version.
#[utoipa::path(post, path = "/teams/{team}/resources/{type}/{name}/actions/{action}", tag = "resources",
    security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("type" = String, Path, description = "The resource's type"),
        ("name" = String, Path, description = "The resource's name"),
        ("action" = String, Path, description = "The action's ID in the offering"),
        ("Idempotency-Key" = String, Header,
            description = "1 to 255 visible ASCII characters of the caller's making; a dry run needs none"),
        ("If-Match" = Option<String>, Header, description = "The resource's ETag when it was looked at"),
        InQuery,
    ),
    request_body = Option<Input>,
    responses(
        (status = 200, description = "Of a dry run, the plan", body = PlanView),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView,
            headers(("ETag" = String, description = "The version that the action made"))),
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
        (status = 429, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn act_on_resource(
    State(state): State<AppState>,
    PathOf((team, kind, name, action)): PathOf<(String, String, String, String)>,
    MaybeBody(WithBody { caller, arrival, body, mut query }): MaybeBody,
) -> Result<Response> {
    let labels = query.all("labels");
    let dry_run = query.dry_run()?;
    query.done()?;
    let target = Target { team, kind, name };
    if dry_run {
        let plan = state.portal.plan_action(&caller, &target, &action, &arrival, &body, labels).await?;
        return Ok(shown(&plan));
    }
    let acted = state.portal.act(&caller, target, &action, arrival, body, labels);
    guarded(&state, Box::pin(acted)).await
}
