//! `DELETE /teams/{team}/notifications/{id}`: tells a team there no more.

use super::keyed::{Key, Refused};
use crate::http::{
    answer::guarded,
    arrive::{MaybeBody, WithBody},
    path::PathOf,
    problem::Result,
    state::AppState,
};
use axum::{extract::State, response::Response};
use domain::view::RemovedView;

/// Removes one, and what is on its way there.
#[utoipa::path(delete, path = "/teams/{team}/notifications/{id}", tag = "notifications", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team; `-` for the whole portal, to administrators"),
        ("id" = String, Path, description = "The notification's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Ended before, under another key", body = RemovedView),
        (status = 204, description = "Done now, or a repeat of what was"),
        Refused,
    ))]
pub(super) async fn remove_notification(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    arrival.says_all(&body)?;
    guarded(&state, Box::pin(state.portal.remove_notification(&caller, &team, &id, arrival))).await
}
