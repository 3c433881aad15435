//! Steps on notifications: make one, change it, switch it off and on, rotate its secret, try it out, send again, remove.

use super::{
    Posted, log_in_first, see_other,
    steps::{body, notice, step},
};
use crate::http::{answer::counted, path::PathOf, problem::Result, sessions, state::AppState};
use app::context::{Flash, FormState};
use axum::{extract::State, response::Response};
use domain::{
    notification::{NotificationEvent, NotificationView},
    problem::ProblemKind,
};
use portal::{Answered, Portal};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a repeat says in the secret's place.
const SHOWN_BEFORE: &str =
    "This was done before. The secret is shown once only; make a new one if it was lost.";

fn asked(posted: &Posted) -> Value {
    let chosen = |event: &NotificationEvent| posted.fields.contains_key(&format!("event.{event}"));
    let events: Vec<NotificationEvent> = NotificationEvent::CHOICES.into_iter().filter(chosen).collect();
    json!({ "label": posted.field("label"), "url": posted.field("url"), "events": events })
}

/// The secret for the next page, and what is said there.
fn secret_of(answered: &Answered, said: &str) -> Flash {
    let shown = serde_json::from_slice::<NotificationView>(&answered.answer.body).ok();
    match shown.and_then(|shown| shown.secret) {
        Some(secret) => Flash { secret: Some(secret), ..notice(said) },
        None => notice(SHOWN_BEFORE),
    }
}

/// Makes one; its page shows the secret once. A refused form comes back as it was typed.
pub(super) async fn create(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let list = posted.path().to_owned();
    let Some(caller) = posted.visitor.take() else { return Ok(log_in_first(&list)) };
    let arrival = std::mem::take(&mut posted.arrival);
    let body = body(&asked(&posted));
    let made = Box::pin(state.portal.create_notification(&caller, &team, arrival, body));
    match counted(&state, made).await {
        Ok(answered) => {
            let shown = serde_json::from_slice::<NotificationView>(&answered.answer.body).ok();
            let page = shown.map_or_else(|| list.clone(), |made| format!("{list}/{}", made.id));
            let said =
                secret_of(&answered, "They are told from now on. Send a test to see whether it arrives.");
            sessions::keep(&state, &posted.session, &page, said).await?;
            Ok(see_other(&page))
        }
        Err(refusal) => {
            // A key that stands for something else is of no more use to this form.
            let spent = refusal.0.kind == ProblemKind::KeyReused;
            let request_id = if spent { String::new() } else { posted.field("request_id").to_owned() };
            let values: BTreeMap<String, String> = posted
                .fields
                .iter()
                .filter(|(name, _)| name.starts_with("event.") || matches!(name.as_str(), "label" | "url"))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let form = FormState { values, request_id, problem: Some(refusal.problem()), notice: None };
            sessions::keep(&state, &posted.session, &list, form).await?;
            Ok(see_other(&list))
        }
    }
}

/// The page of the one whose step was posted.
fn page_of(team: &str, id: &str) -> String {
    format!("/teams/{}/notifications/{}", app::address::encode(team), app::address::encode(id))
}

/// One step on one of them.
pub(super) async fn act(
    State(state): State<AppState>,
    PathOf((team, id, what)): PathOf<(String, String, String)>,
    posted: Posted,
) -> Result<Response> {
    let page = page_of(&team, &id);
    let asked = asked(&posted);
    match what.as_str() {
        "change" | "enable" | "disable" => {
            let (asked, said) = match what.as_str() {
                "change" => (asked, "Saved."),
                "enable" => (json!({ "enabled": true }), "It is told again from now on."),
                _ => (json!({ "enabled": false }), "Nothing is sent there any more."),
            };
            let work = |portal: Portal, caller, arrival| async move {
                portal.change_notification(&caller, &team, &id, arrival, body(&asked)).await
            };
            step(&state, posted, &page, work, |_| notice(said)).await
        }
        "rotate" => {
            let work = |portal: Portal, caller, arrival| async move {
                portal.rotate_notification(&caller, &team, &id, arrival, body(&json!({}))).await
            };
            let said =
                |answered: &Answered| secret_of(answered, "The secret before signs as well for 24 hours.");
            step(&state, posted, &page, work, said).await
        }
        "ping" => {
            let work = |portal: Portal, caller, arrival| async move {
                portal.ping_notification(&caller, &team, &id, arrival, body(&json!({}))).await
            };
            let said = "A test is on its way. Load this page again in a moment to see what came of it.";
            step(&state, posted, &page, work, |_| notice(said)).await
        }
        "remove" => {
            let list = format!("/teams/{}/notifications", app::address::encode(&team));
            let work = |portal: Portal, caller, arrival| async move {
                portal.remove_notification(&caller, &team, &id, arrival).await
            };
            step(&state, posted, &list, work, |_| {
                notice("It is removed, and nothing is sent there any more.")
            })
            .await
        }
        _ => Err(crate::http::problem::nothing_here()),
    }
}

/// Sends a delivery again.
pub(super) async fn resend(
    State(state): State<AppState>,
    PathOf((team, id, delivery)): PathOf<(String, String, String)>,
    posted: Posted,
) -> Result<Response> {
    let page = page_of(&team, &id);
    let work = |portal: Portal, caller, arrival| async move {
        portal.resend_notification(&caller, &team, (&id, &delivery), arrival, body(&json!({}))).await
    };
    let said =
        "It is on its way again, under the same ID. Load this page again in a moment to see what came of it.";
    step(&state, posted, &page, work, |_| notice(said)).await
}
