//! One life of a resource: the order of its changes, what is left when one comes to nothing, and how it ends.
//!
//! Whoever decides about a change, or ends a run, first takes the lock of the life that it is about; it stands between the
//! key and the request in the order of locks. Changes of one life are carried out in the order of their turns: only the first that
//! is not at its end has a run that is due, and who ends makes the next one due.

use super::{
    dialect::{self, Connection, FOR_UPDATE, clock},
    exactly_one, lists,
    rows::{self, RESOURCE, canonical},
    runs,
};
use crate::store::{Delta, Ending, StoreError, StoreResult, StoredRequest, StoredResource};
use domain::{
    action::Kind,
    expiry::{End, Expiry},
    id::{RequestId, ResourceId},
    state::RequestState,
    time::Moment,
    view::{EventEntry, Object, RequestView},
};
use sqlx::{AssertSqlSafe, Row};

/// When a run is due that waits for an earlier change of its resource: never, by itself.
pub(super) const WAITS: i64 = i64::MAX;
/// How many of a resource's requests are shown with it.
const SHOWN: i64 = 20;

pub(super) const DELETING: &str = "deleting";
/// The reason of a request that lost against a delete.
pub(super) const LOST: &str = "The resource is being deleted.";
const NEVER_MADE: &str = "The resource was not made, so there is nothing to change.";

/// Lets nobody else decide about the changes of this life until the end of the transaction.
pub(super) async fn lock(connection: &mut Connection, life: ResourceId) -> StoreResult<()> {
    dialect::lock(connection, &[b"life", life.0.as_bytes()]).await
}

/// A request, if there is one of this ID, with its life locked and then itself.
pub(super) async fn locked_with_request(
    connection: &mut Connection,
    id: RequestId,
) -> StoreResult<Option<StoredRequest>> {
    let Some(seen) = lists::request(connection, id).await? else { return Ok(None) };
    lock(connection, seen.resource).await?;
    let request = lists::locked_request(connection, id).await?;
    match &request {
        // Its next attempt was opened in between. To lock that one's life now would be out of order.
        Some(request) if request.resource != seen.resource => {
            Err(StoreError::Contended("the request went on with another life".into()))
        }
        _ => Ok(request),
    }
}

/// One life, also one that is over.
pub(super) async fn life(connection: &mut Connection, id: ResourceId) -> StoreResult<Option<StoredResource>> {
    one_life(connection, id, "").await
}

async fn one_life(
    connection: &mut Connection,
    id: ResourceId,
    lock: &'static str,
) -> StoreResult<Option<StoredResource>> {
    let text = format!("SELECT {RESOURCE} FROM resource WHERE id = $1{lock}");
    let row = sqlx::query(AssertSqlSafe(text)).bind(id.0).fetch_optional(connection).await?;
    row.as_ref().map(rows::resource).transpose()
}

/// The last life at a name that a delete ended.
pub(super) async fn last_deleted(
    connection: &mut Connection,
    team: &str,
    kind: &str,
    name: &str,
) -> StoreResult<Option<StoredResource>> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "SELECT {RESOURCE} FROM resource
          WHERE team = $1 AND type = $2 AND name = $3 AND ended_by IS NOT NULL AND ended_at IS NOT NULL
          ORDER BY created_at DESC, id DESC LIMIT 1",
    )))
    .bind(team)
    .bind(rows::text(kind))
    .bind(rows::text(name))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::resource).transpose()
}

/// A life that must be there, with its row locked.
pub(super) async fn locked(connection: &mut Connection, id: ResourceId) -> StoreResult<StoredResource> {
    one_life(connection, id, FOR_UPDATE)
        .await?
        .ok_or_else(|| StoreError::Corrupt(format!("resource {id} is missing")))
}

/// A request's place among the changes of its life.
pub(super) struct Turn {
    id: RequestId,
    number: i64,
    desired: Option<Object>,
    delta: Option<Delta>,
}

