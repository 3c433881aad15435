//! Callbacks: reports of work that goes on elsewhere, each known by its signature and taken in once.

use super::{
    Inner, Portal,
    keyed::object,
    keys::RESEAL_AT_ONCE,
    read::{page_size, place},
    signed::{self, Unproven},
};
use crate::{
    Caller, Error, Result,
    hidden::{texts, veil_entry, veiled_value},
    signature::{SharedSecret, mac},
    store::{Errand, ErrandSeal, Report, Taken},
};
use bytes::Bytes;
use domain::{
    callback::{HeardView, OrphanView, Progress},
    id::ErrandId,
    key::KeyError,
    problem::{FieldError, ProblemKind},
    view::{EventEntry, Object, Page},
};
use serde_json::Value;
use std::net::IpAddr;

/// The largest sequence number, which every JSON carries exactly.
const LARGEST: i64 = (1 << 53) - 1;
/// The longest text of a report's progress or reason, and of one of its log lines.
const LONGEST_TEXT: usize = 1000;
const LONGEST_LINE: usize = 4000;
/// The step by which a history tells what was reported as made after the request had come to another end.
const MADE: &str = "made elsewhere";
/// The most log lines of one report.
const MOST_LINES: usize = 1000;

const MEMBERS: &[&str] = &["state", "sequence", "attempt", "progress", "log", "outputs", "error"];

/// A report as it came; nothing of it is believed yet. Of each header every value that was sent.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// `webhook-id`
    pub ids: Vec<Vec<u8>>,
    /// `webhook-timestamp`
    pub timestamps: Vec<Vec<u8>>,
    /// `webhook-signature`
    pub signatures: Vec<Vec<u8>>,
    /// The body's bytes, which are signed.
    pub body: Bytes,
    /// The address that the connection came from.
    pub from: Option<IpAddr>,
}

impl Delivery {
    fn headers(&self) -> signed::Headers<'_> {
        signed::Headers {
            ids: slices(&self.ids),
            timestamps: slices(&self.timestamps),
            signatures: slices(&self.signatures),
        }
    }
}

fn slices(values: &[Vec<u8>]) -> Vec<&[u8]> {
    values.iter().map(Vec::as_slice).collect()
}

/// What a report says, read and checked.
struct Said {
    progress: Progress,
    sequence: i64,
    attempt: Option<u32>,
    entries: Vec<EventEntry>,
    outcome: Option<Object>,
}

impl Portal {
    /// Takes in a report of work that goes on elsewhere. A repeat (`true`) gets what became of the first.
    pub async fn callback(&self, id: &str, delivery: Delivery) -> Result<(HeardView, bool)> {
        let portal = &self.0;
        let now = portal.clock.now();
        let found = match id.parse::<ErrandId>() {
            Ok(id) => portal.store.errand(id).await?,
            Err(_) => None,
        };
        let Some(errand) = found else {
            portal.throttle.wrong_guess(delivery.from, now)?;
            return Err(Error::not_found());
        };
        let own = portal.errand_secret(&errand)?;
        let mut secrets = vec![own.clone()];
        let request = portal.store.request(errand.request).await?;
        if let Some(request) = &request
            && let Some(offering) = portal.catalog.get(&request.view.offering)
        {
            secrets.extend(offering.provisioner.shared_secrets());
        }
        let event = match signed::standard(&secrets, &delivery.headers(), &delivery.body, now) {
            Ok(id) => id.to_string(),
            Err(Unproven::Id(error)) => return Err(no_id(error)),
            Err(Unproven::Signature) => {
                // Braked only once known to be wrong, as with tokens.
                portal.throttle.wrong_guess(delivery.from, now)?;
                return Err(Error::new(
                    ProblemKind::SignatureWrong,
                    "The report is not signed with this callback's secret, or its time is more than five minutes \
                     off. Nothing of it was recorded.",
                ));
            }
        };
        let ended = request.as_ref().and_then(|request| request.view.finished_at);
        if ended.is_some_and(|ended| ended.plus(portal.settings.guard.retention) <= now) {
            return Err(Error::new(
                ProblemKind::KeyExpired,
                "What this callback reports on ended longer ago than reports are told apart. Nothing was recorded.",
            )
            .about(errand.request));
        }
        let mut said = read(&delivery.body)?;
        if said.attempt.is_some_and(|attempt| attempt > errand.attempt) {
            let detail = format!("this callback is of attempt {}", errand.attempt);
            return Err(Error::field("/attempt", detail));
        }
        let mut public = Object::new();
        // Secret outputs do not stand in the lines that come with them, or later, as well.
        if let (Progress::Succeeded, Some(outputs)) = (said.progress, &said.outcome) {
            let offering = request.as_ref().and_then(|request| portal.catalog.get(&request.view.offering));
            // Where this server's catalog cannot say which they are, each may be one.
            let secret = |name: &str| offering.is_none_or(|offering| offering.secret_outputs.contains(name));
            let secrets =
                texts(outputs.iter().filter(|(name, _)| secret(name.as_str())).map(|(_, value)| value));
            for entry in &mut said.entries {
                veil_entry(entry, &secrets);
            }
            let open = outputs.iter().filter(|(name, _)| !secret(name.as_str()));
            public =
                open.map(|(name, value)| (name.clone(), veiled_value(value.clone(), &secrets))).collect();
        }
        let mut made = Vec::new();
        if !public.is_empty() {
            let detail = Value::Object(public.clone()).to_string();
            made.push(EventEntry::Step { step: MADE.into(), detail });
        }
        if let Some(request) = &request {
            portal.veil_entries(request, &mut said.entries).await?;
            portal.veil_entries(request, &mut made).await?;
        }
        // Only now: a secret that is cut amid is not found.
        if let Some(EventEntry::Step { detail, .. }) = made.last_mut() {
            *detail = detail.chars().take(LONGEST_LINE).collect();
        }
        let outcome = match &said.outcome {
            Some(outcome) => Some(portal.seal_errand(errand.id, "report", outcome)?),
            None => None,
        };
        let report = Report {
            errand: errand.id,
            event: event.clone(),
            body_hash: mac(&own, &delivery.body),
            sequence: said.sequence,
            earlier: said.attempt.is_some_and(|attempt| attempt < errand.attempt),
            progress: said.progress,
            entries: said.entries,
            made: made.pop(),
            outcome,
            outputs: public,
            at: now,
        };
        match portal.store.report(report).await? {
            Taken::In { heard, at, again } => Ok((HeardView { event, outcome: heard, received_at: at }, again)),
            Taken::Reused => Err(Error::new(
                ProblemKind::KeyReused,
                format!("Another report was taken in as {event:?} before. This one was refused, which is recorded."),
            )
            .about(errand.request)),
            Taken::Full => Err(Error::new(
                ProblemKind::AlreadyDecided,
                "This callback has had as many reports as are kept. Nothing was changed.",
            )),
            Taken::Missing => Err(Error::not_found()),
        }
    }

