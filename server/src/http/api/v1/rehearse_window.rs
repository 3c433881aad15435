//! `GET /offerings/{id}/rehearsal`: what a proposed `duplicate_window` would have asked about.

use super::shown;
use crate::http::{
    auth::Known,
    path::PathOf,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{extract::State, http::Uri, response::Response};
use domain::{duplicates::RehearsalView, problem::Problem};
use portal::catalog::duration;
use std::time::Duration;
use utoipa::IntoParams;

/// What is rehearsed.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct Proposed {
    /// The window, as `30m`, `24h` or `7d`; `24h` without it.
    duplicate_window: Option<String>,
    /// Over how many days up to now, 1 to 366; 30 without it.
    days: Option<u32>,
}

/// Plays a proposed `duplicate_window` over what was requested, and lists what it would have asked about; for
/// administrators. Nothing is changed. At most 50,000 creates are read, newest first; `complete` says whether those were
/// all.
#[utoipa::path(get, path = "/offerings/{id}/rehearsal", tag = "guard", security(("token" = []), ("session" = [])),
    params(("id" = String, Path, description = "The offering's ID"), Proposed),
    responses(
        (status = 200, body = RehearsalView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn rehearse_window(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    let mut sent = Parameters::of(&uri);
    let window = match sent.one("duplicate_window")? {
        None => Duration::from_hours(24),
        Some(text) => {
            duration(&text).ok_or_else(|| wrong("duplicate_window", "is a time as 30m, 24h or 7d"))?
        }
    };
    let days = sent.read::<u32>("days", "is a whole number from 1 to 366")?.unwrap_or(30);
    sent.done()?;
    Ok(shown(&state.portal.rehearse(&caller, &id, window, days).await?))
}
