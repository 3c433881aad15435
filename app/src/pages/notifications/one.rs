//! `/teams/{team}/notifications/{id}`: one address, what was sent there, and what can be done about it.

use super::{Told, title_of};
use crate::{
    components::{
        listing::{Cell, Pager, Table},
        moment::When,
        posted::{Removal, ShownOnce, Step},
        told::Said,
        values::CopyButton,
    },
    pages::{cursor, load},
    rpc::notifications::{NotificationPage, notification},
};
use domain::{
    notification::{NotificationDeliveryState, NotificationDeliveryView, NotificationView},
    view::Page,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// One address where a team is told.
#[component]
pub fn Notification() -> impl IntoView {
    let params = use_params_map();
    let of = move |name: &'static str| params.read().get(name).unwrap_or_default();
    let cursor = cursor();
    let page = Resource::new_blocking(
        move || (of("team"), of("id"), cursor()),
        |(team, id, cursor)| notification(team, id, cursor),
    );
    load(page, |page| {
        let NotificationPage { notification, deliveries, form, keys, mut flash } = page;
        let [switch, rotate, ping, remove] = keys;
        let path = format!("/teams/{}/notifications/{}", notification.team, notification.id);
        let fresh = flash.secret.take();
        let off = notification.disabled_at.is_some();
        view! {
            <Title text=notification.label.clone()/>
            <nav class="crumbs" aria-label="Where this is">
                <a href=format!("/teams/{}/notifications", notification.team)>{title_of(&notification.team)}</a>
            </nav>
            <h1>{notification.label.clone()}</h1>
            <Said flash/>
            {fresh.map(|secret| view! {
                <ShownOnce
                    title="The signing secret" then="Give it to the system that is told, which checks signatures with it."
                    secret=secret.clone()
                />
                <CopyButton text=secret what="the secret"/>
            })}
            <State notification=notification.clone() path=path.clone() key=switch.clone()/>
            {(!off).then(|| view! {
                <div class="actions">
                    <Step action=format!("{path}/ping") key=ping text="Send a test"/>
                </div>
            })}
            <h2>"What was sent"</h2>
            <Sent path=path.clone() deliveries off/>
            <h2>"Change"</h2>
            <Told form action=path.clone() button="Save"/>
            <h2>"Signing secret"</h2>
            <p>
                "Every notification is signed as "
                <a href="https://www.standardwebhooks.com" rel="external noreferrer">"Standard Webhooks"</a>
                " describe, so that the other system can tell it from a forged one. A new secret is shown once; the one \
                 before signs as well for 24 hours, so that there is time to hand the new one over."
            </p>
            {notification.old_secret_until.map(|until| view! {
                <p>"Two secrets sign: the current one, and the one before it until " <When at=until/> "."</p>
            })}
            <div class="actions"><Step action=format!("{path}/rotate") key=rotate text="Make a new secret"/></div>
            <h2>"Stop"</h2>
            <div class="actions">
                {(!off).then(|| view! { <Step action=format!("{path}/disable") key=switch text="Switch off"/> })}
            </div>
            <Removal
                action=format!("{path}/remove") key=remove text="Remove with its log"
                means="Nobody is told there any more, and the list of what was sent is gone. It cannot be taken back."
            />
        }
    })
}

#[component]
fn State(notification: NotificationView, path: String, key: String) -> impl IntoView {
    let NotificationView { disabled_at, disabled_reason, url, created_by, created_at, .. } = notification;
    view! {
        {disabled_at.map(|at| view! {
            <section class="note caution" aria-labelledby="switched-off">
                <h2 id="switched-off">"Nothing is sent"</h2>
                <p>
                    "Since " <When at/> ": " {disabled_reason.unwrap_or_default()}
                    ". What happens meanwhile is not told later. Mend the address or the other system, then switch it on \
                     again and send again below what is missing."
                </p>
                <Step action=format!("{path}/enable") key text="Switch on again"/>
            </section>
        })}
        <dl class="facts">
            <div><dt>"Address"</dt><dd><code>{url}</code></dd></div>
            <div><dt>"Made"</dt><dd>"by " {created_by} ", " <When at=created_at/></dd></div>
        </dl>
    }
}

#[component]
fn Sent(path: String, deliveries: Page<(NotificationDeliveryView, String)>, off: bool) -> impl IntoView {
    let Page { results, total, total_is, next } = deliveries;
    if results.is_empty() {
        return view! { <p class="note">"Nothing yet. Send a test to see whether it arrives."</p> }
            .into_any();
    }
    let rows = results.into_iter().map(|(delivery, key)| view! { <Row path=path.clone() delivery key off/> });
    let rows = rows.collect_view();
    view! {
        <Table name="What was sent" columns=&["State", "What", "Happened", "Again"] blocks=true bodies=true>{rows}</Table>
        <Pager total at_least=total_is.is_some() what="notifications" path next/>
    }
    .into_any()
}

#[component]
fn Row(path: String, delivery: NotificationDeliveryView, key: String, off: bool) -> impl IntoView {
    let NotificationDeliveryView {
        id,
        event,
        request_id,
        resource,
        state,
        created_at,
        next_at,
        tries,
        attempts,
    } = delivery;
    let place = request_id.map(|request| format!("/requests/{request}"));
    let place = place.or_else(|| resource.map(|resource| resource.path()));
    let what = match place {
        Some(place) => {
            // Each of these links says which it is; what its address ends with tells them apart.
            let which = place.rsplit('/').next().unwrap_or_default();
            let name = format!("{} {which}", event.subject());
            view! { <a href=place aria-label=name>{event.subject()}</a> " " {event.title()} }.into_any()
        }
        None => event.title().into_any(),
    };
    let waits = next_at.filter(|_| state == NotificationDeliveryState::Waiting && !off);
    let log = attempts.into_iter().rev().map(|attempt| {
        let came = match (attempt.status, attempt.error) {
            (_, Some(error)) => error,
            (Some(status), None) => format!("answered {status}"),
            (None, None) => "no answer".to_owned(),
        };
        view! { <li><When at=attempt.at/> ", " {attempt.millis} " ms: " {came}</li> }
    });
    let log = log.collect_view();
    let tried = if tries == 0 {
        view! { <span class="quiet">"No try yet."</span> }.into_any()
    } else {
        let many = if tries == 1 { "1 try".to_owned() } else { format!("{tries} tries") };
        view! { <details><summary>{many}</summary><ul>{log}</ul></details> }.into_any()
    };
    view! {
        <tbody class="with-more" role="rowgroup" id=id.to_string()>
            <tr role="row">
                <Cell label="State">{state.title()} {waits.map(|at| view! { ", next try " <When at/> })}</Cell>
                <Cell label="What">{what}<br/><code class="key">{id.to_string()}</code></Cell>
                <Cell label="Happened"><When at=created_at/></Cell>
                <Cell label="Again">
                    {(!off).then(|| view! {
                        <Step
                            action=format!("{path}/deliveries/{id}/resend") key text="Send again"
                            name=format!("Send again: {id}")
                        />
                    })}
                </Cell>
            </tr>
            <tr role="row">
                <td role="cell" colspan="4">{tried}</td>
            </tr>
        </tbody>
    }
}