    /// A page of what succeeded elsewhere after its request had come to another end or attempt, newest first; for
    /// administrators.
    pub async fn orphans(
        &self,
        caller: &Caller,
        size: u32,
        cursor: Option<String>,
    ) -> Result<Page<OrphanView>> {
        if !caller.is_admin() {
            return Err(Error::new(
                ProblemKind::Forbidden,
                "Only an administrator may see what nobody answers for.",
            ));
        }
        Ok(self.0.store.orphans(place(cursor.as_deref())?, page_size(size)?).await?)
    }
}

impl Inner {
    /// Where the other side reports on an errand.
    pub(crate) fn callback_url(&self, errand: ErrandId) -> String {
        format!("{}/api/v1/callbacks/{errand}", self.public_url)
    }

    /// The secret of an errand.
    pub(crate) fn errand_secret(&self, errand: &Errand) -> Result<SharedSecret> {
        let plain = self.keys.unseal(&purpose(errand.id, "secret"), &errand.secret)?;
        plain
            .and_then(|plain| String::from_utf8(plain).ok())
            .and_then(SharedSecret::kept)
            .ok_or_else(|| Error::internal(format!("the secret of callback {} does not open", errand.id)))
    }

    /// A fresh secret for an errand, sealed.
    pub(crate) fn new_errand_secret(&self, id: ErrandId) -> Result<Vec<u8>> {
        let secret = SharedSecret::generate(self.ids.as_ref());
        self.keys.seal(&purpose(id, "secret"), secret.reveal().as_bytes(), self.ids.as_ref())
    }

    /// Seals what is known of an errand: a `note` or a `report`.
    pub(crate) fn seal_errand(&self, id: ErrandId, what: &str, known: &Object) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(known).map_err(Error::internal)?;
        self.keys.seal(&purpose(id, what), &plain, self.ids.as_ref())
    }

    /// Opens what [`Self::seal_errand`] made.
    pub(crate) fn open_errand(&self, id: ErrandId, what: &str, sealed: &[u8]) -> Result<Object> {
        let plain = self.keys.unseal(&purpose(id, what), sealed)?;
        plain
            .and_then(|plain| serde_json::from_slice(&plain).ok())
            .ok_or_else(|| Error::internal(format!("the {what} of callback {id} does not open")))
    }

    /// Seals what is kept of errands with the current version of the key, a few at a time. Their secrets stay what they
    /// are: only how they lie in the database changes, and whoever was given one goes on signing with it.
    pub(super) async fn reseal_errands(&self) -> Result<()> {
        self.reseal(
            async |head| self.store.errands_sealed_otherwise(head, RESEAL_AT_ONCE).await,
            |seal| match *seal {
                ErrandSeal::Secret(id) => purpose(id, "secret"),
                ErrandSeal::Note(id) => purpose(id, "note"),
                ErrandSeal::Report(id) => purpose(id, "report"),
            },
            async |seal, before, after| self.store.reseal_errand(seal, before, after).await,
        )
        .await
    }
}

