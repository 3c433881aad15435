//! `GET /duplicates`: how many duplicates the guard stopped, over time and by source.

use super::shown;
use crate::http::{
    auth::Known,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{extract::State, http::Uri, response::Response};
use domain::{
    duplicates::{DuplicatesView, Interval},
    problem::Problem,
    time::Moment,
};
use portal::service::DuplicatesQuery;
use utoipa::IntoParams;

/// Which duplicates are counted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct Asked {
    /// From when on, RFC 3339; seven days before `to` without it.
    from: Option<String>,
    /// Until when, RFC 3339; now without it.
    to: Option<String>,
    /// `day` (the usual) or `hour`; at most 370 periods.
    by: Option<String>,
    /// The time zone whose days they are, by its name in the IANA database, as `Europe/Berlin`; UTC without it.
    zone: Option<String>,
}

fn moment(sent: &mut Parameters, name: &str) -> Result<Option<Moment>> {
    let Some(text) = sent.one(name)? else { return Ok(None) };
    let rule = "is a moment as 2026-01-31T12:00:00Z (a + is sent as %2B)";
    serde_json::from_value(text.into()).map(Some).map_err(|_| wrong(name, rule))
}

/// How many duplicates the guard met, over time and by source; for administrators. Repeats that were only counted are
/// part of it.
#[utoipa::path(get, path = "/duplicates", tag = "guard", security(("token" = []), ("session" = [])), params(Asked),
    responses(
        (status = 200, body = DuplicatesView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_duplicates(
    State(state): State<AppState>,
    Known(caller): Known,
    uri: Uri,
) -> Result<Response> {
    let mut sent = Parameters::of(&uri);
    let by = match sent.one("by")?.as_deref() {
        None | Some("day") => Interval::Day,
        Some("hour") => Interval::Hour,
        Some(_) => return Err(wrong("by", "is day or hour")),
    };
    let query = DuplicatesQuery {
        from: moment(&mut sent, "from")?,
        to: moment(&mut sent, "to")?,
        by,
        zone: sent.one("zone")?,
    };
    sent.done()?;
    Ok(shown(&state.portal.duplicates(&caller, query).await?))
}
