//! `/history`: all requests with their repeats, for administrators.

use super::{cursor, load};
use crate::{
    components::{
        listing::Pager,
        moment::When,
        state::{State, door},
        submissions::{Submissions, tally},
    },
    rpc::requests::{HistoryRow, history},
};
use leptos::prelude::*;
use leptos_meta::Title;

/// The history of all requests.
#[component]
pub fn History() -> impl IntoView {
    let page = Resource::new_blocking(cursor(), history);
    load(page, |page| {
        let empty = page.results.is_empty();
        let at_least = page.total_is.is_some();
        let rows = page.results.into_iter().map(|row| view! { <Row row/> }).collect_view();
        view! {
            <Title text="History"/>
            <h1>"History"</h1>
            <p class="lead">"All requests of all teams, each with every submission that arrived for it."</p>
            {if empty {
                view! { <p class="note">"Nothing was requested yet."</p> }.into_any()
            } else {
                view! {
                    <div class="table" role="region" aria-label="All requests" tabindex="0">
                        <table>
                            <thead>
                                <tr>
                                    <th scope="col">"Name"</th>
                                    <th scope="col">"Offering"</th>
                                    <th scope="col">"Team"</th>
                                    <th scope="col">"State"</th>
                                    <th scope="col">"Requested"</th>
                                    <th scope="col">"By"</th>
                                </tr>
                            </thead>
                            {rows}
                        </table>
                    </div>
                    <Pager total=page.total at_least what="requests" path="/history".to_owned() next=page.next/>
                }
                .into_any()
            }}
        }
    })
}

#[component]
fn Row(row: HistoryRow) -> impl IntoView {
    let HistoryRow { request, submissions } = row;
    let counted = tally(&submissions);
    view! {
        <tbody class="with-more">
            <tr>
                <th scope="row"><a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a></th>
                <td>{request.offering.to_string()}</td>
                <td>{request.team.to_string()}</td>
                <td><State state=request.state/></td>
                <td><When at=request.created_at/></td>
                <td>{request.requested_by} " by " {door(request.channel)}</td>
            </tr>
            <tr>
                <td colspan="6">
                    <details>
                        <summary>{counted}</summary>
                        <Submissions submissions/>
                    </details>
                </td>
            </tr>
        </tbody>
    }
}
