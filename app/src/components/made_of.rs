//! What an offering is made of, where that is other offerings.

use crate::rpc::team::Part;
use domain::view::PartView;
use leptos::prelude::*;

/// The steps of an offering; nothing where it has none.
#[component]
pub fn MadeOf(
    /// Its steps.
    parts: Vec<PartView>,
) -> impl IntoView {
    (!parts.is_empty()).then(|| {
        let items = parts.into_iter().map(|part| {
            let after = (!part.needs.is_empty()).then(|| format!(", after {}", part.needs.join(" and ")));
            view! { <li>{part.step} ": " <code>{part.offering.to_string()}</code> {after}</li> }
        });
        view! {
            <div class="quiet made-of">
                <p>"Made of these, each requested by itself:"</p>
                <ul>{items.collect_view()}</ul>
            </div>
        }
    })
}

/// The parts of a resource, with links to them.
#[component]
pub fn Parts(
    /// The parts.
    parts: Vec<Part>,
) -> impl IntoView {
    let items = parts.into_iter().map(|Part { team, kind, name }| {
        let page = format!("/teams/{team}/resources/{kind}/{name}");
        view! { <li><a href=page>{name.to_string()}</a> " " <span class="quiet">{kind.to_string()}</span></li> }
    });
    view! { <ul class="plain-list" id="parts">{items.collect_view()}</ul> }
}
