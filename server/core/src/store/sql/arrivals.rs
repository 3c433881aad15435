//! Arrivals: the history of submissions, repeats and refusals among them.

use super::{
    dialect::{ARRIVALS, Connection, DbRow, SCOPES},
    duplicates, exactly_one,
    rows::{self, REQUEST, array, hex, moment, parsed},
};
use crate::store::{Arrived, Scope, StoreError, StoreResult, Tally, search::Sought};
use domain::{
    id::{RequestId, SubmissionId},
    view::{SubmissionView, SubmissionsView},
};
use serde::Serialize;
use sqlx::{AssertSqlSafe, Row as _};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// How many arrivals of one key are kept one by one; further ones are only counted.
pub(super) const KEPT_PER_KEY: i64 = 1000;

/// How many arrivals of one request are shown.
const SHOWN: i64 = KEPT_PER_KEY * 2;

/// One arrival as the statement reads it, a JSON object in the group's array.
#[derive(Serialize)]
struct Row<'a> {
    id: String,
    team: &'a str,
    principal: String,
    key: &'a str,
    request: Option<String>,
    operation: &'static str,
    outcome: &'static str,
    problem: Option<&'static str>,
    channel: &'static str,
    sent_by: &'a str,
    token_label: Option<&'a str>,
    address: Option<&'a str>,
    correlation_id: Option<&'a str>,
    labels: &'a str,
    at: i64,
}

fn row(arrived: &Arrived) -> Row<'_> {
    Row {
        id: hex(arrived.id.0.as_bytes()),
        team: &arrived.scope.team,
        principal: hex(arrived.scope.principal.0.as_bytes()),
        key: arrived.scope.key.as_str(),
        request: arrived.request.map(|id| hex(id.0.as_bytes())),
        operation: arrived.operation,
        outcome: arrived.outcome.as_str(),
        problem: arrived.problem,
        channel: arrived.channel.as_str(),
        sent_by: &arrived.sent_by,
        token_label: arrived.token_label.as_deref(),
        address: arrived.address.as_deref(),
        correlation_id: arrived.correlation_id.as_deref(),
        labels: &arrived.labels,
        at: arrived.at.millis(),
    }
}

/// Writes an arrival down.
pub(super) async fn insert(connection: &mut Connection, arrived: &Arrived) -> StoreResult<()> {
    insert_all(connection, &[arrived]).await?;
    let Some(request) = arrived.request else { return Ok(()) };
    let labels: BTreeMap<String, String> =
        serde_json::from_str(&arrived.labels).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let row = sqlx::query(AssertSqlSafe(format!("SELECT {REQUEST} FROM request WHERE id = $1")))
        .bind(request.0)
        .fetch_optional(&mut *connection)
        .await?;
    // Its own words may be written after this.
    let its = row.as_ref().map(rows::request).transpose()?;
    let (key, correlation_id) = (arrived.scope.key.as_str(), arrived.correlation_id.as_deref());
    let words = Sought::of_key(its.as_ref().map(|its| &its.view), key, correlation_id, &labels);
    sought(connection, request.0, words).await
}

/// Writes words down by which a request is found.
pub(super) async fn sought(connection: &mut Connection, request: Uuid, words: Sought) -> StoreResult<()> {
    let done = sqlx::query("INSERT INTO sought (request, text, terms) VALUES ($1, $2, $3)")
        .bind(request)
        .bind(words.text)
        .bind(words.terms)
        .execute(connection)
        .await?;
    exactly_one(&done, "sought")
}

async fn insert_all(connection: &mut Connection, arrivals: &[&Arrived]) -> StoreResult<()> {
    let rows: Vec<Row<'_>> = arrivals.iter().map(|arrived| row(arrived)).collect();
    let done = sqlx::query(AssertSqlSafe(format!(
        "WITH given AS ({ARRIVALS})
         INSERT INTO submission (id, team, principal, key, request, operation, outcome, problem, channel, sent_by,
                                 token_label, address, correlation_id, labels, at)
         SELECT id, team, principal, key, request, operation, outcome, problem, channel, sent_by, token_label, address,
                correlation_id, labels, at
           FROM given"
    )))
    .bind(array(&rows)?)
    .execute(connection)
    .await?;
    let (meant, met) = (arrivals.len(), done.rows_affected());
    if u64::try_from(meant).is_ok_and(|meant| meant == met) {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!("submission: {met} rows instead of {meant}")))
    }
}

