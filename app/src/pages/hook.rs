//! `/teams/{team}/hooks/{id}`: what a hook is, its secret, and what was delivered to it.

pub mod delivery;
pub mod edit;
pub mod test;

use super::{cursor, load};
use crate::{
    components::{
        listing::{Cell, Pager, Table},
        moment::{Scripted, When},
        posted::{Removal, ShownOnce, Step},
        told::Said,
        values::CopyButton,
    },
    rpc::hooks::{HookPage, hook},
};
use domain::{
    hook::{DeliveryOutcome, DeliveryView, HookDefinition, HookView},
    view::Page,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The parts of the page's address: the team, and the hook's ID.
fn address() -> impl Fn() -> (String, String) + Copy + Send + Sync {
    let params = use_params_map();
    move || {
        let params = params.read();
        let part = |name: &str| params.get(name).unwrap_or_default();
        (part("team"), part("id"))
    }
}

/// The way back to the team's hooks, and to the hook where one looks at a part of it.
#[component]
fn Crumbs(
    /// The hook.
    hook: HookView,
    /// Whether the page is about a part of the hook.
    #[prop(optional)]
    part: bool,
) -> impl IntoView {
    let hooks = format!("/teams/{}/hooks", hook.team);
    let page = format!("{hooks}/{}", hook.id);
    view! {
        <nav class="crumbs" aria-label="Where this is">
            <a href=hooks>"Hooks of team " {hook.team.to_string()}</a>
            {part.then(|| view! { " / " <a href=page>{hook.definition.title}</a> })}
        </nav>
    }
}

/// The page of a hook.
#[component]
pub fn HookIs() -> impl IntoView {
    let (address, cursor) = (address(), cursor());
    let page =
        Resource::new_blocking(move || (address(), cursor()), |((team, id), cursor)| hook(team, id, cursor));
    load(page, |page| view! { <Shown page/> })
}

#[component]
fn Shown(page: HookPage) -> impl IntoView {
    let HookPage { hook, deliveries, keys, mut flash } = page;
    let path = format!("/teams/{}/hooks/{}", hook.team, hook.id);
    let secret = flash.secret.take();
    let manage = deliveries.is_some();
    let title = hook.definition.title.clone();
    let address = hook.address.clone();
    view! {
        <Title text=title.clone()/>
        <Crumbs hook=hook.clone()/>
        <h1>{title}</h1>
        <Said flash/>
        {secret.map(|secret| view! {
            <ShownOnce title="The hook's secret" then="Copy it into the sender's settings now." secret=secret.clone()/>
            <CopyButton text=secret what="the secret"/>
        })}
        <h2>"Where events are sent"</h2>
        <p><code class="key" id="hook-address"><Origin/>{address}</code></p>
        <Definition definition=hook.definition.clone()/>
        {manage.then(|| view! {
            <nav aria-label="What can be done with it">
                <ul class="plain-list">
                    <li><a href=format!("{path}/test")>"Send a test event"</a></li>
                    <li><a href=format!("{path}/edit")>"Edit"</a></li>
                </ul>
            </nav>
        })}
        {deliveries.map(|page| view! { <Deliveries page path=path.clone()/> })}
        {manage.then(|| view! { <Secrets hook path keys/> })}
    }
}

/// Where the portal is; known only in the browser.
#[component]
fn Origin() -> impl IntoView {
    let scripted = Scripted::here();
    move || scripted.get().then(|| window().location().origin().unwrap_or_default())
}

#[component]
fn Definition(definition: HookDefinition) -> impl IntoView {
    let fact = |name: &'static str, text: String| {
        view! { <div><dt>{name}</dt><dd><code>{text}</code></dd></div> }
    };
    let parameters = definition.parameters.iter().map(|(name, value)| {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        view! { <div><dt>{name.clone()}</dt><dd><code>{text}</code></dd></div> }
    });
    let labels = definition.labels.iter().map(|(name, text)| {
        view! { <div><dt>"Label " {name.clone()}</dt><dd><code>{text.clone()}</code></dd></div> }
    });
    view! {
        <h2>"What an event asks for"</h2>
        <dl class="facts">
            {fact("Offering", definition.offering.to_string())}
            <div><dt>"Signed by"</dt><dd>{definition.signature.title()}</dd></div>
            {fact("Identity in header", definition.identity.clone())}
            {match definition.when.clone() {
                Some(when) => fact("Counts when", when).into_any(),
                None => view! { <div><dt>"Counts when"</dt><dd>"always"</dd></div> }.into_any(),
            }}
            {fact("Name", definition.name.clone())}
            {parameters.collect_view()}
            {labels.collect_view()}
            {definition.correlation_id.clone().map(|text| fact("Correlation ID", text))}
        </dl>
    }
}

