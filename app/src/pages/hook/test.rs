//! `/teams/{team}/hooks/{id}/test`: an event of one's own, tried or sent.

use super::{Crumbs, address};
use crate::{
    components::{posted::Typed, values::Members},
    forms::fields::as_content,
    pages::load,
    rpc::hooks::{TestPage, hook_test},
};
use domain::hook::HookTrial;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The test of a hook.
#[component]
pub fn TestHook() -> impl IntoView {
    let (address, query) = (address(), use_query_map());
    let asked = move || (address(), query.read().get("delivery"));
    let page = Resource::new_blocking(asked, |((team, id), delivery)| hook_test(team, id, delivery));
    load(page, |page| {
        let TestPage { hook, form, trial } = page;
        let action = format!("/teams/{}/hooks/{}/test", hook.team, hook.id);
        let value = |name: &str| form.values.get(name).cloned().unwrap_or_default();
        let (headers, payload) = (value("headers"), value("payload"));
        let identity = hook.definition.identity.clone();
        view! {
            <Title text="Test event"/>
            <Crumbs hook part=true/>
            <h1>"Send a test event"</h1>
            {trial.map(|trial| view! { <Trial trial/> })}
            <Typed state=form page=action>
                <div class="field">
                    <label for="test-payload">"Payload"</label>
                    <textarea
                        id="test-payload" name="payload" rows="14" spellcheck="false" autocomplete="off"
                        inner_html=as_content(&payload)
                    ></textarea>
                </div>
                <div class="field">
                    <label for="test-headers">"Headers"</label>
                    <p class="hint" id="test-headers-hint">
                        "One name: value on each line. Signature and identity (" {identity} ") are added by the portal."
                    </p>
                    <textarea
                        id="test-headers" name="headers" rows="2" spellcheck="false" aria-describedby="test-headers-hint"
                        inner_html=as_content(&headers)
                    ></textarea>
                </div>
                <div class="actions">
                    <button type="submit" class="primary" name="do" value="try">"Show what it would do"</button>
                    <button type="submit" name="do" value="send">"Send it for real"</button>
                </div>
                <p class="quiet">
                    "Sent for real, the event is signed with the hook's secret and enters by the hook's own door: it may make \
                     a request. Sent twice from this page it is one event."
                </p>
            </Typed>
        }
    })
}

#[component]
fn Trial(trial: HookTrial) -> impl IntoView {
    let Some(plan) = trial.plan else {
        let reason = trial.reason.unwrap_or_default();
        return view! {
            <section class="note caution" id="trial">
                <h2>"The event does not count"</h2>
                <p>{reason}</p>
            </section>
        }
        .into_any();
    };
    let labels = plan.command.labels.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
    view! {
        <section class="note good" id="trial">
            <h2>"What the event would do"</h2>
            <p>{plan.plan.summary} ". " <span class="quiet">"Nothing was made: this was only tried."</span></p>
            <dl class="facts">
                <div><dt>"Name"</dt><dd><code>{plan.plan.name.to_string()}</code></dd></div>
                {plan.command.correlation_id.map(|id| view! { <div><dt>"Correlation ID"</dt><dd><code>{id}</code></dd></div> })}
                <div><dt>"Labels"</dt><dd>{labels.join(", ")}</dd></div>
            </dl>
            <Members members=plan.command.parameters/>
        </section>
    }
    .into_any()
}
