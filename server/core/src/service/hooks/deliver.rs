//! The door for events: each asks at most once, however often it is delivered.

use super::{
    super::{
        Inner, Portal,
        signed::{self, STANDARD_ID, Unproven},
    },
    definition::asked_for,
    principal,
    seals::Kept,
};
use crate::{
    Answer, AnswerKind, Answered, Caller, Error, Result, guard,
    mapping::{self, Meant},
    signature::{SharedSecret, bearer_is_genuine, github_is_genuine},
    store::{Arrived, Claim, Delivery, StoredHook, StoredRequest},
};
use bytes::Bytes;
use domain::{
    command::Operation,
    hook::{DeliveryOutcome, HookDefinition, KEPT_PAYLOAD, Signing},
    id::{DeliveryId, HookId},
    json::{self, Loose},
    key::{KeyError, SubmissionKey},
    problem::ProblemKind,
    time::Moment,
};
use serde_json::Value;
use std::{collections::BTreeMap, net::IpAddr};

/// Headers that a mapping may read begin like this …
const READABLE: [&str; 3] = ["x-", "ce-", "webhook-"];
/// … and do not hold one of these, which prove something or tell of the way.
const NOT_READABLE: [&str; 9] =
    ["signature", "token", "secret", "auth", "forwarded", "real-ip", "cookie", "api-key", "apikey"];
/// How many headers a mapping may read, and how long each may be.
const MOST_HEADERS: usize = 32;
const LONGEST_HEADER: usize = 256;

/// An event as it arrived; nothing of it is believed yet.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its headers, by their names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its payload.
    pub body: Bytes,
    /// Where it came from.
    pub address: Option<IpAddr>,
}

impl Event {
    /// The one value of a header; nothing where it was sent twice.
    fn only(&self, name: &str) -> Option<&[u8]> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let first = values.next().map(|(_, value)| value.as_slice());
        first.filter(|_| values.next().is_none())
    }

    /// Every value of a header.
    fn all<'e>(&'e self, name: &str) -> Vec<&'e [u8]> {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        values.map(|(_, value)| value.as_slice()).collect()
    }

    /// Whether one of the secrets signed it as the hook wants it; else why not.
    fn proven(&self, signing: Signing, secrets: &[SharedSecret], now: Moment) -> Result<(), Unproven> {
        let genuine = match signing {
            Signing::Standard => {
                let headers = signed::Headers {
                    ids: self.all(STANDARD_ID),
                    timestamps: self.all("webhook-timestamp"),
                    signatures: self.all("webhook-signature"),
                };
                return signed::standard(secrets, &headers, &self.body, now).map(|_| ());
            }
            Signing::Github => github_is_genuine(secrets, self.only("x-hub-signature-256"), &self.body),
            Signing::Bearer => bearer_is_genuine(secrets, self.only("authorization")),
        };
        if genuine { Ok(()) } else { Err(Unproven::Signature) }
    }

    /// Its identity. Nothing else stands in for it: two events may well be alike. Only the header `Idempotency-Key` knows
    /// two spellings of one identity; elsewhere quotation marks are characters.
    fn identity(&self, header: &str) -> Result<SubmissionKey> {
        let values = self.all(header);
        let read = if header == "idempotency-key" {
            SubmissionKey::parse_only(values)
        } else {
            SubmissionKey::verbatim_only(values)
        };
        read.map_err(|error| no_identity(header, error))
    }

    /// The headers that a mapping may read.
    pub(super) fn readable(&self) -> BTreeMap<String, String> {
        let readable = |name: &str| {
            READABLE.iter().any(|begin| name.starts_with(begin))
                && !NOT_READABLE.iter().any(|part| name.contains(part))
        };
        self.headers
            .iter()
            .filter(|(name, value)| readable(name) && value.len() <= LONGEST_HEADER)
            .filter_map(|(name, value)| Some((name.clone(), String::from_utf8(value.clone()).ok()?)))
            .take(MOST_HEADERS)
            .collect()
    }
}

/// The refusal of an event without an identity.
fn no_identity(header: &str, error: KeyError) -> Error {
    let kind = if error == KeyError::Missing { ProblemKind::KeyMissing } else { ProblemKind::KeyInvalid };
    let detail = match error {
        KeyError::Missing => format!(
            "This hook finds an event's identity in the header {header}, which is missing or empty. A repeat could not \
             be told from another event of the same content, so nothing was done."
        ),
        other => format!("The event's identity, in the header {header}: {other}. Nothing was done."),
    };
    Error::new(kind, detail)
}

