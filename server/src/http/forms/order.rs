//! The request form: typed by the offering's schema, sent through the guard, and never lost.

use super::{
    KEY, Posted,
    login_between::{self, Opener, opener, told_along},
    see_other,
};
use crate::http::{
    answer::counted,
    pages::Context,
    path::PathOf,
    problem::{Refusal, Result, status},
    state::AppState,
};
use app::{
    context::FormState,
    forms::{
        machine::is_about_the_reason,
        outgoing::Values,
        subject::{BASE, CONFIRM, ETAG, Subject, confirmation},
    },
};
use axum::{extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use domain::{
    problem::{Problem, ProblemKind},
    view::Object,
};
use portal::{Answered, Caller};
use serde_json::Value;
use std::collections::BTreeSet;

/// The button that sends a form as a new request, under the fresh ID that is its value.
const FRESH: &str = "fresh_id";
/// The button that requests something although it looks like a duplicate of the request that is its value.
const DUPLICATE: &str = "duplicate_of";

/// Sends a filled form.
pub(super) async fn send(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let kept = async |owner: &Caller| {
        let subject = state.portal.offering(owner, &id).ok().map(Subject::create);
        typed(&posted, subject.as_ref())
    };
    let caller = match opener(&state, &posted, kept).await? {
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
        Err(mut problem) => {
            // What else would be refused is told along, so that one correction does.
            let parameters = subject.parameters(&posted.fields);
            problem.errors.extend(state.portal.misfits(&subject.offering.id, parameters));
            return Ok(unfit(&state, &posted, &subject, problem).await);
        }
    };
    let bytes = |body: Object| Bytes::from(Value::Object(body).to_string());
    let answer = with_confirmation(body.clone(), &posted);
    take_fresh_id(&mut posted);
    let arrival = std::mem::take(&mut posted.arrival);
    let send = async |body: Bytes| {
        let work =
            state.portal.create_request(&caller, posted.field("team"), arrival.clone(), body, Vec::new());
        counted(&state, work).await
    };
    let mut answered = send(bytes(answer)).await;
    // Where the answer to the question does not do, it is asked again, and says why.
    if let Err(refusal) = &answered
        && refusal.0.fields.iter().any(is_about_the_reason)
    {
        let fields = refusal.0.fields.clone();
        answered = send(bytes(body)).await.map_err(|mut again| {
            again.0.fields = fields;
            again
        });
    }
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

/// What was typed, without the form's own fields and without what is secret.
pub(super) fn typed(posted: &Posted, subject: Option<&Subject>) -> Values {
    let own = ["team", "name", "labels", "correlation_id", ETAG, BASE, CONFIRM];
    let open = |field: &str| match (field.strip_prefix("p."), subject) {
        (Some(parameter), Some(subject)) => !subject.is_secret(parameter),
        (Some(_), None) => false,
        (None, _) => own.contains(&field),
    };
    posted.fields.iter().filter(|(field, _)| open(field)).map(|(f, v)| (f.clone(), v.clone())).collect()
}

/// The parameters that were typed and are not kept: the secret ones.
pub(super) fn lost(posted: &Posted, kept: &Values) -> BTreeSet<String> {
    let typed = posted.fields.iter().filter(|(field, text)| field.starts_with("p.") && !text.is_empty());
    typed.map(|(field, _)| field.clone()).filter(|field| !kept.contains_key(field)).collect()
}

/// Shows the form again: the values stay, and so does the ID, unless it is over.
async fn refused(state: &AppState, posted: &Posted, subject: &Subject, refusal: Refusal) -> Response {
    let page = again(state, posted, subject, refusal.problem(), status(refusal.0.kind)).await;
    told_along(page, refusal)
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
    let values = typed(posted, Some(subject));
    let lost = lost(posted, &values);
    let form = FormState { values, request_id, problem: Some(problem), lost, ..FormState::default() };
    login_between::again(state, posted, Context { form: Some(form), ..Context::default() }, status).await
}
