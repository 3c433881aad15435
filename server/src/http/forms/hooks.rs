//! The forms about a team's hooks: make and edit one, change its secret, test it, remove it.

use super::{
    Posted, log_in_first, see_other,
    steps::{body, notice, step},
};
use crate::http::{
    answer::counted,
    pages::{self, Context},
    path::PathOf,
    problem::{Refusal, Result, status},
    sessions,
    state::AppState,
};
use app::{
    context::{Flash, HookForm},
    forms::hook,
};
use axum::{extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use domain::{
    hook::HookView,
    problem::{FieldError, ProblemKind},
    view::Object,
};
use portal::{Answered, Caller, Error, Portal, service::Tested};
use serde_json::{Value, json};

/// Shows the form again with what was typed.
async fn again(
    state: &AppState,
    posted: &Posted,
    caller: Caller,
    mut form: HookForm,
    status: StatusCode,
) -> Response {
    form.values.clone_from(&posted.fields);
    form.values.remove(super::KEY);
    posted.field(super::KEY).clone_into(&mut form.request_id);
    let context = Context { hook: Some(form), ..Context::default() };
    pages::render(state, Some(caller), &posted.address, context, status).await
}

async fn refused(state: &AppState, posted: &Posted, caller: Caller, refusal: Refusal) -> Response {
    let form = HookForm { problem: Some(refusal.problem()), ..HookForm::default() };
    again(state, posted, caller, form, status(refusal.0.kind)).await
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

/// The hook in an answer.
fn shown(answered: &Answered) -> Option<HookView> {
    serde_json::from_slice(&answered.answer.body).ok()
}

/// What the hook's page says of its secret.
fn secret_once(answered: &Answered) -> Flash {
    match shown(answered).and_then(|hook| hook.secret) {
        Some(secret) => Flash { secret: Some(secret), ..Flash::default() },
        None => {
            notice("This was done before. The secret was shown once only; make a new one if you lost it.")
        }
    }
}

/// Makes a hook, whose page shows its secret once.
pub(super) async fn create(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(&posted.address));
    };
    let body = match described(&state, &caller, &posted) {
        Ok(body) => Value::Object(body).to_string().into(),
        Err(refusal) => return Ok(refused(&state, &posted, caller, refusal).await),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let made = counted(&state, Box::pin(state.portal.create_hook(&caller, &team, arrival, body))).await;
    let answered = match made {
        Ok(answered) => answered,
        Err(refusal) => return Ok(refused(&state, &posted, caller, refusal).await),
    };
    let page = shown(&answered)
        .map_or_else(|| format!("/teams/{team}/hooks"), |hook| format!("/teams/{team}/hooks/{}", hook.id));
    sessions::keep(&state, &posted.session, &page, secret_once(&answered)).await?;
    Ok(see_other(&page))
}

/// Changes a hook.
pub(super) async fn change(
    State(state): State<AppState>,
    PathOf((team, id)): PathOf<(String, String)>,
    mut posted: Posted,
) -> Result<Response> {
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(&posted.address));
    };
    let mut body = match described(&state, &caller, &posted) {
        Ok(body) => body,
        Err(refusal) => return Ok(refused(&state, &posted, caller, refusal).await),
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
    let changed =
        counted(&state, Box::pin(state.portal.change_hook(&caller, &team, &id, arrival, body))).await;
    if let Err(refusal) = changed {
        return Ok(refused(&state, &posted, caller, refusal).await);
    }
    let page = format!("/teams/{team}/hooks/{id}");
    sessions::keep(&state, &posted.session, &page, notice("The hook is changed.")).await?;
    Ok(see_other(&page))
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
    step(&state, posted, &page, work, secret_once).await
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
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(&posted.address));
    };
    let send = posted.field("do") == "send";
    let body = match hook::test_body(&posted.fields, send) {
        Ok(body) => Value::Object(body).to_string().into(),
        Err(why) => return Ok(refused(&state, &posted, caller, unreadable(why)).await),
    };
    let arrival = std::mem::take(&mut posted.arrival);
    let tested = Box::pin(state.portal.test_hook(&caller, &team, &id, arrival, body)).await;
    match tested {
        Err(error) => Ok(refused(&state, &posted, caller, Refusal(error)).await),
        Ok(Tested::Tried(trial)) => {
            let form = HookForm { trial: Some(*trial), ..HookForm::default() };
            Ok(again(&state, &posted, caller, form, StatusCode::OK).await)
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
