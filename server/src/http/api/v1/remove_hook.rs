//! `DELETE /teams/{team}/hooks/{id}`: removes a hook.

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

/// Removes a hook with its secrets and the list of its deliveries, for owners of the team. Events that still come get 410.
/// What its events made stays.
#[utoipa::path(delete, path = "/teams/{team}/hooks/{id}", tag = "hooks", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team"),
        ("id" = String, Path, description = "The hook's ID"),
        Key,
    ),
    responses(
        (status = 200, description = "Ended before, under another key", body = RemovedView),
        (status = 204, description = "Done now, or a repeat of what was"),
        Refused,
    ))]
pub(super) async fn remove_hook(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    MaybeBody(WithBody { caller, arrival, query, body }): MaybeBody,
) -> Result<Response> {
    query.done()?;
    arrival.says_all(&body)?;
    guarded(&state, Box::pin(state.portal.remove_hook(&caller, &team, &id, arrival))).await
}
