//! Steps on what exists: cancel, retry, resolve, approve and reject a request; make and revoke a token.

use super::{Posted, log_in_first, see_other};
use crate::http::{answer::counted, path::PathOf, problem::Result, sessions, state::AppState};
use app::context::Flash;
use axum::{extract::State, response::Response};
use bytes::Bytes;
use domain::view::TokenView;
use portal::{Answered, Caller, Portal, service::Arrival};
use serde::Deserialize;
use serde_json::json;
use std::future::Future;

/// Takes a step, then shows `page` with what there is to say.
pub(super) async fn step<F>(
    state: &AppState,
    mut posted: Posted,
    page: &str,
    work: impl FnOnce(Portal, Caller, Arrival) -> F,
    said: impl FnOnce(&Answered) -> Flash,
) -> Result<Response>
where
    F: Future<Output = portal::Result<Answered>> + Send,
{
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(page));
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let flash = match counted(state, Box::pin(work(state.portal.clone(), caller, arrival))).await {
        Ok(answered) => said(&answered),
        Err(refusal) => Flash { problem: Some(refusal.problem()), ..Flash::default() },
    };
    if flash != Flash::default() {
        sessions::keep(state, &posted.session, page, flash).await?;
    }
    Ok(see_other(page))
}

/// A sentence for the next page.
pub(super) fn notice(text: &str) -> Flash {
    Flash { notice: Some(text.to_owned()), ..Flash::default() }
}

/// What an answer shows of a thing with a secret.
#[derive(Deserialize)]
pub(super) struct Made {
    /// Its ID.
    pub(super) id: String,
    /// Its secret, where it was made by this very call.
    secret: Option<String>,
}

/// What an answer shows of a thing with a secret.
pub(super) fn made(answered: &Answered) -> Option<Made> {
    serde_json::from_slice(&answered.answer.body).ok()
}

/// The secret in an answer for the next page, and what is said there; a repeat has no secret.
pub(super) fn secret_once(answered: &Answered, said: &str) -> Flash {
    match made(answered).and_then(|made| made.secret) {
        Some(secret) => Flash { secret: Some(secret), ..notice(said) },
        None => notice("This was done before. The secret is shown once only; make a new one if you lost it."),
    }
}

/// The page of the request whose step was posted, from the step's own address.
fn page_of(posted: &Posted) -> String {
    posted.path().rsplit_once('/').map_or("/requests", |(page, _)| page).to_owned()
}

/// A body of JSON.
pub(super) fn body(value: &serde_json::Value) -> Bytes {
    value.to_string().into()
}

/// Stops a request.
pub(super) async fn cancel(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let page = page_of(&posted);
    let said = |answered: &Answered| {
        notice(if answered.existing {
            "Cancellation was asked for already."
        } else {
            "Cancellation was asked for."
        })
    };
    let work = |portal: Portal, caller, arrival| async move {
        portal.cancel(&caller, &id, arrival, Bytes::new()).await
    };
    step(&state, posted, &page, work, said).await
}

/// Opens the next attempt of a failed request.
pub(super) async fn retry(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let page = page_of(&posted);
    let work = |portal: Portal, caller, arrival| async move {
        portal.retry(&caller, &id, arrival, Bytes::new()).await
    };
    step(&state, posted, &page, work, |_| notice("The next attempt has begun.")).await
}

/// Decides about a request whose outcome is unknown.
pub(super) async fn resolve(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let page = page_of(&posted);
    let mut meant = json!({ "resolution": posted.field("resolution"), "reason": posted.field("reason") });
    if posted.field("force") == "true" {
        meant["force"] = true.into();
    }
    let body = body(&meant);
    let work =
        |portal: Portal, caller, arrival| async move { portal.resolve(&caller, &id, arrival, body).await };
    step(&state, posted, &page, work, |_| notice("The decision was taken in.")).await
}

/// Lets a request be carried out that waits for that.
pub(super) async fn approve(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let now = "You approved it. It is carried out when it is its turn.";
    decided(&state, posted, (now, "It was approved already."), |portal, caller, arrival, body| async move {
        portal.approve(&caller, &id, arrival, body).await
    })
    .await
}

/// Refuses to let a request be carried out that waits for that.
pub(super) async fn reject(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let now = "You rejected it. It is not carried out.";
    decided(&state, posted, (now, "It was rejected already."), |portal, caller, arrival, body| async move {
        portal.reject(&caller, &id, arrival, body).await
    })
    .await
}

/// Passes a decision on, with its reason; the next page says that it was taken now, or before.
async fn decided<F>(
    state: &AppState,
    posted: Posted,
    (now, before): (&str, &str),
    decide: impl FnOnce(Portal, Caller, Arrival, Bytes) -> F,
) -> Result<Response>
where
    F: Future<Output = portal::Result<Answered>> + Send,
{
    let page = page_of(&posted);
    let reason = body(&json!({ "reason": posted.field("reason") }));
    let said = |answered: &Answered| notice(if answered.existing { before } else { now });
    let work = |portal, caller, arrival| decide(portal, caller, arrival, reason);
    step(state, posted, &page, work, said).await
}

/// Makes a token, which the next page shows once.
pub(super) async fn create_token(State(state): State<AppState>, posted: Posted) -> Result<Response> {
    let mut asked = json!({ "label": posted.field("label") });
    if !posted.field("expires").is_empty() {
        asked["expires"] = posted.field("expires").into();
    }
    let body = body(&asked);
    let work =
        |portal: Portal, caller, arrival| async move { portal.create_token(&caller, arrival, body).await };
    let said = |answered: &Answered| match serde_json::from_slice::<TokenView>(&answered.answer.body) {
        Ok(token) if token.token.is_some() => Flash { token: Some(token), ..Flash::default() },
        _ => notice(
            "This token was made before. It is shown once only; revoke it and make another if you lost it.",
        ),
    };
    step(&state, posted, "/tokens", work, said).await
}

/// Revokes a token.
pub(super) async fn revoke_token(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    posted: Posted,
) -> Result<Response> {
    let work =
        |portal: Portal, caller, arrival| async move { portal.revoke_token(&caller, &id, arrival).await };
    step(&state, posted, "/tokens", work, |_| notice("The token is revoked.")).await
}
