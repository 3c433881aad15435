//! `GET /orphans`: what succeeded elsewhere after its request had come to another end.

use super::shown;
use crate::http::{
    auth::Known,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{extract::State, http::Uri, response::Response};
use domain::{callback::OrphanView, id::ErrandId, problem::Problem, time::Moment};

/// What succeeded elsewhere after its request had come to another end, newest first, at most 100; for administrators.
/// `after` and `at` of the last one lead to the next page. Kept as long as keys.
#[utoipa::path(get, path = "/orphans", tag = "callbacks", security(("token" = []), ("session" = [])),
    params(
        ("after" = Option<String>, Query, description = "The last callback of the page before"),
        ("at" = Option<String>, Query, description = "Its time"),
    ),
    responses(
        (status = 200, body = Vec<OrphanView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_orphans(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    let mut query = Parameters::of(&uri);
    let at = query.read::<Moment>("at", "must be a time as it was shown")?;
    let after = query.read::<ErrandId>("after", "must be an ID")?;
    query.done()?;
    let after = match (at, after) {
        (Some(at), Some(after)) => Some((at, after)),
        (None, None) => None,
        _ => return Err(wrong("after", "comes with at")),
    };
    Ok(shown(&state.portal.orphans(&caller, after).await?))
}
