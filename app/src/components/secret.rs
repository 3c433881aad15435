//! A secret output: hidden until somebody who may see it asks for it, which is recorded.

use super::{moment::Scripted, values::CopyButton};
use crate::address::encode;
use domain::problem::Problem;
use gloo_net::http::Request;
use leptos::{html, prelude::*, task::spawn_local};
use serde::Deserialize;

#[derive(Deserialize)]
struct Revealed {
    value: String,
}

/// One secret output of a resource.
#[component]
pub fn Secret(
    /// The team that owns the resource.
    team: String,
    /// The resource's type.
    kind: String,
    /// The resource's name.
    resource: String,
    /// The output.
    output: String,
    /// Whether the person may see it.
    may: bool,
) -> impl IntoView {
    let parts = [&team, &kind, &resource, &output].map(|part| encode(part));
    let [team, kind, resource, secret] = parts;
    let address = format!("/api/v1/teams/{team}/resources/{kind}/{resource}/secrets/{secret}/reveal");
    let scripted = Scripted::here();
    let shown = RwSignal::new(None::<Result<String, String>>);
    let asking = RwSignal::new(false);
    let value = NodeRef::<html::Pre>::new();
    let name = output.clone();
    let button = NodeRef::<html::Button>::new();
    let hide = move |_| {
        shown.set(None);
        request_animation_frame(move || {
            if let Some(Some(button)) = button.try_get_untracked() {
                let _ = button.focus();
            }
        });
    };
    let reveal = {
        let address = address.clone();
        move |_| {
            if asking.get_untracked() {
                return;
            }
            asking.set(true);
            let address = address.clone();
            spawn_local(async move {
                let answer = ask(&address).await;
                let seen = answer.is_ok();
                shown.try_set(Some(answer));
                asking.try_set(false);
                if seen {
                    request_animation_frame(move || {
                        if let Some(Some(value)) = value.try_get_untracked() {
                            let _ = value.focus();
                        }
                    });
                }
            });
        }
    };
    view! {
        <div>
            <dt>{output.clone()} <span class="quiet">" (secret)"</span></dt>
            <dd>
                {move || match shown.get() {
                    Some(Ok(text)) => view! {
                        <pre tabindex="0" node_ref=value>{text.clone()}</pre>
                        <div class="actions">
                            <CopyButton text what=name.clone()/>
                            <button type="button" class="plain" on:click=hide>"Hide"</button>
                        </div>
                    }
                    .into_any(),
                    Some(Err(why)) => view! { <p class="field-error">{why}</p> }.into_any(),
                    None => ().into_any(),
                }}
                {if may {
                    view! {
                        <button
                            type="button" node_ref=button hidden=move || !scripted.get() || matches!(shown.get(), Some(Ok(_)))
                            disabled=move || asking.get() on:click=reveal
                        >
                            "Show " {output} " (recorded)"
                        </button>
                        <p class="quiet" hidden=move || scripted.get()>
                            "Shown by script, or by an API call: " <code>"POST " {address}</code>
                        </p>
                    }
                    .into_any()
                } else {
                    view! { <span class="quiet">"Members of the team may see it."</span> }.into_any()
                }}
            </dd>
        </div>
    }
}

async fn ask(address: &str) -> Result<String, String> {
    let lost = |_| "The portal did not answer. Try again.".to_owned();
    let response = Request::post(address).header("Accept", "application/json").send().await.map_err(lost)?;
    if response.ok() {
        return response.json::<Revealed>().await.map(|revealed| revealed.value).map_err(lost);
    }
    let said = response.json::<Problem>().await.map(|problem| problem.detail);
    Err(said.unwrap_or_else(|_| format!("The answer was {}. Load the page again.", response.status())))
}
