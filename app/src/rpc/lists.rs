//! What the lists of requests show.

use super::Answer;
use crate::context::Flash;
use domain::{
    saved::SavedView,
    view::{RequestView, SubmissionsView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// How many requests a page of a list shows.
#[cfg(feature = "ssr")]
const PAGE_SIZE: u32 = 25;

/// One request of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The request.
    pub request: RequestView,
    /// Every arrival of it, in the administrators' history.
    pub submissions: Option<SubmissionsView>,
}

/// A page of a list of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListPage {
    /// The requests, newest first.
    pub rows: Vec<Row>,
    /// How many match.
    pub total: i64,
    /// Whether counting stopped there.
    pub at_least: bool,
    /// Where the next page begins.
    pub next: Option<String>,
    /// Why the filter is not understood; then there are no rows.
    pub wrong: Option<String>,
    /// The same filter with its days as moments, as the API spells it: what an export is made by.
    pub exact: String,
    /// The zone whose days the filter means, and the first and the last moment of them as people there write it.
    pub days: Option<(String, String, String)>,
    /// The offerings that there are.
    pub offerings: Vec<String>,
    /// Saved views of the list.
    pub views: Vec<SavedView>,
}

/// What the last form post has to say. Asked once, however often the list is read again.
#[server(prefix = "/rpc", endpoint = "said")]
pub async fn said() -> Answer<Flash> {
    Ok(use_context::<Flash>().unwrap_or_default())
}

/// A page of the list at `path`, by the filter in its address.
#[server(prefix = "/rpc", endpoint = "list")]
pub async fn list(
    /// The page's path.
    path: String,
    /// Its query.
    query: String,
    /// The reader's zone, for days of which the query does not say the zone.
    zone: Option<String>,
) -> Answer<ListPage> {
    use super::asked;
    use crate::filter::Filter;
    use portal::{
        Error,
        service::{ListOf, RequestQuery, ViewOf},
    };

    let (asking, caller) = asked::caller()?;
    let portal = &asking.portal;
    let of = ViewOf::at(&path).ok_or_else(|| asked::refusal(Error::not_found()))?;
    let views = portal.views(&caller, &of).await.map_err(asked::refusal)?;
    let offerings = portal.offerings(&caller).into_iter().map(|offering| offering.id.to_string()).collect();
    let mut shown = ListPage {
        rows: Vec::new(),
        total: 0,
        at_least: false,
        next: None,
        wrong: None,
        exact: String::new(),
        days: None,
        offerings,
        views,
    };
    let read =
        Filter::read(&query).map_err(Error::from).and_then(|filter| resolved(filter, zone, portal.now()));
    let (search, days) = match read {
        Ok(read) => read,
        Err(error) => {
            // Told beside the form, where it can be mended.
            shown.wrong = Some(error.detail.clone());
            let _ = asked::refusal(error);
            return Ok(shown);
        }
    };
    shown.exact = search.clone().from(None).with_size(domain::search::USUAL_PAGE).query();
    shown.days = days;
    let submissions = of == ViewOf::All;
    let scope = match of {
        ViewOf::Mine => ListOf::Mine,
        ViewOf::All => ListOf::All,
        ViewOf::Team(team) => ListOf::Team(team),
    };
    let wanted = RequestQuery { scope, search: search.with_size(PAGE_SIZE) };
    let page = portal.requests(&caller, wanted).await.map_err(asked::refusal)?;
    for request in page.results {
        let submissions = if submissions {
            let id = request.id.to_string();
            Some(portal.submissions(&caller, &id).await.map_err(asked::refusal)?)
        } else {
            None
        };
        shown.rows.push(Row { request, submissions });
    }
    (shown.total, shown.at_least, shown.next) = (page.total, page.total_is.is_some(), page.next);
    Ok(shown)
}

/// The days that a filter means, in words: the zone, and the moments between which they lie.
#[cfg(feature = "ssr")]
type Days = Option<(String, String, String)>;

/// The search that a filter means now, its days turned into moments.
#[cfg(feature = "ssr")]
fn resolved(
    filter: crate::filter::Filter,
    reader: Option<String>,
    now: domain::time::Moment,
) -> portal::Result<(domain::search::Search, Days)> {
    use crate::filter::Span;
    use domain::{
        search::{Field, Operator},
        time::Moment,
    };
    use portal::zone::{Day, Zone};

    let zone = Zone::read(filter.zone.as_deref().or(reader.as_deref()))?;
    let day =
        |name: &str, text: &Option<String>| text.as_deref().map(|text| Day::read(name, text)).transpose();
    let today = zone.day_of(now);
    let before = |hours: i64| Some(Moment::from_millis(now.millis() - hours * 3_600_000));
    let (from, to) = match filter.span {
        None => (None, None),
        Some(Span::Hour) => (before(1), None),
        Some(Span::Day) => (before(24), None),
        Some(Span::Week) => (before(7 * 24), None),
        Some(Span::Today) => (Some(zone.begin(today)), Some(zone.begin(today.plus(1)))),
        Some(Span::Yesterday) => (Some(zone.begin(today.plus(-1))), Some(zone.begin(today))),
        Some(Span::Days) => (
            day("from", &filter.from)?.map(|day| zone.begin(day)),
            day("to", &filter.to)?.map(|day| zone.begin(day.plus(1))),
        ),
    };
    let ended = (
        day("ended_from", &filter.ended_from)?.map(|day| zone.begin(day)),
        day("ended_to", &filter.ended_to)?.map(|day| zone.begin(day.plus(1))),
    );
    let needs_zone = filter.needs_zone();
    let mut search = filter.search;
    for (field, operator, moment) in [
        (Field::CreatedAt, Operator::GreaterThanOrEqualTo, from),
        (Field::CreatedAt, Operator::LessThan, to),
        (Field::FinishedAt, Operator::GreaterThanOrEqualTo, ended.0),
        (Field::FinishedAt, Operator::LessThan, ended.1),
    ] {
        if let Some(moment) = moment {
            search.add(&field.compared(operator), &moment.to_string())?;
        }
    }
    let written = |moment: Option<Moment>| moment.map_or_else(String::new, |moment| zone.written(moment));
    let days = (needs_zone || from.is_some()).then(|| (zone.name().to_owned(), written(from), written(to)));
    Ok((search, days))
}
