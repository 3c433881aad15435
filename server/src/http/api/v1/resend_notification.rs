//! `POST /teams/{team}/notifications/{id}/deliveries/{delivery}/resend`: sends a delivery again.

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

/// Sends a delivery again under its own `webhook-id`, whatever became of it.
#[utoipa::path(post, path = "/teams/{team}/notifications/{id}/deliveries/{delivery}/resend", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        ("delivery" = String, Path, description = "The delivery's ID"),
        Key,
    ),
    responses(
        (status = 202, description = "It is on its way, or a repeat", body = NotificationDeliveryView),
        Refused,
    ))]
pub(super) async fn resend_notification(
    State(state): State<AppState>,
    PathOf((team, id, delivery)): PathOf<(String, String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    guarded(
        &state,
        Box::pin(state.portal.resend_notification(&caller, &team, (&id, &delivery), arrival, body)),
    )
    .await
}
