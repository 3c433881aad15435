//! `/problems/{slug}`: what a problem means and what to do about it; for everybody.

use super::not_found::NotFound;
use domain::problem::ProblemKind;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The page of a problem.
#[component]
pub fn ProblemPage() -> impl IntoView {
    let params = use_params_map();
    let kind = Memo::new(move |_| params.read().get("slug").and_then(|slug| ProblemKind::from_slug(&slug)));
    move || {
        match kind.get() {
        Some(kind) => view! {
            <Title text=kind.title()/>
            <p class="quiet">"Problem " <code>{kind.slug()}</code></p>
            <h1>{kind.title()}</h1>
            <p class="lead">{kind.help()}</p>
            <h2>"All problems"</h2>
            <ul>
                {ProblemKind::ALL
                    .iter()
                    .map(|kind| view! { <li><a href=format!("/problems/{}", kind.slug())>{kind.title()}</a></li> })
                    .collect_view()}
            </ul>
        }
        .into_any(),
        None => view! { <NotFound/> }.into_any(),
    }
    }
}