/// What became of a genuine event.
pub(super) enum Became {
    Answered(Answered),
    Ignored(String),
}

/// Why an event of this hook says nothing to it, where that is plain without its mapping.
pub(super) fn is_greeting(definition: &HookDefinition, headers: &BTreeMap<String, String>) -> bool {
    definition.signature == Signing::Github
        && headers.get("x-github-event").is_some_and(|kind| kind == "ping")
}

/// What is said of events that the condition leaves out.
pub(super) const NOT_COUNTED: &str = "The hook's condition leaves this event out.";
/// What is said of an event that only says hello.
pub(super) const GREETING: &str = "A ping says that the sender reaches the hook, which it does.";

/// The refusal of an event that the mapping does not fit.
pub(super) fn unmapped(fields: Vec<domain::problem::FieldError>) -> Error {
    let error = Error::fields(fields);
    let detail = format!(
        "The hook's mapping does not fit this event. {} Nothing was done, and the event does not count as seen.",
        error.detail
    );
    Error { kind: ProblemKind::HookMapping, detail, ..error }
}

/// What is hashed of an event: its payload as it came, whatever it means to the hook.
fn hashed(event: &Event) -> Value {
    serde_json::json!({ "operation": "hook_event", "payload": String::from_utf8_lossy(&event.body) })
}

impl Portal {
    /// Takes an event in: the first delivery of each asks for what it means, every repeat gets the first answer.
    pub async fn deliver(&self, hook: &str, event: Event) -> Result<Answered> {
        let portal = &self.0;
        let id: HookId = hook.parse().map_err(|_| Error::not_found())?;
        let hook = portal.store.hook(id).await?.ok_or_else(Error::not_found)?;
        if hook.removed_at.is_some() {
            return Err(Error::new(ProblemKind::HookRemoved, ProblemKind::HookRemoved.help()));
        }
        let (delivery, became) = portal.receive(&hook, &event).await?;
        if let Some(delivery) = delivery {
            portal.deliveries.put(delivery);
        }
        said(became?)
    }
}

/// What the sender is told.
pub(super) fn said(became: Became) -> Result<Answered> {
    match became {
        Became::Answered(answered) => Ok(answered),
        Became::Ignored(reason) => {
            let said = serde_json::json!({ "outcome": "ignored", "reason": reason });
            let answer = Answer::showing(AnswerKind::Done, None, &said)?;
            Ok(Answered {
                answer,
                replayed: false,
                existing: false,
                state: None,
                expires: None,
                request_id: None,
            })
        }
    }
}

impl Inner {
    /// Judges an event of this hook: an error where it is not genuine, else what became of it, and what is to be written
    /// down of that for the hook's owners.
    pub(super) async fn receive(
        &self,
        hook: &StoredHook,
        event: &Event,
    ) -> Result<(Option<Delivery>, Result<Became>)> {
        let now = self.clock.now();
        let secrets = self.hook_secrets(hook, now)?;
        let definition = &hook.view.definition;
        match event.proven(definition.signature, &secrets, now) {
            Ok(()) => {}
            Err(Unproven::Id(error)) => return Err(no_identity(STANDARD_ID, error)),
            Err(Unproven::Signature) => {
                // Braked only once known to be wrong: a genuine event gets in whatever its neighbours try.
                self.throttle.wrong_guess(event.address, now)?;
                return Err(Error::new(ProblemKind::SignatureWrong, ProblemKind::SignatureWrong.help()));
            }
        }
        let identity = event.identity(&definition.identity);
        let name = identity.as_ref().ok().map(|key| key.as_str().to_owned());
        let became = match identity {
            Ok(key) => self.take_in(hook, event, key, now).await,
            Err(error) => Err(error),
        };
        Ok((self.delivery(hook, event, name, &became, now), became))
    }

    async fn take_in(
        &self,
        hook: &StoredHook,
        event: &Event,
        key: SubmissionKey,
        now: Moment,
    ) -> Result<Became> {
        let payload = json::read_loosely(&event.body)?;
        let caller = principal(&hook.view, event.address);
        let arrived = self.arrived(&caller, hook.view.team.as_str(), key, Operation::Create, now);
        let mut waited = false;
        let became = self.first_or_repeat(hook, event, &payload, (&caller, &arrived), &mut waited).await;
        match became {
            Ok(Became::Ignored(reason)) => Ok(Became::Ignored(reason)),
            Ok(Became::Answered(answered)) => {
                let result = Ok(answered);
                self.record(arrived, &result, waited);
                result.map(Became::Answered)
            }
            Err(error) => {
                let result = Err(error);
                self.record(arrived, &result, waited);
                result.map(Became::Answered)
            }
        }
    }

