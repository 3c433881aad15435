//! The browser's side of the form: sending, waiting, storage and history. Runs in event handlers and effects only.

use super::{
    outgoing::Values,
    reply::{HttpAnswer, Reply},
    subject::{Call, Method},
};
use crate::components::moment::browser_now;
use domain::time::Moment;
use gloo_net::http::Request;
use leptos::prelude::{set_timeout_with_handle, window};
use std::time::Duration;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{AbortController, FormData, HtmlFormElement, Storage};

/// How long one try may take before it counts as lost. Longer than the guard makes a repeat wait.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the form's ID stands in the history entry's state.
const STATE_MEMBER: &str = "keyturnForm";

/// Milliseconds since the page began; only goes forward.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole milliseconds since the page began"
)]
pub(crate) fn now() -> u64 {
    window().performance().map_or(0, |performance| performance.now() as u64)
}

/// The moment that [`now`] shows as `millis`, by the browser's clock.
pub(crate) fn moment(millis: u64) -> Moment {
    let ahead = i64::try_from(millis).unwrap_or(i64::MAX).saturating_sub_unsigned(now());
    Moment::from_millis(browser_now().saturating_add(ahead))
}

/// A random number, uniform over all of `u32`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the greatest u32")]
pub(crate) fn random() -> u32 {
    (js_sys::Math::random() * f64::from(u32::MAX)) as u32
}

/// A fresh ID for an opened form.
#[expect(clippy::disallowed_methods, reason = "the one ID that is made in the browser")]
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Sends one try of the form that was opened for this user.
pub(crate) async fn send(call: Call, user: &str, id: &str) -> Reply {
    try_send(call, user, id).await.unwrap_or(Reply::Lost)
}

async fn try_send(call: Call, user: &str, id: &str) -> Result<Reply, gloo_net::Error> {
    let Ok(controller) = AbortController::new() else {
        return Ok(Reply::Lost);
    };
    let signal = controller.signal();
    let timeout = set_timeout_with_handle(move || controller.abort(), TRY_TIMEOUT);
    let request = match call.method {
        Method::Post => Request::post(&call.address),
        Method::Patch => Request::patch(&call.address),
        Method::Delete => Request::delete(&call.address),
    };
    let mut request = request
        .header("Idempotency-Key", id)
        .header("Keyturn-Page-Of", user)
        .header("Accept", "application/json")
        .abort_signal(Some(&signal));
    if let Some(etag) = &call.if_match {
        request = request.header("If-Match", etag);
    }
    let request = match call.body {
        Some(body) => request.header("Content-Type", "application/json").body(body)?,
        None => request.build()?,
    };
    let response = request.send().await?;
    let text = response.text().await?;
    if let Ok(timeout) = timeout {
        timeout.clear();
    }
    let headers = response.headers();
    let header = |name: &str| headers.get(name);
    Ok(Reply::read(HttpAnswer {
        status: response.status(),
        retry_after: header("Retry-After").as_deref(),
        date: header("Date").as_deref(),
        arrived: Some(Moment::from_millis(browser_now())),
        replayed: header("Idempotency-Replayed").as_deref(),
        outcome: header("Keyturn-Outcome").as_deref(),
        body: &text,
    }))
}

/// What is typed into the form now.
pub(crate) fn typed(form: &HtmlFormElement) -> Values {
    let mut values = Values::new();
    let Ok(data) = FormData::new_with_form(form) else {
        return values;
    };
    for entry in data.entries().into_iter().flatten() {
        let pair = js_sys::Array::from(&entry);
        if let (Some(field), Some(text)) = (pair.get(0).as_string(), pair.get(1).as_string()) {
            values.insert(field, text);
        }
    }
    for own in ["request_id", "sealed", "fresh_id", "duplicate_reason"] {
        values.remove(own);
    }
    values
}

fn storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

/// What the tab keeps at this place.
pub(crate) fn recall(place: &str) -> Option<String> {
    storage()?.get_item(place).ok().flatten()
}

/// Keeps a text for this tab. A full or forbidden storage only means that a reload shows an empty form.
pub(crate) fn keep(place: &str, text: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(place, text);
    }
}

/// The path that the page has now.
pub(crate) fn path() -> String {
    window().location().pathname().unwrap_or_default()
}

/// A parameter of the address that the page has now.
pub(crate) fn query(name: &str) -> Option<String> {
    let search = window().location().search().ok()?;
    web_sys::UrlSearchParams::new_with_str(&search).ok()?.get(name)
}

/// The form's ID in the state of this history entry, if it was opened at this path.
pub(crate) fn id_of_entry(path: &str) -> Option<String> {
    let state = window().history().ok()?.state().ok()?;
    let form = member(&state, STATE_MEMBER)?;
    (member(&form, "path")?.as_string()? == path).then(|| member(&form, "id")?.as_string()).flatten()
}

/// Puts the form's ID into the state of this history entry, beside what the router keeps there.
pub(crate) fn set_id_of_entry(path: &str, id: &str) {
    let Ok(history) = window().history() else { return };
    let form = js_sys::Object::new();
    let state = js_sys::Object::new();
    if let Ok(present) = history.state()
        && let Some(present) = present.dyn_ref::<js_sys::Object>()
    {
        js_sys::Object::assign(&state, present);
    }
    let set = |target: &js_sys::Object, name: &str, value: &JsValue| {
        let _ = js_sys::Reflect::set(target, &name.into(), value);
    };
    set(&form, "path", &path.into());
    set(&form, "id", &id.into());
    set(&state, STATE_MEMBER, &form);
    let _ = history.replace_state(&state, "");
}

fn member(object: &JsValue, name: &str) -> Option<JsValue> {
    if !object.is_object() {
        return None;
    }
    js_sys::Reflect::get(object, &name.into()).ok().filter(|value| !value.is_undefined() && !value.is_null())
}

/// Leaves for another page of the portal.
pub(crate) fn leave_for(address: &str) {
    let _ = window().location().assign(address);
}
