//! `/offerings/{id}/new`: the form that requests an offering.

use super::load;
use crate::{
    components::{made_of::MadeOf, needs::Needs},
    forms::RequestForm,
    rpc::form::open_form,
};
use domain::{action::CREATE, view::OfferingApprovalView};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};

/// Whether what is requested here waits for approval.
fn asks_at_create(approval: &OfferingApprovalView) -> bool {
    approval.actions.iter().any(|action| action == CREATE)
}

/// The form of an offering.
#[component]
pub fn NewRequest() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let opening = Resource::new_blocking(move || params.read().get("id").unwrap_or_default(), open_form);
    load(opening, move |opening| {
        let team = query.with_untracked(|query| query.get("team"));
        let offering = &opening.subject.offering;
        let (title, description, available) =
            (offering.title.clone(), offering.description.clone(), offering.available);
        let (parts, approval) = (offering.made_of.clone(), offering.approval.clone().filter(asks_at_create));
        view! {
            <Title text=format!("Request {title}")/>
            <nav class="crumbs" aria-label="Where this is"><a href="/">"Catalog"</a></nav>
            <h1>"Request: " {title}</h1>
            <p class="lead">{description}</p>
            <MadeOf parts/>
            <Needs approval/>
            {(!available).then(|| view! {
                <p class="note caution">"This offering cannot be requested at present. Administrators see why in the catalog."</p>
            })}
            <RequestForm opening team/>
        }
    })
}
