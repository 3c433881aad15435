//! Forms that are never lost: not by a refusal, and not by a session that ended while they were filled in. Who opened a form
//! is sealed in it; so is the form itself while it waits behind the login.

use super::{KEY, OWNER, Posted, log_in_first, order::lost, see_other};
use crate::http::{
    answer::counted,
    hex,
    pages::{self, Context},
    problem::{Refusal, Result, status},
    sessions,
    state::AppState,
};
use app::{
    context::{EntryState, FORM_OWNER, Flash, FormState},
    forms::outgoing::Values,
};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{id::PrincipalId, problem::ProblemKind};
use portal::{Answered, Caller};
use serde::{Deserialize, Serialize};
use std::future::Future;
use tower_sessions::Session;

/// The longest form that waits behind a login, in bytes of what was typed.
const LONGEST_WAITING: usize = 64 << 10;
const BEHIND_LOGIN: &str = "form-behind-login";

/// A form that waits behind a login, for the one who filled it in.
#[derive(Serialize, Deserialize)]
struct Waiting {
    owner: PrincipalId,
    path: String,
    state: FormState,
}

/// Who sent a form.
pub(super) enum Opener {
    /// Who opened it, and is logged in.
    Here(Caller),
    /// Nobody who may send it; where that leads.
    Elsewhere(Response),
}

/// Finds out who sent a form. Where the session is over the form goes along to the login: of what was `typed` what is no
/// secret, which is looked up with the owner's eyes.
pub(super) async fn opener(
    state: &AppState,
    posted: &Posted,
    typed: impl AsyncFnOnce(&Caller) -> Values,
) -> Result<Opener> {
    let owner = owner(state, posted.field(OWNER));
    let Some(caller) = posted.visitor.clone() else {
        let page = match owner {
            Some(owner) => match state.portal.caller(owner, posted.from).await {
                Ok(caller) => behind_login(state, posted, owner, typed(&caller).await).await?,
                Err(_) => log_in_first(posted.path()),
            },
            None => log_in_first(posted.path()),
        };
        return Ok(Opener::Elsewhere(page));
    };
    if owner.is_some_and(|owner| owner != caller.id) {
        let notice = "This form was opened by somebody else, who has logged out since. Nothing was sent.";
        let fresh = FormState { notice: Some(notice.into()), ..FormState::default() };
        sessions::keep(state, &posted.session, posted.path(), fresh).await?;
        return Ok(Opener::Elsewhere(see_other(posted.path())));
    }
    Ok(Opener::Here(caller))
}

/// Who opened the form.
fn owner(state: &AppState, sealed: &str) -> Option<PrincipalId> {
    let plain = state.portal.unseal(FORM_OWNER, &hex::decode(sealed)?)?;
    uuid::Uuid::from_slice(&plain).ok().map(PrincipalId)
}

/// The session is over: nothing runs. The form goes along to the login, sealed for who filled it in.
async fn behind_login(
    state: &AppState,
    posted: &Posted,
    owner: PrincipalId,
    values: Values,
) -> Result<Response> {
    let notice =
        "Your session has ended, and nothing was sent. Your form is kept; check it and send it once more.";
    let size: usize = values.iter().map(|(field, value)| field.len() + value.len()).sum();
    let form = FormState {
        lost: lost(posted, &values),
        values,
        request_id: posted.field(KEY).to_owned(),
        notice: Some(notice.into()),
        ..FormState::default()
    };
    let mut entry = EntryState::default();
    entry.values.insert("next".into(), posted.path().to_owned());
    if size > LONGEST_WAITING {
        entry.notice =
            Some("Your session has ended, and nothing was sent. The form was too long to be kept.".into());
    } else {
        let waiting = Waiting { owner, path: posted.path().to_owned(), state: form };
        let plain = serde_json::to_vec(&waiting).map_err(|error| Refusal(portal::Error::internal(error)))?;
        entry.sealed = Some(hex::encode(&state.portal.seal(BEHIND_LOGIN, &plain)?));
        entry.notice =
            Some("Your session has ended, and nothing was sent. Log in to find your form as it was.".into());
    }
    sessions::keep(state, &posted.session, "/login", entry).await?;
    Ok(log_in_first(posted.path()))
}

/// Brings a form back that waited behind the login; where to. Another's form stays sealed.
pub(super) async fn brought_back(
    state: &AppState,
    session: &Session,
    caller: &Caller,
    sealed: &str,
) -> Result<Option<String>> {
    let waiting = hex::decode(sealed)
        .and_then(|sealed| state.portal.unseal(BEHIND_LOGIN, &sealed))
        .and_then(|plain| serde_json::from_slice::<Waiting>(&plain).ok());
    let Some(waiting) = waiting.filter(|waiting| waiting.owner == caller.id) else {
        return Ok(None);
    };
    sessions::keep(state, session, &waiting.path, waiting.state).await?;
    Ok(Some(waiting.path))
}

/// Shows a form again on the page that it was posted from.
pub(super) async fn again(
    state: &AppState,
    posted: &Posted,
    context: Context,
    status: StatusCode,
) -> Response {
    pages::render(state, posted.visitor.clone(), &posted.address, context, status).await
}

/// Tells a page what a refusal tells beside its body: when to come again, and how to say who one is.
pub(super) fn told_along(mut page: Response, refusal: Refusal) -> Response {
    let told = refusal.into_response();
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = told.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

/// Shows a form again as it was sent, with the reason why it was not accepted.
pub(super) async fn refused(state: &AppState, posted: &Posted, refusal: Refusal) -> Response {
    let kind = refusal.0.kind;
    // A key that stands for something else, or whose time is over, is of no more use to this form.
    let spent = matches!(kind, ProblemKind::KeyReused | ProblemKind::KeyExpired);
    let request_id = if spent { String::new() } else { posted.field(KEY).to_owned() };
    let form = FormState {
        values: posted.typed(),
        request_id,
        problem: Some(refusal.problem()),
        ..FormState::default()
    };
    let context = Context { form: Some(form), ..Context::default() };
    told_along(again(state, posted, context, status(kind)).await, refusal)
}

/// Sends a form, and leads to the page that shows what came of it; or shows the form again.
pub(super) async fn send(
    state: &AppState,
    posted: &Posted,
    work: impl Future<Output = portal::Result<Answered>> + Send,
    lead: impl FnOnce(&Answered) -> (String, Flash),
) -> Result<Response> {
    match counted(state, Box::pin(work)).await {
        Ok(answered) => {
            let (page, said) = lead(&answered);
            sessions::keep(state, &posted.session, &page, said).await?;
            Ok(see_other(&page))
        }
        Err(refusal) => Ok(refused(state, posted, refusal).await),
    }
}
