//! Coming in and going out: login, logout, and the first administrator.

use super::{Posted, login_between, see_other};
use crate::http::{
    pages::Context,
    problem::{Refusal, Result, status},
    sessions,
    state::AppState,
};
use app::{address, context::EntryState};
use axum::{extract::State, response::Response};
use portal::service::SetUp;
use uuid::Uuid;

/// Logs in, and brings back the form that was sent while nobody was.
pub(super) async fn log_in(State(state): State<AppState>, posted: Posted) -> Result<Response> {
    let sealed = posted.fields.get("sealed").filter(|sealed| !sealed.is_empty()).cloned();
    let caller = match state.portal.log_in(posted.field("name"), posted.field("password"), posted.from).await
    {
        Ok(caller) => caller,
        Err(error) => return Ok(refused(&state, &posted, &["name", "next"], sealed, error).await),
    };
    let waiting = sessions::look::<EntryState>(&state, &posted.session, "/login").await?;
    sessions::log_in(&state, &posted.session, &caller).await?;
    let bring_back = async |sealed: Option<String>| match sealed {
        Some(sealed) => login_between::brought_back(&state, &posted.session, &caller, &sealed).await,
        None => Ok(None),
    };
    if let Some(path) = bring_back(sealed).await? {
        return Ok(see_other(&path));
    }
    // Who logs in by a page that was opened before finds the form where it was filled in.
    bring_back(waiting.and_then(|entry| entry.sealed)).await?;
    Ok(see_other(address::local(posted.field("next")).unwrap_or("/")))
}

/// Logs out.
pub(super) async fn log_out(posted: Posted) -> Result<Response> {
    sessions::log_out(&posted.session).await?;
    Ok(see_other("/login"))
}

/// Makes the first administrator and its team, by the link that was printed at the first start.
pub(super) async fn set_up(State(state): State<AppState>, posted: Posted) -> Result<Response> {
    let field = |name| posted.field(name);
    let sent = SetUp {
        form: Uuid::parse_str(field("request_id")).ok(),
        link: field("link"),
        name: field("name"),
        password: field("password"),
        team: field("team"),
    };
    let made = state.portal.set_up(sent, posted.from).await;
    match made {
        Ok(caller) => {
            sessions::log_in(&state, &posted.session, &caller).await?;
            Ok(see_other("/"))
        }
        Err(error) => {
            Ok(refused(&state, &posted, &["request_id", "link", "name", "team"], None, error).await)
        }
    }
}

/// Shows the form again with what was typed, the password aside.
async fn refused(
    state: &AppState,
    posted: &Posted,
    fields: &[&str],
    sealed: Option<String>,
    error: portal::Error,
) -> Response {
    let status = status(error.kind);
    let refusal = Refusal(error);
    let entry = EntryState {
        values: posted.only(fields),
        sealed,
        problem: Some(refusal.problem()),
        ..EntryState::default()
    };
    let context = Context { entry: Some(entry), ..Context::default() };
    login_between::told_along(login_between::again(state, posted, context, status).await, refusal)
}
