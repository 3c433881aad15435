//! `/teams/{team}/hooks/{id}/deliveries/{delivery}`: one delivery, with what came.

use super::{Crumbs, told};
use crate::{
    components::moment::When,
    forms::hook::{headers_text, pretty},
    pages::load,
    rpc::hooks::{DeliveryPage, delivery},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The page of a delivery.
#[component]
pub fn DeliveryIs() -> impl IntoView {
    let params = use_params_map();
    let asked = move || {
        let params = params.read();
        let part = |name: &str| params.get(name).unwrap_or_default();
        (part("team"), part("id"), part("delivery"))
    };
    let page = Resource::new_blocking(asked, |(team, id, one)| delivery(team, id, one));
    load(page, |page| {
        let DeliveryPage { hook, delivery } = page;
        let again = format!("/teams/{}/hooks/{}/test?delivery={}", hook.team, hook.id, delivery.id);
        let payload = delivery.payload.unwrap_or_default();
        let cut = delivery.size > i64::try_from(payload.len()).unwrap_or(i64::MAX);
        let headers = headers_text(&delivery.headers.unwrap_or_default());
        view! {
            <Title text="Delivery"/>
            <Crumbs hook part=true/>
            <h1>"Delivery"</h1>
            <dl class="facts">
                <div><dt>"Arrived"</dt><dd><When at=delivery.at/></dd></div>
                <div><dt>"Event"</dt><dd><code class="key">{delivery.event_id.unwrap_or_else(|| "no identity".to_owned())}</code></dd></div>
                <div><dt>"Outcome"</dt><dd><strong>{delivery.outcome.as_str()}</strong> ": " {told(delivery.outcome)}</dd></div>
                {delivery.detail.map(|why| view! { <div><dt>"Why"</dt><dd class="lines">{why}</dd></div> })}
                {delivery.request_id.map(|id| view! {
                    <div><dt>"Led to"</dt><dd><a href=format!("/requests/{id}")>"the request"</a></dd></div>
                })}
                {delivery.address.map(|from| view! { <div><dt>"From"</dt><dd>{from}</dd></div> })}
            </dl>
            <h2>"Headers"</h2>
            <p class="quiet">"Those that a mapping may read."</p>
            <pre tabindex="0">{headers}</pre>
            <h2>"Payload"</h2>
            {cut.then(|| view! { <p class="quiet">"Its beginning; it had " {delivery.size} " bytes."</p> })}
            <pre tabindex="0" id="payload">{pretty(&payload)}</pre>
            <p><a href=again>"Use it as a test event"</a></p>
        }
    })
}
