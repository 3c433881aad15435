//! `/duplicates`: how many duplicates the guard stopped, and where they come from; for administrators.

pub mod rehearsal;

use super::load_again;
use crate::{
    address::encode,
    components::{
        chart::{Column, Columns},
        moment::reader_zone,
    },
    rpc::duplicates::{Counts, DuplicatesPage, Misread, Time, duplicates},
};
use domain::duplicates::{DuplicatesView, Rule, Source};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The doors: the API's word, the class that colours it, its name, and who comes by it.
const DOORS: [(&str, &str, &str, &str); 5] = [
    ("form", "part-form", "Forms", "clicks, reloads and the form's own retries"),
    ("api", "part-api", "API", "retries and scripts"),
    ("hook", "part-hook", "Hooks", "redelivered events"),
    ("callback", "part-callback", "Callbacks", "redelivered reports"),
    ("", "part-other", "Others", "steps of other requests"),
];

fn is_known(channel: &str) -> bool {
    DOORS.iter().any(|(word, ..)| *word == channel)
}

/// How many came by a door; the last one is that of all others.
fn by_door(counts: &std::collections::BTreeMap<String, i64>, door: &str) -> i64 {
    if door.is_empty() {
        return counts.iter().filter(|(channel, _)| !is_known(channel)).map(|(_, count)| count).sum();
    }
    counts.get(door).copied().unwrap_or_default()
}

/// The page of duplicates.
#[component]
pub fn Duplicates() -> impl IntoView {
    let query = use_query_map();
    let zone = reader_zone();
    let time = move || {
        let query = query.read();
        Time {
            range: query.get("range"),
            from: query.get("from"),
            to: query.get("to"),
            zone: query.get("zone").filter(|zone| !zone.is_empty()).or_else(|| zone.get()),
        }
    };
    let page = Resource::new_blocking(time, duplicates);
    load_again(page, move |page| match page {
        Counts::Counted(page) => view! { <Shown page=*page/> }.into_any(),
        Counts::Not(misread) => {
            let Time { from, to, zone, .. } = untrack(time);
            let days = (from.unwrap_or_default(), to.unwrap_or_default());
            view! {
                <Title text="Duplicates"/>
                <h1>"Duplicates"</h1>
                <Ranges range="days".to_owned() days zone=zone.unwrap_or_default() misread=Some(misread)/>
            }
            .into_any()
        }
    })
}

#[component]
fn Shown(page: DuplicatesPage) -> impl IntoView {
    let DuplicatesPage { counts, range, days, between, names } = page;
    let when = match range.as_str() {
        "day" => "In the last 24 hours".to_owned(),
        "month" => "In the last 30 days".to_owned(),
        "days" if days.0 == days.1 => format!("On {}", days.0),
        "days" => format!("From {} to {}", days.0, days.1),
        _ => "In the last 7 days".to_owned(),
    };
    let sum = match counts.stopped {
        0 => "no duplicate".to_owned(),
        1 => "1 duplicate".to_owned(),
        many => format!("{many} duplicates"),
    };
    let says = format!("{when} the guard stopped {sum}.");
    let chart = columns(&counts, &names);
    let legend =
        DOORS.into_iter().filter(|(door, ..)| !door.is_empty() || by_door(&counts.channels, door) > 0);
    let legend = legend.map(|(door, class, name, who)| {
        let count = by_door(&counts.channels, door);
        view! {
            <li>
                <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class=class width="10" height="10"/></svg>
                <strong>{count}</strong> " " {name} <span class="quiet">" – " {who}</span>
            </li>
        }
    });
    let legend = legend.collect_view();
    let described = describe(&says, &counts, &names);
    let past = counts.let_through;
    view! {
        <Title text="Duplicates"/>
        <h1>"Duplicates"</h1>
        <Ranges range=range days=days zone=counts.zone.clone()/>
        <p class="lead" id="sum">{when} " the guard stopped " <strong>{sum}</strong> "."</p>
        <ul class="legend plain-list" aria-label="By where they came from">{legend}</ul>
        {(past > 0).then(|| view! {
            <p>{past} " more looked like a duplicate and went through: confirmed by a person, or recorded where nobody could be asked."</p>
        })}
        <Columns says=described columns=chart/>
        <p class="quiet" id="zone">
            {between.0} " to " {between.1} ", in the zone " <strong>{counts.zone.clone()}</strong> "."
            <noscript>" Without script the page cannot know your zone; ?zone=Europe/Berlin in the address chooses one."</noscript>
        </p>
        <h2>"Where they come from"</h2>
        <Sources sources=counts.sources.clone() more=counts.more_sources/>
        <h2>"What answered them"</h2>
        <Rules counts=counts.clone()/>
        <h2>"The numbers behind the chart"</h2>
        <Periods counts names/>
        <p>
            "Some duplicates come under another key, minutes or hours later. "
            <a href="/duplicates/rehearsal">"Rehearse a duplicate window"</a>
            " to see which requests of the past it would have asked about."
        </p>
    }
}

