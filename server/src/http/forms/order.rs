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
    forms::{
        outgoing::Values,
        subject::{BASE, CONFIRM, ETAG, Subject, confirmation},
    },
};
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{
    id::PrincipalId,
    problem::{Problem, ProblemKind},
    view::Object,
};
use portal::{Answered, Caller};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_sessions::Session;

/// The button that sends a form as a new request, under the fresh ID that is its value.
const FRESH: &str = "fresh_id";
/// The button that requests something although it looks like a duplicate of the request that is its value.
const DUPLICATE: &str = "duplicate_of";
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
    let caller = match opener(&state, &posted, async |caller| {
        state.portal.offering(caller, &id).ok().map(Subject::create)
    })
    .await?
    {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let key = key_of(&posted);
    let first = state.portal.offering_at_first(&caller, posted.field("team"), key.as_bytes());
    let offering = match first.await?.filter(|offering| offering.id.as_str() == id) {
        Some(offering) => offering,
        None => state.portal.offering(&caller, &id)?,
    };
    let subject = Subject::create(offering);
    let body = match subject.body(&posted.fields) {
        Ok(body) => body.unwrap_or_default(),
        Err(problem) => return Ok(unfit(&state, &posted, &subject, problem).await),
    };
    let body = with_confirmation(body, &posted);
    take_fresh_id(&mut posted);
    let arrival = std::mem::take(&mut posted.arrival);
    let body = Value::Object(body).to_string().into();
    let work = state.portal.create_request(&caller, posted.field("team"), arrival, body, Vec::new());
    let answered = counted(&state, work).await;
    lead_on(&state, &posted, &subject, answered).await
}

/// The answer to the question whether it is a duplicate goes along.
fn with_confirmation(mut body: Object, posted: &Posted) -> Object {
    if let Some(of) = posted.fields.get(DUPLICATE) {
        body.insert(
            "confirm_duplicate".to_owned(),
            confirmation(of, posted.field("duplicate_reason").trim()),
        );
    }
    body
}

/// The key under which the form is sent: its own, or the fresh one of the button that was pressed.
pub(super) fn key_of(posted: &Posted) -> String {
    posted.field(if posted.fields.contains_key(FRESH) { FRESH } else { KEY }).to_owned()
}

/// From here on the form has the fresh ID, if that button was pressed.
pub(super) fn take_fresh_id(posted: &mut Posted) {
    if let Some(fresh) = posted.fields.get(FRESH).cloned() {
        posted.arrival.keys = vec![fresh.clone().into_bytes()];
        posted.fields.insert(KEY.to_owned(), fresh);
    }
}

/// Leads to the request that a form came to, or shows the form again with the reason.
pub(super) async fn lead_on(
    state: &AppState,
    posted: &Posted,
    subject: &Subject,
    answered: Result<Answered>,
) -> Result<Response> {
    match answered {
        Ok(answered) => {
            let said = match (answered.replayed, answered.existing) {
                (true, _) => "?repeat=1",
                (false, true) => "?existing=1",
                (false, false) => "",
            };
            match answered.request_id {
                Some(request) => Ok(see_other(&format!("/requests/{request}{said}"))),
                None => Err(Refusal(portal::Error::internal("a form that came to no request"))),
            }
        }
        Err(refusal) => Ok(refused(state, posted, subject, refusal).await),
    }
}

/// Who sent a form.
pub(super) enum Opener {
    /// Who opened it, and is logged in.
    Here(Caller),
    /// Nobody who may send it; where that leads.
    Elsewhere(Response),
}

/// Finds out who sent a form. Where the session is over the form goes along to the login; `subject` is asked for with the
/// owner's eyes, to learn which fields are secret.
pub(super) async fn opener(
    state: &AppState,
    posted: &Posted,
    subject: impl AsyncFnOnce(&Caller) -> Option<Subject>,
) -> Result<Opener> {
    let owner = owner(state, posted.field(OWNER));
    let Some(caller) = posted.visitor.clone() else {
        let subject = match owner {
            Some(owner) => match state.portal.caller(owner, posted.from).await {
                Ok(caller) => subject(&caller).await,
                Err(_) => None,
            },
            None => None,
        };
        return behind_login(state, posted, subject.as_ref(), owner).await.map(Opener::Elsewhere);
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

/// What was typed, without the form's own fields and without what is secret.
fn typed(posted: &Posted, subject: Option<&Subject>) -> Values {
    let own = ["team", "name", "labels", "correlation_id", ETAG, BASE, CONFIRM];
    let open = |field: &str| match (field.strip_prefix("p."), subject) {
        (Some(parameter), Some(subject)) => !subject.is_secret(parameter),
        (Some(_), None) => false,
        (None, _) => own.contains(&field),
    };
    posted.fields.iter().filter(|(field, _)| open(field)).map(|(f, v)| (f.clone(), v.clone())).collect()
}

/// Shows the form again: the values stay, and so does the ID, unless it is over.
async fn refused(state: &AppState, posted: &Posted, subject: &Subject, refusal: Refusal) -> Response {
    let mut page = again(state, posted, subject, refusal.problem(), status(refusal.0.kind)).await;
    if let Some(wait) = refusal.into_response().headers().get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, wait.clone());
    }
    page
}

/// Shows the form again that cannot be sent as it is filled in.
pub(super) async fn unfit(
    state: &AppState,
    posted: &Posted,
    subject: &Subject,
    problem: Problem,
) -> Response {
    again(state, posted, subject, problem, StatusCode::UNPROCESSABLE_ENTITY).await
}

async fn again(
    state: &AppState,
    posted: &Posted,
    subject: &Subject,
    mut problem: Problem,
    status: StatusCode,
) -> Response {
    if let Some(versions) = &mut problem.versions {
        versions.parameters = subject.open(&versions.parameters);
    }
    let over = problem.slug() == ProblemKind::KeyExpired.slug();
    let request_id = if over { String::new() } else { posted.field(KEY).to_owned() };
    let form =
        FormState { values: typed(posted, Some(subject)), request_id, problem: Some(problem), notice: None };
    let context = Context { form: Some(form), ..Context::default() };
    pages::render(state, posted.visitor.clone(), &posted.address, context, status).await
}

/// The session is over: nothing runs. The form goes along to the login, sealed for who filled it in.
async fn behind_login(
    state: &AppState,
    posted: &Posted,
    subject: Option<&Subject>,
    owner: Option<PrincipalId>,
) -> Result<Response> {
    let Some(owner) = owner else {
        return Ok(log_in_first(posted.path()));
    };
    let notice =
        "Your session has ended, and nothing was sent. Your form is kept; check it and send it once more.";
    let form = FormState {
        values: typed(posted, subject),
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