/// The requests about a life that are not at their end, in the order in which they are carried out. The create comes
/// first.
pub(super) async fn open(connection: &mut Connection, life: &StoredResource) -> StoreResult<Vec<Turn>> {
    let rows = sqlx::query(
        "SELECT id, turn, desired, delta FROM request WHERE id = $1 AND resource = $2 AND finished_at IS NULL
         UNION ALL
         SELECT id, turn, desired, delta FROM request
          WHERE resource = $2 AND action <> 'create' AND finished_at IS NULL
          ORDER BY turn",
    )
    .bind(life.view.created_by.id.0)
    .bind(life.view.id.0)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Turn {
                id: RequestId(row.try_get("id")?),
                number: row.try_get("turn")?,
                desired: rows::json_if_any(row, "desired")?,
                delta: rows::json_if_any(row, "delta")?,
            })
        })
        .collect()
}

/// The others that are not at their end and come before this change; a delete comes before all of them.
pub(super) async fn in_the_way(
    connection: &mut Connection,
    life: &StoredResource,
    change: RequestId,
    kind: Kind,
) -> StoreResult<Vec<Turn>> {
    let mut turns = open(connection, life).await?;
    let own = turns.iter().position(|turn| turn.id == change);
    let own = own.ok_or_else(|| StoreError::Corrupt(format!("request {change} has no turn")))?;
    if kind == Kind::Delete {
        turns.remove(own);
    } else {
        turns.truncate(own);
    }
    Ok(turns)
}

/// The delete of a life that waits for approval, if one does.
pub(super) async fn waiting_delete(
    connection: &mut Connection,
    life: ResourceId,
) -> StoreResult<Option<RequestId>> {
    let id: Option<uuid::Uuid> = sqlx::query_scalar(
        "SELECT id FROM request
          WHERE resource = $1 AND action <> 'create' AND finished_at IS NULL AND action = 'delete'
            AND state = 'pending_approval'
          ORDER BY turn LIMIT 1",
    )
    .bind(life.0)
    .fetch_optional(connection)
    .await?;
    Ok(id.map(RequestId))
}

/// Lets a life be deleted from here on, by this request that was approved. Its version has moved when that was asked for.
pub(super) async fn begin_delete(
    connection: &mut Connection,
    life: ResourceId,
    by: RequestId,
    now: Moment,
) -> StoreResult<()> {
    let done = sqlx::query(
        "UPDATE resource SET state = 'deleting', ended_by = $1, updated_at = $2
          WHERE id = $3 AND ended_by IS NULL AND ended_at IS NULL",
    )
    .bind(by.0)
    .bind(now.millis())
    .bind(life.0)
    .execute(connection)
    .await?;
    exactly_one(&done, "resource")
}

/// The requests about a life: those that are not at their end, in order, and the last ones, newest first.
pub(super) async fn requests_of(
    connection: &mut Connection,
    id: ResourceId,
) -> StoreResult<(Vec<RequestView>, Vec<RequestView>)> {
    let Some(life) = life(connection, id).await? else { return Ok((Vec::new(), Vec::new())) };
    let mut pending = Vec::new();
    for turn in open(connection, &life).await? {
        pending.push(runs::existing(connection, turn.id).await?.view);
    }
    let rows = sqlx::query(
        "SELECT id FROM request WHERE resource = $1 AND action <> 'create' ORDER BY turn DESC LIMIT $2",
    )
    .bind(id.0)
    .bind(SHOWN)
    .fetch_all(&mut *connection)
    .await?;
    let mut last = Vec::new();
    for row in &rows {
        last.push(runs::existing(connection, RequestId(row.try_get("id")?)).await?.view);
    }
    if rows.len() < usize::try_from(SHOWN).unwrap_or(usize::MAX) {
        last.push(runs::existing(connection, life.view.created_by.id).await?.view);
    }
    Ok((pending, last))
}

/// What became of requests that lost.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// How many are at their end.
    pub(super) ended: usize,
    /// Whether any of them had begun to change something, or may have.
    pub(super) begun: bool,
    /// Those that a worker has yet to stop.
    pub(super) told: Vec<RequestId>,
}