fn columns(counts: &DuplicatesView, names: &[(String, String)]) -> Vec<Column> {
    let columns = counts.periods.iter().zip(names).map(|(period, (name, short))| Column {
        name: name.clone(),
        short: short.clone(),
        parts: DOORS
            .into_iter()
            .map(|(door, class, title, _)| (class, title, by_door(&period.channels, door)))
            .collect(),
    });
    columns.collect()
}

/// The chart in words: the sum, and when there were the most.
fn describe(says: &str, counts: &DuplicatesView, names: &[(String, String)]) -> String {
    let most = counts.periods.iter().zip(names).max_by_key(|(period, _)| period.stopped);
    match most {
        Some((period, (name, _))) if period.stopped > 0 => {
            format!(
                "{says} The most, {}, in the period of {name}. The table below has every number.",
                period.stopped
            )
        }
        _ => says.to_owned(),
    }
}

#[component]
fn Ranges(
    range: String,
    days: (String, String),
    zone: String,
    #[prop(default = None)] misread: Option<Misread>,
) -> impl IntoView {
    let wrong = move |field: &str| {
        misread.as_ref().filter(|wrong| wrong.field == field).map(|wrong| wrong.why.clone())
    };
    let said = |wrong: Option<String>| {
        wrong.map(|wrong| view! { <p class="field-error" role="alert" id="misread">{wrong}</p> })
    };
    let [from_wrong, to_wrong, zone_wrong] = ["from", "to", "zone"].map(wrong);
    let invalid = |wrong: &Option<String>| wrong.is_some().then_some("true");
    let tied = |wrong: &Option<String>| wrong.is_some().then_some("misread");
    let asked = use_query_map().with_untracked(|query| query.get("zone")).unwrap_or_default();
    let link = |word: &'static str, text: &'static str| {
        let address = if asked.is_empty() {
            format!("/duplicates?range={word}")
        } else {
            format!("/duplicates?range={word}&zone={}", encode(&asked))
        };
        let current = (range == word).then_some("page");
        view! { <li><a href=address aria-current=current>{text}</a></li> }
    };
    let chosen = range == "days";
    view! {
        <nav class="choices" aria-label="Time">
            <ul>
                {link("day", "Last 24 hours")}
                {link("week", "Last 7 days")}
                {link("month", "Last 30 days")}
            </ul>
        </nav>
        <details open=chosen>
            <summary>"Other days"</summary>
            <form class="inline" method="get" action="/duplicates">
                <input type="hidden" name="range" value="days"/>
                <div class="field">
                    <label for="from">"From"</label>
                    <input type="date" id="from" name="from" value=days.0 aria-invalid=invalid(&from_wrong) aria-describedby=tied(&from_wrong)/>
                    {said(from_wrong)}
                </div>
                <div class="field">
                    <label for="to">"To, with that day"</label>
                    <input type="date" id="to" name="to" value=days.1 aria-invalid=invalid(&to_wrong) aria-describedby=tied(&to_wrong)/>
                    {said(to_wrong)}
                </div>
                <div class="field">
                    <label for="zone-name">"Time zone"</label>
                    <input type="text" id="zone-name" name="zone" value=zone autocomplete="off" aria-invalid=invalid(&zone_wrong) aria-describedby=tied(&zone_wrong)/>
                    {said(zone_wrong)}
                </div>
                <button type="submit">"Show"</button>
            </form>
        </details>
    }
}

