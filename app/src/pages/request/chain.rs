//! The requests that one belongs together with, as a tree: its root, and all that descends from that.

use crate::{components::state::State, rpc::requests::RequestPage};
use domain::{
    chain::{ChainEntry, MOST_SHOWN},
    id::RequestId,
};
use leptos::prelude::*;

/// The tree; nothing where the request stands alone.
#[component]
pub fn Chain(
    /// The page.
    page: RwSignal<RequestPage>,
) -> impl IntoView {
    let chain = Memo::new(move |_| page.read().chain.clone());
    let this = page.read_untracked().request.id;
    move || {
        let chain = chain.get();
        let is_alone = chain.results.iter().all(|one| one.not_begun.is_empty()) && chain.results.len() < 2;
        (!is_alone).then(|| {
            let roots: Vec<&ChainEntry> = chain
                .results
                .iter()
                .filter(|one| !chain.results.iter().any(|other| one.parent_id == Some(other.id)))
                .collect();
            view! {
                <section aria-labelledby="chain-title">
                    <h2 id="chain-title">"What belongs together"</h2>
                    <p>"The request that all began with, and what descends from it. They share one correlation ID."</p>
                    <div class="chain">{branches(&chain.results, &roots, &[], this)}</div>
                    {chain.more.then(|| view! {
                        <p class="quiet">"Only " {MOST_SHOWN} " are shown here. Search by the correlation ID to find all."</p>
                    })}
                </section>
            }
        })
    }
}

/// A list of these requests, each with those that descend from it, and of the steps that no request stands for yet.
fn branches(all: &[ChainEntry], these: &[&ChainEntry], not_begun: &[String], this: RequestId) -> AnyView {
    let items = these.iter().map(|one| {
        let below: Vec<&ChainEntry> = all.iter().filter(|other| other.parent_id == Some(one.id)).collect();
        let what = format!("{} {}/{}", one.action, one.resource_type, one.name);
        let is_this = one.id == this;
        let is_end = below.is_empty() && one.not_begun.is_empty();
        view! {
            <li>
                <State state=one.state/>
                " "
                <a href=format!("/requests/{}", one.id) aria-current=is_this.then_some("page")>{what}</a>
                {one.step.clone().map(|step| view! { <span class="quiet">" step " {step}</span> })}
                {is_this.then(|| view! { <strong>" (this request)"</strong> })}
                {(!is_end).then(|| branches(all, &below, &one.not_begun, this))}
            </li>
        }
    });
    let items = items.collect_view();
    let steps = not_begun.iter().map(|step| {
        view! {
            <li>
                <span class="state state-not-begun">
                    <span aria-hidden="true">"◌"</span>
                    " not begun: step "
                    {step.clone()}
                </span>
            </li>
        }
    });
    view! { <ul>{items} {steps.collect_view()}</ul> }.into_any()
}