/// What became of a delivery, in words.
fn told(outcome: DeliveryOutcome) -> &'static str {
    match outcome {
        DeliveryOutcome::Requested => "made a request",
        DeliveryOutcome::Existing => "already there: got the request that made it",
        DeliveryOutcome::Replayed => "a repeat: got the first answer",
        DeliveryOutcome::Ignored => "does not count",
        DeliveryOutcome::Mismatched => "same identity, another payload: refused",
        DeliveryOutcome::Refused => "nothing changed; it may be sent again",
    }
}

#[component]
fn Deliveries(page: Page<DeliveryView>, path: String) -> impl IntoView {
    let empty = page.results.is_empty();
    let rows = page.results.into_iter().map(|delivery| {
        let (at, outcome) = (delivery.at, delivery.outcome);
        let place = format!("{path}/deliveries/{}", delivery.id);
        let request = delivery.request_id.map(|id| {
            view! { <a href=format!("/requests/{id}") aria-label=format!("the request {id}")>"the request"</a> }
        });
        let event = delivery.event_id.unwrap_or_else(|| "none".to_owned());
        view! {
            <tr role="row">
                <Cell label="Arrived"><a href=place><When at/></a></Cell>
                <Cell label="Outcome">
                    <strong>{outcome.as_str()}</strong>
                    <br/>
                    <span class="quiet">{told(outcome)}{delivery.problem.map(|problem| format!(" ({problem})"))}</span>
                </Cell>
                <Cell label="Led to">{request}</Cell>
                <Cell label="Event"><code class="key">{event}</code></Cell>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <h2>"Recent deliveries"</h2>
        <p class="quiet">
            "Genuine events only: what is not signed as agreed leaves no trace. The last 100 are kept, for 30 days."
        </p>
        {if empty {
            view! { <p class="note">"Nothing was delivered yet."</p> }.into_any()
        } else {
            view! {
                <Table name="Recent deliveries" columns=&["Arrived", "Outcome", "Led to", "Event"] blocks=true>{rows}</Table>
                <Pager total=page.total at_least=false what="deliveries" path=path.clone() next=page.next/>
            }
            .into_any()
        }}
    }
}

#[component]
fn Secrets(hook: HookView, path: String, keys: [String; 3]) -> impl IntoView {
    let [rotate, end, remove] = keys;
    let rotating = hook.old_secret_ends_at;
    view! {
        <h2>"Secret"</h2>
        {match rotating {
            Some(ends) => view! {
                <p>"Two secrets count: the current one, and the one before it until " <When at=ends/> "."</p>
                <div class="actions">
                    <Step action=format!("{path}/end-old-secret") key=end text="End the old secret now" danger=true/>
                </div>
            }
            .into_any(),
            None => view! {
                <form class="stack narrow" method="post" action=format!("{path}/rotate")>
                    <input type="hidden" name="request_id" value=rotate/>
                    <div class="field">
                        <label for="old-ends">"The old secret still counts for"</label>
                        <select id="old-ends" name="old_secret_ends_after">
                            <option value="0s">"no longer"</option>
                            <option value="1h">"an hour"</option>
                            <option value="24h" selected>"a day"</option>
                            <option value="7d">"a week"</option>
                        </select>
                    </div>
                    <div class="actions"><button type="submit">"Make a new secret"</button></div>
                </form>
            }
            .into_any(),
        }}
        <h2>"Remove"</h2>
        <Removal
            action=format!("{path}/remove") key=remove text="Remove this hook"
            means="Its events are refused from then on; what they made stays. It cannot be taken back."
        />
    }
}
