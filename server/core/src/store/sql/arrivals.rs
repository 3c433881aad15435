//! Arrivals: the history of submissions, repeats and refusals among them.

use super::{
    dialect::{Connection, DbRow},
    exactly_one,
    rows::{moment, parsed},
};
use crate::store::{Arrived, StoreResult};
use domain::{
    id::{RequestId, SubmissionId},
    view::{SubmissionView, SubmissionsView},
};
use sqlx::Row;
use uuid::Uuid;

/// How many arrivals of one key are kept one by one; further ones are only counted.
pub(super) const KEPT_PER_KEY: i64 = 1000;

/// Writes an arrival down.
pub(super) async fn insert(connection: &mut Connection, arrived: &Arrived) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO submission (id, team, principal, key, request, operation, outcome, problem, channel, sent_by,
                                 token_label, address, correlation_id, labels, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .bind(arrived.id.0)
    .bind(&arrived.scope.team)
    .bind(arrived.scope.principal.0)
    .bind(arrived.scope.key.as_str())
    .bind(arrived.request.map(|id| id.0))
    .bind(arrived.operation)
    .bind(arrived.outcome.as_str())
    .bind(arrived.problem)
    .bind(arrived.channel.as_str())
    .bind(&arrived.sent_by)
    .bind(&arrived.token_label)
    .bind(&arrived.address)
    .bind(&arrived.correlation_id)
    .bind(&arrived.labels)
    .bind(arrived.at.millis())
    .execute(connection)
    .await?;
    exactly_one(&done, "submission")
}

/// Writes arrivals down that changed nothing, or only counts them.
pub(super) async fn record(connection: &mut Connection, arrivals: &[Arrived]) -> StoreResult<()> {
    // By key, so that two servers that write at the same time never wait for each other.
    let mut sorted: Vec<&Arrived> = arrivals.iter().collect();
    sorted.sort_by_key(|arrived| arrived.scope.order());
    for arrived in sorted {
        record_one(connection, arrived).await?;
    }
    Ok(())
}

async fn record_one(connection: &mut Connection, arrived: &Arrived) -> StoreResult<()> {
    let scope = &arrived.scope;
    // A refusal may come before there is a claim; then there is nothing to count on.
    sqlx::query("UPDATE claim SET repeats = repeats + 1 WHERE team = $1 AND principal = $2 AND key = $3")
        .bind(&scope.team)
        .bind(scope.principal.0)
        .bind(scope.key.as_str())
        .execute(&mut *connection)
        .await?;
    let kept: i64 = sqlx::query_scalar(
        "SELECT count(*)
           FROM (SELECT 1 FROM submission WHERE team = $1 AND principal = $2 AND key = $3 LIMIT $4) AS found",
    )
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .bind(KEPT_PER_KEY)
    .fetch_one(&mut *connection)
    .await?;
    if kept < KEPT_PER_KEY { insert(connection, arrived).await } else { Ok(()) }
}

/// Every arrival of a request.
pub(super) async fn of_request(
    connection: &mut Connection,
    request: RequestId,
) -> StoreResult<SubmissionsView> {
    let rows = sqlx::query(
        "SELECT id, key, request, operation, outcome, problem, channel, sent_by, token_label, address, correlation_id, at
           FROM submission WHERE request = $1 ORDER BY at, id LIMIT $2",
    )
    .bind(request.0)
    // Several keys may lead to one request; the page stays bounded whatever they are.
    .bind(KEPT_PER_KEY * 2)
    .fetch_all(&mut *connection)
    .await?;
    let results = rows.iter().map(view).collect::<StoreResult<Vec<_>>>()?;
    // Every claim's first arrival, and its repeats.
    let counted: i64 = sqlx::query_scalar(
        "SELECT CAST(coalesce(sum(1 + repeats), 0) AS BIGINT) FROM claim WHERE request = $1",
    )
    .bind(request.0)
    .fetch_one(connection)
    .await?;
    let kept = i64::try_from(results.len()).unwrap_or(i64::MAX);
    Ok(SubmissionsView { total: counted.max(kept), only_counted: (counted - kept).max(0), results })
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