fn purpose(id: ErrandId, what: &str) -> String {
    format!("errand:{id}:{what}")
}

/// The refusal of a report without an ID of its source. It is part of what is signed, so it is never made up here.
fn no_id(error: KeyError) -> Error {
    let kind = if error == KeyError::Missing { ProblemKind::KeyMissing } else { ProblemKind::KeyInvalid };
    Error::new(
        kind,
        "Send the report's own ID as webhook-id, once: 1 to 255 visible ASCII characters, the same for every delivery \
         of this report. Nothing was recorded.",
    )
}

/// Reads a report; every value that does not fit is named.
fn read(body: &[u8]) -> Result<Said> {
    let body = object(body, MEMBERS)?;
    let mut wrong = Vec::new();
    let progress = body.get("state").and_then(Value::as_str).and_then(|word| word.parse::<Progress>().ok());
    if progress.is_none() {
        note(&mut wrong, "/state", "must be running, progress, succeeded or failed");
    }
    let sequence = body.get("sequence").and_then(whole).filter(|number| (0..=LARGEST).contains(number));
    if sequence.is_none() {
        note(&mut wrong, "/sequence", "must be a whole number from 0, higher with each report");
    }
    let attempt = match body.get("attempt") {
        None => None,
        Some(value) => {
            let attempt = whole(value).and_then(|number| u32::try_from(number).ok()).filter(|n| *n > 0);
            if attempt.is_none() {
                note(&mut wrong, "/attempt", "must be the number of the attempt, from 1");
            }
            attempt
        }
    };
    let mut entries = Vec::new();
    if let Some(text) = text(&body, "progress", &mut wrong) {
        entries.push(EventEntry::Step { step: "progress".into(), detail: text.to_owned() });
    }
    match body.get("log") {
        None => {}
        Some(Value::Array(lines)) if lines.len() <= MOST_LINES => {
            for (at, line) in lines.iter().enumerate() {
                match line.as_str().filter(|line| line.chars().count() <= LONGEST_LINE) {
                    Some(line) => entries.push(EventEntry::Log { line: line.to_owned() }),
                    None => {
                        note(&mut wrong, &format!("/log/{at}"), "must be a text of at most 4000 characters");
                    }
                }
            }
        }
        Some(_) => note(&mut wrong, "/log", "must be a list of at most 1000 lines"),
    }
    let mut outcome = None;
    match (body.get("outputs"), progress) {
        (None, Some(Progress::Succeeded)) => outcome = Some(Object::new()),
        (Some(Value::Object(outputs)), Some(Progress::Succeeded)) => outcome = Some(outputs.clone()),
        (Some(Value::Object(_)), _) => note(&mut wrong, "/outputs", "come with the state succeeded only"),
        (Some(_), _) => note(&mut wrong, "/outputs", "must be an object"),
        (None, _) => {}
    }
    let error = text(&body, "error", &mut wrong);
    match progress {
        Some(Progress::Failed) => {
            let why = error.unwrap_or("it was reported as failed, without a reason");
            outcome = Some(Object::from_iter([("error".to_owned(), why.into())]));
        }
        _ if error.is_some() => note(&mut wrong, "/error", "comes with the state failed only"),
        _ => {}
    }
    match (progress, sequence) {
        (Some(progress), Some(sequence)) if wrong.is_empty() => {
            Ok(Said { progress, sequence, attempt, entries, outcome })
        }
        _ => Err(Error::fields(wrong)),
    }
}

fn note(wrong: &mut Vec<FieldError>, pointer: &str, detail: &str) {
    wrong.push(FieldError { pointer: pointer.to_owned(), detail: detail.to_owned() });
}

/// A whole number, however it is spelled.
fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    value.as_i64().or_else(|| format!("{number:.0}").parse().ok())
}

fn text<'b>(body: &'b Object, name: &str, wrong: &mut Vec<FieldError>) -> Option<&'b str> {
    let value = body.get(name)?;
    let text = value.as_str().filter(|text| text.chars().count() <= LONGEST_TEXT);
    if text.is_none() {
        note(wrong, &format!("/{name}"), "must be a text of at most 1000 characters");
    }
    text
}
