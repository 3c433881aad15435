//! The guard: which submission is the first with its key, which is a repeat, and which only looks like one.
//!
//! The claim itself happens in the store's transaction. Here a submission's meaning is hashed and compared, and what the
//! store decided becomes what the caller is told.

use crate::{
    Error, Result,
    answer::Answered,
    keys::Keys,
    secret::SecretKey,
    settings::GuardSettings,
    store::{Claim, Meaning, NameHolder, Scope, Store, StoreError, StoredRequest, Submission, Submitted},
};
use domain::{
    command::Command, id::RequestId, json, label::Labels, problem::ProblemKind, quota::QuotaShort,
    time::Moment, view::RequestView,
};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// When a refusal for want of room or of the database may be tried again.
const SOON: Duration = Duration::from_secs(1);

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Busy => ProblemKind::Busy,
            StoreError::Contended(_) => ProblemKind::Contended,
            StoreError::KeyBusy => ProblemKind::KeyInUse,
            StoreError::Unavailable(_) => ProblemKind::StoreUnavailable,
            StoreError::Corrupt(_) => return Error::internal(error),
        };
        Error { context: Some(error.to_string()), ..Error::new(kind, kind.help()).after(SOON) }
    }
}

/// The hashes by which a repeat is recognised.
pub(crate) fn meaning(keys: &Keys, command: &Command, body: &Value) -> Meaning {
    let current = keys.current();
    Meaning {
        fingerprint: current.key.fingerprint(&command.canonical()),
        body_hash: body_hash(&current.key, body),
        key_version: current.number,
    }
}

/// The hash of a body as it was parsed, before any schema.
pub(crate) fn body_hash(key: &SecretKey, body: &Value) -> [u8; 32] {
    key.fingerprint(&json::canonical(body))
}

/// What the first submission with a key asked for, as far as it is kept.
pub(crate) fn first_command(claim: &Claim, request: Option<&StoredRequest>) -> Option<Command> {
    claim.command.clone().or_else(|| request.map(|request| created_by(&request.view)))
}

/// The create that made a request.
pub(crate) fn created_by(view: &RequestView) -> Command {
    let mut labels = Labels::default();
    for (key, value) in &view.labels {
        // The shown labels hold the correlation ID too, which is no label that a sender could set.
        let _ = labels.add(key, value);
    }
    Command {
        operation: domain::command::Operation::Create,
        target: None,
        action: None,
        offering: Some(view.offering.clone()),
        name: Some(view.name.clone()),
        parameters: view.parameters.clone(),
        labels,
        correlation_id: (view.correlation_id != view.id.to_string()).then(|| view.correlation_id.clone()),
        parent_id: view.parent_id,
    }
}

/// The refusal of a key that stands for something else.
pub(crate) fn reused(claim: &Claim, differs: Vec<String>) -> Error {
    let what = if differs.is_empty() { "the body".to_owned() } else { differs.join(", ") };
    let mut error = Error::new(
        ProblemKind::KeyReused,
        format!(
            "This key stands for an earlier submission; what differs: {what}. Open the first, or use a new key."
        ),
    );
    error.differs = differs;
    error.request = claim.request;
    error
}

/// The first answer again, with where its request stands now. `at` is when the repeat arrived: the request may have come to
/// its end since it was looked up.
pub(crate) fn replay(
    claim: Claim,
    request: Option<&StoredRequest>,
    guard: &GuardSettings,
    at: Moment,
) -> Answered {
    let ended = ended(&claim, request);
    Answered {
        existing: claim.existing,
        replayed: true,
        state: request.map(|request| request.view.state),
        expires: Some(ended.unwrap_or(at).plus(guard.retention)),
        request_id: claim.request,
        answer: claim.answer,
    }
}

/// Hands a submission to the store and waits for it, within bounds.
///
/// Past them it is withdrawn: nothing of it was done and nothing will be. If it is being written at that moment, its
/// outcome is not known yet, and that is told. Where it was not decided, it is told why: another with its key is being
/// decided still, or it is something else.
pub(crate) async fn submit(store: &dyn Store, submission: Submission, wait: Duration) -> Result<Submitted> {
    let (scope, turn) = (submission.arrived.scope.clone(), submission.turn.clone());
    let unknown = || Error::new(ProblemKind::KeyInUse, ProblemKind::KeyInUse.help()).after(SOON);
    let error = match timeout(wait, store.submit(submission)).await {
        Ok(Err(error @ StoreError::Contended(_))) => error.into(),
        // It took too long, or the connection broke, while the database was asked to keep it.
        Ok(Err(StoreError::Unavailable(_))) | Err(_) if !turn.withdraw() => return Err(unknown()),
        Ok(submitted) => return Ok(submitted?),
        Err(_) => Error::new(ProblemKind::Contended, ProblemKind::Contended.help()).after(SOON),
    };
    let in_use = timeout(SOON, store.key_in_use(&scope)).await;
    if matches!(in_use, Ok(Ok(true))) {
        return Err(unknown());
    }
    match timeout(SOON, store.claimed(&scope)).await {
        Ok(Ok(Some((claim, _)))) => Ok(Submitted::Repeat(Box::new(claim))),
        _ => Err(error),
    }
}

