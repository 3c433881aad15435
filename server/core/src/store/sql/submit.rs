//! The guard's transaction: claims, resources, requests, runs, histories, audits and answers of a whole group of
//! submissions, with one statement for all or one a table.

mod limited;

use super::{
    approvals, arrivals,
    dialect::{self, CREATES, Connection, clock},
    exactly_one, hidden, lists, looks, notifications,
    rows::{array, canonical, hex},
    second_look,
};
use crate::{
    answer::{Answer, AnswerKind},
    store::{
        Arrived, Claim, Effect, NameHolder, Scope, StoreError, StoreResult, StoredRequest, Submission,
        Submitted, search::Sought,
    },
};
use domain::{id::PrincipalId, submission::SubmissionOutcome, view::EventEntry};
use serde::Serialize;
use sqlx::{AssertSqlSafe, Row};
use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};
use uuid::Uuid;

/// One create as the statements read it, a JSON object in the group's array.
#[derive(Serialize)]
struct NewRow<'a> {
    /// The request's, as the statements give it back.
    #[serde(skip)]
    id: Uuid,
    /// Its turn in the order of arrival.
    place: usize,
    team: &'a str,
    principal: String,
    key: &'a str,
    fingerprint: String,
    body_hash: String,
    key_version: i64,
    schema_digest: &'a str,
    cost: u32,
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
    step: Option<&'a str>,
    state: &'static str,
    entry: String,
    at: i64,
    submission: String,
    operation: &'static str,
    token_label: Option<&'a str>,
    address: Option<&'a str>,
    /// The command, where it cannot be read off the request.
    command: Option<String>,
    sought: String,
    terms: String,
}

impl NewRow<'_> {
    /// The place that it wants to stand at.
    fn at(&self) -> (&str, &str, &str) {
        (self.team, self.r#type, self.name)
    }
}

/// What each table gets of a group of creates, read from the rows `new`.
const CLAIM: &str = "
    INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                       answer_kind, location, body, claimed_at, command)
    SELECT team, principal, key, fingerprint, body_hash, key_version, schema_digest, request, kind, location, body, at,
           command
      FROM new WHERE true
        ON CONFLICT (team, principal, key) DO NOTHING
 RETURNING request";

const RESOURCE: &str = "
    INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at, cost)
    SELECT resource, team, type, name, offering, 'creating', parameters, request, at, at, cost
      FROM new WHERE true
        ON CONFLICT (team, type, name) WHERE ended_at IS NULL DO NOTHING
 RETURNING request, team";

const REQUEST: &str = "
    INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type, name,
                         resource, parameters, labels, correlation_id, parent_id, step, state, created_at, updated_at)
    SELECT request, team, principal, requested_by, channel, action, offering, version, type, name, resource,
           parameters, labels, correlation_id, parent, step, state, at, at
      FROM new";

/// A new run is due at once. What waits for somebody's approval has none.
fn run() -> String {
    format!(
        "INSERT INTO run (request, attempt, due_at) SELECT request, 1, {} FROM new WHERE state = 'queued'",
        clock("at"),
    )
}

const EVENT: &str = "
    INSERT INTO event (request, seq, attempt, at, entry) SELECT request, 1, 1, at, entry FROM new";

const SUBMISSION: &str = "
    INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by, token_label,
                            address, correlation_id, labels, at)
    SELECT submission, team, principal, key, request, operation, 'first', channel, requested_by, token_label, address,
           correlation_id, labels, at
      FROM new";

const SOUGHT: &str = "
    INSERT INTO sought (request, text, terms) SELECT request, sought, terms FROM new";

const AUDIT: &str = "
    INSERT INTO audit (at, actor, channel, act, team, target)
    SELECT at, requested_by, channel, 'request_' || action, team, type || '/' || name FROM new";

/// A statement on a group of creates.
fn with_new(statement: &str) -> String {
    format!("WITH new AS ({CREATES}) {statement}")
}

fn undecided() -> StoreError {
    StoreError::Corrupt("a submission was left undecided".into())
}

/// Others changed what was looked at between two looks; the next try decides it.
pub(super) fn moved_on() -> StoreError {
    StoreError::Contended("what was in the way ended meanwhile".into())
}

