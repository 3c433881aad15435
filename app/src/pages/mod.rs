//! One file for each screen, named after its address.

pub mod catalog;
pub mod change;
pub mod duplicates;
pub mod help;
pub mod history;
pub mod hook;
pub mod hooks;
pub mod list;
pub mod login;
pub mod new_request;
pub mod not_found;
pub mod notifications;
pub mod orphans;
pub mod problem;
pub mod request;
pub mod requests;
pub mod resource;
pub mod resources;
pub mod setup;
pub mod team_requests;
pub mod tokens;

use crate::{components::told::Refused, rpc::Answer};
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_query_map};

/// Shows what a resource holds once it is there, or why it cannot be shown.
fn load<T, V>(
    resource: Resource<Answer<T>>,
    view: impl Fn(T) -> V + Clone + Send + Sync + 'static,
) -> impl IntoView
where
    T: Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let here = here();
    view! {
        <Suspense fallback=|| view! { <p class="quiet">"Loading…"</p> }>
            {move || {
                let (view, here) = (view.clone(), here.clone());
                Suspend::new(async move {
                    match resource.await {
                        Ok(shown) => view(shown).into_any(),
                        Err(refusal) => view! { <Refused refusal here/> }.into_any(),
                    }
                })
            }}
        </Suspense>
    }
}

/// The same for a page that is loaded again while it is shown, since its address or the reader's zone says more: what was
/// there stays until the new is.
fn load_again<T, V>(
    resource: Resource<Answer<T>>,
    view: impl Fn(T) -> V + Clone + Send + Sync + 'static,
) -> impl IntoView
where
    T: Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let location = use_location();
    view! {
        <Transition fallback=|| view! { <p class="quiet">"Loading…"</p> }>
            {move || {
                let view = view.clone();
                let (path, search) = (location.pathname.get_untracked(), location.search.get_untracked());
                let here = if search.is_empty() { path } else { format!("{path}?{search}") };
                Suspend::new(async move {
                    match resource.await {
                        Ok(shown) => view(shown).into_any(),
                        Err(refusal) => view! { <Refused refusal here/> }.into_any(),
                    }
                })
            }}
        </Transition>
    }
}

/// The address of the page as it is when the page is made.
fn here() -> String {
    let location = use_location();
    let (path, search) = (location.pathname.get_untracked(), location.search.get_untracked());
    if search.is_empty() { path } else { format!("{path}?{search}") }
}

/// The cursor in the page's address.
fn cursor() -> impl Fn() -> Option<String> + Copy + Send + Sync {
    let query = use_query_map();
    move || query.read().get("cursor")
}
