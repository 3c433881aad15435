//! Lists of requests, and the way to their next page.

use super::{moment::When, state::State};
use domain::view::RequestView;
use leptos::prelude::*;

/// A table of requests, newest first.
#[component]
pub fn Requests(
    /// The requests.
    requests: Vec<RequestView>,
    /// Whether they are all of one team, which the page names.
    #[prop(optional)]
    of_team: bool,
) -> impl IntoView {
    let columns: &[&str] = if of_team {
        &["Name", "State", "Offering", "Requested", "By"]
    } else {
        &["Name", "State", "Offering", "Team", "Requested", "By"]
    };
    let rows = requests.into_iter().map(|request| {
        let team = (!of_team).then(|| view! { <td>{request.team.to_string()}</td> });
        view! {
            <tr>
                <th scope="row">
                    <a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a>
                    <br/>
                    <span class="quiet">{request.action}</span>
                </th>
                <td><State state=request.state/></td>
                <td>{request.offering.to_string()}</td>
                {team}
                <td><When at=request.created_at/></td>
                <td>{request.requested_by}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <Table name="Requests" columns=columns>{rows}</Table>
    }
}

/// A table with its name and the heads of its columns, which scrolls by itself where it is too wide.
///
/// Where its rows become blocks, their roles are written out: a table that is not laid out as one is none to every screen
/// reader.
#[component]
pub fn Table(
    /// What it is called; shown to nobody who sees the heading above it.
    name: &'static str,
    /// The heads of the columns.
    columns: &'static [&'static str],
    /// Whether a narrow screen shows each row as a block, in which every [`Cell`] names its column.
    #[prop(optional)]
    blocks: bool,
    /// Whether the rows come in bodies of their own.
    #[prop(optional)]
    bodies: bool,
    /// The rows.
    children: Children,
) -> impl IntoView {
    let id = name.to_lowercase().replace(' ', "-");
    let role = move |role: &'static str| blocks.then_some(role);
    let heads = columns
        .iter()
        .map(|head| view! { <th scope="col" role=role("columnheader")>{*head}</th> })
        .collect_view();
    let rows = if bodies {
        children()
    } else {
        view! { <tbody role=role("rowgroup")>{children()}</tbody> }.into_any()
    };
    view! {
        <div class="table" role="region" aria-labelledby=id tabindex="0">
            <table class:blocks=blocks role=role("table")>
                <caption class="visually-hidden" id=id.clone()>{name}</caption>
                <thead role=role("rowgroup")>
                    <tr role=role("row")>{heads}</tr>
                </thead>
                {rows}
            </table>
        </div>
    }
}

/// A cell of a table whose rows a narrow screen shows as blocks.
#[component]
pub fn Cell(
    /// The head of its column.
    label: &'static str,
    /// What stands in it.
    children: Children,
) -> impl IntoView {
    view! { <td role="cell" data-label=label>{children()}</td> }
}

/// How many there are, and the link to older ones.
#[component]
pub fn Pager(
    /// How many match.
    total: i64,
    /// Whether counting stopped there.
    at_least: bool,
    /// What is counted, in the plural.
    what: &'static str,
    /// The page's path.
    path: String,
    /// The filter of the page, as its address spells it.
    #[prop(optional)]
    filter: String,
    /// Whether there are newer ones.
    #[prop(optional)]
    older: bool,
    /// The cursor of the next page.
    next: Option<String>,
) -> impl IntoView {
    let count = counted(total, at_least, what);
    let next = next.map(|cursor| {
        let and = if filter.is_empty() { "" } else { "&" };
        format!("{path}?{filter}{and}cursor={}", crate::address::encode(&cursor))
    });
    let newest = if filter.is_empty() { path } else { format!("{path}?{filter}") };
    view! {
        <nav class="pager" aria-label="Pages">
            <span class="quiet">{count}</span>
            {older.then(|| view! { <a href=newest>"Newest"</a> })}
            {next.map(|next| view! { <a href=next>"Older"</a> })}
        </nav>
    }
}

/// How many there are, in words; of one, in the singular.
fn counted(total: i64, at_least: bool, what: &str) -> String {
    if at_least {
        return format!("At least {total} {what}.");
    }
    let one = what.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let one = one.or_else(|| what.strip_suffix('s').map(str::to_owned)).filter(|_| total == 1);
    format!("{total} {} in all.", one.as_deref().unwrap_or(what))
}

/// The ways between the lists of a team.
#[component]
pub fn OfTeam(
    /// The team.
    team: String,
    /// Whether this is the list of its requests; else that of its resources.
    requests: bool,
) -> impl IntoView {
    let resources = format!("/teams/{team}/resources");
    let all = format!("/teams/{team}/requests");
    view! {
        <nav class="choices" aria-label="Of the team">
            <ul>
                <li><a href=resources aria-current=(!requests).then_some("page")>"Resources"</a></li>
                <li><a href=all aria-current=requests.then_some("page")>"Requests"</a></li>
            </ul>
        </nav>
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_said_in_the_singular() {
        for (total, what, text) in [
            (0, "requests", "0 requests in all."),
            (1, "requests", "1 request in all."),
            (1, "deliveries", "1 delivery in all."),
            (2, "deliveries", "2 deliveries in all."),
        ] {
            assert_eq!(counted(total, false, what), text);
        }
        assert_eq!(counted(10_000, true, "requests"), "At least 10000 requests.");
    }
}
