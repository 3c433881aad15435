//! `POST /teams/{team}/notifications/{id}/rotate`: gives one another signing secret.

use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::{notification::NotificationView, problem::Problem};

/// Gives one another signing secret, which stands in the first answer only. For 24 hours the one before signs as well.
#[utoipa::path(post, path = "/teams/{team}/notifications/{id}/rotate", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters of the caller's making"),
    ),
    responses(
        (status = 200, description = "Rotated, or a repeat of what was", body = NotificationView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn rotate_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.rotate_notification(&caller, &team, &id, arrival, body))).await
}
