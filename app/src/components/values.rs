//! Parameters and outputs as a list of names and values.

use domain::{form::shown, hidden::is_mark, view::Object};
use leptos::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// The members of an object.
#[component]
pub fn Members(
    /// The object.
    members: Object,
    /// Whether it is a patch, in which nothing stands for what is taken away.
    #[prop(optional)]
    patch: bool,
    /// What the members are called, by their names, where they are called otherwise.
    #[prop(optional)]
    titles: BTreeMap<String, String>,
) -> impl IntoView {
    let rows = members.into_iter().map(|(name, value)| {
        let value = if patch && value.is_null() {
            view! { <span class="quiet">"taken away"</span> }.into_any()
        } else {
            view! { <Shown value/> }.into_any()
        };
        let title = titles.get(&name).filter(|title| **title != name).cloned();
        // The name stays for whoever writes a script.
        let called = match title {
            Some(title) => view! { {title} " " <code>{name}</code> }.into_any(),
            None => name.into_any(),
        };
        view! {
            <div>
                <dt>{called}</dt>
                <dd>{value}</dd>
            </div>
        }
    });
    view! { <dl class="facts">{rows.collect_view()}</dl> }
}

/// One value: text as it is, several lines as a block.
#[component]
pub fn Shown(
    /// The value.
    value: Value,
) -> impl IntoView {
    if is_mark(&value) {
        return view! { <span class="quiet">"secret, not shown"</span> }.into_any();
    }
    let text = shown(&value);
    if text.contains('\n') {
        view! { <pre tabindex="0">{text}</pre> }.into_any()
    } else {
        view! { <code>{text}</code> }.into_any()
    }
}
