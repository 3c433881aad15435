//! `POST /teams/{team}/notifications/{id}/rotate`: gives one another signing secret.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::notification::NotificationView;

/// Gives one another signing secret, which stands in the first answer only. For 24 hours the one before signs as well.
#[utoipa::path(post, path = "/teams/{team}/notifications/{id}/rotate", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Rotated, or a repeat of what was", body = NotificationView),
        Refused,
    ))]
pub(super) async fn rotate_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.rotate_notification(&caller, &team, &id, arrival, body))).await
}