    async fn first_or_repeat(
        &self,
        hook: &StoredHook,
        event: &Event,
        payload: &Loose,
        (caller, arrived): (&Caller, &Arrived),
        waited: &mut bool,
    ) -> Result<Became> {
        let definition = &hook.view.definition;
        let headers = event.readable();
        if is_greeting(definition, &headers) {
            return Ok(Became::Ignored(GREETING.to_owned()));
        }
        let hashed = hashed(event);
        if let Some((claim, request)) = self.looked_up(&arrived.scope).await? {
            return self.repeated(claim, request.as_ref(), &hashed, arrived.at).await;
        }
        let id = arrived.scope.key.as_str();
        let read = mapping::Event { id, headers: &headers, payload: &payload.value, beyond: &payload.beyond };
        let asked = match mapping::apply(definition, &read).map_err(unmapped)? {
            Meant::Ignored => return Ok(Became::Ignored(NOT_COUNTED.to_owned())),
            Meant::Asks(asked) => asked,
        };
        let sent = asked_for(definition, id, asked)?;
        let first =
            self.accept(caller, &hook.view.team, arrived.clone(), &sent, &hashed, (arrived.at, None)).await?;
        if let Some(answered) = first {
            return Ok(Became::Answered(answered));
        }
        *waited = true;
        let (claim, request) = self.looked_up(&arrived.scope).await?.ok_or_else(Error::not_found)?;
        self.repeated(claim, request.as_ref(), &hashed, arrived.at).await
    }

    /// A repeat has the same payload, byte for byte; what it would mean today is of no interest.
    async fn repeated(
        &self,
        claim: Claim,
        request: Option<&StoredRequest>,
        hashed: &Value,
        at: Moment,
    ) -> Result<Became> {
        let key = self.key_of(claim.meaning.key_version).await?;
        if claim.meaning.body_hash != guard::body_hash(&key, hashed) {
            return Err(guard::reused(&claim, vec!["payload".into()]));
        }
        Ok(Became::Answered(guard::replay(claim, request, &self.settings.guard, at)))
    }

    /// What is written down of a genuine event.
    fn delivery(
        &self,
        hook: &StoredHook,
        event: &Event,
        event_id: Option<String>,
        became: &Result<Became>,
        now: Moment,
    ) -> Option<Delivery> {
        let id = DeliveryId(self.ids.uuid(now));
        let beginning = &event.body[..event.body.len().min(KEPT_PAYLOAD)];
        let kept =
            Kept { headers: event.readable(), payload: String::from_utf8_lossy(beginning).into_owned() };
        let sealed = match self.seal_event(id, &kept) {
            Ok(sealed) => sealed,
            Err(error) => {
                tracing::error!(%error, "a delivery could not be sealed and was not written down");
                return None;
            }
        };
        let (outcome, problem, detail, request) = match became {
            Ok(Became::Ignored(reason)) => (DeliveryOutcome::Ignored, None, Some(reason.clone()), None),
            Ok(Became::Answered(answered)) => {
                let outcome = match answered {
                    Answered { replayed: true, .. } => DeliveryOutcome::Replayed,
                    Answered { existing: true, .. } => DeliveryOutcome::Existing,
                    _ => DeliveryOutcome::Requested,
                };
                (outcome, None, None, answered.request_id)
            }
            Err(error) => {
                let reused = error.kind == ProblemKind::KeyReused;
                let outcome = if reused { DeliveryOutcome::Mismatched } else { DeliveryOutcome::Refused };
                let mut detail = error.detail.clone();
                if error.fields.len() > 1 {
                    let each =
                        error.fields.iter().map(|field| format!("\n{}: {}", field.pointer, field.detail));
                    detail.extend(each);
                }
                (outcome, Some(error.kind.slug()), Some(detail), error.request)
            }
        };
        Some(Delivery {
            id,
            hook: hook.view.id,
            at: now,
            event_id,
            address: event.address.map(|address| address.to_string()),
            outcome,
            problem,
            detail,
            request,
            size: i64::try_from(event.body.len()).unwrap_or(i64::MAX),
            sealed,
        })
    }
}