/// How many arrivals came under a key.
struct Came<'a> {
    scope: &'a Scope,
    count: i64,
}

/// Writes arrivals down that changed nothing, or only counts them, with a handful of statements for all.
pub(super) async fn record(connection: &mut Connection, arrivals: &[Arrived]) -> StoreResult<()> {
    // By key, so that two servers that write at the same time never wait for each other.
    let mut by_key: BTreeMap<_, Vec<&Arrived>> = BTreeMap::new();
    for arrived in arrivals {
        by_key.entry(arrived.scope.order()).or_default().push(arrived);
    }
    let groups: Vec<Vec<&Arrived>> = by_key.into_values().collect();
    let scopes: Vec<Came<'_>> = groups
        .iter()
        .filter_map(|group| {
            let count = i64::try_from(group.len()).unwrap_or(i64::MAX);
            Some(Came { scope: &group.first()?.scope, count })
        })
        .collect();
    let mut before = counted(connection, &scopes, KEPT_PER_KEY).await?;
    // A refusal may come before there is a claim; then what was kept of its key is counted.
    let unclaimed: Vec<usize> = (0..groups.len()).filter(|place| before[*place].is_none()).collect();
    if !unclaimed.is_empty() {
        let found = kept(connection, unclaimed.iter().map(|place| &scopes[*place])).await?;
        for (place, count) in unclaimed.into_iter().zip(found) {
            before[place] = Some(count);
        }
    }
    let written: Vec<&Arrived> = groups
        .iter()
        .zip(before)
        .flat_map(|(group, before)| {
            let room = KEPT_PER_KEY - before.unwrap_or_default();
            group.iter().copied().take(usize::try_from(room).unwrap_or_default())
        })
        .collect();
    if !written.is_empty() {
        insert_all(connection, &written).await?;
    }
    duplicates::count(connection, arrivals.iter().map(|arrived| (arrived, 1))).await
}

/// Counts arrivals that are not written down; how many of them came under keys that nobody claimed.
pub(super) async fn tally(connection: &mut Connection, tallies: &[Tally]) -> StoreResult<u64> {
    let mut by_key: BTreeMap<_, (&Scope, u64)> = BTreeMap::new();
    for Tally { arrived, count } in tallies {
        by_key.entry(arrived.scope.order()).or_insert((&arrived.scope, 0)).1 += count;
    }
    let scopes: Vec<Came<'_>> = by_key
        .values()
        .map(|(scope, count)| Came { scope, count: i64::try_from(*count).unwrap_or(i64::MAX) })
        .collect();
    let before = counted(connection, &scopes, 0).await?;
    let unclaimed = by_key.values().zip(before).filter(|(_, before)| before.is_none());
    let unclaimed = unclaimed.map(|((_, count), _)| count).sum();
    duplicates::count(connection, tallies.iter().map(|tally| (&tally.arrived, tally.count))).await?;
    Ok(unclaimed)
}

/// Scopes as the statements read them.
fn array_of<'a>(scopes: impl Iterator<Item = &'a Came<'a>>) -> StoreResult<String> {
    let scopes = scopes.map(|Came { scope, count }| {
        (&scope.team, hex(scope.principal.0.as_bytes()), scope.key.as_str(), count)
    });
    array(&scopes.collect::<Vec<_>>())
}

