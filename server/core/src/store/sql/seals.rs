//! What the versions of the portal's key are needed for, and secrets that are sealed anew.

use super::dialect::Connection;
use crate::{keys, store::StoreResult};
use sqlx::{AssertSqlSafe, Row};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How many claims and secrets need each version; of those that are needed at all.
pub(super) async fn key_use(connection: &mut Connection) -> StoreResult<BTreeMap<i64, keys::Use>> {
    let mut needed: BTreeMap<i64, keys::Use> = BTreeMap::new();
    // All claims are read, which only a command of an administrator's asks for.
    let claims = sqlx::query(
        "SELECT key_version, count(*) AS claims FROM claim WHERE retired_at IS NULL GROUP BY key_version",
    )
    .fetch_all(&mut *connection)
    .await?;
    for row in claims {
        needed.entry(row.try_get("key_version")?).or_default().claims = row.try_get("claims")?;
    }
    let seals = sqlx::query(
        "SELECT substr(secrets, 1, 6) AS head, count(*) AS secrets FROM resource
          WHERE secrets IS NOT NULL GROUP BY substr(secrets, 1, 6)
          UNION ALL
         SELECT substr(hidden, 1, 6), count(*) FROM request WHERE hidden IS NOT NULL GROUP BY substr(hidden, 1, 6)
          UNION ALL
         SELECT substr(value, 1, 6), count(*) FROM setting WHERE name = 'parameter_key' GROUP BY substr(value, 1, 6)
          UNION ALL
         SELECT substr(sealed, 1, 6), count(*) FROM hook_secret GROUP BY substr(sealed, 1, 6)
          UNION ALL
         SELECT substr(sealed, 1, 6), count(*) FROM delivery GROUP BY substr(sealed, 1, 6)
          UNION ALL
         SELECT substr(secrets, 1, 6), count(*) FROM notification GROUP BY substr(secrets, 1, 6)
          UNION ALL
         SELECT head, count(*) FROM (
             SELECT substr(secret, 1, 6) AS head FROM errand
             UNION ALL SELECT substr(note, 1, 6) FROM errand WHERE note IS NOT NULL
             UNION ALL SELECT substr(outcome, 1, 6) FROM errand WHERE outcome IS NOT NULL) AS errands
          GROUP BY head",
    )
    .fetch_all(connection)
    .await?;
    for row in seals {
        let head: Vec<u8> = row.try_get("head")?;
        needed.entry(keys::version_of(&head)).or_default().secrets += row.try_get::<i64, _>("secrets")?;
    }
    Ok(needed)
}

/// A column with seals, and its table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed(&'static str, &'static str);

/// Secret outputs.
pub(super) const RESOURCES: Sealed = Sealed("resource", "secrets");
/// Hooks' secrets.
pub(super) const HOOK_SECRETS: Sealed = Sealed("hook_secret", "sealed");
/// What was delivered to hooks.
pub(super) const DELIVERIES: Sealed = Sealed("delivery", "sealed");
/// The secrets that sign notifications.
pub(super) const NOTIFICATIONS: Sealed = Sealed("notification", "secrets");

/// What is sealed of work that goes on elsewhere: the callback's secret, what was noted, and what was reported.
pub(super) const ERRAND_SECRETS: Sealed = Sealed("errand", "secret");
pub(super) const ERRAND_NOTES: Sealed = Sealed("errand", "note");
pub(super) const ERRAND_REPORTS: Sealed = Sealed("errand", "outcome");

/// Seals that do not begin with `head`, up to `limit` or twice that.
pub(super) async fn sealed_otherwise(
    connection: &mut Connection,
    Sealed(table, column): Sealed,
    head: &[u8],
    limit: u32,
) -> StoreResult<Vec<(Uuid, Vec<u8>)>> {
    let mut found = Vec::new();
    // On both sides of it in the index.
    for side in ["<", ">"] {
        let look = format!(
            "SELECT id, {column} AS sealed FROM {table}
              WHERE {column} IS NOT NULL AND substr({column}, 1, 6) {side} $1 LIMIT $2"
        );
        let rows = sqlx::query(AssertSqlSafe(look))
            .bind(head)
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await?;
        for row in rows {
            found.push((row.try_get("id")?, row.try_get("sealed")?));
        }
    }
    Ok(found)
}

/// Puts a new seal in the place of an old one; whether that was still there.
pub(super) async fn reseal(
    connection: &mut Connection,
    Sealed(table, column): Sealed,
    id: Uuid,
    before: &[u8],
    after: &[u8],
) -> StoreResult<bool> {
    let text = format!("UPDATE {table} SET {column} = $1 WHERE id = $2 AND {column} = $3");
    let done = sqlx::query(AssertSqlSafe(text)).bind(after).bind(id).bind(before).execute(connection).await?;
    Ok(done.rows_affected() == 1)
}
