//! `/teams/{team}/resources`: what a team has.

use super::{cursor, load, resource::Stands};
use crate::{
    components::{
        listing::{OfTeam, Pager},
        moment::{Ends, When, urgency},
        secret::Secret,
        values::Members,
    },
    rpc::team::{self, resources},
};
use domain::{expiry::Nearness, state::RequestState};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The resources of a team.
#[component]
pub fn Resources() -> impl IntoView {
    let params = use_params_map();
    let team = Memo::new(move |_| params.read().get("team").unwrap_or_default());
    let cursor = cursor();
    let page =
        Resource::new_blocking(move || (team.get(), cursor()), |(team, cursor)| resources(team, cursor));
    load(page, move |shown| {
        let team = team.get_untracked();
        let (page, reveal) = (shown.page, shown.reveal);
        let tells = shown.tells.then(|| view! { <p><a href=format!("/teams/{team}/notifications")>"Notifications"</a> <span class="quiet">": who is told of what happens"</span></p> });
        let quota = shown.quota.map(
            |uses| view! { <p class="quiet" id="quota">"The team " {uses.to_string()} " of its quota."</p> },
        );
        let empty = page.results.is_empty();
        let at_least = page.total_is.is_some();
        let path = format!("/teams/{team}/resources");
        let cards = page.results.into_iter().map(|card| view! { <Card card reveal/> }).collect_view();
        view! {
            <Title text=format!("Resources of team {team}")/>
            <h1>"Resources of team " {team.clone()}</h1>
            <OfTeam team=team.clone() requests=false/>
            <p><a href=format!("/teams/{team}/hooks")>"Hooks of the team"</a> <span class="quiet">": events that ask for something"</span></p>
            {tells}
            {quota}
            {if empty {
                view! { <p class="note">"The team has nothing yet. " <a href="/">"Choose something from the catalog."</a></p> }
                    .into_any()
            } else {
                view! {
                    <ul class="cards">{cards}</ul>
                    <Pager total=page.total at_least what="resources" path next=page.next/>
                }
                .into_any()
            }}
        }
    })
}

#[component]
fn Card(card: team::Card, reveal: bool) -> impl IntoView {
    let team::Card { resource, near, pending } = card;
    let (team, kind, name) =
        (resource.team.to_string(), resource.resource_type.to_string(), resource.name.to_string());
    let secrets = resource.secret_outputs.into_iter().map(|output| {
        view! { <Secret team=team.clone() kind=kind.clone() resource=name.clone() output may=reveal/> }
    });
    let secrets = secrets.collect_view();
    let page = format!("/teams/{team}/resources/{kind}/{name}");
    let what = (resource.state != "active").then(|| {
        let undecided = pending.as_ref().is_some_and(|request| request.state == RequestState::Unknown);
        view! { <p class="note" class:caution=undecided><Stands resource_state=resource.state.clone() pending/></p> }
    });
    let urgent = near.filter(|near| *near != Nearness::Far);
    let end = resource.expires_at;
    let some_outputs = !resource.outputs.is_empty();
    view! {
        <li class="card" id=format!("{}-{}", kind, name)>
            <h2><a href=page>{name.clone()}</a></h2>
            <p class="quiet">
                {kind.clone()} ", version " {resource.version} ", since " <When at=resource.created_at/> ". "
                {end.filter(|_| urgent.is_none()).map(|at| view! { "It " <Ends at near=Nearness::Far/> ". " })}
                <a href=format!("/requests/{}", resource.created_by.id)>
                    "The request that made it" <span class="visually-hidden">": " {name.clone()}</span>
                </a>
            </p>
            {what}
            {end.zip(urgent).map(|(at, near)| view! { <p class=urgency(near)>"It " <Ends at near/> "."</p> })}
            {some_outputs.then(|| view! { <Members members=resource.outputs/> })}
            <dl class="facts">{secrets}</dl>
            <details>
                <summary>"Parameters"</summary>
                <Members members=resource.parameters/>
            </details>
        </li>
    }
}
