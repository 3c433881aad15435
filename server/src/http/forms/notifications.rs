//! Steps on notifications: make one, change it, switch it off and on, rotate its secret, try it out, send again, remove.

use super::{
    Posted,
    login_between::{Opener, opener, send},
    steps::{body, made, notice, secret_once, step},
};
use crate::http::{path::PathOf, problem::Result, state::AppState};
use app::forms::notification;
use axum::{extract::State, response::Response};
use portal::{Answered, Portal};
use serde_json::json;

/// Makes one; its page shows the secret once.
pub(super) async fn create(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let caller = match opener(&state, &posted, async |_| posted.typed()).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let body = body(&notification::body(&posted.fields));
    let lead = |answered: &Answered| {
        let list = posted.path();
        let page = made(answered).map_or_else(|| list.to_owned(), |made| format!("{list}/{}", made.id));
        let said = "They are told from now on. Send a test to see whether it arrives.";
        (page, secret_once(answered, said))
    };
    send(&state, &posted, state.portal.create_notification(&caller, &team, arrival, body), lead).await
}

/// Changes one.
pub(super) async fn change(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    mut posted: Posted,
) -> Result<Response> {
    let caller = match opener(&state, &posted, async |_| posted.typed()).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let body = body(&notification::body(&posted.fields));
    let lead = |_: &Answered| (posted.path().to_owned(), notice("Saved."));
    send(&state, &posted, state.portal.change_notification(&caller, &team, &id, arrival, body), lead).await
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
    match what.as_str() {
        "enable" | "disable" => {
            let enabled = what == "enable";
            let work = |portal: Portal, caller, arrival| async move {
                let body = body(&json!({ "enabled": enabled }));
                portal.change_notification(&caller, &team, &id, arrival, body).await
            };
            let said =
                if enabled { "It is told again from now on." } else { "Nothing is sent there any more." };
            step(&state, posted, &page, work, |_| notice(said)).await
        }
        "rotate" => {
            let work = |portal: Portal, caller, arrival| async move {
                portal.rotate_notification(&caller, &team, &id, arrival, body(&json!({}))).await
            };
            let said =
                |answered: &Answered| secret_once(answered, "The secret before signs as well for 24 hours.");
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