fn rules(counts: &std::collections::BTreeMap<String, i64>) -> String {
    let counted = Rule::ALL.iter().filter_map(|rule| {
        counts
            .get(rule.as_str())
            .filter(|count| **count > 0)
            .map(|count| format!("{count} {}", rule.as_str()))
    });
    counted.collect::<Vec<_>>().join(", ")
}

#[component]
fn Sources(sources: Vec<Source>, more: u64) -> impl IntoView {
    if sources.is_empty() {
        return view! { <p class="note">"None came in this time."</p> }.into_any();
    }
    let rows = sources.into_iter().map(|source| {
        let door = DOORS
            .iter()
            .find(|(word, ..)| *word == source.channel)
            .map_or_else(|| source.channel.clone(), |(_, _, name, _)| (*name).to_owned());
        let token = source.token.map(|token| view! { ", token " <code>{token}</code> });
        view! {
            <tr>
                <th scope="row">
                    {source.sent_by} {token}
                    <br/>
                    <span class="quiet">{rules(&source.rules)}</span>
                </th>
                <td>{door}</td>
                <td class="number">{source.stopped}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="table" role="region" aria-label="Where duplicates come from" tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th scope="col">"Who sent them, and what answered"</th>
                        <th scope="col">"Through"</th>
                        <th scope="col" class="number">"Stopped"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        {(more > 0).then(|| view! { <p class="quiet">{more} " further sources, with fewer each."</p> })}
    }
    .into_any()
}

fn meaning(rule: Rule) -> &'static str {
    match rule {
        Rule::Replayed => "Same key, same meaning: got the first answer.",
        Rule::Waited => "The same at the same moment: waited, got the first answer.",
        Rule::Existing => "Another key for what is there already: got the request that made it.",
        Rule::Mismatched => "Same key, something else: refused.",
        Rule::Expired => "A key whose retention is over: refused, with the way to the first request.",
        Rule::Asked => "The same under another key: asked whether another is meant.",
        Rule::Confirmed => "Asked, and requested all the same with a reason.",
        Rule::Recorded => "Could not be asked (an event, a step of another request): recorded.",
    }
}

#[component]
fn Rules(counts: DuplicatesView) -> impl IntoView {
    let rows = Rule::ALL.into_iter().map(|rule| {
        let count = counts.rules.get(rule.as_str()).copied().unwrap_or_default();
        view! {
            <tr>
                <th scope="row">
                    {rule.as_str()}
                    <br/>
                    <span class="quiet">{meaning(rule)}</span>
                </th>
                <td class="number">{count}</td>
                <td>{if rule.stops() { "stopped" } else { "went through" }}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="table" role="region" aria-label="What answered duplicates" tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th scope="col">"Rule, and what it means"</th>
                        <th scope="col" class="number">"How many"</th>
                        <th scope="col">"Then"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Periods(counts: DuplicatesView, names: Vec<(String, String)>) -> impl IntoView {
    let shown: Vec<_> = DOORS
        .into_iter()
        .filter(|(door, ..)| !door.is_empty() || by_door(&counts.channels, door) > 0)
        .collect();
    let heads = shown
        .iter()
        .map(|(_, _, name, _)| view! { <th scope="col" class="number">{*name}</th> })
        .collect_view();
    let sums =
        shown.iter().map(|(door, ..)| view! { <td class="number">{by_door(&counts.channels, door)}</td> });
    let sums = sums.collect_view();
    let rows = counts.periods.iter().zip(names).map(|(period, (name, _))| {
        let cells = shown
            .iter()
            .map(|(door, ..)| view! { <td class="number">{by_door(&period.channels, door)}</td> })
            .collect_view();
        view! {
            <tr>
                <th scope="row">{name}</th>
                {cells}
                <td class="number"><strong>{period.stopped}</strong></td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="table" role="region" aria-label="Duplicates over time" tabindex="0">
            <table id="periods">
                <thead>
                    <tr>
                        <th scope="col">"When"</th>
                        {heads}
                        <th scope="col" class="number">"Stopped"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
                <tfoot>
                    <tr>
                        <th scope="row">"In all"</th>
                        {sums}
                        <td class="number"><strong>{counts.stopped}</strong></td>
                    </tr>
                </tfoot>
            </table>
        </div>
    }
}
