//! `/duplicates/rehearsal`: what a proposed `duplicate_window` would have asked about; for administrators.

use crate::{
    components::{
        listing::Table,
        moment::{When, apart},
        state::State,
    },
    pages::load_again,
    rpc::duplicates::{Misread, RehearsalPage, rehearsal},
};
use domain::duplicates::{RehearsalView, RehearsedPair};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The page of a rehearsal.
#[component]
pub fn Rehearsal() -> impl IntoView {
    let query = use_query_map();
    let asked = move || {
        let query = query.read();
        let given = |name, usual: &str| {
            query.get(name).filter(|text: &String| !text.is_empty()).unwrap_or_else(|| usual.to_owned())
        };
        (query.get("offering").filter(|id| !id.is_empty()), given("window", "24h"), given("days", "30"))
    };
    let page = Resource::new_blocking(asked, |(offering, window, days)| rehearsal(offering, window, days));
    load_again(page, move |page| {
        let (offering, window, days) = untrack(asked);
        let RehearsalPage { offerings, rehearsal, misread } = page;
        view! {
            <Title text="Rehearsal of a duplicate window"/>
            <nav class="crumbs" aria-label="Where this is"><a href="/duplicates">"Duplicates"</a></nav>
            <h1>"Rehearsal of a duplicate window"</h1>
            <p class="lead">
                "An offering's " <code>"duplicate_window"</code>
                " asks before the same thing is requested again under another key. Here a window is played over what was requested. Nothing is changed."
            </p>
            <Choose offerings offering window days misread/>
            {rehearsal.map(|rehearsal| view! { <Came rehearsal/> })}
        }
    })
}

/// A length of time as settings spell it.
fn span(seconds: u64) -> String {
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{seconds}s")
}

#[component]
fn Choose(
    offerings: Vec<(String, String, Option<u64>)>,
    offering: Option<String>,
    window: String,
    days: String,
    misread: Option<Misread>,
) -> impl IntoView {
    let (window_wrong, other_wrong) = match misread {
        Some(Misread { field, why }) if field == "duplicate_window" => (Some(why), None),
        other => (None, other.map(|Misread { field, why }| format!("{field}: {why}"))),
    };
    let invalid = window_wrong.is_some().then_some("true");
    let options = offerings.into_iter().map(|(id, title, has)| {
        let text = match has {
            Some(seconds) => format!("{title} (has {})", span(seconds)),
            None => format!("{title} (has none)"),
        };
        let selected = offering.as_ref() == Some(&id);
        view! { <option value=id selected=selected>{text}</option> }
    });
    let options = options.collect_view();
    let days =
        [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("366", "a year")].map(|(value, text)| {
            let selected = days == value;
            view! { <option value=value selected=selected>{text}</option> }
        });
    view! {
        {other_wrong.map(|wrong| view! { <p class="note wrong" role="alert" id="misread">{wrong}</p> })}
        <form class="inline" method="get" action="/duplicates/rehearsal">
            <div class="field wide-field">
                <label for="offering">"Offering"</label>
                <select id="offering" name="offering">{options}</select>
            </div>
            <div class="field">
                <label for="window">"Window"</label>
                <input type="text" id="window" name="window" value=window required pattern="[0-9]+(ms|s|m|h|d)"
                    title="A time as 30m, 24h or 7d" autocomplete="off" aria-invalid=invalid
                    aria-describedby=invalid.map(|_| "misread")/>
                {window_wrong.map(|wrong| view! { <p class="field-error" role="alert" id="misread">{wrong}</p> })}
            </div>
            <div class="field">
                <label for="days">"Over the last"</label>
                <select id="days" name="days">{days.into_iter().collect_view()}</select>
            </div>
            <button type="submit" class="primary">"Rehearse"</button>
        </form>
    }
}

#[component]
fn Came(rehearsal: RehearsalView) -> impl IntoView {
    let RehearsalView {
        offering,
        window_seconds,
        from,
        to,
        complete,
        judged,
        asked,
        recorded,
        pairs,
        more_pairs,
        ..
    } = rehearsal;
    let window = span(window_seconds);
    let listed = pairs.len();
    let none = pairs.is_empty();
    let rows = pairs.into_iter().map(|pair| view! { <Pair pair/> }).collect_view();
    view! {
        <h2>"What it would have asked about"</h2>
        <p id="came">
            "Of " <strong>{judged}</strong> {if judged == 1 { " create" } else { " creates" }} " of " <code>{offering}</code>
            " a window of " <strong>{window.clone()}</strong> " would have asked about " <strong>{asked}</strong>
            {(recorded > 0).then(|| format!(", and recorded {recorded} whose sender cannot be asked"))} "."
        </p>
        <p class="quiet">
            "Looked at: " <When at=from/> " to " <When at=to/> ". "
            {if complete {
                "All requests of that time were read."
            } else {
                "There are more requests than one rehearsal reads (50,000): older ones were not looked at, and the oldest of these have not been compared with all before them."
            }}
            " What had failed, or was canceled or rejected, before the later one came is not counted, as the guard does not."
        </p>
        {if none {
            view! {
                <p class="note">{format!("Nobody requested the same twice within {window}. A longer window or more days may show some.")}</p>
            }
            .into_any()
        } else {
            view! {
                <Table name="What would have been asked about" columns=&["Later request", "Earlier request", "Apart", "Team", "Likeness"]>{rows}</Table>
            }
            .into_any()
        }}
        {(more_pairs > 0).then(|| view! { <p class="quiet">"The newest " {listed} " are listed; " {more_pairs} " more are counted."</p> })}
    }
}

#[component]
fn Pair(pair: RehearsedPair) -> impl IntoView {
    let RehearsedPair { team, later, earlier, apart_millis, same_name, same_requester, asked } = pair;
    let likeness = [
        if same_name { "same name" } else { "another name" },
        if same_requester { "same person" } else { "another person" },
        if asked { "would have been asked" } else { "would have been recorded" },
    ]
    .join(", ");
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/requests/{}", later.id)>{later.name.to_string()}</a>
                <br/>
                <span class="quiet">{later.requested_by} ", " <When at=later.created_at/></span>
            </th>
            <td>
                <a href=format!("/requests/{}", earlier.id)>{earlier.name.to_string()}</a> " " <State state=earlier.state/>
                <br/>
                <span class="quiet">{earlier.requested_by} ", " <When at=earlier.created_at/></span>
            </td>
            <td>{apart(apart_millis)}</td>
            <td>{team}</td>
            <td class="words">{likeness}</td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_said_as_settings_spell_it() {
        assert_eq!((span(86_400), span(5400), span(1)), ("1d".into(), "90m".into(), "1s".into()));
    }
}
