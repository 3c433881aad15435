//! What the versions of the portal's key are needed for, and secrets that are sealed anew.

use super::dialect::Connection;
use crate::{keys, store::StoreResult};
use domain::id::ResourceId;
use sqlx::Row;
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

/// Secrets whose seal does not begin with `head`, and their resources.
pub(super) async fn sealed_otherwise(
    connection: &mut Connection,
    head: &[u8],
    limit: u32,
) -> StoreResult<Vec<(ResourceId, Vec<u8>)>> {
    let mut found = Vec::new();
    // On both sides of it in the index.
    for look in [
        "SELECT id, secrets FROM resource WHERE secrets IS NOT NULL AND substr(secrets, 1, 6) < $1 LIMIT $2",
        "SELECT id, secrets FROM resource WHERE secrets IS NOT NULL AND substr(secrets, 1, 6) > $1 LIMIT $2",
    ] {
        let rows = sqlx::query(look).bind(head).bind(i64::from(limit)).fetch_all(&mut *connection).await?;
        for row in rows {
            found.push((ResourceId(row.try_get::<Uuid, _>("id")?), row.try_get("secrets")?));
        }
    }
    Ok(found)
}

/// Puts a new seal in the place of an old one; whether that was still there.
pub(super) async fn reseal(
    connection: &mut Connection,
    resource: ResourceId,
    before: &[u8],
    after: &[u8],
) -> StoreResult<bool> {
    let done = sqlx::query("UPDATE resource SET secrets = $1 WHERE id = $2 AND secrets = $3")
        .bind(after)
        .bind(resource.0)
        .bind(before)
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}
