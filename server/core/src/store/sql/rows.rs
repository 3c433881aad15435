//! From rows to the portal's types.

use super::dialect::DbRow;
use crate::{
    answer::{Answer, AnswerKind},
    store::{Claim, Intent, Meaning, StoreError, StoreResult, StoredRequest, StoredResource},
};
use domain::{
    approval::ApprovalView,
    id::{PrincipalId, RequestId, ResourceId},
    label::Labels,
    name::Name,
    problem::RequestLink,
    time::Moment,
    view::{DuplicateView, Object, RequestView, ResourceView},
};
use sqlx::Row;
use std::{borrow::Cow, fmt::Display};
use uuid::Uuid;

/// The columns of a request, in the order of no importance; rows are read by name.
pub(super) const REQUEST: &str = "id, team, principal, requested_by, channel, action, offering, offering_version, type, \
     name, resource, parameters, patch, desired, labels, correlation_id, parent_id, state, reason, attempt, outputs, \
     secret_names, created_at, updated_at, finished_at, duplicate_of, duplicate_reason, approval_by, decide_until, \
     verdict, decided_by, decided_at, decided_why";

/// The columns of a claim `c`.
pub(super) const CLAIM: &str = "c.fingerprint, c.body_hash, c.key_version, c.schema_digest, c.command, c.request, \
     c.existing, c.answer_kind, c.location, c.etag, c.body, c.claimed_at, \
     c.late, c.retired_at";

/// The columns of a resource.
pub(super) const RESOURCE: &str = "id, team, type, name, offering, state, version, parameters, outputs, secret_names, \
     secrets, applied, ended_by, request, created_at, updated_at, expires_at";

/// A column's text, understood by a parser of the domain.
pub(super) fn parsed<T>(row: &DbRow, column: &str) -> StoreResult<T>
where
    T: std::str::FromStr<Err: Display>,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

pub(super) fn name(row: &DbRow, column: &str) -> StoreResult<Name> {
    let text: String = row.try_get(column)?;
    Name::parse(&text).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

pub(super) fn json<T: serde::de::DeserializeOwned>(row: &DbRow, column: &str) -> StoreResult<T> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

/// The same of a column that may hold nothing.
pub(super) fn json_if_any<T: serde::de::DeserializeOwned>(
    row: &DbRow,
    column: &str,
) -> StoreResult<Option<T>> {
    let text: Option<String> = row.try_get(column)?;
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

pub(super) fn moment(row: &DbRow, column: &str) -> StoreResult<Moment> {
    Ok(Moment::from_millis(row.try_get(column)?))
}

pub(super) fn moment_if_any(row: &DbRow, column: &str) -> StoreResult<Option<Moment>> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(Moment::from_millis))
}

/// A text from outside as both databases take it: PostgreSQL's texts hold no NUL.
pub(super) fn text(given: &str) -> Cow<'_, str> {
    if given.contains('\0') { given.replace('\0', "\u{fffd}").into() } else { given.into() }
}

/// A small number. Databases keep them all in 64 bits.
pub(super) fn number(row: &DbRow, column: &str) -> StoreResult<u32> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

