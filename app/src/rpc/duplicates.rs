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
) -> Answer<DuplicatesPage> {
    use super::asked;
    use domain::{duplicates::Interval, time::Moment};
    use portal::{
        service::DuplicatesQuery,
        zone::{Day, Zone},
    };
    use std::time::Duration;

    let (asking, caller) = asked::caller()?;
    let zone = Zone::read(time.zone.as_deref()).map_err(asked::refusal)?;
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
            let last = read("to", &time.to).map_err(asked::refusal)?.unwrap_or(today);
            (read("from", &time.from).map_err(asked::refusal)?.unwrap_or_else(|| last.plus(-6)), last)
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
    let counts = asking.portal.duplicates(&caller, query).await.map_err(asked::refusal)?;
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
        return Ok(RehearsalPage { offerings, rehearsal: None });
    };
    let wrong = |detail: &str| asked::refusal(Error::new(ProblemKind::InvalidQuery, detail));
    let window = duration(window.trim()).ok_or_else(|| wrong("window: write a time as 30m, 24h or 7d"))?;
    let days = days.trim().parse().map_err(|_| wrong("days: a whole number from 1 to 366"))?;
    let rehearsal = asking.portal.rehearse(&caller, &offering, window, days).await.map_err(asked::refusal)?;
    Ok(RehearsalPage { offerings, rehearsal: Some(rehearsal) })
}
