//! The request form: typed by the offering's schema, sent through the guard, and never lost: not by a refusal, and not
//! by a session that ended while it was filled in.

use super::{KEY, Posted, log_in_first, see_other};
use crate::http::{
    answer::counted,
    hex,
    pages::{self, Context},
    path::PathOf,
    problem::{Refusal, Result, status},
    sessions,
    state::AppState,
};
use app::{
    context::{EntryState, FORM_OWNER, FormState},
    forms::outgoing::{self, Values},
};
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use domain::{id::PrincipalId, problem::ProblemKind, view::OfferingView};
use portal::{Caller, service::Arrival};
use serde::{Deserialize, Serialize};
use tower_sessions::Session;

/// The button that sends a form as a new request, under the fresh ID that is its value.
const FRESH: &str = "fresh_id";
/// The hidden field that says who opened the form.
const OWNER: &str = "sealed";
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

/// Sends a filled form.
pub(super) async fn send(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let owner = owner(&state, posted.field(OWNER));
    let Some(caller) = posted.visitor.clone() else {
        return behind_login(&state, &posted, &id, owner).await;
    };
    if owner.is_some_and(|owner| owner != caller.id) {
        let notice = "This form was opened by somebody else, who has logged out since. Nothing was sent.";
        let fresh = FormState { notice: Some(notice.into()), ..FormState::default() };
        sessions::keep(&state, &posted.session, posted.path(), fresh).await?;
        return Ok(see_other(posted.path()));
    }
    let key = posted.field(if posted.fields.contains_key(FRESH) { FRESH } else { KEY });
    let first = state.portal.offering_at_first(&caller, posted.field("team"), key.as_bytes());
    let offering = match first.await?.filter(|offering| offering.id.as_str() == id) {
        Some(offering) => offering,
        None => state.portal.offering(&caller, &id)?,
    };
    let values: Values = posted.fields.clone();
    let body = match outgoing::body(&offering, &values) {
        Ok(body) => serde_json::to_vec(&body).map_err(|error| Refusal(portal::Error::internal(error)))?,
        Err(fields) => return Ok(refused(&state, &posted, &offering, portal::Error::fields(fields)).await),
    };
    if let Some(fresh) = posted.fields.get(FRESH).cloned() {
        posted.arrival = Arrival { keys: vec![fresh.clone().into_bytes()], ..Arrival::default() };
        posted.fields.insert(KEY.to_owned(), fresh);
    }
    let arrival = std::mem::take(&mut posted.arrival);
    let work = state.portal.create_request(&caller, posted.field("team"), arrival, body.into(), Vec::new());
    match counted(&state, work).await {
        Ok(answered) => {
            let said = match (answered.replayed, answered.existing) {
                (true, _) => "?repeat=1",
                (false, true) => "?existing=1",
                (false, false) => "",
            };
            match answered.request_id {
                Some(request) => Ok(see_other(&format!("/requests/{request}{said}"))),
                None => Err(Refusal(portal::Error::internal("a create without a request"))),
            }
        }
        Err(Refusal(error)) => Ok(refused(&state, &posted, &offering, error).await),
    }
}

/// Who opened the form.
fn owner(state: &AppState, sealed: &str) -> Option<PrincipalId> {
    let plain = state.portal.unseal(FORM_OWNER, &hex::decode(sealed)?)?;
    uuid::Uuid::from_slice(&plain).ok().map(PrincipalId)
}

/// What was typed, without the form's own fields and without what is secret.
fn typed(posted: &Posted, offering: Option<&OfferingView>) -> Values {
    let open = |field: &str| match (field.strip_prefix("p."), offering) {
        (Some(parameter), Some(offering)) => !outgoing::is_secret(offering, parameter),
        (Some(_), None) => false,
        (None, _) => ["team", "name", "labels", "correlation_id"].contains(&field),
    };
    posted.fields.iter().filter(|(field, _)| open(field)).map(|(f, v)| (f.clone(), v.clone())).collect()
}

/// Shows the form again: the values stay, and so does the ID, unless it is over.
async fn refused(
    state: &AppState,
    posted: &Posted,
    offering: &OfferingView,
    error: portal::Error,
) -> Response {
    let over = error.kind == ProblemKind::KeyExpired;
    let request_id = if over { String::new() } else { posted.field(KEY).to_owned() };
    let status = status(error.kind);
    let refusal = Refusal(error);
    let form = FormState {
        values: typed(posted, Some(offering)),
        request_id,
        problem: Some(refusal.problem()),
        notice: None,
    };
    let context = Context { form: Some(form), ..Context::default() };
    let mut page = pages::render(state, posted.visitor.clone(), &posted.address, context, status).await;
    if let Some(wait) = refusal.into_response().headers().get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, wait.clone());
    }
    page
}

/// The session is over: nothing runs. The form goes along to the login, sealed for who filled it in.
async fn behind_login(
    state: &AppState,
    posted: &Posted,
    id: &str,
    owner: Option<PrincipalId>,
) -> Result<Response> {
    let Some(owner) = owner else {
        return Ok(log_in_first(posted.path()));
    };
    // Seen with the owner's eyes only to learn which fields are secret.
    let offering = match state.portal.caller(owner, posted.from).await {
        Ok(caller) => state.portal.offering(&caller, id).ok(),
        Err(_) => None,
    };
    let notice =
        "Your session has ended, and nothing was sent. Your form is kept; check it and send it once more.";
    let form = FormState {
        values: typed(posted, offering.as_ref()),
        request_id: posted.field(KEY).to_owned(),
        problem: None,
        notice: Some(notice.into()),
    };
    let size: usize = form.values.iter().map(|(field, value)| field.len() + value.len()).sum();
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
