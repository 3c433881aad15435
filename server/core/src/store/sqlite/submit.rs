//! The guard's transaction: claims, resources, requests, runs, histories, audits and answers of a whole group of
//! submissions, with one statement a table.

use super::{
    super::{
        Arrived, Claim, Effect, NameHolder, Scope, StoreError, StoreResult, StoredRequest, Submission,
        Submitted,
    },
    arrivals, decide, lists,
    rows::{self, canonical},
    writer::{leave, savepoint},
};
use crate::answer::{Answer, AnswerKind};
use domain::submission::SubmissionOutcome;
use serde::Serialize;
use sqlx::{Row, SqliteConnection};
use std::collections::HashSet;
use uuid::Uuid;

/// One create as the statements read it, a JSON object in the group's array.
#[derive(Serialize)]
struct NewRow<'a> {
    team: &'a str,
    principal: String,
    key: &'a str,
    fingerprint: String,
    body_hash: String,
    key_version: i64,
    schema_digest: &'a str,
    kind: &'static str,
    location: Option<&'a str>,
    body: &'a str,
    request: String,
    resource: String,
    requested_by: &'a str,
    channel: &'static str,
    action: &'a str,
    offering: &'a str,
    version: &'a str,
    r#type: &'a str,
    name: &'a str,
    parameters: String,
    labels: &'a str,
    correlation_id: &'a str,
    parent: Option<String>,
    state: &'static str,
    at: i64,
    submission: String,
    operation: &'static str,
    token_label: Option<&'a str>,
    address: Option<&'a str>,
}

const CLAIM: &str = "
    INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                       answer_kind, location, body, claimed_at)
    SELECT value ->> 'team', unhex(value ->> 'principal'), value ->> 'key', unhex(value ->> 'fingerprint'),
           unhex(value ->> 'body_hash'), value ->> 'key_version', value ->> 'schema_digest',
           unhex(value ->> 'request'), value ->> 'kind', value ->> 'location', CAST(value ->> 'body' AS BLOB),
           value ->> 'at'
      FROM json_each($1) WHERE true
        ON CONFLICT (team, principal, key) DO NOTHING
 RETURNING request";

const RESOURCE: &str = "
    INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
    SELECT unhex(value ->> 'resource'), value ->> 'team', value ->> 'type', value ->> 'name', value ->> 'offering',
           'creating', value ->> 'parameters', unhex(value ->> 'request'), value ->> 'at', value ->> 'at'
      FROM json_each($1) WHERE true
        ON CONFLICT (team, type, name) WHERE ended_at IS NULL DO NOTHING
 RETURNING request";

const REQUEST: &str = "
    INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type, name,
                         resource, parameters, labels, correlation_id, parent_id, state, created_at, updated_at)
    SELECT unhex(value ->> 'request'), value ->> 'team', unhex(value ->> 'principal'), value ->> 'requested_by',
           value ->> 'channel', value ->> 'action', value ->> 'offering', value ->> 'version', value ->> 'type',
           value ->> 'name', unhex(value ->> 'resource'), value ->> 'parameters', value ->> 'labels',
           value ->> 'correlation_id', unhex(value ->> 'parent'), value ->> 'state', value ->> 'at', value ->> 'at'
      FROM json_each($1)";

const RUN: &str = "
    INSERT INTO run (request, attempt, due_at)
    SELECT unhex(value ->> 'request'), 1, value ->> 'at' FROM json_each($1)";

const EVENT: &str = "
    INSERT INTO event (request, seq, attempt, at, entry)
    SELECT unhex(value ->> 'request'), 1, 1, value ->> 'at', json_object('kind', 'state', 'state', value ->> 'state')
      FROM json_each($1)";

const SUBMISSION: &str = "
    INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by, token_label,
                            address, correlation_id, labels, at)
    SELECT unhex(value ->> 'submission'), value ->> 'team', unhex(value ->> 'principal'), value ->> 'key',
           unhex(value ->> 'request'), value ->> 'operation', 'first', value ->> 'channel', value ->> 'requested_by',
           value ->> 'token_label', value ->> 'address', value ->> 'correlation_id', value ->> 'labels', value ->> 'at'
      FROM json_each($1)";

const AUDIT: &str = "
    INSERT INTO audit (at, actor, channel, act, team, target)
    SELECT value ->> 'at', value ->> 'requested_by', value ->> 'channel', 'request_' || (value ->> 'action'),
           value ->> 'team', (value ->> 'type') || '/' || (value ->> 'name')
      FROM json_each($1)";

