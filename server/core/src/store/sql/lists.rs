//! Reading requests, their histories, and resources.

use super::{
    dialect::{Connection, FOR_UPDATE},
    rows::{self, REQUEST, RESOURCE},
    search::COUNTED,
};
use crate::store::{StoreError, StoreResult, StoredRequest, StoredResource, cursor};
use domain::{
    id::RequestId,
    name::Name,
    time::Moment,
    view::{EventView, Page, ResourceView},
};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

/// One request.
pub(super) async fn request(
    connection: &mut Connection,
    id: RequestId,
) -> StoreResult<Option<StoredRequest>> {
    one_request(connection, id, "").await
}

/// One request that is about to be changed, or on whose state something is decided.
pub(super) async fn locked_request(
    connection: &mut Connection,
    id: RequestId,
) -> StoreResult<Option<StoredRequest>> {
    one_request(connection, id, FOR_UPDATE).await
}

async fn one_request(
    connection: &mut Connection,
    id: RequestId,
    lock: &'static str,
) -> StoreResult<Option<StoredRequest>> {
    let row = sqlx::query(AssertSqlSafe(format!("SELECT {REQUEST} FROM request WHERE id = $1{lock}")))
        .bind(id.0)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(rows::request).transpose()
}

/// A page out of one row more than it holds.
pub(super) fn paged<T>(
    mut results: Vec<T>,
    size: u32,
    total: i64,
    place: impl Fn(&T) -> (Moment, Uuid),
) -> Page<T> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let more = results.len() > size;
    results.truncate(size);
    let next = results.last().filter(|_| more).map(|last| {
        let (at, id) = place(last);
        cursor::write(at, id)
    });
    Page {
        total: total.min(COUNTED),
        total_is: (total > COUNTED).then(|| "at_least".to_owned()),
        results,
        next,
    }
}

/// What happened to a request after entry `after`.
pub(super) async fn events(
    connection: &mut Connection,
    request: RequestId,
    after: i64,
    limit: u32,
) -> StoreResult<Vec<EventView>> {
    let rows = sqlx::query(
        "SELECT seq, attempt, at, entry FROM event WHERE request = $1 AND seq > $2 ORDER BY seq LIMIT $3",
    )
    .bind(request.0)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(EventView {
                seq: row.try_get("seq")?,
                at: rows::moment(row, "at")?,
                attempt: rows::number(row, "attempt")?,
                entry: rows::json(row, "entry")?,
            })
        })
        .collect()
}

/// A page of a team's living resources, newest first.
pub(super) async fn resources(
    connection: &mut Connection,
    team: &Name,
    after: Option<(Moment, Uuid)>,
    size: u32,
) -> StoreResult<Page<ResourceView>> {
    let total: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM resource WHERE team = $1 AND ended_at IS NULL LIMIT $2) AS found",
    )
    .bind(team.as_str())
    .bind(COUNTED + 1)
    .fetch_one(&mut *connection)
    .await?;
    let (at, id) = after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.millis(), id));
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {RESOURCE} FROM resource WHERE team = $1 AND ended_at IS NULL AND (created_at, id) < ($2, $3)
          ORDER BY created_at DESC, id DESC LIMIT $4",
    )))
    .bind(team.as_str())
    .bind(at)
    .bind(id)
    .bind(i64::from(size) + 1)
    .fetch_all(connection)
    .await?;
    let results =
        rows.iter().map(|row| rows::resource(row).map(|one| one.view)).collect::<StoreResult<Vec<_>>>()?;
    Ok(paged(results, size, total, |last| (last.created_at, last.id.0)))
}

/// One living resource.
pub(super) async fn resource(
    connection: &mut Connection,
    team: &str,
    kind: &str,
    name: &str,
) -> StoreResult<Option<StoredResource>> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "SELECT {RESOURCE} FROM resource WHERE team = $1 AND type = $2 AND name = $3 AND ended_at IS NULL",
    )))
    .bind(team)
    .bind(rows::text(kind))
    .bind(rows::text(name))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::resource).transpose().map_err(|error| StoreError::Corrupt(error.to_string()))
}
