//! Lists of requests, and the way to their next page.

use super::{moment::When, state::State};
use domain::view::RequestView;
use leptos::prelude::*;

/// A table of requests, newest first.
#[component]
pub fn Requests(
    /// The requests.
    requests: Vec<RequestView>,
) -> impl IntoView {
    let rows = requests.into_iter().map(|request| {
        view! {
            <tr>
                <th scope="row"><a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a></th>
                <td>{request.offering.to_string()}</td>
                <td>{request.team.to_string()}</td>
                <td><State state=request.state/></td>
                <td><When at=request.created_at/></td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="table" role="region" aria-label="Requests" tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th scope="col">"Name"</th>
                        <th scope="col">"Offering"</th>
                        <th scope="col">"Team"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Requested"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
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
    /// The cursor of the next page.
    next: Option<String>,
) -> impl IntoView {
    let count =
        if at_least { format!("At least {total} {what}.") } else { format!("{total} {what} in all.") };
    let next = next.map(|cursor| format!("{path}?cursor={}", crate::address::encode(&cursor)));
    view! {
        <nav class="pager" aria-label="Pages">
            <span class="quiet">{count}</span>
            {next.map(|next| view! { <a href=next>"Older"</a> })}
        </nav>
    }
}
