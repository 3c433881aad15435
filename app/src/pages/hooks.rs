//! `/teams/{team}/hooks`: the doors that a team opens to outside systems' events.

use super::{cursor, load};
use crate::{
    components::{
        listing::{Pager, Table},
        moment::When,
        told::Said,
    },
    rpc::hooks::{HooksPage, hooks},
};
use domain::hook::HookView;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The hooks of a team.
#[component]
pub fn Hooks() -> impl IntoView {
    let params = use_params_map();
    let team = Memo::new(move |_| params.read().get("team").unwrap_or_default());
    let cursor = cursor();
    let page = Resource::new_blocking(move || (team.get(), cursor()), |(team, cursor)| hooks(team, cursor));
    load(page, move |shown| {
        let team = team.get_untracked();
        let HooksPage { page, manage, flash } = shown;
        let path = format!("/teams/{team}/hooks");
        let at_least = page.total_is.is_some();
        let empty = page.results.is_empty();
        let rows = page.results.into_iter().map(|hook| view! { <Row hook/> }).collect_view();
        view! {
            <Title text=format!("Hooks of team {team}")/>
            <nav class="crumbs" aria-label="Where this is">
                <a href=format!("/teams/{team}/resources")>"Resources of team " {team.clone()}</a>
            </nav>
            <h1>"Hooks of team " {team.clone()}</h1>
            <p class="lead">
                "A hook lets an outside system's event ask for something, once however often it is delivered."
            </p>
            <Said flash/>
            {if manage {
                view! { <p class="actions"><a class="button" href=format!("{path}/new")>"Make a hook"</a></p> }.into_any()
            } else {
                view! { <p class="quiet">"Owners of the team make and change hooks."</p> }.into_any()
            }}
            {if empty {
                view! { <p class="note">"The team has no hook yet."</p> }.into_any()
            } else {
                view! {
                    <Table name="Hooks" columns=&["Hook", "Asks for", "Signed by", "Made"]>{rows}</Table>
                    <Pager total=page.total at_least what="hooks" path next=page.next/>
                }
                .into_any()
            }}
        }
    })
}

#[component]
fn Row(hook: HookView) -> impl IntoView {
    let page = format!("/teams/{}/hooks/{}", hook.team, hook.id);
    view! {
        <tr>
            <th scope="row"><a href=page>{hook.definition.title}</a></th>
            <td>{hook.definition.offering.to_string()}</td>
            <td>{hook.definition.signature.title()}</td>
            <td><When at=hook.created_at/> <span class="quiet">" by " {hook.created_by}</span></td>
        </tr>
    }
}
