//! `/`: what can be requested.

use super::load;
use crate::{
    components::{made_of::MadeOf, needs::Needs, waiting::Waiting},
    rpc::{form::catalog, requests::waiting},
};
use domain::view::OfferingView;
use leptos::prelude::*;
use leptos_meta::Title;
use std::collections::BTreeMap;

/// The catalog.
#[component]
pub fn Catalog() -> impl IntoView {
    let offerings = Resource::new_blocking(|| (), |()| catalog());
    let waiting = Resource::new_blocking(|| (), |()| waiting());
    load(offerings, move |offerings| {
        let mut shelves: BTreeMap<String, Vec<OfferingView>> = BTreeMap::new();
        for offering in offerings {
            shelves.entry(offering.category.clone()).or_default().push(offering);
        }
        let empty = shelves.is_empty();
        let shelves = shelves.into_iter().enumerate().map(|(place, (category, offerings))| {
            let title = format!("shelf-{place}");
            view! {
                <section aria-labelledby=title.clone()>
                    <h2 id=title.clone()>{category}</h2>
                    <ul class="cards">{offerings.into_iter().map(|offering| view! { <Card offering/> }).collect_view()}</ul>
                </section>
            }
        });
        let shelves = shelves.collect_view();
        view! {
            <Title text="Catalog"/>
            <h1>"Catalog"</h1>
            <p class="lead">"Choose what you need. You get it once, however often you send the form."</p>
            <Suspense>
                {move || Suspend::new(async move { waiting.await.ok().map(|requests| view! { <Waiting requests/> }) })}
            </Suspense>
            {shelves}
            {empty.then(|| view! {
                <p class="note">
                    "The catalog is empty. An administrator adds a folder with an offering.yaml to it; "
                    <code>"keyturn catalog check"</code> " explains what is wrong with one."
                </p>
            })}
        }
    })
}

#[component]
fn Card(offering: OfferingView) -> impl IntoView {
    let form = format!("/offerings/{}/new", offering.id);
    let label = format!("Request {}", offering.title);
    view! {
        <li class="card">
            <h3>{offering.title}</h3>
            <p>{offering.description}</p>
            <p class="quiet">
                <code>{offering.id.to_string()}</code>
                {(!offering.version.is_empty()).then(|| format!(", version {}", offering.version))}
            </p>
            <MadeOf parts=offering.made_of/>
            <Needs approval=offering.approval/>
            {if offering.available {
                view! { <a class="button" href=form rel="external" aria-label=label>"Request"</a> }.into_any()
            } else {
                view! {
                    <p class="note caution">
                        "Cannot be requested at present." {offering.problem.map(|problem| format!(" {problem}"))}
                    </p>
                }
                .into_any()
            }}
        </li>
    }
}
