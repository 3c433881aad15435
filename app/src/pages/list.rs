//! What the lists of requests have in common: the filter in the address, its conditions, saved views, the way to older
//! ones, and export of exactly what is found.

use super::load_again;
use crate::{
    address::encode,
    components::{
        filters::{Conditions, FilterForm},
        listing::Pager,
        moment::reader_zone,
        told::Said,
        views::Views,
    },
    context::ViewNamed,
    filter::Filter,
    rpc::lists::{ListPage, Row, list, said},
};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// What is particular to one list.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The page's title and heading; of a team's list it is given the team.
    pub head: fn(Option<String>) -> AnyView,
    /// What is said where nothing was requested yet.
    pub empty: fn() -> AnyView,
    /// The rows.
    pub rows: fn(Vec<Row>) -> AnyView,
}

/// A list of requests.
#[component]
pub fn List(
    /// What is particular to it.
    kind: Kind,
    /// The page's path.
    path: Signal<String>,
    /// The team that it is about.
    team: Option<String>,
) -> impl IntoView {
    let search = use_location().search;
    let zone = reader_zone();
    let asked = move || {
        let query = search.get();
        // Only times are read and written in a zone; no other list is read again once the zone is known.
        let needs = Filter::read(&query).is_ok_and(|filter| filter.names_zone() && filter.zone.is_none());
        (path.get(), query, needs.then(|| zone.get()).flatten())
    };
    let page = Resource::new_blocking(asked, |(path, query, zone)| list(path, query, zone));
    let flash = Resource::new_blocking(|| (), |()| said());
    load_again(page, move |page| {
        let query = search.get_untracked();
        let shown = query.clone();
        #[cfg(feature = "ssr")]
        tidy(&path.get_untracked(), &query);
        view! {
            {(kind.head)(team.clone())}
            <Suspense>
                {move || {
                    let (path, filter) = (path.get_untracked(), Filter::read(&query).unwrap_or_default().query());
                    Suspend::new(async move {
                        flash.await.ok().map(|mut flash| {
                            let taken = flash.replace.take();
                            view! {
                                <Said flash/>
                                {taken.map(|view| view! { <NameTaken view path filter/> })}
                            }
                        })
                    })
                }}
            </Suspense>
            <Shown kind page query=shown path=path.get_untracked() team=team.clone()/>
        }
    })
}

/// The choice where a view has the name of another one.
#[component]
fn NameTaken(view: ViewNamed, path: String, filter: String) -> impl IntoView {
    let ViewNamed { name, shared } = view;
    let what = if shared { "shown to the team" } else { "for yourself only" };
    view! {
        <section class="note caution" id="name-taken" aria-labelledby="name-taken-title">
            <h2 id="name-taken-title">"You have a view of this name"</h2>
            <p>
                "Nothing was saved. “" {name.clone()} "” can be replaced by what is shown here, " {what}
                "; or save this under another name below."
            </p>
            <form method="post" action="/views">
                <input type="hidden" name="page" value=path/>
                <input type="hidden" name="filter" value=filter/>
                <input type="hidden" name="name" value=name/>
                {shared.then(|| view! { <input type="hidden" name="shared" value="yes"/> })}
                <button type="submit" name="replace" value="yes">"Replace it"</button>
            </form>
        </section>
    }
}

/// Leads from the address that a form made to the one that says the same without its empty fields.
#[cfg(feature = "ssr")]
fn tidy(path: &str, query: &str) {
    if let Ok(filter) = Filter::read(query)
        && Filter::is_cluttered(query)
    {
        crate::components::told::lead_to(&joined(path, &filter.query()));
    }
}

fn joined(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[component]
fn Shown(kind: Kind, page: ListPage, query: String, path: String, team: Option<String>) -> impl IntoView {
    let ListPage { rows, total, at_least, next, wrong, days, exact, offerings, views } = page;
    let (filter, typed) = Filter::read_apart(&query);
    let spelled = filter.query();
    let older = filter.search.cursor().is_some();
    let none = rows.is_empty();
    let nothing_at_all = none && spelled.is_empty() && !older && wrong.is_none();
    let misread = wrong.is_some();
    let found = if misread {
        ().into_any()
    } else if nothing_at_all {
        (kind.empty)()
    } else if none {
        let (all, first) = (path.clone(), joined(&path, &spelled));
        view! {
            <p class="note" id="nothing">
                {if older {
                    view! { "There are no older ones. " <a href=first>"Back to the newest."</a> }.into_any()
                } else {
                    view! { "Nothing fits all of these conditions. Take one off above, or " <a href=all>"show all"</a> "." }.into_any()
                }}
            </p>
        }
        .into_any()
    } else {
        view! {
            {(kind.rows)(rows)}
            <Pager total at_least what="requests" path=path.clone() filter=spelled.clone() older next/>
            <Exports path=path.clone() exact/>
        }
        .into_any()
    };
    view! {
        {wrong.map(|wrong| view! {
            <section class="note wrong" role="alert" id="misread">
                <h2>"This filter is not understood"</h2>
                <p>{wrong} " " <a href=path.clone()>"Show all"</a></p>
            </section>
        })}
        {(!nothing_at_all).then(|| view! {
            <FilterForm filter=filter.clone() typed path=path.clone() offerings open=misread/>
        })}
        <Conditions filter=filter path=path.clone()/>
        {days.map(|days| view! { <Days days/> })}
        <Views views path filter=spelled team/>
        {found}
    }
}

/// Links to files of all that is found, on whatever page: by the API, which reads the same list.
#[component]
fn Exports(path: String, exact: String) -> impl IntoView {
    // The list of all, of one's own or of a team.
    let list = match path.as_str() {
        "/requests" => "/api/v1/requests?mine=true&".to_owned(),
        "/history" => "/api/v1/requests?".to_owned(),
        _ => format!("/api/v1{path}?"),
    };
    let and = if exact.is_empty() { "" } else { "&" };
    let file = move |format: &str| format!("{list}{exact}{and}format={format}");
    let json = file("ndjson");
    // The file for people has the times that they see here; the one for programs has UTC, as the API.
    let reader = reader_zone();
    let csv = move || match reader.get() {
        Some(zone) => format!("{}&zone={}", file("csv"), encode(&zone)),
        None => file("csv"),
    };
    let zone = move || reader.get().unwrap_or_else(|| "UTC".into());
    view! {
        <p id="exports">
            "Export all of them: " <a href=csv rel="external" download>"CSV"</a>
            <span class="quiet">" with times of " {zone}</span> ", "
            <a href=json rel="external" download>"NDJSON"</a> <span class="quiet">" with times in UTC"</span> "."
        </p>
    }
}

/// Between which moments the days of a filter lie.
#[component]
fn Days(days: (String, String, String)) -> impl IntoView {
    let (zone, from, to) = days;
    let between = match (from.is_empty(), to.is_empty()) {
        (false, false) => format!("Requested from {from} until {to}"),
        (false, true) => format!("Requested since {from}"),
        (true, false) => format!("Requested before {to}"),
        (true, true) => "Days".to_owned(),
    };
    view! {
        <p class="quiet" id="days">
            {between} ", in the zone " <strong>{zone}</strong> "."
            <noscript>" Without script the page cannot know your zone; choose one under More conditions."</noscript>
        </p>
    }
}
