//! `/login`: a name and a password, and back to where one was going.

use super::load;
use crate::{
    address,
    components::{frame::Visitor, told::Why},
    rpc::shell::entry,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The login page.
#[component]
pub fn Login() -> impl IntoView {
    let query = use_query_map();
    let asked = Memo::new(move |_| query.read().get("next").filter(|next| address::local(next).is_some()));
    let state = Resource::new_blocking(|| (), |()| entry());
    load(state, move |state| {
        let next = state.values.get("next").cloned().or_else(|| asked.get_untracked()).unwrap_or_default();
        let waiting = !next.is_empty() || state.sealed.is_some();
        let name = state.values.get("name").cloned().unwrap_or_default();
        view! {
            <Title text="Log in"/>
            <h1>"Log in"</h1>
            <AlreadyIn/>
            {state.problem.map(|problem| view! { <Why problem/> })}
            {state.notice.map(|notice| view! { <p class="note">{notice}</p> })}
            {waiting.then(|| view! { <p>"After it you get back to where you were going."</p> })}
            <form class="stack narrow" method="post" action="/login">
                <input type="hidden" name="next" value=next/>
                {state.sealed.map(|sealed| view! { <input type="hidden" name="sealed" value=sealed/> })}
                <div class="field">
                    <label for="login-name">"Name"</label>
                    <input
                        type="text" id="login-name" name="name" value=name required autocomplete="username"
                        autocapitalize="none" spellcheck="false"
                    />
                </div>
                <div class="field">
                    <label for="login-password">"Password"</label>
                    <input type="password" id="login-password" name="password" required autocomplete="current-password"/>
                </div>
                <div class="actions"><button type="submit" class="primary">"Log in"</button></div>
            </form>
        }
    })
}

/// Says who is logged in already, or that nobody can be yet.
#[component]
fn AlreadyIn() -> impl IntoView {
    let visitor = expect_context::<Visitor>().0;
    view! {
        <Suspense>
            {move || Suspend::new(async move {
                visitor.await.ok().map(|looking| {
                    let set_up_pending = looking.set_up_pending;
                    view! {
                        {looking.me.map(|me| view! {
                            <p class="note">
                                "You are logged in as " <strong>{me.name}</strong> ". " <a href="/">"To the catalog"</a>
                            </p>
                        })}
                        {set_up_pending.then(|| view! {
                            <p class="note">
                                "This portal is not set up yet. Open the one-time set-up link that the server printed "
                                "when it started."
                            </p>
                        })}
                    }
                })
            })}
        </Suspense>
    }
}
