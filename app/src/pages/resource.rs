//! `/teams/{team}/resources/{type}/{name}`: what a resource is, what is under way with it, and what can be done with it.

use super::{change::Deleted, load};
use crate::{
    components::{
        made_of::Parts,
        moment::{Ends, When, urgency},
        secret::Secret,
        state::State,
        values::Members,
    },
    rpc::team::{Found, ResourcePage, foremost_of, see_resource},
};
use domain::{
    action::Kind,
    expiry::Nearness,
    form::{self, shown},
    state::RequestState,
    view::{Object, OfferingView, RequestSummary},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;
use std::collections::{BTreeMap, BTreeSet};

/// The page of a resource.
#[component]
pub fn ResourceIs() -> impl IntoView {
    let params = use_params_map();
    let asked = move || {
        let params = params.read();
        let part = |name: &str| params.get(name).unwrap_or_default();
        (part("team"), part("type"), part("name"))
    };
    let page = Resource::new_blocking(asked, |(team, kind, name)| see_resource(team, kind, name));
    load(page, move |found| match found {
        Found::There(page) => view! { <Shown page=*page/> }.into_any(),
        Found::Deleted(request) => {
            let (team, _, name) = untrack(asked);
            view! { <Deleted team name request/> }.into_any()
        }
    })
}

#[component]
fn Shown(page: ResourcePage) -> impl IntoView {
    let ResourcePage { detail, offering, change, reveal, parts, end } = page;
    let resource = detail.resource;
    let (team, kind, name) =
        (resource.team.to_string(), resource.resource_type.to_string(), resource.name.to_string());
    let path = format!("/teams/{team}/resources/{kind}/{name}");
    let pending = foremost_of(&detail.pending);
    let resource_state = resource.state.clone();
    let titles = offering.as_ref().map(|offering| titles(&offering.parameters)).unwrap_or_default();
    let near = end.as_ref().map_or(Nearness::Far, |end| end.near);
    let put_off = end.filter(|_| change).map(|end| end.actions).unwrap_or_default();
    let put_off = put_off.into_iter().map(|action| {
        view! { " " <a href=format!("{path}/actions/{}", action.id)>{action.title}</a> "." }
    });
    let put_off = put_off.collect_view();
    let secrets = resource.secret_outputs.into_iter().map(|output| {
        view! { <Secret team=team.clone() kind=kind.clone() resource=name.clone() output may=reveal/> }
    });
    let secrets = secrets.collect_view();
    let active = resource.state == "active";
    let applied =
        detail.applied.map(|applied| view! { <Differences applied desired=resource.parameters.clone()/> });
    view! {
        <Title text=format!("{kind} {name}")/>
        <nav class="crumbs" aria-label="Where this is">
            <a href=format!("/teams/{team}/resources")>"Resources of team " {team.clone()}</a>
        </nav>
        <h1>{name.clone()}</h1>
        <p class="quiet">
            {kind.clone()} " of team " {team.clone()} ", version " {resource.version} ", since "
            <When at=resource.created_at/>
        </p>
        <div class="standing"><p><Stands resource_state pending/></p></div>
        {resource.expires_at.map(|at| view! {
            <p id="expiry" class=urgency(near)>
                "It " <Ends at near/> "." {put_off} " "
                <span class="quiet">"The portal tells of that beforehand, where somebody wants to be told; it removes nothing by itself."</span>
            </p>
        })}
        {(change && active).then(|| view! { <Doings path=path.clone() offering/> })}
        <Summaries title="Under way" requests=detail.pending/>
        {applied}
        <h2>"What it is meant to be"</h2>
        <Members members=resource.parameters titles/>
        {(!parts.is_empty()).then(|| view! { <h2>"Made of"</h2> <Parts parts/> })}
        <h2>"Outputs"</h2>
        <Members members=resource.outputs/>
        <dl class="facts">{secrets}</dl>
        <Summaries title="What was asked of it" requests=detail.requests/>
    }
}

/// What the parameters of a schema are called, by their names.
fn titles(schema: &serde_json::Value) -> BTreeMap<String, String> {
    form::fields(schema).into_iter().map(|field| (field.name, field.title)).collect()
}

/// Says whether it is there, and what that waits for.
#[component]
pub(super) fn Stands(
    /// The resource's state.
    resource_state: String,
    /// The request on which it waits.
    pending: Option<RequestSummary>,
) -> impl IntoView {
    let waits = pending.as_ref().map(|request| (Kind::of(&request.action), request.state));
    let Some(request) = pending.filter(|request| request.state == RequestState::Unknown) else {
        return stands(&resource_state, waits).into_any();
    };
    let what = match Kind::of(&request.action) {
        Kind::Create => "made",
        Kind::Delete => "deleted",
        Kind::Update | Kind::Action => "changed",
    };
    view! {
        "Nobody can tell whether it was " {what} ". " <a href=format!("/requests/{}", request.id)>"Somebody has to decide"</a> "."
    }
    .into_any()
}

/// The same where somebody can tell.
fn stands(resource_state: &str, waits: Option<(Kind, RequestState)>) -> &'static str {
    use RequestState::{PendingApproval, Queued};
    match (resource_state, waits) {
        ("creating", Some((_, PendingApproval))) => "It is not made yet: that waits for approval.",
        ("creating", Some((_, Queued))) => "It is not made yet: that waits for a worker.",
        ("creating", _) => "It is being made.",
        ("deleting", _) => "It is being deleted.",
        (_, Some((Kind::Delete, PendingApproval))) => {
            "It is there. Somebody asked to delete it, which waits for approval."
        }
        (_, Some((_, PendingApproval))) => "It is there, and a change waits for approval.",
        (_, Some(_)) => "It is there, and a change is under way.",
        (_, None) => "It is there.",
    }
}