fn new_row(place: usize, submission: &Submission) -> StoreResult<(NewRow<'_>, &StoredRequest)> {
    let arrived = &submission.arrived;
    let Effect::Create { request, schema_digest, answer, cost, .. } = &submission.effect else {
        return Err(undecided());
    };
    let view = &request.view;
    let entry = EventEntry::State { state: view.state, reason: None };
    let sought = Sought::of(view, Some(arrived.scope.key.as_str()));
    Ok((
        NewRow {
            id: view.id.0,
            place,
            team: &arrived.scope.team,
            principal: hex(arrived.scope.principal.0.as_bytes()),
            key: arrived.scope.key.as_str(),
            fingerprint: hex(&submission.meaning.fingerprint),
            body_hash: hex(&submission.meaning.body_hash),
            key_version: submission.meaning.key_version,
            schema_digest,
            cost: *cost,
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
            step: arrived.step(),
            state: view.state.as_str(),
            entry: serde_json::to_string(&entry).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            at: view.created_at.millis(),
            submission: hex(arrived.id.0.as_bytes()),
            operation: arrived.operation,
            token_label: arrived.token_label.as_deref(),
            address: arrived.address.as_deref(),
            // What a descendant inherits was not sent.
            command: view
                .parent_id
                .map(|_| serde_json::to_string(&submission.command))
                .transpose()
                .map_err(|error| StoreError::Corrupt(error.to_string()))?,
            sought: sought.text,
            terms: sought.terms,
        },
        request,
    ))
}

/// Decides a group of creates together; the outcomes come in the same order.
///
/// Those whose offering asks about likely duplicates come after the others, each by itself; but the locks of what they
/// ask for come first of all, so that nobody who waits for one holds a key or a name that its holder wants.
pub(in crate::store) async fn create(
    connection: &mut Connection,
    submissions: &[Submission],
) -> StoreResult<Vec<Submitted>> {
    let mut apart: Vec<(usize, &Submission)> =
        submissions.iter().enumerate().filter(|(_, one)| second_look::order(one).is_some()).collect();
    if apart.is_empty() {
        return plain(connection, &submissions.iter().collect::<Vec<_>>()).await;
    }
    apart.sort_by_key(|(_, one)| second_look::order(one));
    second_look::lock(connection, &apart).await?;
    if submissions.len() > 1 {
        // Each of them would lock its own, after others' keys and names.
        let mut teams: Vec<&str> = submissions.iter().map(|one| one.arrived.scope.team.as_str()).collect();
        teams.sort_unstable();
        teams.dedup();
        dialect::lock_teams(connection, &teams).await?;
    }
    let others: Vec<&Submission> =
        submissions.iter().filter(|one| second_look::order(one).is_none()).collect();
    let mut outcomes = if others.is_empty() { Vec::new() } else { plain(connection, &others).await? };
    let mut looked = Vec::with_capacity(apart.len());
    for (place, one) in apart {
        looked.push((place, second_look::create(connection, one).await?));
    }
    looked.sort_by_key(|(place, _)| *place);
    for (place, outcome) in looked {
        outcomes.insert(place, outcome);
    }
    Ok(outcomes)
}