/// Ends requests that lose: what was not begun at once, what was begun by stopping it.
pub(super) async fn lose(
    connection: &mut Connection,
    these: &[Turn],
    reason: &str,
    now: Moment,
) -> StoreResult<Lost> {
    let mut lost = Lost::default();
    for turn in these {
        let Some(request) = lists::locked_request(connection, turn.id).await? else { continue };
        let look = format!("SELECT owner, touched FROM run WHERE request = $1{FOR_UPDATE}");
        let run = sqlx::query(AssertSqlSafe(look)).bind(turn.id.0).fetch_optional(&mut *connection).await?;
        let begun = match &run {
            // Unknown: something may stand half-way.
            None => request.view.state == RequestState::Unknown,
            Some(run) => {
                run.try_get::<Option<String>, _>("owner")?.is_some() || run.try_get::<bool, _>("touched")?
            }
        };
        lost.begun |= begun;
        if run.is_some() && begun {
            let done = sqlx::query(AssertSqlSafe(format!(
                "UPDATE run SET intent = 'cancel', due_at = CASE WHEN owner IS NULL THEN {} ELSE due_at END
                  WHERE request = $2",
                clock("$1"),
            )))
            .bind(now.millis())
            .bind(turn.id.0)
            .execute(&mut *connection)
            .await?;
            exactly_one(&done, "run")?;
            let entry =
                EventEntry::Step { step: "cancel".into(), detail: format!("asked to stop: {reason}") };
            runs::append(connection, turn.id, request.view.attempt, &[entry], now).await?;
            lost.told.push(turn.id);
            continue;
        }
        if run.is_some() {
            runs::remove(connection, turn.id).await?;
        }
        runs::set_state(connection, &request, RequestState::Canceled, Some(reason), now).await?;
        lost.ended += 1;
    }
    Ok(lost)
}

/// Ends what waits for a create that made nothing.
pub(super) async fn never_made(
    connection: &mut Connection,
    life: &StoredResource,
    now: Moment,
) -> StoreResult<()> {
    let waiting = open(connection, life).await?;
    lose(connection, &waiting, NEVER_MADE, now).await?;
    Ok(())
}

