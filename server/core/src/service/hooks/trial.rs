//! Test events: what one would do, or a genuine one that the portal signs itself.

use super::{
    super::{Arrival, Portal, keyed::members},
    definition::asked_for,
    deliver::{Event, GREETING, NOT_COUNTED, is_greeting, said, unmapped},
    principal,
};
use crate::{
    Answered, Caller, Error, Result,
    mapping::{self, Meant},
    signature::{sign_github, sign_standard},
};
use bytes::Bytes;
use domain::{
    hook::{HookTrial, Signing},
    view::Object,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The identity of an event that is only tried.
const TRIAL_ID: &str = "test-event";

/// A test event as it is sent.
struct Sent {
    headers: Vec<(String, Vec<u8>)>,
    payload: Value,
    send: bool,
}

fn read(mut body: Object) -> Result<Sent> {
    let headers = match body.remove("headers") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(headers)) => headers,
        Some(_) => return Err(Error::field("/headers", "must be an object of strings")),
    };
    let headers = headers
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.to_ascii_lowercase(), text.into_bytes())),
            _ => Err(Error::field("/headers", "must be an object of strings")),
        })
        .collect::<Result<_>>()?;
    let send = match body.remove("send") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return Err(Error::field("/send", "must be true or false")),
    };
    let payload =
        body.remove("payload").ok_or_else(|| Error::field("/payload", "send the event's payload"))?;
    Ok(Sent { headers, payload, send })
}

/// What came of a test event.
#[derive(Debug)]
pub enum Tested {
    /// What it would do; nothing was done.
    Tried(Box<HookTrial>),
    /// It was sent, and this is what its sender was told.
    Sent(Box<Answered>),
}

impl Portal {
    /// Tests a hook: `{"payload": …, "headers": {…}, "send": true}`, for its owners.
    ///
    /// Without `send` nothing is claimed or stored. With it the portal signs the event and delivers it to itself by the
    /// hook's own door, under the key of this call as its identity, so that sending the test again repeats the event.
    pub async fn test_hook(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Tested> {
        let body = members(&body, &["headers", "payload", "send"])?;
        if body.get("send") == Some(&Value::Bool(true)) {
            arrival.key()?;
        }
        let hook = self.0.managed_hook(caller, team, id).await?;
        let Sent { mut headers, payload, send } = read(body)?;
        let definition = &hook.view.definition;
        if send {
            let key = arrival.key()?.as_str().as_bytes().to_vec();
            let (now, body) = (self.0.clock.now(), Bytes::from(payload.to_string()));
            let secrets = self.0.hook_secrets(&hook, now)?;
            let secret = secrets.first().ok_or_else(|| Error::internal("a hook without a secret"))?;
            let own = [
                "webhook-id",
                "webhook-timestamp",
                "webhook-signature",
                "x-hub-signature-256",
                "authorization",
            ];
            headers.retain(|(name, _)| !own.contains(&name.as_str()) && *name != definition.identity);
            if definition.identity != "webhook-id" {
                headers.push((definition.identity.clone(), key.clone()));
            }
            match definition.signature {
                Signing::Standard => {
                    let id = String::from_utf8_lossy(&key).into_owned();
                    let timestamp = now.millis().div_euclid(1000).to_string();
                    let signature = sign_standard(secret, &id, now, &body);
                    headers.push(("webhook-timestamp".into(), timestamp.into_bytes()));
                    headers.push(("webhook-signature".into(), signature.into_bytes()));
                    headers.push(("webhook-id".into(), key));
                }
                Signing::Github => {
                    headers.push(("x-hub-signature-256".into(), sign_github(secret, &body).into_bytes()));
                }
                Signing::Bearer => {
                    let borne = format!("Bearer {}", secret.reveal());
                    headers.push(("authorization".into(), borne.into_bytes()));
                }
            }
            if definition.signature != Signing::Standard && definition.identity == "webhook-id" {
                headers.push(("webhook-id".into(), arrival.key()?.as_str().as_bytes().to_vec()));
            }
            let event = Event { headers, body, address: caller.address };
            let (delivery, became) = self.0.receive(&hook, &event).await?;
            // At once: whoever sent it looks for it next.
            if let Some(delivery) = delivery
                && let Err(error) = self.0.store.record_deliveries(vec![delivery]).await
            {
                tracing::warn!(%error, "a test event's delivery was not written down");
            }
            return Ok(Tested::Sent(Box::new(said(became?)?)));
        }
        let event = Event { headers, body: Bytes::new(), address: caller.address };
        let headers = event.readable();
        let ignored = |reason: &str| {
            let reason = Some(reason.to_owned());
            Ok(Tested::Tried(Box::new(HookTrial { dry_run: true, counts: false, reason, plan: None })))
        };
        if is_greeting(definition, &headers) {
            return ignored(GREETING);
        }
        let beyond = BTreeSet::new();
        let read = mapping::Event { id: TRIAL_ID, headers: &headers, payload: &payload, beyond: &beyond };
        let asked = match mapping::apply(definition, &read).map_err(unmapped)? {
            Meant::Ignored => return ignored(NOT_COUNTED),
            Meant::Asks(asked) => asked,
        };
        let sent = asked_for(definition, TRIAL_ID, asked)?;
        let plan = self.0.plan_create(&principal(&hook.view, caller.address), &hook.view.team, &sent).await?;
        Ok(Tested::Tried(Box::new(HookTrial { dry_run: true, counts: true, reason: None, plan: Some(plan) })))
    }
}