/// Decides a group of submissions in the order of their arrival, within the open transaction.
///
/// The outcomes come in the same order. If the group's statements fail, its members are decided one by one, so that one
/// bad submission never fails its neighbours.
pub(super) async fn group(
    connection: &mut SqliteConnection,
    submissions: Vec<Submission>,
) -> StoreResult<Vec<StoreResult<Submitted>>> {
    let mut outcomes: Vec<Option<StoreResult<Submitted>>> = submissions.iter().map(|_| None).collect();
    let (creates, others): (Vec<_>, Vec<_>) =
        submissions.into_iter().enumerate().partition(|(_, one)| matches!(one.effect, Effect::Create { .. }));
    let (places, creates): (Vec<usize>, Vec<Submission>) = creates.into_iter().unzip();
    if !creates.is_empty() {
        savepoint(connection).await?;
        let together = create(connection, &creates).await;
        leave(connection, together.is_ok()).await?;
        match together {
            Ok(decided) => {
                for (place, outcome) in places.into_iter().zip(decided) {
                    outcomes[place] = Some(Ok(outcome));
                }
            }
            Err(error) if creates.len() == 1 => outcomes[places[0]] = Some(Err(error)),
            Err(_) => {
                for (place, one) in places.into_iter().zip(&creates) {
                    savepoint(connection).await?;
                    let alone = create(connection, std::slice::from_ref(one)).await;
                    leave(connection, alone.is_ok()).await?;
                    outcomes[place] =
                        Some(alone.and_then(|decided| decided.into_iter().next().ok_or_else(undecided)));
                }
            }
        }
    }
    for (place, submission) in others {
        savepoint(connection).await?;
        let outcome = decide::one(connection, submission).await;
        leave(connection, outcome.is_ok()).await?;
        outcomes[place] = Some(outcome);
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(undecided()))).collect())
}

fn undecided() -> StoreError {
    StoreError::Corrupt("a submission was left undecided".into())
}

