//! `/setup`: the first administrator and the first team, by the one-time link.

use super::load;
use crate::{components::told::Why, rpc::shell::entry};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The set-up page.
#[component]
pub fn SetUp() -> impl IntoView {
    let query = use_query_map();
    let asked = Memo::new(move |_| query.read().get("link"));
    let state = Resource::new_blocking(|| (), |()| entry());
    load(state, move |state| {
        let value = |field: &str| state.values.get(field).cloned().unwrap_or_default();
        let link = state.values.get("link").cloned().or_else(|| asked.get_untracked()).unwrap_or_default();
        view! {
            <Title text="Set up"/>
            <h1>"Set up the portal"</h1>
            <p class="lead">"This makes the first administrator and the first team. The link works once."</p>
            {state.problem.clone().map(|problem| view! { <Why problem/> })}
            {state.notice.clone().map(|notice| view! { <p class="note">{notice}</p> })}
            {link.is_empty().then(|| view! {
                <p class="note caution">"Open the whole set-up link that the server printed when it started."</p>
            })}
            <form class="stack narrow" method="post" action="/setup">
                <input type="hidden" name="request_id" value=value("request_id")/>
                <input type="hidden" name="link" value=link/>
                <div class="field">
                    <label for="setup-name">"Your name"</label>
                    <p class="hint" id="setup-name-help">"Lower-case letters, digits and hyphens. You log in with it."</p>
                    <input
                        type="text" id="setup-name" name="name" value=value("name") required autocomplete="username"
                        autocapitalize="none" spellcheck="false" aria-describedby="setup-name-help"
                    />
                </div>
                <div class="field">
                    <label for="setup-password">"Password"</label>
                    <p class="hint" id="setup-password-help">"At least 10 characters."</p>
                    <input
                        type="password" id="setup-password" name="password" required minlength="10"
                        autocomplete="new-password" aria-describedby="setup-password-help"
                    />
                </div>
                <div class="field">
                    <label for="setup-team">"First team"</label>
                    <p class="hint" id="setup-team-help">"Lower-case letters, digits and hyphens. It owns what you request."</p>
                    <input
                        type="text" id="setup-team" name="team" value=value("team") required autocomplete="off"
                        autocapitalize="none" spellcheck="false" aria-describedby="setup-team-help"
                    />
                </div>
                <div class="actions"><button type="submit" class="primary">"Set up"</button></div>
            </form>
        }
    })
}
