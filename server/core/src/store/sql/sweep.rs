//! The end of keys: what is over becomes a tombstone in place, and tombstones end too. In batches that are bounded, of
//! which each server takes its own.

use super::{
    dialect::{Connection, FOR_UPDATE, SKIP_LOCKED},
    rows::millis,
};
use crate::store::{Claim, Scope, StoreResult};
use domain::{id::RequestId, time::Moment};
use sqlx::AssertSqlSafe;
use std::time::Duration;

/// Several claims may be bound to one request; this many for each of a batch are shortened at once.
const CLAIMS_EACH: i64 = 4;

/// What a tombstone is without. Its hashes are gone, so it needs no key any more: version 0 is none.
const SHORTENED: &str =
    "fingerprint = $1, body_hash = $1, key_version = 0, schema_digest = NULL, command = NULL,
                         location = NULL, etag = NULL, body = $1";

/// Requests that ended before parameter 2 and may have claims to shorten, at most parameter 3.
fn over() -> String {
    format!(
        "WITH over AS MATERIALIZED (
             SELECT id FROM request WHERE finished_at IS NOT NULL AND NOT swept AND finished_at <= $2
              ORDER BY finished_at LIMIT $3{SKIP_LOCKED})"
    )
}

/// Shortens the claims of requests that ended a retention ago, and forgets the secret parameters that a create was kept
/// with for another try; how many rows were met, at least `limit` where more wait.
pub(super) async fn requests(
    connection: &mut Connection,
    now: Moment,
    retention: Duration,
    limit: u32,
) -> StoreResult<u64> {
    let (limit, before) = (i64::from(limit), now.millis().saturating_sub(millis(retention)));
    let nothing: &[u8] = &[];
    let shortened = sqlx::query(AssertSqlSafe(format!(
        "{} UPDATE claim
               SET retired_at = (SELECT finished_at FROM request WHERE request.id = claim.request) + $4, {SHORTENED}
             WHERE id IN (SELECT claim.id FROM over JOIN claim ON claim.request = over.id
                           WHERE claim.retired_at IS NULL AND NOT claim.late LIMIT $5{SKIP_LOCKED})",
        over(),
    )))
    .bind(nothing)
    .bind(before)
    .bind(limit)
    .bind(millis(retention))
    .bind(limit * CLAIMS_EACH)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if shortened >= limit.unsigned_abs() * CLAIMS_EACH.unsigned_abs() {
        // More of the same requests may wait.
        return Ok(shortened);
    }
    let swept = sqlx::query(AssertSqlSafe(format!(
        "{} UPDATE request
               SET swept = $1, hidden = CASE WHEN action = 'create' AND state = 'failed' THEN NULL ELSE hidden END
             WHERE id IN (SELECT id FROM over)
               AND NOT EXISTS (SELECT 1 FROM claim WHERE claim.request = request.id
                                  AND claim.retired_at IS NULL AND NOT claim.late)",
        over(),
    )))
    .bind(true)
    .bind(before)
    .bind(limit)
    .execute(connection)
    .await?;
    Ok(shortened.max(swept.rows_affected()))
}

/// The same of one request, and of the claims of it whose retention counts from themselves: of who opens it again, so that
/// this does not depend on whether it was swept before.
pub(super) async fn one_request(
    connection: &mut Connection,
    id: RequestId,
    now: Moment,
    retention: Duration,
) -> StoreResult<()> {
    let (nothing, before): (&[u8], i64) = (&[], now.millis().saturating_sub(millis(retention)));
    let look = format!("SELECT finished_at FROM request WHERE id = $1{FOR_UPDATE}");
    let ended: Option<Option<i64>> =
        sqlx::query_scalar(AssertSqlSafe(look)).bind(id.0).fetch_optional(&mut *connection).await?;
    // Where it is on its way, there is nothing to open.
    let Some(ended) = ended.flatten() else { return Ok(()) };
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE claim SET retired_at = CASE WHEN late THEN claimed_at ELSE $2 END + $3, {SHORTENED}
          WHERE id IN (SELECT id FROM claim
                        WHERE request = $4 AND retired_at IS NULL AND CASE WHEN late THEN claimed_at ELSE $2 END <= $5
                        ORDER BY team, principal, key{FOR_UPDATE})",
    )))
    .bind(nothing)
    .bind(ended)
    .bind(millis(retention))
    .bind(id.0)
    .bind(before)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE request SET hidden = NULL
          WHERE id = $1 AND action = 'create' AND state = 'failed' AND finished_at <= $2 AND hidden IS NOT NULL",
    )
    .bind(id.0)
    .bind(before)
    .execute(connection)
    .await?;
    Ok(())
}

/// Shortens the claims whose retention counts from themselves; how many.
pub(super) async fn claims(
    connection: &mut Connection,
    now: Moment,
    retention: Duration,
    limit: u32,
) -> StoreResult<u64> {
    let nothing: &[u8] = &[];
    let shortened = sqlx::query(AssertSqlSafe(format!(
        "WITH over AS MATERIALIZED (
             SELECT id FROM claim WHERE retired_at IS NULL AND (request IS NULL OR late) AND claimed_at <= $2
              ORDER BY claimed_at LIMIT $3{SKIP_LOCKED})
         UPDATE claim SET retired_at = claimed_at + $4, {SHORTENED} WHERE id IN (SELECT id FROM over)"
    )))
    .bind(nothing)
    .bind(now.millis().saturating_sub(millis(retention)))
    .bind(i64::from(limit))
    .bind(millis(retention))
    .execute(connection)
    .await?;
    Ok(shortened.rows_affected())
}

/// Removes tombstones that are older than `tombstones`; how many. One whose request was opened again is kept as if its
/// retention had ended with the request's last end, and while there is none.
pub(super) async fn tombstones(
    connection: &mut Connection,
    now: Moment,
    (retention, tombstones): (Duration, Duration),
    limit: u32,
) -> StoreResult<u64> {
    let before = now.millis().saturating_sub(millis(tombstones));
    let removed = sqlx::query(AssertSqlSafe(format!(
        "WITH over AS MATERIALIZED (
             SELECT id FROM claim
              WHERE retired_at IS NOT NULL AND retired_at <= $1
                AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = claim.request
                                   AND (request.finished_at IS NULL OR request.finished_at > $3))
              ORDER BY retired_at LIMIT $2{SKIP_LOCKED})
         DELETE FROM claim WHERE id IN (SELECT id FROM over)"
    )))
    .bind(before)
    .bind(i64::from(limit))
    .bind(before.saturating_sub(millis(retention)))
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Removes this claim if its retention ended by `before`; somebody met it before the sweeper did.
pub(super) async fn one(
    connection: &mut Connection,
    scope: &Scope,
    claim: &Claim,
    before: Moment,
) -> StoreResult<()> {
    // None is left where another was quicker, or the key was claimed anew.
    sqlx::query(
        "DELETE FROM claim
          WHERE team = $1 AND principal = $2 AND key = $3 AND claimed_at = $4
            AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = claim.request
                               AND (request.finished_at IS NULL OR request.finished_at > $5))",
    )
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .bind(claim.claimed_at.millis())
    .bind(before.millis())
    .execute(connection)
    .await?;
    Ok(())
}
