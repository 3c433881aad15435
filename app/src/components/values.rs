//! Parameters and outputs as a list of names and values.

use super::moment::Scripted;
use domain::{form::shown, hidden::is_mark, view::Object};
use leptos::{prelude::*, task::spawn_local};
use serde_json::Value;
use std::collections::BTreeMap;
use wasm_bindgen::{JsCast, JsValue};

/// From this many characters on, a value is rather copied than typed.
const LONG: usize = 40;

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
            view! { <Shown value name=name.clone()/> }.into_any()
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

/// One value: text as it is, several lines as a block. What is long can be copied.
#[component]
pub fn Shown(
    /// The value.
    value: Value,
    /// What it is called, where it is to be copied.
    #[prop(optional, into)]
    name: String,
) -> impl IntoView {
    if is_mark(&value) {
        return view! { <span class="quiet">"secret, not shown"</span> }.into_any();
    }
    let text = shown(&value);
    let long = !name.is_empty() && text.chars().count() >= LONG;
    let copy = long.then(|| view! { <CopyButton text=text.clone() what=name/> });
    if text.contains('\n') {
        view! { <pre tabindex="0">{text}</pre> {copy} }.into_any()
    } else {
        view! { <code>{text}</code> {copy} }.into_any()
    }
}

/// A button that copies a text. It is there only where script runs and the browser lets a page copy.
#[component]
pub fn CopyButton(
    /// The text.
    text: String,
    /// What it is.
    #[prop(into)]
    what: String,
) -> impl IntoView {
    let scripted = Scripted::here();
    let said = RwSignal::new("");
    let copy = move |_| {
        let text = text.clone();
        spawn_local(async move {
            let became = match copied(&text).await {
                Some(()) => "Copied.",
                None => "The browser did not copy it: mark it, and copy it by hand.",
            };
            said.try_set(became);
        });
    };
    view! {
        <div class="copy" hidden=move || !scripted.get() || clipboard().is_none()>
            <button type="button" class="plain" aria-label=format!("Copy {what}") on:click=copy>"Copy"</button>
            <span class="quiet" role="status">{move || said.get()}</span>
        </div>
    }
}

/// The browser's clipboard; none where the page did not come over a connection that a browser trusts. Never asked on the
/// server.
fn clipboard() -> Option<JsValue> {
    let navigator = js_sys::Reflect::get(&window(), &"navigator".into()).ok()?;
    js_sys::Reflect::get(&navigator, &"clipboard".into()).ok().filter(JsValue::is_object)
}

/// Puts a text into the clipboard; nothing where that was refused.
async fn copied(text: &str) -> Option<()> {
    let clipboard = clipboard()?;
    let write = js_sys::Reflect::get(&clipboard, &"writeText".into()).ok()?;
    let write: js_sys::Function = write.dyn_into().ok()?;
    let written: JsValue = write.call1(&clipboard, &JsValue::from_str(text)).ok()?;
    let written: js_sys::Promise = written.dyn_into().ok()?;
    written.await.ok().map(drop)
}
