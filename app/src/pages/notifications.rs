//! `/teams/{team}/notifications`: where a team is told of what happens to its requests.

pub mod one;

use super::load;
use crate::{
    components::{
        listing::Table,
        posted::{Part, Typed, spot, wrong},
        told::Said,
    },
    context::FormState,
    forms::notification::field_of,
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
        let rows = page.rows.into_iter().map(|(row, failing)| view! { <Row row failing/> }).collect_view();
        let elsewhere = (page.admin && !whole).then(|| {
            view! {
                <p><a href=format!("/teams/{WHOLE_PORTAL}/notifications")>"Notifications of the whole portal"</a></p>
            }
        });
        view! {
            <Title text=title.clone()/>
            {(!whole).then(|| view! {
                <nav class="crumbs" aria-label="Where this is">
                    <a href=format!("/teams/{team}/resources")>"Resources of team " {team.clone()}</a>
                </nav>
            })}
            <h1>{title}</h1>
            <p class="lead">
                "Another system is told when something happens to "
                {if whole { "any team's requests and resources" } else { "this team's requests and resources" }}
                ": a chat, a pager, a ticket system. It gets what it is about, who asked, and the state; no parameters and no \
                 outputs."
            </p>
            <Said flash=page.flash/>
            {elsewhere}
            {if empty {
                view! { <p class="note">"Nobody is told yet. Say below who is to be."</p> }.into_any()
            } else {
                view! {
                    <Table name="Who is told" columns=&["Who is told", "When", "Now"]>{rows}</Table>
                }
                .into_any()
            }}
            <h2>{if empty { "Tell somebody" } else { "Tell somebody else" }}</h2>
            <Told form=page.form action=format!("/teams/{team}/notifications") button="Tell them"/>
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
fn Row(row: NotificationView, failing: Option<String>) -> impl IntoView {
    let page = format!("/teams/{}/notifications/{}", row.team, row.id);
    let said = row.events.iter().map(|event| format!("{} {}", event.subject(), event.title()));
    let events = said.collect::<Vec<_>>().join(", ");
    let now = match row.disabled_reason {
        Some(reason) if row.disabled_at.is_some() => {
            view! { <strong>"nothing is sent"</strong> ": " {reason} }.into_any()
        }
        _ => match failing {
            Some(why) => view! { "the last try did not arrive: " {why} }.into_any(),
            None => "is told".into_any(),
        },
    };
    view! {
        <tr>
            <th scope="row"><a href=page>{row.label}</a></th>
            <td>{events}</td>
            <td>{now}</td>
        </tr>
    }
}

/// The form that says who is told, where, and when: of a new one, and of one that is there.
#[component]
fn Told(mut form: FormState, action: String, button: &'static str) -> impl IntoView {
    let (values, problem) = (std::mem::take(&mut form.values), form.problem.clone());
    let choices = NotificationEvent::CHOICES.into_iter().map(|event| {
        let name = field_of(event);
        let checked = values.contains_key(&name);
        view! {
            <label class="tick">
                <input type="checkbox" name=name value="on" checked=checked/>
                {event.subject()} " " {event.title()}
            </label>
        }
    });
    let choices = choices.collect_view();
    let spots = [("label", "Who is told"), ("url", "Address"), ("events", "When")]
        .map(|(name, title)| spot("told", name, format!("/{name}"), title.to_owned()));
    let value = move |name: &str| values.get(name).cloned().unwrap_or_default();
    let wrong = move |pointer: &str| wrong(problem.as_ref(), pointer);
    view! {
        <Typed state=form page=action spots=spots.into()>
            <Part
                name="label" of="told" title="Who is told" value=value("label") wrong=wrong("/label") longest=100u32
                required=true
            />
            <Part
                name="url" of="told" title="Address" kind="url" longest=2048u32 required=true
                hint="It is called by POST, and has to answer 2xx within 15 seconds. Only destinations that the administrator \
                      allows can be named."
                value=value("url") wrong=wrong("/url")
            />
            <fieldset class="field" id="told-events" tabindex="-1" aria-describedby="told-events-error">
                <legend>"When"</legend>
                <p class="field-error" id="told-events-error">{wrong("/events")}</p>
                {choices}
            </fieldset>
            <div class="actions"><button type="submit" class="primary">{button}</button></div>
        </Typed>
    }
}