/// Makes the run of the first change that is not at its end due.
pub(super) async fn wake_next(connection: &mut Connection, life: ResourceId, now: Moment) -> StoreResult<()> {
    let life = locked(connection, life).await?;
    if let Some(first) = open(connection, &life).await?.first() {
        // Nothing is met where it is due already, or where nobody can tell what became of it.
        sqlx::query(AssertSqlSafe(format!(
            "UPDATE run SET due_at = {} WHERE request = $2 AND due_at = $3",
            clock("$1"),
        )))
        .bind(now.millis())
        .bind(first.id.0)
        .bind(WAITS)
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// When what an ending leaves ends: at a moment, or so long after it was made; and how long before that it is told of.
pub(super) fn end_of(ending: &Ending) -> (Option<i64>, Option<i64>, Option<i64>) {
    let Some(Expiry { end, warn }) = ending.expiry else { return (None, None, None) };
    let (at, after) = match end {
        End::At(moment) => (Some(moment.millis()), None),
        End::After(span) => (None, Some(rows::millis(span))),
    };
    (at, after, Some(rows::millis(warn)))
}

/// What a change leaves that was carried out.
pub(super) async fn succeed(
    connection: &mut Connection,
    request: &StoredRequest,
    ending: &Ending,
    now: Moment,
) -> StoreResult<()> {
    if Kind::of(&request.view.action) == Kind::Delete {
        return runs::end_life(connection, request.resource.0, now).await;
    }
    let desired = request.view.desired.as_ref().map(canonical);
    let (at, after, warn) = end_of(ending);
    // Secrets that could not be opened for the change stay as they were. An end that was told of and stays the same is
    // not told of again.
    let done = sqlx::query(
        "UPDATE resource SET applied = coalesce($1, applied), outputs = $2, updated_at = $5,
                             secret_names = CASE WHEN $4 IS NULL THEN secret_names ELSE $3 END,
                             secrets = coalesce($4, secrets),
                             expires_at = coalesce(CAST($7 AS BIGINT), lasts_from + $8),
                             warn_at = CASE WHEN warn_at IS NULL
                                             AND expires_at = coalesce(CAST($7 AS BIGINT), lasts_from + $8) THEN NULL
                                            ELSE coalesce(CAST($7 AS BIGINT), lasts_from + $8) - $9 END
          WHERE id = $6 AND ended_at IS NULL",
    )
    .bind(desired)
    .bind(canonical(&ending.outputs))
    .bind(runs::names(&ending.secret_names)?)
    .bind(ending.secrets.as_deref())
    .bind(now.millis())
    .bind(request.resource.0)
    .bind(at)
    .bind(after)
    .bind(warn)
    .execute(connection)
    .await?;
    exactly_one(&done, "resource")
}

/// Takes a change back that came to nothing: the version moves once more, what the resource is meant to be goes back, and
/// later changes that were accepted on top of it are worked out again without it.
pub(super) async fn take_back(
    connection: &mut Connection,
    request: &StoredRequest,
    now: Moment,
) -> StoreResult<()> {
    let life = locked(connection, request.resource).await?;
    if life.view.state == "gone" {
        // An ending of an old life touches nothing.
        return Ok(());
    }
    let mut footing = match &life.applied {
        Some(applied) => applied.clone(),
        None => runs::existing(connection, life.view.created_by.id).await?.view.parameters,
    };
    let turn: i64 = sqlx::query_scalar("SELECT turn FROM request WHERE id = $1")
        .bind(request.view.id.0)
        .fetch_one(&mut *connection)
        .await?;
    for later in open(connection, &life).await? {
        let Some(desired) = later.desired else { continue };
        let again = later.delta.filter(|_| later.number > turn).and_then(|delta| delta.on(&footing).ok());
        footing = match again {
            Some(again) if again != desired => {
                work_out_again(connection, later.id, &again, now).await?;
                again
            }
            _ => desired,
        };
    }
    // One that nobody approved deleted nothing.
    let undeleted = life.ended_by == Some(request.view.id);
    let done = sqlx::query(
        "UPDATE resource SET parameters = $1, version = version + 1, updated_at = $2,
                             state = CASE WHEN $3 THEN 'active' ELSE state END,
                             ended_by = CASE WHEN $3 THEN NULL ELSE ended_by END
          WHERE id = $4 AND ended_at IS NULL",
    )
    .bind(canonical(&footing))
    .bind(now.millis())
    .bind(undeleted)
    .bind(life.view.id.0)
    .execute(connection)
    .await?;
    exactly_one(&done, "resource")
}

async fn work_out_again(
    connection: &mut Connection,
    id: RequestId,
    desired: &Object,
    now: Moment,
) -> StoreResult<()> {
    let request = runs::existing(connection, id).await?;
    let desired = canonical(desired);
    let done = sqlx::query(
        "UPDATE request SET desired = $1, parameters = CASE WHEN action = 'update' THEN $1 ELSE parameters END,
                            updated_at = $2
          WHERE id = $3",
    )
    .bind(desired)
    .bind(now.millis())
    .bind(id.0)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    let detail = "an earlier change was taken back, so this one was worked out again without it";
    let entry = EventEntry::Step { step: "again".into(), detail: detail.into() };
    runs::append(connection, id, request.view.attempt, &[entry], now).await
}

/// What a request leaves that ended without being carried out.
pub(super) async fn came_to_nothing(
    connection: &mut Connection,
    request: &StoredRequest,
    now: Moment,
) -> StoreResult<()> {
    if Kind::of(&request.view.action) == Kind::Create {
        let life = locked(connection, request.resource).await?;
        // A delete that is under way tears down what the create may have left, and frees the name.
        if life.view.state == DELETING {
            return wake_next(connection, request.resource, now).await;
        }
        never_made(connection, &life, now).await?;
        return runs::end_life(connection, request.resource.0, now).await;
    }
    take_back(connection, request, now).await?;
    wake_next(connection, request.resource, now).await
}
