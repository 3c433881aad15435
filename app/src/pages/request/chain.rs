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
                    <div class="chain">{branches(&chain.results, &roots, this)}</div>
                    {chain.more.then(|| view! {
                        <p class="quiet">"Only " {MOST_SHOWN} " are shown here. Search by the correlation ID to find all."</p>
                    })}
                </section>
            }
        })
    }
}

/// A list of these requests, each with those that descend from it.
fn branches(all: &[ChainEntry], these: &[&ChainEntry], this: RequestId) -> AnyView {
    let items = these.iter().map(|one| {
        let below: Vec<&ChainEntry> = all.iter().filter(|other| other.parent_id == Some(one.id)).collect();
        let what = format!("{} {}/{}", one.action, one.resource_type, one.name);
        let is_this = one.id == this;
        view! {
            <li>
                <State state=one.state/>
                " "
                <a href=format!("/requests/{}", one.id) aria-current=is_this.then_some("page")>{what}</a>
                {one.step.clone().map(|step| view! { <span class="quiet">" step " {step}</span> })}
                {is_this.then(|| view! { <strong>" (this request)"</strong> })}
                {(!below.is_empty()).then(|| branches(all, &below, this))}
                {(!one.not_begun.is_empty()).then(|| view! { <NotBegun steps=one.not_begun.clone()/> })}
            </li>
        }
    });
    view! { <ul>{items.collect_view()}</ul> }.into_any()
}

/// Steps that no request stands for yet.
#[component]
fn NotBegun(steps: Vec<String>) -> impl IntoView {
    let items = steps.into_iter().map(|step| view! { <li class="quiet">"not begun: step " {step}</li> });
    view! { <ul>{items.collect_view()}</ul> }
}