/// What can be done with it: links to forms, each with a request ID of its own.
#[component]
fn Doings(path: String, offering: Option<OfferingView>) -> impl IntoView {
    let Some(offering) = offering else {
        return view! { <p class="note caution">"What made it is not available at present, so it cannot be changed."</p> }
            .into_any();
    };
    let actions = offering.actions.into_iter().map(|action| {
        let place = format!("{path}/actions/{}", action.id);
        view! { <li><a href=place>{action.title}</a> " " <span class="quiet">{action.description}</span></li> }
    });
    let actions = actions.collect_view();
    view! {
        <nav aria-label="What can be done with it">
            <ul class="plain-list">
                {offering.updatable.then(|| view! {
                    <li><a href=format!("{path}/change")>"Change"</a> " " <span class="quiet">"its parameters"</span></li>
                })}
                {actions}
                <li><a href=format!("{path}/delete")>"Delete"</a> " " <span class="quiet">"and free its name"</span></li>
            </ul>
        </nav>
    }
    .into_any()
}

/// What is not carried out yet: what it is, and what it shall be.
#[component]
fn Differences(applied: Object, desired: Object) -> impl IntoView {
    let names: BTreeSet<&String> = applied.keys().chain(desired.keys()).collect();
    let differing = names.into_iter().filter(|name| applied.get(*name) != desired.get(*name));
    let text = |object: &Object, name: &str| object.get(name).map_or_else(|| "not set".to_owned(), shown);
    let rows = differing.map(|name| {
        let (is, shall) = (text(&applied, name), text(&desired, name));
        view! { <tr><th scope="row">{name.clone()}</th> <td>{is}</td> <td>{shall}</td></tr> }
    });
    let rows = rows.collect_view();
    view! {
        <h2>"What is being changed"</h2>
        <div class="table" tabindex="0" role="group" aria-label="What is being changed">
            <table>
                <thead>
                    <tr><th scope="col">"Parameter"</th> <th scope="col">"Is"</th> <th scope="col">"Shall be"</th></tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Summaries(title: &'static str, requests: Vec<RequestSummary>) -> impl IntoView {
    if requests.is_empty() {
        return ().into_any();
    }
    let rows = requests.into_iter().map(|request| {
        view! {
            <li>
                <a href=format!("/requests/{}", request.id)>{request.action}</a> " " <State state=request.state/> " "
                <span class="quiet">"by " {request.requested_by} ", " <When at=request.created_at/></span>
            </li>
        }
    });
    view! {
        <h2>{title}</h2>
        <ul class="plain-list">{rows.collect_view()}</ul>
    }
    .into_any()
}
