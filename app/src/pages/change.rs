//! `/teams/{team}/resources/{type}/{name}/change`, `…/delete` and `…/actions/{action}`: the forms about a resource.

use super::load;
use crate::{
    components::{
        made_of::Parts,
        moment::{Ends, When, urgency},
    },
    forms::{
        RequestForm,
        subject::{Deed, Standing},
    },
    rpc::form::{About, Opened, Wish, open_change},
};
use domain::view::RequestSummary;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The form that changes a resource.
#[component]
pub fn Change() -> impl IntoView {
    opened(|_| Wish::Change)
}

/// The form that deletes a resource.
#[component]
pub fn Delete() -> impl IntoView {
    opened(|_| Wish::Delete)
}

/// The form of an action.
#[component]
pub fn Act() -> impl IntoView {
    opened(|action| Wish::Act(action.unwrap_or_default()))
}

fn opened(wish: fn(Option<String>) -> Wish) -> impl IntoView {
    let params = use_params_map();
    let asked = move || {
        let params = params.read();
        let part = |name: &str| params.get(name).unwrap_or_default();
        (part("team"), part("type"), part("name"), wish(params.get("action")))
    };
    let opening =
        Resource::new_blocking(asked, |(team, kind, name, wish)| open_change(team, kind, name, wish));
    load(opening, move |opened| {
        let About { opening, parts, end } = match opened {
            Opened::Form(about) => *about,
            Opened::Deleted(request) => {
                let (team, name) = params.with_untracked(|params| {
                    let part = |name: &str| params.get(name).unwrap_or_default();
                    (part("team"), part("name"))
                });
                return view! { <Deleted team name request/> }.into_any();
            }
        };
        let subject = &opening.subject;
        let on = subject.on.as_ref();
        let (page, team) = on.map(|on| (on.path(), on.team.to_string())).unwrap_or_default();
        let name = on.map(|on| on.name.to_string()).unwrap_or_default();
        let (title, lead) = match &subject.deed {
            Deed::Delete => (
                "Delete",
                "What stands there is removed, and its name is free again. This cannot be taken back."
                    .to_owned(),
            ),
            Deed::Act(action) => (action.title.as_str(), action.description.clone()),
            _ => ("Change", "Only what you touch is changed.".to_owned()),
        };
        let heading = format!("{title}: {name}");
        let unable = !opening.subject.offering.available;
        let what = on.map(Standing::what);
        view! {
            <Title text=heading.clone()/>
            <nav class="crumbs" aria-label="Where this is">
                <a href=format!("/teams/{team}/resources")>"Resources of team " {team.clone()}</a> " / "
                <a href=page>{name}</a>
            </nav>
            <h1>{heading}</h1>
            <p class="quiet">{what}</p>
            <p class="lead">{lead}</p>
            {(!parts.is_empty()).then(|| view! {
                <section class="note caution" aria-labelledby="with-it">
                    <h2 id="with-it">"This deletes with it"</h2>
                    <Parts parts/>
                </section>
            })}
            {end.map(|(at, end)| view! { <p id="expiry" class=urgency(end.near)>"As it stands, it " <Ends at near=end.near/> "."</p> })}
            {unable.then(|| view! {
                <p class="note caution">"What made this resource is not available at present. Administrators see why in the catalog."</p>
            })}
            <RequestForm opening/>
        }
        .into_any()
    })
}

/// What became of what the page was about.
#[component]
pub(super) fn Deleted(
    /// Its team.
    team: String,
    /// Its name.
    name: String,
    /// The request that deleted it.
    request: RequestSummary,
) -> impl IntoView {
    #[cfg(feature = "ssr")]
    if let Some(response) = use_context::<leptos_axum::ResponseOptions>() {
        response.set_status(leptos::server_fn::axum_export::http::StatusCode::NOT_FOUND);
    }
    view! {
        <Title text=format!("Deleted: {name}")/>
        <nav class="crumbs" aria-label="Where this is">
            <a href=format!("/teams/{team}/resources")>"Resources of team " {team.clone()}</a>
        </nav>
        <h1>"Deleted: " {name}</h1>
        <p class="lead">
            "It is not there any more: " {request.requested_by} " had it deleted, "
            <When at=request.created_at/> ". "
            <a href=format!("/requests/{}", request.id)>"See that request"</a> "."
        </p>
    }
}
