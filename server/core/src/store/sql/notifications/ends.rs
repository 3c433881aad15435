//! Telling of resources whose end is near: once for each end of each life, whoever of several servers sees it first.
//!
//! `warn_at` says from when on somebody is to be told. It is set with the end, by the run that brings the end about, and
//! taken away by the transaction that tells.

use super::{
    super::{
        dialect::{Connection, SKIP_LOCKED, clock},
        exactly_one,
        rows::{self, RESOURCE},
        runs,
    },
    delivery_id, insert, object, who_wants,
};
use crate::store::StoreResult;
use domain::{notification::NotificationEvent, time::Moment, view::ResourceView};
use serde_json::json;
use sqlx::AssertSqlSafe;

/// The resources to tell of, where parameter 1 is the time; in the words of their index.
fn near() -> String {
    format!("state = 'active' AND warn_at <= {}", clock("$1"))
}

/// Whether there is one to tell of.
pub(super) async fn any_near(connection: &mut Connection, now: Moment) -> StoreResult<bool> {
    let text = format!("SELECT EXISTS (SELECT 1 FROM resource WHERE {})", near());
    Ok(sqlx::query_scalar(AssertSqlSafe(text)).bind(now.millis()).fetch_one(connection).await?)
}

/// Tells of up to `limit`, those that are due for longest first; how many. What another server holds is left to it.
pub(super) async fn tell(connection: &mut Connection, now: Moment, limit: u32) -> StoreResult<u64> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {RESOURCE} FROM resource WHERE {} ORDER BY warn_at LIMIT $2{SKIP_LOCKED}",
        near(),
    )))
    .bind(now.millis())
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let mut told = 0;
    for row in &rows {
        let resource = rows::resource(row)?.view;
        let done = sqlx::query("UPDATE resource SET warn_at = NULL WHERE id = $1 AND warn_at IS NOT NULL")
            .bind(resource.id.0)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "resource")?;
        if let Some(end) = resource.expires_at {
            tell_of(connection, &resource, end, now).await?;
        }
        told += 1;
    }
    Ok(told)
}

async fn tell_of(
    connection: &mut Connection,
    resource: &ResourceView,
    end: Moment,
    now: Moment,
) -> StoreResult<()> {
    let event = NotificationEvent::Expiring;
    let told = who_wants(connection, resource.team.as_str(), event).await?;
    if told.is_empty() {
        return Ok(());
    }
    let maker = runs::existing(connection, resource.created_by.id).await?.view;
    let data = object(json!({ "resource": {
        "id": resource.id,
        "team": resource.team,
        "type": resource.resource_type,
        "name": resource.name,
        "offering": resource.offering,
        "expires_at": end,
        "created_at": resource.created_at,
        "request_id": maker.id,
        "correlation_id": maker.correlation_id,
        "requested_by": maker.requested_by,
    }}));
    for to in told {
        let id = delivery_id(to, &[resource.id.0.as_bytes(), &end.millis().to_le_bytes()]);
        // Where an end was put off and back again, its first telling may still be there.
        insert(connection, id, to, event, None, &data, now).await?;
    }
    Ok(())
}
