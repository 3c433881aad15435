//! What was delivered to hooks lately: a bounded list for each.

use super::{
    dialect::{Connection, DbRow, SKIP_LOCKED},
    exactly_one, lists,
    rows::{moment, parsed, text},
};
use crate::store::{Delivery, StoreResult};
use domain::{
    hook::{DeliveryView, KEPT_DELIVERIES},
    id::{DeliveryId, HookId, RequestId},
    time::Moment,
    view::Page,
};
use sqlx::{AssertSqlSafe, Row};
use std::collections::BTreeSet;
use uuid::Uuid;

const SHOWN: &str = "id, at, event_id, address, outcome, problem, detail, request, size";

/// Writes deliveries down. A hook may have been removed meanwhile; then there is nobody left to see them.
pub(super) async fn record(connection: &mut Connection, deliveries: &[Delivery]) -> StoreResult<()> {
    // In one order, so that two servers that write at the same time never wait for each other.
    let hooks: BTreeSet<HookId> = deliveries.iter().map(|delivery| delivery.hook).collect();
    for hook in hooks {
        let look = format!("SELECT removed_at FROM hook WHERE id = $1{}", super::dialect::FOR_UPDATE);
        let removed: Option<Option<i64>> =
            sqlx::query_scalar(AssertSqlSafe(look)).bind(hook.0).fetch_optional(&mut *connection).await?;
        if removed != Some(None) {
            continue;
        }
        for delivery in deliveries.iter().filter(|delivery| delivery.hook == hook) {
            insert(connection, delivery).await?;
        }
        sqlx::query(
            "DELETE FROM delivery WHERE hook = $1 AND id NOT IN (
                 SELECT id FROM delivery WHERE hook = $1 ORDER BY at DESC, id DESC LIMIT $2)",
        )
        .bind(hook.0)
        .bind(i64::from(KEPT_DELIVERIES))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn insert(connection: &mut Connection, delivery: &Delivery) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO delivery (id, hook, at, event_id, address, outcome, problem, detail, request, size, sealed)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(delivery.id.0)
    .bind(delivery.hook.0)
    .bind(delivery.at.millis())
    .bind(&delivery.event_id)
    .bind(&delivery.address)
    .bind(delivery.outcome.as_str())
    .bind(delivery.problem)
    .bind(delivery.detail.as_deref().map(text).map(String::from))
    .bind(delivery.request.map(|id| id.0))
    .bind(delivery.size)
    .bind(delivery.sealed.as_slice())
    .execute(connection)
    .await?;
    exactly_one(&done, "delivery")
}

fn view(row: &DbRow) -> StoreResult<DeliveryView> {
    Ok(DeliveryView {
        id: DeliveryId(row.try_get("id")?),
        at: moment(row, "at")?,
        event_id: row.try_get("event_id")?,
        address: row.try_get("address")?,
        outcome: parsed(row, "outcome")?,
        problem: row.try_get("problem")?,
        detail: row.try_get("detail")?,
        request_id: row.try_get::<Option<Uuid>, _>("request")?.map(RequestId),
        size: row.try_get("size")?,
        headers: None,
        payload: None,
    })
}

/// A page, newest first.
pub(super) async fn page(
    connection: &mut Connection,
    hook: HookId,
    after: Option<(Moment, Uuid)>,
    size: u32,
) -> StoreResult<Page<DeliveryView>> {
    let total: i64 = sqlx::query_scalar("SELECT count(*) FROM delivery WHERE hook = $1")
        .bind(hook.0)
        .fetch_one(&mut *connection)
        .await?;
    let (at, id) = after.unwrap_or((Moment::from_millis(i64::MAX), Uuid::max()));
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {SHOWN} FROM delivery WHERE hook = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4"
    )))
    .bind(hook.0)
    .bind(at.millis())
    .bind(id)
    .bind(i64::from(size) + 1)
    .fetch_all(connection)
    .await?;
    let results = rows.iter().map(view).collect::<StoreResult<Vec<_>>>()?;
    Ok(lists::paged(results, size, total, |last| (last.at, last.id.0)))
}

/// One delivery with what is sealed of it.
pub(super) async fn one(
    connection: &mut Connection,
    hook: HookId,
    id: DeliveryId,
) -> StoreResult<Option<(DeliveryView, Vec<u8>)>> {
    let look = format!("SELECT {SHOWN}, sealed FROM delivery WHERE hook = $1 AND id = $2");
    let row = sqlx::query(AssertSqlSafe(look)).bind(hook.0).bind(id.0).fetch_optional(connection).await?;
    row.map(|row| Ok((view(&row)?, row.try_get("sealed")?))).transpose()
}

/// Removes deliveries from before a moment; how many.
pub(super) async fn sweep(connection: &mut Connection, before: Moment, limit: u32) -> StoreResult<u64> {
    let done = sqlx::query(AssertSqlSafe(format!(
        "DELETE FROM delivery WHERE id IN (
             SELECT id FROM delivery WHERE at <= $1 ORDER BY at LIMIT $2{SKIP_LOCKED})"
    )))
    .bind(before.millis())
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}