/// Decides creates together, in the order of their arrival; the outcomes come in the same order.
pub(super) async fn plain(
    connection: &mut Connection,
    submissions: &[&Submission],
) -> StoreResult<Vec<Submitted>> {
    let rows: Vec<(NewRow<'_>, &StoredRequest)> =
        submissions.iter().enumerate().map(|(place, one)| new_row(place, one)).collect::<StoreResult<_>>()?;
    // All keys and then all names are claimed, each in one order, so that no two groups wait for each other. Of two that
    // want the same, the one that came first gets it.
    let mut all: Vec<&NewRow<'_>> = rows.iter().map(|(row, _)| row).collect();
    all.sort_by_key(|row| (row.team, row.principal.as_str(), row.key));
    let Got { keys: claimed, names: named, limited } = if dialect::CHANGES_STAND_IN_WITH {
        in_one_statement(connection, &all).await?
    } else {
        table_by_table(connection, &all).await?
    };
    let short = if limited.is_empty() {
        HashMap::new()
    } else {
        limited::within_quotas(connection, those(&all, &limited)).await?
    };
    let given_back: HashSet<(&str, &str, &str)> =
        rows.iter().filter(|(row, _)| short.contains_key(&row.id)).map(|(row, _)| row.at()).collect();
    let mut outcomes: Vec<Option<Submitted>> = submissions.iter().map(|_| None).collect();
    // Whose keys are free again, and who is decided once more since key or name were given back by one before it.
    let mut freed: HashMap<(&str, PrincipalId, &str), usize> = HashMap::new();
    let (mut again, mut others) = (Vec::new(), Vec::new());
    for (place, (submission, (row, request))) in submissions.iter().zip(&rows).enumerate() {
        let outcome = if let Some(short) = short.get(&row.id) {
            Submitted::QuotaExceeded(*short)
        } else if named.contains(&row.id) {
            outcomes[place] = Some(written(connection, submission, request).await?);
            continue;
        } else if !claimed.contains(&row.id) {
            others.push(place);
            continue;
        } else if given_back.contains(&row.at()) {
            give_back(connection, &submission.arrived.scope).await?;
            freed.insert(submission.arrived.scope.order(), place);
            again.push(place);
            continue;
        } else {
            met_a_name(connection, submission, request).await?
        };
        if !matches!(outcome, Submitted::Existing(..)) {
            freed.insert(submission.arrived.scope.order(), place);
        }
        outcomes[place] = Some(outcome);
    }
    let mut repeated: Vec<(usize, Scope)> = Vec::new();
    for place in others {
        let submission = submissions[place];
        let Some(first) = freed.get(&submission.arrived.scope.order()) else {
            repeated.push((place, submission.arrived.scope.clone()));
            continue;
        };
        match &outcomes[*first] {
            // What means the same is refused for the same.
            Some(refusal) if submissions[*first].meaning.is_same(&submission.meaning) => {
                outcomes[place] = Some(refusal.clone());
            }
            _ => again.push(place),
        }
    }
    if !repeated.is_empty() {
        let (places, scopes): (Vec<usize>, Vec<Scope>) = repeated.into_iter().unzip();
        for (place, claim) in places.into_iter().zip(looks::claims(connection, &scopes).await?) {
            let (claim, _) = claim?.ok_or_else(moved_on)?;
            outcomes[place] = Some(Submitted::Repeat(Box::new(claim)));
        }
    }
    if !again.is_empty() {
        again.sort_unstable();
        let these: Vec<&Submission> = again.iter().map(|place| submissions[*place]).collect();
        for (place, outcome) in again.into_iter().zip(Box::pin(plain(connection, &these)).await?) {
            outcomes[place] = Some(outcome);
        }
    }
    outcomes.into_iter().map(|outcome| outcome.ok_or_else(undecided)).collect()
}

/// The answer of one that is written.
async fn written(
    connection: &mut Connection,
    submission: &Submission,
    request: &StoredRequest,
) -> StoreResult<Submitted> {
    let Effect::Create { answer, hidden: sealed, .. } = &submission.effect else {
        return Err(undecided());
    };
    let id = request.view.id;
    if let Some(sealed) = sealed {
        hidden::keep(connection, id, sealed).await?;
    }
    // Nobody is told of what is queued, so most often nothing is looked up here.
    notifications::tell(connection, request, request.view.state, request.view.created_at).await?;
    if request.view.approval.is_none() {
        return Ok(Submitted::First(answer.clone(), Some(id)));
    }
    // By when it has to be decided about is told by the database's clock.
    let asked = approvals::ask(connection, &request.view).await?;
    let answer = Answer::of_request(AnswerKind::Accepted, &asked)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    answer_with(connection, &submission.arrived.scope, &answer).await?;
    Ok(Submitted::First(answer, Some(id)))
}

/// Gives a key back that was claimed in this transaction.
async fn give_back(connection: &mut Connection, scope: &Scope) -> StoreResult<()> {
    let done = sqlx::query("DELETE FROM claim WHERE team = $1 AND principal = $2 AND key = $3")
        .bind(&scope.team)
        .bind(scope.principal.0)
        .bind(scope.key.as_str())
        .execute(connection)
        .await?;
    exactly_one(&done, "claim")
}

/// Who of a group got its key, and who of those its name too. The latter are written, but of those whose team has a limit
/// nothing besides.
struct Got {
    keys: HashSet<Uuid>,
    names: HashSet<Uuid>,
    limited: HashSet<Uuid>,
}

/// What else is written of who has got its key and its name.
fn rest() -> [String; 6] {
    [REQUEST.to_owned(), run(), EVENT.to_owned(), SUBMISSION.to_owned(), SOUGHT.to_owned(), AUDIT.to_owned()]
}

/// The statements of a group as one, for a database that knows changes within WITH.
static TOGETHER: LazyLock<String> = LazyLock::new(|| {
    let rest = rest().map(|statement| format!("(WITH new AS (SELECT * FROM winners) {statement})"));
    let [requests, runs, events, submissions, words, audits] = rest;
    // The look for the teams comes before the first row, so that they are locked before anything is claimed.
    format!(
        "WITH new AS ({CREATES}),
              limited AS (SELECT name FROM team
                           WHERE quota IS NOT NULL AND name IN (SELECT team FROM new)
                           ORDER BY name FOR NO KEY UPDATE),
              entered AS (SELECT * FROM new WHERE (SELECT count(*) FROM limited) >= 0),
              claimed AS (WITH new AS (SELECT * FROM entered) {CLAIM}),
              claimants AS (SELECT new.* FROM new JOIN claimed ON claimed.request = new.request
                             ORDER BY new.team, new.type, new.name, new.place),
              named AS (WITH new AS (SELECT * FROM claimants) {RESOURCE}),
              winners AS (SELECT new.* FROM new JOIN named ON named.request = new.request
                           WHERE new.team NOT IN (SELECT name FROM limited)),
              requests AS {requests}, runs AS {runs}, events AS {events}, submissions AS {submissions},
              words AS {words}, audits AS {audits}
         SELECT claimed.request, named.request IS NOT NULL AS named,
                coalesce(named.team IN (SELECT name FROM limited), false) AS limited
           FROM claimed LEFT JOIN named ON named.request = claimed.request",
    )
});

/// What else is written, as one statement for such a database.
static REST: LazyLock<String> = LazyLock::new(|| {
    let [requests, runs, events, submissions, words, audits] = rest();
    format!(
        "WITH new AS ({CREATES}), requests AS ({requests}), runs AS ({runs}), events AS ({events}),
              submissions AS ({submissions}), words AS ({words}), audits AS ({audits})
         SELECT 1",
    )
});

async fn in_one_statement(connection: &mut Connection, all: &[&NewRow<'_>]) -> StoreResult<Got> {
    let told = sqlx::query(AssertSqlSafe(TOGETHER.as_str())).bind(array(all)?).fetch_all(connection).await?;
    let mut got = Got { keys: HashSet::new(), names: HashSet::new(), limited: HashSet::new() };
    for row in &told {
        let request: Uuid = row.try_get("request")?;
        got.keys.insert(request);
        if row.try_get("named")? {
            got.names.insert(request);
        }
        if row.try_get("limited")? {
            got.limited.insert(request);
        }
    }
    Ok(got)
}

/// The rows whose request is among these.
fn those<'r, 'n>(rows: &[&'r NewRow<'n>], ids: &HashSet<Uuid>) -> Vec<&'r NewRow<'n>> {
    rows.iter().copied().filter(|row| ids.contains(&row.id)).collect()
}

async fn table_by_table(connection: &mut Connection, all: &[&NewRow<'_>]) -> StoreResult<Got> {
    let keys: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(with_new(CLAIM)))
        .bind(array(all)?)
        .fetch_all(&mut *connection)
        .await?;
    let mut got = Got { keys: keys.into_iter().collect(), names: HashSet::new(), limited: HashSet::new() };
    let mut claimants = those(all, &got.keys);
    claimants.sort_by_key(|row| (row.team, row.r#type, row.name, row.place));
    if claimants.is_empty() {
        return Ok(got);
    }
    let names = format!(
        "{RESOURCE}, EXISTS (SELECT 1 FROM team WHERE team.name = resource.team AND quota IS NOT NULL) AS limited"
    );
    let names = sqlx::query(AssertSqlSafe(with_new(&names)))
        .bind(array(&claimants)?)
        .fetch_all(&mut *connection)
        .await?;
    for row in &names {
        let request: Uuid = row.try_get("request")?;
        got.names.insert(request);
        if row.try_get("limited")? {
            got.limited.insert(request);
        }
    }
    let mut winners = those(&claimants, &got.names);
    winners.retain(|row| !got.limited.contains(&row.id));
    write_rest(connection, &winners).await?;
    Ok(got)
}

async fn write_rest(connection: &mut Connection, winners: &[&NewRow<'_>]) -> StoreResult<()> {
    if winners.is_empty() {
        return Ok(());
    }
    let rest = if dialect::CHANGES_STAND_IN_WITH {
        REST.clone()
    } else {
        // Together they go to the database and back once; each reads the same parameter.
        rest().map(|statement| with_new(&statement)).join(";\n")
    };
    sqlx::query(AssertSqlSafe(rest)).bind(array(winners)?).execute(connection).await?;
    Ok(())
}

/// A create whose key was free but whose name was not: either the thing is there as asked, or the name is taken.
async fn met_a_name(
    connection: &mut Connection,
    submission: &Submission,
    wanted: &StoredRequest,
) -> StoreResult<Submitted> {
    let (view, scope) = (&wanted.view, &submission.arrived.scope);
    let held =
        lists::resource(connection, view.team.as_str(), view.resource_type.as_str(), view.name.as_str())
            .await?
            .ok_or_else(moved_on)?
            .view;
    let maker = held.created_by.id;
    let same = held.offering == view.offering && canonical(&held.parameters) == canonical(&view.parameters);
    if held.state == "deleting" || !same {
        give_back(connection, scope).await?;
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
        "UPDATE claim SET request = $1, existing = $2, answer_kind = $3, location = $4, body = $5, command = $6, late = $7
          WHERE team = $8 AND principal = $9 AND key = $10",
    )
    .bind(maker.0)
    .bind(true)
    .bind(answer.kind.as_str())
    .bind(&answer.location)
    .bind(answer.body.as_ref())
    .bind(command)
    .bind(made_by.view.state.is_final())
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "claim")?;
    let arrived =
        Arrived { request: Some(maker), outcome: SubmissionOutcome::Existing, ..submission.arrived.clone() };
    arrivals::insert(connection, &arrived).await?;
    Ok(Submitted::Existing(answer, maker))
}

/// What a key is locked by, where it is not by claiming it.
pub(in crate::store) fn key(scope: &Scope) -> [&[u8]; 3] {
    [scope.team.as_bytes(), scope.principal.0.as_bytes(), scope.key.as_str().as_bytes()]
}

/// The claim of a key within its full scope.
pub(super) async fn claim(connection: &mut Connection, scope: &Scope) -> StoreResult<Option<Claim>> {
    let found = looks::claims(connection, std::slice::from_ref(scope)).await?;
    Ok(found.into_iter().next().transpose()?.flatten().map(|(claim, _)| claim))
}

/// Claims the key of a submission that is not a create, with its answer.
pub(super) async fn claim_with(
    connection: &mut Connection,
    submission: &Submission,
    request: Option<Uuid>,
    existing: bool,
    answer: &Answer,
) -> StoreResult<()> {
    let (scope, meaning) = (&submission.arrived.scope, &submission.meaning);
    let command =
        serde_json::to_string(&submission.command).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let schema_digest = match &submission.effect {
        Effect::Change(change) => change.schema_digest.as_deref(),
        _ => None,
    };
    let done = sqlx::query(
        "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, command, request, answer_kind,
                            existing, location, etag, body, claimed_at, schema_digest, late)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
                 $10 AND EXISTS (SELECT 1 FROM request WHERE request.id = $8 AND request.finished_at IS NOT NULL))",
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
    .bind(schema_digest)
    .execute(connection)
    .await?;
    exactly_one(&done, "claim")
}

/// Puts the answer that repeats get into the place of the one that was prepared.
pub(super) async fn answer_with(
    connection: &mut Connection,
    scope: &Scope,
    answer: &Answer,
) -> StoreResult<()> {
    let done = sqlx::query("UPDATE claim SET body = $1 WHERE team = $2 AND principal = $3 AND key = $4")
        .bind(answer.body.as_ref())
        .bind(&scope.team)
        .bind(scope.principal.0)
        .bind(scope.key.as_str())
        .execute(connection)
        .await?;
    exactly_one(&done, "claim")
}