/// Counts the arrivals of claimed keys, of each of which at most `written` are written down in all; for each how many of
/// its key there were before, the first among them, or nothing where the key is not claimed.
async fn counted(
    connection: &mut Connection,
    scopes: &[Came<'_>],
    written: i64,
) -> StoreResult<Vec<Option<i64>>> {
    // What stands on the right side is of before.
    let found = sqlx::query(AssertSqlSafe(format!(
        "WITH asked AS ({SCOPES})
         UPDATE claim
            SET repeats = claim.repeats + asked.count,
                only_counted = claim.only_counted
                             + CASE WHEN 1 + claim.repeats >= $2 THEN asked.count
                                    WHEN 1 + claim.repeats + asked.count > $2 THEN 1 + claim.repeats + asked.count - $2
                                    ELSE 0 END
           FROM asked
          WHERE claim.team = asked.team AND claim.principal = asked.principal AND claim.key = asked.key
      RETURNING claim.team, claim.principal, claim.key, claim.repeats"
    )))
    .bind(array_of(scopes.iter())?)
    .bind(written)
    .fetch_all(connection)
    .await?;
    let mut repeats = HashMap::new();
    for row in &found {
        let scope: (String, Uuid, String) =
            (row.try_get("team")?, row.try_get("principal")?, row.try_get("key")?);
        repeats.insert(scope, row.try_get::<i64, _>("repeats")?);
    }
    Ok(scopes
        .iter()
        .map(|Came { scope, count }| {
            let now = repeats.get(&(scope.team.clone(), scope.principal.0, scope.key.as_str().to_owned()))?;
            Some(now - count + 1)
        })
        .collect())
}

/// How many arrivals of each key are kept that led to no request.
async fn kept<'a>(
    connection: &mut Connection,
    scopes: impl Iterator<Item = &'a Came<'a>>,
) -> StoreResult<Vec<i64>> {
    Ok(sqlx::query_scalar(AssertSqlSafe(format!(
        "WITH asked AS ({SCOPES})
         SELECT (SELECT count(*) FROM (SELECT 1 FROM submission AS s
                                        WHERE s.team = asked.team AND s.principal = asked.principal
                                          AND s.key = asked.key AND s.request IS NULL LIMIT {KEPT_PER_KEY}) AS found)
           FROM asked ORDER BY place"
    )))
    .bind(array_of(scopes)?)
    .fetch_all(connection)
    .await?)
}

/// The arrivals of a request: those that led to it, and what else came under the keys that did, as refusals before the
/// body was corrected.
const OF_REQUEST: &str = "(SELECT * FROM submission WHERE request = $1
                UNION ALL
           SELECT own.* FROM claim JOIN submission AS own
               ON own.team = claim.team AND own.principal = claim.principal AND own.key = claim.key
            WHERE claim.request = $1 AND own.request IS NULL) AS arrived";

/// Every arrival of a request.
pub(super) async fn of_request(
    connection: &mut Connection,
    request: RequestId,
) -> StoreResult<SubmissionsView> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT id, key, request, operation, outcome, problem, channel, sent_by, token_label, address, correlation_id, at
           FROM {OF_REQUEST} ORDER BY at, id LIMIT $2"
    )))
    .bind(request.0)
    // Several keys may lead to one request; the page stays bounded whatever they are.
    .bind(SHOWN)
    .fetch_all(&mut *connection)
    .await?;
    let results = rows.iter().map(view).collect::<StoreResult<Vec<_>>>()?;
    let shown = i64::try_from(results.len()).unwrap_or(i64::MAX);
    let kept = if shown < SHOWN {
        shown
    } else {
        sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {OF_REQUEST}")))
            .bind(request.0)
            .fetch_one(&mut *connection)
            .await?
    };
    let beyond: i64 = sqlx::query_scalar(
        "SELECT CAST(coalesce(sum(only_counted), 0) AS BIGINT) FROM claim WHERE request = $1",
    )
    .bind(request.0)
    .fetch_one(connection)
    .await?;
    let total = kept + beyond;
    Ok(SubmissionsView { total, only_counted: total - shown, results })
}

fn view(row: &DbRow) -> StoreResult<SubmissionView> {
    Ok(SubmissionView {
        id: SubmissionId(row.try_get("id")?),
        key: row.try_get("key")?,
        request_id: row.try_get::<Option<Uuid>, _>("request")?.map(RequestId),
        operation: row.try_get("operation")?,
        outcome: parsed(row, "outcome")?,
        problem: row.try_get("problem")?,
        channel: parsed(row, "channel")?,
        sent_by: row.try_get("sent_by")?,
        token: row.try_get("token_label")?,
        address: row.try_get("address")?,
        correlation_id: row.try_get("correlation_id")?,
        at: moment(row, "at")?,
    })
}
