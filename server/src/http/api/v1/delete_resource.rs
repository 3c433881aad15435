//! `DELETE /teams/{team}/resources/{type}/{name}`: removes a resource.

use super::{
    create_request::{InQuery, RequestOrPlan},
    shown,
};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{problem::Problem, view::RequestView};
use portal::service::Target;

/// Removes a resource: one teardown, however often it is asked for. Changes that wait are canceled and one that is being
/// carried out is stopped first. What is deleted or being deleted already answers 200 with Keyturn-Outcome: existing.
///
/// `If-Match` is honoured where it is sent; `*` stands for any version.
#[utoipa::path(delete, path = "/teams/{team}/resources/{type}/{name}", tag = "resources",
    security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("type" = String, Path, description = "The resource's type"),
        ("name" = String, Path, description = "The resource's name"),
        ("Idempotency-Key" = String, Header,
            description = "1 to 255 visible ASCII characters of the caller's making; a dry run needs none"),
        ("If-Match" = Option<String>, Header, description = "The resource's ETag when it was looked at"),
        InQuery,
    ),
    responses(
        (status = 200,
            description = "Deleted or being deleted already (Keyturn-Outcome: existing); of a dry run, the plan",
            body = RequestOrPlan),
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView,
            headers(("ETag" = String, description = "The version that the delete made"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 412, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
        (status = 429, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn delete_resource(
    State(state): State<AppState>,
    PathOf((team, kind, name)): PathOf<(String, String, String)>,
    MaybeBody(WithBody { caller, arrival, body, mut query }): MaybeBody,
) -> Result<Response> {
    let labels = query.all("labels");
    let dry_run = query.dry_run()?;
    query.done()?;
    let target = Target { team, kind, name };
    if dry_run {
        return Ok(shown(&state.portal.plan_delete(&caller, &target, &arrival, &body, labels).await?));
    }
    guarded(&state, Box::pin(state.portal.delete(&caller, target, arrival, body, labels))).await
}
