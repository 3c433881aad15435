//! The forms about a team's hooks: make and edit one, change its secret, test it, remove it.

use super::{
    Posted,
    login_between::{self, Opener, opener, refused, send},
    see_other,
    steps::{body, made, notice, secret_once, step},
};
use crate::http::{
    pages::Context,
    path::PathOf,
    problem::{Refusal, Result},
    sessions,
    state::AppState,
};
use app::{
    context::FormState,
    forms::{
        hook::{self, PARAMETER},
        outgoing::{Values, is_secret},
    },
};
use axum::{extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use domain::{
    problem::{FieldError, ProblemKind},
    view::Object,
};
use portal::{Answered, Caller, Error, Portal, service::Tested};
use serde_json::{Value, json};

/// What was typed about a hook, without what its offering takes as a secret.
fn open(state: &AppState, owner: &Caller, posted: &Posted) -> Values {
    let offering = state.portal.offering(owner, posted.field("offering")).ok();
    let secret =
        |parameter: &str| offering.as_ref().is_none_or(|offering| is_secret(&offering.parameters, parameter));
    let mut values = posted.typed();
    values.retain(|field, _| !field.strip_prefix(PARAMETER).is_some_and(secret));
    values
}

/// A field that cannot be read.
fn unreadable((field, why): (&'static str, String)) -> Refusal {
    let errors = vec![FieldError { pointer: format!("/{field}"), detail: why }];
    Refusal(Error { kind: ProblemKind::InvalidParameters, ..Error::fields(errors) })
}

/// The hook that a form describes.
fn described(state: &AppState, caller: &Caller, posted: &Posted) -> Result<Object> {
    let offering = state.portal.offering(caller, posted.field("offering"));
    let schema = offering.map_or(Value::Null, |offering| offering.parameters);
    hook::body(&posted.fields, &schema).map_err(unreadable)
}

/// Makes a hook, whose page shows its secret once.
pub(super) async fn create(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let caller = match opener(&state, &posted, async |owner| open(&state, owner, &posted)).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let body = match described(&state, &caller, &posted) {
        Ok(body) => Value::Object(body).to_string().into(),
        Err(refusal) => return Ok(refused(&state, &posted, refusal).await),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let lead = |answered: &Answered| {
        let hooks = format!("/teams/{team}/hooks");
        let page = made(answered).map_or_else(|| hooks.clone(), |made| format!("{hooks}/{}", made.id));
        (page, secret_once(answered, "The hook is made. Send a test event to see what it would do."))
    };
    send(&state, &posted, state.portal.create_hook(&caller, &team, arrival, body), lead).await
}

/// Changes a hook.
pub(super) async fn change(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    mut posted: Posted,
) -> Result<Response> {
    let caller = match opener(&state, &posted, async |owner| open(&state, owner, &posted)).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let mut body = match described(&state, &caller, &posted) {
        Ok(body) => body,
        Err(refusal) => return Ok(refused(&state, &posted, refusal).await),
    };
    // The form holds all of the hook, so what it leaves out goes.
    if let Ok(before) = state.portal.hook(&caller, &team, &id).await {
        for (part, known) in [
            ("parameters", before.definition.parameters.keys().cloned().collect::<Vec<_>>()),
            ("labels", before.definition.labels.keys().cloned().collect()),
        ] {
            if let Some(Value::Object(members)) = body.get_mut(part) {
                for name in known {
                    members.entry(name).or_insert(Value::Null);
                }
            }
        }
    }
    let mut arrival = std::mem::take(&mut posted.arrival);
    if !posted.field("version").is_empty() {
        arrival.if_match = vec![format!("\"{}\"", posted.field("version")).into_bytes()];
    }
    let body = Value::Object(body).to_string().into();
    let lead = |_: &Answered| (format!("/teams/{team}/hooks/{id}"), notice("The hook is changed."));
    send(&state, &posted, state.portal.change_hook(&caller, &team, &id, arrival, body), lead).await
}

/// Gives a hook a new secret, which its page shows once.
pub(super) async fn rotate(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    posted: Posted,
) -> Result<Response> {
    let page = format!("/teams/{team}/hooks/{id}");
    let body = body(&json!({ "old_secret_ends_after": posted.field("old_secret_ends_after") }));
    let work = |portal: Portal, caller, arrival| async move {
        portal.rotate_hook(&caller, &team, &id, arrival, body).await
    };
    step(&state, posted, &page, work, |answered| secret_once(answered, "The hook has a new secret.")).await
}

/// Ends a hook's old secret.
pub(super) async fn end_secret(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    posted: Posted,
) -> Result<Response> {
    let page = format!("/teams/{team}/hooks/{id}");
    let work = |portal: Portal, caller, arrival| async move {
        portal.end_hook_secret(&caller, &team, &id, arrival, Bytes::new()).await
    };
    step(&state, posted, &page, work, |_| notice("The old secret has ended.")).await
}

/// Removes a hook.
pub(super) async fn remove(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    posted: Posted,
) -> Result<Response> {
    let page = format!("/teams/{team}/hooks");
    let work = |portal: Portal, caller, arrival| async move {
        portal.remove_hook(&caller, &team, &id, arrival).await
    };
    step(&state, posted, &page, work, |_| notice("The hook is removed.")).await
}

/// Tries a test event, or sends it for real.
pub(super) async fn test(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    mut posted: Posted,
) -> Result<Response> {
    let caller = match opener(&state, &posted, async |_| posted.typed()).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let send = posted.field("do") == "send";
    let body = match hook::test_body(&posted.fields, send) {
        Ok(body) => Value::Object(body).to_string().into(),
        Err(why) => return Ok(refused(&state, &posted, unreadable(why)).await),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let tested = Box::pin(state.portal.test_hook(&caller, &team, &id, arrival, body)).await;
    match tested {
        Err(error) => Ok(refused(&state, &posted, Refusal(error)).await),
        Ok(Tested::Tried(trial)) => {
            let request_id = posted.field(super::KEY).to_owned();
            let form = FormState { values: posted.typed(), request_id, ..FormState::default() };
            let context = Context { form: Some(form), trial: Some(*trial), ..Context::default() };
            Ok(login_between::again(&state, &posted, context, StatusCode::OK).await)
        }
        Ok(Tested::Sent(answered)) => {
            let page = format!("/teams/{team}/hooks/{id}");
            let said = match (&answered.request_id, answered.replayed, answered.existing) {
                (Some(_), true, _) => {
                    "The event was sent before and got its first answer; see the list below."
                }
                (Some(_), _, true) => "The event was sent: what it asks for is there already.",
                (Some(_), ..) => "The event was sent and made a request.",
                (None, ..) => "The event was sent, and does not count.",
            };
            sessions::keep(&state, &posted.session, &page, notice(said)).await?;
            Ok(see_other(&page))
        }
    }
}
