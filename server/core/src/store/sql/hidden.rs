//! The sealed values of secret parameters: with the request that brought them, until its life ends; those of a create that
//! failed, which may be tried again, until its retention ends.

use super::{
    dialect::{Connection, Database},
    exactly_one,
};
use crate::store::{HiddenParameters, StoreResult};
use async_trait::async_trait;
use domain::id::{RequestId, ResourceId};
use sqlx::Row;
use uuid::Uuid;

#[async_trait]
impl HiddenParameters for Database {
    async fn hidden_of(&self, resource: ResourceId) -> StoreResult<Vec<(RequestId, Vec<u8>)>> {
        self.read(resource, |resource, connection| Box::pin(of_life(connection, *resource))).await
    }

    async fn hidden_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(RequestId, Vec<u8>)>> {
        self.read((head, limit), |(head, limit), connection| Box::pin(otherwise(connection, head, *limit)))
            .await
    }

    async fn reseal_hidden(&self, request: RequestId, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool> {
        self.write((request, before, after), |(request, before, after), connection| {
            Box::pin(async move {
                let done = sqlx::query("UPDATE request SET hidden = $1 WHERE id = $2 AND hidden = $3")
                    .bind(after.as_slice())
                    .bind(request.0)
                    .bind(before.as_slice())
                    .execute(connection)
                    .await?;
                Ok(done.rows_affected() == 1)
            })
        })
        .await
    }

    async fn change_setting(&self, name: &str, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool> {
        self.write((name.to_owned(), before, after), |(name, before, after), connection| {
            Box::pin(async move {
                let done = sqlx::query("UPDATE setting SET value = $1 WHERE name = $2 AND value = $3")
                    .bind(after.as_slice())
                    .bind(name.as_str())
                    .bind(before.as_slice())
                    .execute(connection)
                    .await?;
                Ok(done.rows_affected() == 1)
            })
        })
        .await
    }
}

async fn of_life(connection: &mut Connection, life: ResourceId) -> StoreResult<Vec<(RequestId, Vec<u8>)>> {
    let look = "SELECT id, hidden FROM request WHERE resource = $1 AND hidden IS NOT NULL";
    let rows = sqlx::query(look).bind(life.0).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((RequestId(row.try_get::<Uuid, _>("id")?), row.try_get("hidden")?))).collect()
}

async fn otherwise(
    connection: &mut Connection,
    head: &[u8],
    limit: u32,
) -> StoreResult<Vec<(RequestId, Vec<u8>)>> {
    let mut found = Vec::new();
    // On both sides of it in the index.
    for look in [
        "SELECT id, hidden FROM request WHERE hidden IS NOT NULL AND substr(hidden, 1, 6) < $1 LIMIT $2",
        "SELECT id, hidden FROM request WHERE hidden IS NOT NULL AND substr(hidden, 1, 6) > $1 LIMIT $2",
    ] {
        let rows = sqlx::query(look).bind(head).bind(i64::from(limit)).fetch_all(&mut *connection).await?;
        for row in rows {
            found.push((RequestId(row.try_get::<Uuid, _>("id")?), row.try_get("hidden")?));
        }
    }
    Ok(found)
}

/// Keeps what a create that was just taken in brought.
pub(super) async fn keep(connection: &mut Connection, request: RequestId, sealed: &[u8]) -> StoreResult<()> {
    let done = sqlx::query("UPDATE request SET hidden = $1 WHERE id = $2")
        .bind(sealed)
        .bind(request.0)
        .execute(connection)
        .await?;
    exactly_one(&done, "request")
}

/// Forgets what requests about a life brought that has ended; but not what a create needs that may be tried again. Most
/// lives have none.
pub(super) async fn forget(connection: &mut Connection, life: Uuid) -> StoreResult<()> {
    sqlx::query(
        "UPDATE request SET hidden = NULL
          WHERE resource = $1 AND hidden IS NOT NULL AND NOT (action = 'create' AND state = 'failed')",
    )
    .bind(life)
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether what a request brought is still kept.
pub(super) async fn is_kept(connection: &mut Connection, request: RequestId) -> StoreResult<bool> {
    let look = "SELECT EXISTS (SELECT 1 FROM request WHERE id = $1 AND hidden IS NOT NULL)";
    Ok(sqlx::query_scalar(look).bind(request.0).fetch_one(connection).await?)
}