fn array(rows: &[&NewRow<'_>]) -> StoreResult<String> {
    serde_json::to_string(rows).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn new_row<'a>(arrived: &'a Arrived, submission: &'a Submission) -> Option<(NewRow<'a>, &'a StoredRequest)> {
    let Effect::Create { request, schema_digest, answer } = &submission.effect else {
        return None;
    };
    let view = &request.view;
    Some((
        NewRow {
            team: &arrived.scope.team,
            principal: hex(arrived.scope.principal.0.as_bytes()),
            key: arrived.scope.key.as_str(),
            fingerprint: hex(&submission.meaning.fingerprint),
            body_hash: hex(&submission.meaning.body_hash),
            key_version: submission.meaning.key_version,
            schema_digest,
            kind: answer.kind.as_str(),
            location: answer.location.as_deref(),
            body: std::str::from_utf8(&answer.body).unwrap_or_default(),
            request: hex(view.id.0.as_bytes()),
            resource: hex(request.resource.0.as_bytes()),
            requested_by: &arrived.sent_by,
            channel: arrived.channel.as_str(),
            action: &view.action,
            offering: view.offering.as_str(),
            version: &view.offering_version,
            r#type: view.resource_type.as_str(),
            name: view.name.as_str(),
            parameters: canonical(&view.parameters),
            labels: &arrived.labels,
            correlation_id: &view.correlation_id,
            parent: view.parent_id.map(|id| hex(id.0.as_bytes())),
            state: view.state.as_str(),
            at: view.created_at.millis(),
            submission: hex(arrived.id.0.as_bytes()),
            operation: arrived.operation,
            token_label: arrived.token_label.as_deref(),
            address: arrived.address.as_deref(),
        },
        request,
    ))
}

async fn create(
    connection: &mut SqliteConnection,
    submissions: &[Submission],
) -> StoreResult<Vec<Submitted>> {
    let rows: Vec<(NewRow<'_>, &StoredRequest)> =
        submissions.iter().filter_map(|one| new_row(&one.arrived, one)).collect();
    let all: Vec<&NewRow<'_>> = rows.iter().map(|(row, _)| row).collect();
    let claimed = returned(connection, CLAIM, &array(&all)?).await?;
    let claimants: Vec<&NewRow<'_>> =
        rows.iter().filter(|(_, r)| claimed.contains(&r.view.id.0)).map(|(row, _)| row).collect();
    let named = if claimants.is_empty() {
        HashSet::new()
    } else {
        returned(connection, RESOURCE, &array(&claimants)?).await?
    };
    let winners: Vec<&NewRow<'_>> =
        rows.iter().filter(|(_, r)| named.contains(&r.view.id.0)).map(|(row, _)| row).collect();
    if !winners.is_empty() {
        let winners = array(&winners)?;
        for statement in [REQUEST, RUN, EVENT, SUBMISSION, AUDIT] {
            sqlx::query(statement).bind(&winners).execute(&mut *connection).await?;
        }
    }
    let mut outcomes = Vec::with_capacity(submissions.len());
    for (submission, (_, request)) in submissions.iter().zip(&rows) {
        let id = request.view.id;
        outcomes.push(if named.contains(&id.0) {
            let Effect::Create { answer, .. } = &submission.effect else {
                return Err(undecided());
            };
            Submitted::First(answer.clone(), Some(id))
        } else if claimed.contains(&id.0) {
            met_a_name(connection, submission, request).await?
        } else {
            let scope = &submission.arrived.scope;
            Submitted::Repeat(Box::new(claim(connection, scope).await?.ok_or_else(undecided)?))
        });
    }
    Ok(outcomes)
}

async fn returned(
    connection: &mut SqliteConnection,
    statement: &'static str,
    rows: &str,
) -> StoreResult<HashSet<Uuid>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(statement).bind(rows).fetch_all(connection).await?;
    Ok(ids.into_iter().collect())
}

/// A create whose key was free but whose name was not: either the thing is there as asked, or the name is taken.
async fn met_a_name(
    connection: &mut SqliteConnection,
    submission: &Submission,
    wanted: &StoredRequest,
) -> StoreResult<Submitted> {
    let (view, scope) = (&wanted.view, &submission.arrived.scope);
    let held =
        lists::resource(connection, view.team.as_str(), view.resource_type.as_str(), view.name.as_str())
            .await?
            .ok_or_else(undecided)?
            .view;
    let maker = held.created_by.id;
    let same = held.offering == view.offering && canonical(&held.parameters) == canonical(&view.parameters);
    if held.state == "deleting" || !same {
        let done = sqlx::query("DELETE FROM claim WHERE team = $1 AND principal = $2 AND key = $3")
            .bind(&scope.team)
            .bind(scope.principal.0)
            .bind(scope.key.as_str())
            .execute(&mut *connection)
            .await?;
        super::exactly_one(&done, "claim")?;
        return Ok(if held.state == "deleting" {
            Submitted::Deleting(maker)
        } else {
            let holder = NameHolder { request: maker, offering: held.offering, parameters: held.parameters };
            Submitted::NameTaken(Box::new(holder))
        });
    }
    let made_by = lists::request(connection, maker).await?.ok_or_else(undecided)?;
    let answer = Answer::of_request(AnswerKind::Done, &made_by.view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let command =
        serde_json::to_string(&submission.command).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let done = sqlx::query(
        "UPDATE claim SET request = $1, existing = 1, answer_kind = $2, location = $3, body = $4, command = $5
          WHERE team = $6 AND principal = $7 AND key = $8",
    )
    .bind(maker.0)
    .bind(answer.kind.as_str())
    .bind(&answer.location)
    .bind(answer.body.as_ref())
    .bind(command)
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .execute(&mut *connection)
    .await?;
    super::exactly_one(&done, "claim")?;
    let arrived =
        Arrived { request: Some(maker), outcome: SubmissionOutcome::Existing, ..submission.arrived.clone() };
    arrivals::insert(connection, &arrived).await?;
    Ok(Submitted::Existing(answer, maker))
}

/// The claim of a key within its full scope.
pub(super) async fn claim(connection: &mut SqliteConnection, scope: &Scope) -> StoreResult<Option<Claim>> {
    let row = sqlx::query(
        "SELECT fingerprint, body_hash, key_version, schema_digest, command, request, existing,
                answer_kind, location, etag, body, claimed_at
           FROM claim WHERE team = $1 AND principal = $2 AND key = $3",
    )
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::claim).transpose()
}

/// Claims the key of a submission that is not a create, with its answer.
pub(super) async fn claim_with(
    connection: &mut SqliteConnection,
    submission: &Submission,
    request: Option<Uuid>,
    existing: bool,
    answer: &Answer,
) -> StoreResult<()> {
    let (scope, meaning) = (&submission.arrived.scope, &submission.meaning);
    let command =
        serde_json::to_string(&submission.command).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let row = sqlx::query(
        "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, command, request, answer_kind,
                            existing, location, etag, body, claimed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id",
    )
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .bind(meaning.fingerprint.as_slice())
    .bind(meaning.body_hash.as_slice())
    .bind(meaning.key_version)
    .bind(command)
    .bind(request)
    .bind(answer.kind.as_str())
    .bind(existing)
    .bind(&answer.location)
    .bind(&answer.etag)
    .bind(answer.body.as_ref())
    .bind(submission.arrived.at.millis())
    .fetch_one(connection)
    .await?;
    let _: i64 = row.try_get("id")?;
    Ok(())
}

/// Hexadecimal digits, as SQLite's `unhex` reads them.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}
