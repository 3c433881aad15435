//! `POST /teams/{team}/notifications/{id}/ping`: sends a test.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::notification::NotificationDeliveryView;

/// Sends a notification that tells of nothing, to see whether it arrives.
#[utoipa::path(post, path = "/teams/{team}/notifications/{id}/ping", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        Key,
    ),
    responses(
        (status = 202, description = "It is on its way, or a repeat", body = NotificationDeliveryView),
        Refused,
    ))]
pub(super) async fn ping_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(&state, Box::pin(state.portal.ping_notification(&caller, &team, &id, arrival, body))).await
}
