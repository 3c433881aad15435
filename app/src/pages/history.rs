//! `/history`: all requests with their repeats, for administrators.

use super::list::{Kind, List};
use crate::{
    components::{
        moment::When,
        state::{State, door},
        submissions::{Submissions, tally},
    },
    rpc::lists::Row,
};
use leptos::prelude::*;
use leptos_meta::Title;

/// The history of all requests.
#[component]
pub fn History() -> impl IntoView {
    let kind = Kind {
        head: |_| view! { <Head/> }.into_any(),
        empty: || view! { <p class="note">"Nothing was requested yet."</p> }.into_any(),
        rows: |rows| view! { <Rows rows/> }.into_any(),
    };
    view! { <List kind path=Signal::stored("/history".to_owned()) team=None/> }
}

#[component]
fn Head() -> impl IntoView {
    view! {
        <Title text="History"/>
        <h1>"History"</h1>
        <p class="lead">
            "All requests of all teams, each with every submission that arrived for it. "
            <a href="/duplicates">"How many were duplicates?"</a>
        </p>
    }
}

#[component]
fn Rows(rows: Vec<Row>) -> impl IntoView {
    let rows = rows.into_iter().map(|row| view! { <OneRow row/> }).collect_view();
    view! {
        <div class="table" role="group" aria-label="Requests with their submissions" tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th scope="col">"Name"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Offering"</th>
                        <th scope="col">"Team"</th>
                        <th scope="col">"Requested"</th>
                        <th scope="col">"By"</th>
                    </tr>
                </thead>
                {rows}
            </table>
        </div>
    }
}

#[component]
fn OneRow(row: Row) -> impl IntoView {
    let Row { request, submissions } = row;
    view! {
        <tbody class="with-more">
            <tr>
                <th scope="row">
                    <a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a>
                    <br/>
                    <span class="quiet">{request.action}</span>
                </th>
                <td><State state=request.state/></td>
                <td>{request.offering.to_string()}</td>
                <td>{request.team.to_string()}</td>
                <td><When at=request.created_at/></td>
                <td>{request.requested_by} " by " {door(request.channel)}</td>
            </tr>
            <tr>
                <td colspan="6">
                    {submissions.map(|submissions| view! {
                        <details>
                            <summary>{tally(&submissions)}</summary>
                            <Submissions submissions/>
                        </details>
                    })}
                </td>
            </tr>
        </tbody>
    }
}
