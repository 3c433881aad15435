//! Sends notifications (<https://www.standardwebhooks.com>): what the outbox holds, each to its address, again and again
//! on the published schedule until it arrives.
//!
//! A delivery is taken by a lease. Its ID is the same at every try, also when a server ended after it had sent and before
//! it wrote that down, so that the other side can tell a repeat.

use crate::{
    outbound::{Call, Failure, HeaderMap, HeaderName, HeaderValue, Method, Reply, StatusCode, header},
    service::{Inner, old_is_over},
    signature::sign_standard,
    store::notifications::{AfterTry, TakenDelivery, of_resource},
};
use domain::{
    backoff::{NOTIFICATION, retry_after},
    notification::NotificationAttemptView,
    time::Moment,
    view::Object,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// How many are sent at a time by one server.
const AT_ONCE: usize = 16;
/// How long one may take.
const TOTAL: Duration = Duration::from_secs(15);
/// How long a server that went silent keeps what it took: longer than any call takes.
const LEASE: Duration = Duration::from_mins(1);
/// How long one waits when nothing was due.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How much of an answer is read. Nothing of it is kept.
const MOST_READ: usize = 1024;

/// Sends what is due until `shutdown`. What is being sent then is left to its lease.
pub(super) async fn send_all(portal: Arc<Inner>, shutdown: CancellationToken) {
    let mut random = [0; 8];
    portal.ids.fill(&mut random);
    let owner = format!("{:016x}", u64::from_le_bytes(random));
    let mut under_way = JoinSet::new();
    loop {
        let mut idle = true;
        if under_way.len() < AT_ONCE {
            match portal.store.take_delivery(&owner, portal.clock.now(), LEASE).await {
                Ok(Some(taken)) => {
                    under_way.spawn(send(Arc::clone(&portal), taken));
                    idle = false;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "cannot take a notification"),
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            // One that has ended may let the next to the same address go.
            Some(ended) = under_way.join_next(), if idle && !under_way.is_empty() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "sending a notification ended by a fault; its lease will end");
                }
            }
            () = tokio::time::sleep(LOOK_AGAIN), if idle => {}
            () = std::future::ready(()), if !idle => {}
        }
    }
}

/// Sends one and writes down what came of it.
async fn send(portal: Arc<Inner>, taken: TakenDelivery) {
    let begun = Instant::now();
    let at = portal.clock.now();
    let (status, error, asked) = match call(&portal, &taken, at) {
        Err(error) => (None, Some(error), None),
        Ok(call) => match portal.outbound.send(call).await {
            Ok(reply) => (Some(reply.status), None, asked_to_wait(&reply, portal.clock.now())),
            // What came too slowly or is too long was taken all the same.
            Err(Failure::InDoubt { status: Some(status), .. }) if status.is_success() => {
                (Some(status), None, None)
            }
            Err(Failure::InDoubt { status, why }) => (status, Some(why.to_string()), None),
            Err(Failure::NeverSent(why)) => (None, Some(why.to_string()), None),
        },
    };
    let now = portal.clock.now();
    let after = after_try(&portal, &taken, status, asked, now);
    let error = error.or_else(|| match status {
        Some(status) if !status.is_success() => Some(format!("the address answered {status}")),
        _ => None,
    });
    let attempt = NotificationAttemptView {
        at,
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        status: status.map(|status| status.as_u16()),
        error: error.map(|error| error.chars().take(300).collect()),
    };
    match portal.store.delivery_tried(taken.id, taken.fence, attempt, after, now).await {
        Ok(true) => {}
        Ok(false) => tracing::info!(delivery = %taken.id, "another server has taken a notification over"),
        Err(error) => {
            tracing::warn!(%error, delivery = %taken.id, "what became of a notification is not written");
        }
    }
}

/// What is to become of a delivery that was answered like this.
fn after_try(
    portal: &Inner,
    taken: &TakenDelivery,
    status: Option<StatusCode>,
    asked: Option<Duration>,
    now: Moment,
) -> AfterTry {
    match status {
        Some(status) if status.is_success() => AfterTry::Delivered,
        Some(StatusCode::GONE) => AfterTry::Disable("the address answered 410 Gone"),
        _ => {
            let wait = NOTIFICATION.wait(taken.tries, portal.ids.random());
            let wait = wait.max(asked.unwrap_or_default().min(NOTIFICATION.cap));
            let until = taken.since.plus(portal.settings.guard.notification_window());
            if now.plus(wait) > until { AfterTry::GiveUp } else { AfterTry::Again(wait) }
        }
    }
}

/// How long the other side asks to be left alone.
fn asked_to_wait(reply: &Reply, now: Moment) -> Option<Duration> {
    retry_after(reply.headers.get(header::RETRY_AFTER)?.to_str().ok()?, Some(now))
}

/// The call that delivers it now.
fn call(portal: &Inner, taken: &TakenDelivery, now: Moment) -> Result<Call, String> {
    let body = payload(taken, &portal.public_url).map_err(|error| error.to_string())?;
    let secrets = portal.notification_secrets(taken.notification, &taken.secrets).map_err(|error| {
        tracing::error!(%error, context = error.context, "a notification cannot be signed");
        "the signing secret does not open; rotate it".to_owned()
    })?;
    let signing = if old_is_over(taken.old_until, now) { 1 } else { 2 };
    let id = taken.id.to_string();
    let signatures: Vec<String> =
        secrets.iter().take(signing).map(|secret| sign_standard(secret, &id, now, &body)).collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        ("webhook-id", id),
        ("webhook-timestamp", now.millis().div_euclid(1000).to_string()),
        ("webhook-signature", signatures.join(" ")),
    ] {
        let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(Call::new(Method::POST, &*taken.url)
        .headers(headers)
        .body(body)
        .within(TOTAL)
        .beginning_only(MOST_READ))
}

/// The body: what happened, when, and where to look. Made of what was written with the event, so that it is the same at
/// every try.
fn payload(taken: &TakenDelivery, base: &str) -> serde_json::Result<Vec<u8>> {
    let mut data: Object = taken.data.clone();
    let place = match taken.request {
        Some(request) => Some(format!("/requests/{request}")),
        None => of_resource(&data).map(|resource| resource.path()),
    };
    if let Some(place) = place {
        let links = json!({ "page": format!("{base}{place}"), "api": format!("{base}/api/v1{place}") });
        data.insert("links".into(), links);
    }
    let whole = json!({ "type": taken.event, "timestamp": taken.created_at, "data": Value::Object(data) });
    serde_json::to_vec(&whole)
}
