//! `/orphans`: what was done elsewhere after its request had come to another end or attempt; for administrators.

use super::{cursor, load_again};
use crate::{
    components::{
        listing::{Cell, Pager, Table},
        moment::When,
        state::{State, word},
    },
    rpc::orphans::orphans,
};
use domain::{callback::OrphanView, view::Page};
use leptos::prelude::*;
use leptos_meta::Title;

/// The page of orphans.
#[component]
pub fn Orphans() -> impl IntoView {
    let cursor = cursor();
    let page = Resource::new_blocking(cursor, |cursor| async move {
        let older = cursor.is_some();
        orphans(cursor).await.map(|page| (page, older))
    });
    load_again(page, |(page, older)| view! { <Shown page older/> })
}

#[component]
fn Shown(page: Page<OrphanView>, older: bool) -> impl IntoView {
    let at_least = page.total_is.is_some();
    let empty = page.results.is_empty();
    let rows = page.results.into_iter().map(|orphan| view! { <Row orphan/> }).collect_view();
    view! {
        <Title text="Orphans"/>
        <h1>"Orphans"</h1>
        <p class="lead">
            "A service or a flow reported that it made something, and by then the request had ended otherwise: it was "
            "canceled, or had failed. That end stays. But something may stand there that no team sees, and that counts "
            "in no quota. The same goes for an attempt that failed, was tried again, and was reported as done after all: "
            "what it made may stand beside what the later attempt makes."
        </p>
        <h2>"What to do"</h2>
        <ol>
            <li>
                "Open the request: its history says when it ended, why, and what was reported as made after that, with the "
                "outputs that are no secrets."
            </li>
            <li>
                "Look at the service itself for that, and for what bears the request's ID. The portal removed what it knew "
                "of when the request ended, so there may be nothing."
            </li>
            <li>
                "If something stands and the request had failed, “Try again” on its page looks first and takes over what is "
                "there. If it was canceled, or nobody needs the thing, remove it there: the portal does not do that by "
                "itself, since nobody asks for it any more."
            </li>
            <li>
                "If a later attempt goes on or has succeeded, see whether there are two. An entry goes by itself once the "
                "later attempt comes to the outputs that were reported of the earlier one: then it took that over."
            </li>
        </ol>
        <p class="quiet">
            "An entry stays as long as the portal still knows the request's key, counted from the report, and in the audit "
            "for good. Nothing marks it as dealt with."
        </p>
        <h2>"Reported late"</h2>
        {if empty {
            view! { <p class="note">"Nothing was reported too late."</p> }.into_any()
        } else {
            view! {
                <Table
                    name="Orphans"
                    columns=&["Name", "The request is", "Reported as done", "It ended", "Offering", "Team"] blocks=true
                >
                    {rows}
                </Table>
                <Pager total=page.total at_least what="orphans" path="/orphans".to_owned() older next=page.next/>
            }
            .into_any()
        }}
    }
}

#[component]
fn Row(orphan: OrphanView) -> impl IntoView {
    let OrphanView { attempt, at, request, .. } = orphan;
    let ended = match request.finished_at {
        Some(at) => view! { <When at/> }.into_any(),
        // Somebody tried again since.
        None => view! { <span class="quiet">{word(request.state)}</span> }.into_any(),
    };
    view! {
        <tr role="row">
            <th scope="row" role="rowheader">
                <a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a>
                <br/>
                <span class="quiet">"attempt " {attempt} ", request " <code class="key">{request.id.to_string()}</code></span>
            </th>
            <Cell label="The request is"><State state=request.state/></Cell>
            <Cell label="Reported as done"><When at/></Cell>
            <Cell label="It ended">{ended}</Cell>
            <Cell label="Offering">{request.offering.to_string()}</Cell>
            <Cell label="Team">{request.team.to_string()}</Cell>
        </tr>
    }
}