/// The refusal of a name that something else holds.
pub(crate) fn name_taken(holder: &NameHolder, wanted: &RequestView) -> Error {
    let mut differs: Vec<String> = wanted
        .parameters
        .keys()
        .chain(holder.parameters.keys())
        .filter(|name| wanted.parameters.get(*name) != holder.parameters.get(*name))
        .map(|name| format!("parameters.{name}"))
        .collect();
    if holder.offering != wanted.offering {
        differs.push("offering".into());
    }
    differs.sort();
    differs.dedup();
    let mut error = Error::new(
        ProblemKind::NameTaken,
        format!(
            "{} {} exists in team {}, and differs in: {}. Choose another name.",
            wanted.resource_type,
            wanted.name,
            wanted.team,
            differs.join(", ")
        ),
    );
    error.differs = differs;
    error.about(holder.request)
}

/// The refusal of what has no place in its team's quota.
pub(crate) fn quota_exceeded(team: &str, short: QuotaShort) -> Error {
    let QuotaShort { used, limit, asked } = short;
    let detail = format!(
        "Team {team} uses {used} of its quota of {limit}, and this asks for {asked} more. Delete what is not needed any \
         more or have the limit raised, and send the same again; the same key may be used. Nothing was changed."
    );
    Error { quota: Some(short), ..Error::new(ProblemKind::QuotaExceeded, detail) }
}

/// The refusal of a name whose holder is being deleted.
pub(crate) fn deleting(request: RequestId) -> Error {
    Error::new(
        ProblemKind::DeletionInProgress,
        "The resource of this name is being deleted. Send the same again after the time in Retry-After.",
    )
    .about(request)
    .after(SOON * 2)
}

/// The question whether another of the same is meant.
pub(crate) fn suspected(earlier: &RequestView, wanted: &RequestView) -> Error {
    let detail = format!(
        "{} requested {} {} with the same parameters for team {} at {}. Open that request, or send the same again with \
         confirm_duplicate: {{\"of\": \"{}\", \"reason\": \"…\"}} if {} {} is wanted as well.",
        earlier.requested_by,
        earlier.resource_type,
        earlier.name,
        earlier.team,
        earlier.created_at,
        earlier.id,
        wanted.resource_type,
        wanted.name,
    );
    Error {
        earlier: Some(Box::new(earlier.into())),
        ..Error::new(ProblemKind::SuspectedDuplicate, detail).about(earlier.id)
    }
}

/// The claim of a scope, with the request that it is bound to; refused once the key's retention is over.
pub(crate) async fn look_up(
    store: &dyn Store,
    scope: &Scope,
    guard: &GuardSettings,
    now: Moment,
) -> Result<Option<(Claim, Option<StoredRequest>)>> {
    let Some((claim, request)) = store.claimed(scope).await? else { return Ok(None) };
    let over = retention_ends(&claim, request.as_ref(), guard).filter(|over| *over <= now);
    match over {
        None if claim.retired_at.is_none() => Ok(Some((claim, request))),
        Some(_) if tombstone_ends(&claim, request.as_ref(), guard).is_some_and(|end| end <= now) => {
            // Met before it was swept: the key is free.
            let ended = now.millis() - millis(guard.retention) - millis(guard.tombstones);
            store.drop_claim(scope, &claim, Moment::from_millis(ended)).await?;
            Ok(None)
        }
        // A tombstone is over, whatever became of its request since.
        _ => Err(Error {
            request: claim.request,
            ..Error::new(ProblemKind::KeyExpired, ProblemKind::KeyExpired.help())
        }),
    }
}

/// When a key's retention ends or ended; nothing while its request is not at its end.
fn retention_ends(claim: &Claim, request: Option<&StoredRequest>, guard: &GuardSettings) -> Option<Moment> {
    claim.retired_at.or_else(|| ended(claim, request).map(|ended| ended.plus(guard.retention)))
}

/// When a tombstone ends. One whose request was opened again is kept until that has come to its end anew, and from then as
/// long as any other.
fn tombstone_ends(claim: &Claim, request: Option<&StoredRequest>, guard: &GuardSettings) -> Option<Moment> {
    let over = retention_ends(claim, request, guard)?;
    let over = match request {
        Some(request) => over.max(request.view.finished_at?.plus(guard.retention)),
        None => over,
    };
    Some(over.plus(guard.tombstones))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// From when a key's retention counts: its request's final state, or the claim itself where there is no request or it had
/// come to its end before.
fn ended(claim: &Claim, request: Option<&StoredRequest>) -> Option<Moment> {
    match request {
        Some(request) if !claim.late => request.view.finished_at,
        _ => Some(claim.claimed_at),
    }
}
