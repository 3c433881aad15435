//! What the pages about duplicates show.

use super::Answer;
use domain::duplicates::{DuplicatesView, RehearsalView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Which time a page is about, as its address says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    /// `day`, `week`, `month`, or `days` for those from `from` to `to`.
    pub range: Option<String>,
    /// The first day.
    pub from: Option<String>,
    /// The last day.
    pub to: Option<String>,
    /// The zone whose days they are.
    pub zone: Option<String>,
}

/// What an address or a form says that cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misread {
    /// The field.
    pub field: String,
    /// Why.
    pub why: String,
}

/// A query that is not understood, to be told at its field; anything else takes the place of the page.
#[cfg(feature = "ssr")]
fn misread(error: portal::Error) -> Answer<Misread> {
    use domain::problem::ProblemKind;

    let told = error.detail.clone();
    let is_query = error.kind == ProblemKind::InvalidQuery;
    // The answer has its status in either case.
    let refusal = super::asked::refusal(error);
    match told.split_once(": ") {
        Some((field, why)) if is_query => Ok(Misread { field: field.to_owned(), why: why.to_owned() }),
        _ => Err(refusal),
    }
}

/// What the page of duplicates shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counts {
    /// The counts.
    Counted(Box<DuplicatesPage>),
    /// Why there are none.
    Not(Misread),
}

/// Duplicates, with the names of their periods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicatesPage {
    /// The counts.
    pub counts: DuplicatesView,
    /// Which range it is.
    pub range: String,
    /// The first and the last day, as fields hold them.
    pub days: (String, String),
    /// The first and the last moment as people of the zone write it.
    pub between: (String, String),
    /// Each period's name, in full and in short.
    pub names: Vec<(String, String)>,
}

/// How many duplicates there were; for administrators.
#[server(prefix = "/rpc", endpoint = "duplicates")]
pub async fn duplicates(
    /// In which time.
    time: Time,
) -> Answer<Counts> {
    use super::asked;
    use domain::problem::ProblemKind;
    use portal::Error;

    let (asking, caller) = asked::caller()?;
    if !caller.is_admin() {
        let refused = Error::new(ProblemKind::Forbidden, "The history of all teams is for administrators.");
        return Err(asked::refusal(refused));
    }
    match counted(&asking, &caller, time).await {
        Ok(page) => Ok(Counts::Counted(Box::new(page))),
        Err(error) => misread(error).map(Counts::Not),
    }
}

#[cfg(feature = "ssr")]
async fn counted(
    asking: &crate::context::Asking,
    caller: &portal::Caller,
    time: Time,
) -> portal::Result<DuplicatesPage> {
    use domain::{duplicates::Interval, time::Moment};
    use portal::{
        service::DuplicatesQuery,
        zone::{Day, Zone},
    };
    use std::time::Duration;

    let zone = Zone::read(time.zone.as_deref())?;
    let now = asking.portal.now();
    let today = zone.day_of(now);
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let read = |name: &str, text: &Option<String>| given(text).map(|text| Day::read(name, &text)).transpose();
    let known = |range: &&str| ["day", "week", "month", "days"].contains(range);
    let range = time.range.as_deref().filter(known).unwrap_or("week");
    let (first, last) = match range {
        "day" => (today.plus(-1), today),
        "month" => (today.plus(-29), today),
        "days" => {
            let last = read("to", &time.to)?.unwrap_or(today);
            (read("from", &time.from)?.unwrap_or_else(|| last.plus(-6)), last)
        }
        _ => (today.plus(-6), today),
    };
    let (by, from, to) = match range {
        "day" => {
            let day = i64::try_from(Duration::from_hours(24).as_millis()).unwrap_or_default();
            (Interval::Hour, Moment::from_millis(now.millis() - day), now)
        }
        _ => (Interval::Day, zone.begin(first), zone.begin(last.plus(1))),
    };
    let query = DuplicatesQuery { from: Some(from), to: Some(to), by, zone: time.zone };
    let counts = asking.portal.duplicates(caller, query).await?;
    let names = counts.periods.iter().map(|period| match by {
        Interval::Day => {
            let day = zone.day_of(period.from).to_string();
            let short = day.get(5..).unwrap_or(&day).to_owned();
            (day, short)
        }
        Interval::Hour => {
            let hour = zone.written(period.from);
            let short = hour.get(11..16).unwrap_or(&hour).to_owned();
            (hour, short)
        }
    });
    Ok(DuplicatesPage {
        names: names.collect(),
        range: range.to_owned(),
        days: (first.to_string(), last.to_string()),
        between: (zone.written(counts.from), zone.written(counts.to)),
        counts,
    })
}

/// A rehearsal, with what can be rehearsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RehearsalPage {
    /// The offerings: ID, title, and the window that each has.
    pub offerings: Vec<(String, String, Option<u64>)>,
    /// What came of it, once an offering and a window are chosen.
    pub rehearsal: Option<RehearsalView>,
    /// What of it is not understood.
    pub misread: Option<Misread>,
}

/// What a proposed window would have asked about; for administrators.
#[server(prefix = "/rpc", endpoint = "rehearsal")]
pub async fn rehearsal(
    /// The offering's ID; only what can be rehearsed is shown without one.
    offering: Option<String>,
    /// The window, as `24h`.
    window: String,
    /// Over how many days.
    days: String,
) -> Answer<RehearsalPage> {
    use super::asked;
    use domain::problem::ProblemKind;
    use portal::{Error, catalog::duration};

    let (asking, caller) = asked::caller()?;
    if !caller.is_admin() {
        let refused = Error::new(ProblemKind::Forbidden, "The history of all teams is for administrators.");
        return Err(asked::refusal(refused));
    }
    let offerings = asking.portal.offerings(&caller).into_iter().filter(|offering| offering.available);
    let offerings = offerings
        .map(|offering| (offering.id.to_string(), offering.title, offering.guard.duplicate_window_seconds));
    let offerings = offerings.collect();
    let Some(offering) = offering.filter(|offering| !offering.is_empty()) else {
        return Ok(RehearsalPage { offerings, rehearsal: None, misread: None });
    };
    let wrong = |detail: &str| Error::new(ProblemKind::InvalidQuery, detail);
    let window =
        duration(window.trim()).ok_or_else(|| wrong("duplicate_window: write a time as 30m, 24h or 7d"));
    let days = days.trim().parse().map_err(|_| wrong("days: a whole number from 1 to 366"));
    let rehearsed = match (window, days) {
        (Ok(window), Ok(days)) => asking.portal.rehearse(&caller, &offering, window, days).await,
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    let (rehearsal, misread) = match rehearsed {
        Ok(rehearsal) => (Some(rehearsal), None),
        Err(error) => (None, Some(misread(error)?)),
    };
    Ok(RehearsalPage { offerings, rehearsal, misread })
}