/// A span as it is added to a moment.
pub(super) fn millis(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn hash(row: &DbRow, column: &str) -> StoreResult<[u8; 32]> {
    let bytes: Vec<u8> = row.try_get(column)?;
    bytes.try_into().map_err(|_| StoreError::Corrupt(format!("{column}: not 32 bytes")))
}

pub(super) fn request(row: &DbRow) -> StoreResult<StoredRequest> {
    let labels: Labels = json(row, "labels")?;
    let correlation_id: String = row.try_get("correlation_id")?;
    let view = RequestView {
        id: RequestId(row.try_get("id")?),
        team: name(row, "team")?,
        offering: name(row, "offering")?,
        offering_version: row.try_get("offering_version")?,
        resource_type: name(row, "type")?,
        name: name(row, "name")?,
        action: row.try_get("action")?,
        state: parsed(row, "state")?,
        reason: row.try_get("reason")?,
        attempt: number(row, "attempt")?,
        parameters: json(row, "parameters")?,
        patch: json_if_any(row, "patch")?,
        desired: json_if_any(row, "desired")?,
        labels: labels.shown_with(&correlation_id),
        correlation_id,
        parent_id: row.try_get::<Option<Uuid>, _>("parent_id")?.map(RequestId),
        requested_by: row.try_get("requested_by")?,
        channel: parsed(row, "channel")?,
        outputs: json(row, "outputs")?,
        secret_outputs: json(row, "secret_names")?,
        created_at: moment(row, "created_at")?,
        updated_at: moment(row, "updated_at")?,
        finished_at: moment_if_any(row, "finished_at")?,
        duplicate: duplicate(row)?,
        approval: approval(row)?,
    };
    Ok(StoredRequest {
        view,
        principal: PrincipalId(row.try_get("principal")?),
        resource: ResourceId(row.try_get("resource")?),
    })
}

fn duplicate(row: &DbRow) -> StoreResult<Option<DuplicateView>> {
    let of: Option<Uuid> = row.try_get("duplicate_of")?;
    let reason = row.try_get("duplicate_reason")?;
    Ok(of.map(|of| DuplicateView { of: RequestLink::to(RequestId(of)), reason }))
}

fn approval(row: &DbRow) -> StoreResult<Option<ApprovalView>> {
    let wrong = |column: &str, error: &dyn Display| StoreError::Corrupt(format!("{column}: {error}"));
    let Some(by) = row.try_get::<Option<String>, _>("approval_by")? else { return Ok(None) };
    let verdict: Option<String> = row.try_get("verdict")?;
    Ok(Some(ApprovalView {
        by: by.parse().map_err(|error| wrong("approval_by", &error))?,
        expires_at: moment(row, "decide_until")?,
        verdict: verdict.map(|word| word.parse()).transpose().map_err(|error| wrong("verdict", &error))?,
        decided_by: row.try_get("decided_by")?,
        decided_at: moment_if_any(row, "decided_at")?,
        reason: row.try_get("decided_why")?,
    }))
}

pub(super) fn resource(row: &DbRow) -> StoreResult<StoredResource> {
    let view = ResourceView {
        id: ResourceId(row.try_get("id")?),
        team: name(row, "team")?,
        resource_type: name(row, "type")?,
        name: name(row, "name")?,
        offering: name(row, "offering")?,
        state: row.try_get("state")?,
        version: row.try_get("version")?,
        parameters: json(row, "parameters")?,
        outputs: json(row, "outputs")?,
        secret_outputs: json(row, "secret_names")?,
        created_by: RequestLink::to(RequestId(row.try_get("request")?)),
        created_at: moment(row, "created_at")?,
        updated_at: moment(row, "updated_at")?,
        expires_at: moment_if_any(row, "expires_at")?,
    };
    Ok(StoredResource {
        view,
        secrets: row.try_get("secrets")?,
        applied: json_if_any(row, "applied")?,
        ended_by: row.try_get::<Option<Uuid>, _>("ended_by")?.map(RequestId),
    })
}

pub(super) fn claim(row: &DbRow) -> StoreResult<Claim> {
    let kind: String = row.try_get("answer_kind")?;
    let command: Option<String> = row.try_get("command")?;
    let retired_at = moment_if_any(row, "retired_at")?;
    let hash = |column| if retired_at.is_some() { Ok([0; 32]) } else { hash(row, column) };
    Ok(Claim {
        meaning: Meaning {
            fingerprint: hash("fingerprint")?,
            body_hash: hash("body_hash")?,
            key_version: row.try_get("key_version")?,
        },
        late: row.try_get("late")?,
        retired_at,
        schema_digest: row.try_get("schema_digest")?,
        command: command
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| StoreError::Corrupt(format!("command: {error}")))?,
        request: row.try_get::<Option<Uuid>, _>("request")?.map(RequestId),
        existing: row.try_get("existing")?,
        answer: Answer {
            kind: AnswerKind::parse(&kind)
                .ok_or_else(|| StoreError::Corrupt(format!("answer_kind: {kind}")))?,
            location: row.try_get("location")?,
            etag: row.try_get("etag")?,
            body: row.try_get::<Vec<u8>, _>("body")?.into(),
        },
        claimed_at: moment(row, "claimed_at")?,
    })
}

pub(super) fn intent(word: &str) -> StoreResult<Intent> {
    match word {
        "apply" => Ok(Intent::Apply),
        "cancel" => Ok(Intent::Cancel),
        "adopt" => Ok(Intent::Adopt),
        "abandon" => Ok(Intent::Abandon),
        other => Err(StoreError::Corrupt(format!("intent: {other}"))),
    }
}

/// The word by which [`intent`] is kept.
pub(super) fn intent_word(intent: Intent) -> &'static str {
    match intent {
        Intent::Apply => "apply",
        Intent::Cancel => "cancel",
        Intent::Adopt => "adopt",
        Intent::Abandon => "abandon",
    }
}

/// Canonical JSON, so that equal values are equal texts.
pub(super) fn canonical(object: &Object) -> String {
    String::from_utf8(domain::json::canonical(&serde_json::Value::Object(object.clone()))).unwrap_or_default()
}

/// Hexadecimal digits, as both databases read bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

/// A JSON array, as both databases read a group.
pub(super) fn array(elements: &(impl serde::Serialize + ?Sized)) -> StoreResult<String> {
    serde_json::to_string(elements).map_err(|error| StoreError::Corrupt(error.to_string()))
}
