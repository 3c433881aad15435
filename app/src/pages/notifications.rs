//! `/teams/{team}/notifications`: where a team is told of what happens to its requests.

pub mod one;

use super::load;
use crate::{
    components::told::{Said, Why},
    context::FormState,
    rpc::notifications::notifications,
};
use domain::notification::{NotificationEvent, NotificationView, WHOLE_PORTAL};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The addresses, and the form that makes one.
#[component]
pub fn Notifications() -> impl IntoView {
    let params = use_params_map();
    let team = Memo::new(move |_| params.read().get("team").unwrap_or_default());
    let page = Resource::new_blocking(move || team.get(), notifications);
    load(page, move |page| {
        let team = team.get_untracked();
        let whole = team == WHOLE_PORTAL;
        let title = title_of(&team);
        let empty = page.rows.is_empty();
        let rows = page.rows.into_iter().map(|row| view! { <Row row/> }).collect_view();
        let elsewhere = (page.admin && !whole).then(|| {
            view! {
                <p><a href=format!("/teams/{WHOLE_PORTAL}/notifications")>"Notifications of the whole portal"</a></p>
            }
        });
        view! {
            <Title text=title.clone()/>
            <h1>{title}</h1>
            <p class="lead">
                "Another system is told when something happens to "
                {if whole { "any team's requests and resources" } else { "this team's requests and resources" }}
                ": a chat, a pager, a ticket system. It gets IDs, states and links, no parameters and no outputs."
            </p>
            <Said flash=page.flash/>
            {elsewhere}
            {if empty {
                view! { <p class="note">"Nobody is told yet. Say below who is to be."</p> }.into_any()
            } else {
                view! {
                    <div class="table" role="region" aria-label="Who is told" tabindex="0">
                        <table>
                            <thead>
                                <tr>
                                    <th scope="col">"Who is told"</th>
                                    <th scope="col">"When"</th>
                                    <th scope="col">"Now"</th>
                                </tr>
                            </thead>
                            <tbody>{rows}</tbody>
                        </table>
                    </div>
                }
                .into_any()
            }}
            <h2>"Tell somebody else"</h2>
            <Make team form=page.form/>
        }
    })
}

/// What the page of a team is called.
fn title_of(team: &str) -> String {
    if team == WHOLE_PORTAL {
        "Notifications of the whole portal".to_owned()
    } else {
        format!("Notifications of team {team}")
    }
}

#[component]
fn Row(row: NotificationView) -> impl IntoView {
    let page = format!("/teams/{}/notifications/{}", row.team, row.id);
    let said = row.events.iter().map(|event| format!("{} {}", event.subject(), event.title()));
    let events = said.collect::<Vec<_>>().join(", ");
    let now = match row.disabled_reason {
        Some(reason) if row.disabled_at.is_some() => {
            view! { <strong>"nothing is sent"</strong> ": " {reason} }.into_any()
        }
        _ => "is told".into_any(),
    };
    view! {
        <tr>
            <th scope="row"><a href=page>{row.label}</a></th>
            <td>{events}</td>
            <td>{now}</td>
        </tr>
    }
}

#[component]
fn Make(team: String, form: FormState) -> impl IntoView {
    let FormState { values, request_id, problem, .. } = form;
    let value = |name: &str| values.get(name).cloned().unwrap_or_default();
    let (label, url) = (value("label"), value("url"));
    let events = if values.is_empty() {
        vec![NotificationEvent::Failed, NotificationEvent::Unknown]
    } else {
        let chosen = |event: &NotificationEvent| values.contains_key(&field_of(*event));
        NotificationEvent::CHOICES.into_iter().filter(chosen).collect()
    };
    view! {
        {problem.map(|problem| view! { <Why problem/> })}
        <form class="stack" method="post" action=format!("/teams/{team}/notifications")>
            <input type="hidden" name="request_id" value=request_id/>
            <Fields label url events/>
            <div class="actions"><button type="submit" class="primary">"Tell them"</button></div>
        </form>
    }
}

/// The field that chooses an event.
fn field_of(event: NotificationEvent) -> String {
    format!("event.{event}")
}

/// What is said of an address, in the form that makes one and in the one that changes it.
#[component]
fn Fields(label: String, url: String, events: Vec<NotificationEvent>) -> impl IntoView {
    let choices = NotificationEvent::CHOICES.into_iter().map(|event| {
        let name = field_of(event);
        view! {
            <label class="check">
                <input type="checkbox" name=name value="on" checked=events.contains(&event)/>
                " " {event.subject()} " " {event.title()}
            </label>
        }
    });
    let choices = choices.collect_view();
    view! {
        <div class="field">
            <label for="told-label">"Who is told"</label>
            <input type="text" id="told-label" name="label" value=label required maxlength="100" autocomplete="off"/>
        </div>
        <div class="field">
            <label for="told-url">"Address"</label>
            <input
                type="url"
                id="told-url"
                name="url"
                value=url
                required
                maxlength="2048"
                placeholder="https://"
                autocomplete="off"
                aria-describedby="told-url-hint"
            />
            <p class="quiet" id="told-url-hint">
                "It is called by POST, and has to answer 2xx within 15 seconds. Only destinations that the administrator \
                 allows can be named."
            </p>
        </div>
        <fieldset class="field">
            <legend>"When"</legend>
            {choices}
        </fieldset>
    }
}
