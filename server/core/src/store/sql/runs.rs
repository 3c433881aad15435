//! Runs: the queue, leases and fenced writes. Every write of a worker names its hold and counts only while that holds.

use super::{
    dialect::{self, BEGUN, Connection, ELEMENTS, SKIP_LOCKED, TIME, clock},
    errands, exactly_one, hidden, lists, lives, notifications,
    rows::{self, canonical, millis},
};
use crate::{
    hidden::veil_entry,
    store::{Ending, Held, Hold, Intent, Run, StoreError, StoreResult, StoredRequest},
};
use domain::{action::Kind, id::RequestId, state::RequestState, time::Moment, view::EventEntry};
use sqlx::{AssertSqlSafe, Row};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

/// What is said of a request that was to be stopped and is done all the same.
const DONE_BEFORE: &str = "It was done before it could be stopped, and it cannot be taken back.";

/// How long a request's history may grow before further log lines are dropped.
const MOST_EVENTS: i64 = 10_000;

/// Whether there is a run to take.
pub(super) async fn any_due(connection: &mut Connection, now: Moment) -> StoreResult<bool> {
    let text = format!("SELECT EXISTS (SELECT 1 FROM run WHERE due_at <= {})", clock("$1"));
    Ok(sqlx::query_scalar(AssertSqlSafe(text)).bind(now.millis()).fetch_one(connection).await?)
}

/// Shortens leases and waits that a clock set back since would make longer than a lease: where times are the servers' own,
/// what is due by a clock that was ahead is not to wait until this one comes there.
pub(super) async fn bound_waits(
    connection: &mut Connection,
    now: Moment,
    lease: Duration,
) -> StoreResult<()> {
    // Most often none is met.
    sqlx::query(
        "UPDATE run SET due_at = $3
          WHERE due_at > $3 AND due_at <> $2
            AND (owner IS NOT NULL
                 OR EXISTS (SELECT 1 FROM event WHERE event.request = run.request AND event.at > $1))",
    )
    .bind(now.millis())
    .bind(lives::WAITS)
    .bind(now.plus(lease).millis())
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes the run that has been due longest; what was begun before comes first, or a long queue would keep it waiting.
pub(super) async fn take(
    connection: &mut Connection,
    owner: &str,
    now: Moment,
    lease: Duration,
) -> StoreResult<Option<Run>> {
    // With the run its request is locked, which comes first in the order of locks.
    let first = |which: &str| {
        format!(
            "SELECT run.request FROM run JOIN request ON request.id = run.request
              WHERE ({which}) AND run.due_at <= {} ORDER BY run.due_at LIMIT 1{SKIP_LOCKED}",
            clock("$2"),
        )
    };
    let taken = sqlx::query(AssertSqlSafe(format!(
        "UPDATE run SET owner = $1, fence = fence + 1, due_at = {now} + $3, woken = FALSE
          WHERE request = coalesce(({}), ({}))
      RETURNING request, fence, tries, intent, why, touched, insisted, {now} - waits_since AS waited,
                {now} - lacks_since AS lacked",
        first(BEGUN),
        first("true"),
        now = clock("$2"),
    )))
    .bind(owner)
    .bind(now.millis())
    .bind(millis(lease))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(taken) = taken else { return Ok(None) };
    let id = RequestId(taken.try_get("request")?);
    let span = |column: &str| -> StoreResult<Option<Duration>> {
        let millis: Option<i64> = taken.try_get(column)?;
        Ok(millis.map(|millis| Duration::from_millis(millis.max(0).unsigned_abs())))
    };
    let (waited, lacked) = (span("waited")?, span("lacked")?);
    let mut request = existing(connection, id).await?;
    if request.view.state != RequestState::Running {
        set_state(connection, &request, RequestState::Running, None, now).await?;
        // As it is kept now; to read it again would cost every run a way to the database.
        let view = &mut request.view;
        (view.state, view.reason, view.updated_at, view.finished_at) =
            (RequestState::Running, None, now, None);
    }
    let resource = lives::life(connection, request.resource)
        .await?
        .ok_or_else(|| StoreError::Corrupt(format!("resource {} is missing", request.resource)))?;
    Ok(Some(Run {
        request,
        fence: taken.try_get("fence")?,
        tries: rows::number(&taken, "tries")?,
        intent: rows::intent(taken.try_get("intent")?)?,
        why: taken.try_get("why")?,
        touched: taken.try_get("touched")?,
        insisted: taken.try_get("insisted")?,
        lacked,
        waited,
        resource,
    }))
}

/// A request that must be there.
pub(super) async fn existing(connection: &mut Connection, id: RequestId) -> StoreResult<StoredRequest> {
    lists::request(connection, id)
        .await?
        .ok_or_else(|| StoreError::Corrupt(format!("request {id} is missing")))
}

/// Brings a request to a state and writes that into its history.
pub(super) async fn set_state(
    connection: &mut Connection,
    request: &StoredRequest,
    state: RequestState,
    reason: Option<&str>,
    now: Moment,
) -> StoreResult<()> {
    let id = request.view.id;
    let done = sqlx::query(
        "UPDATE request SET state = $1, reason = $2, updated_at = $3, finished_at = $4 WHERE id = $5 AND attempt = $6",
    )
    .bind(state.as_str())
    .bind(reason.map(rows::text))
    .bind(now.millis())
    .bind(state.is_final().then_some(now.millis()))
    .bind(id.0)
    .bind(i64::from(request.view.attempt))
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    let entry = EventEntry::State { state, reason: reason.map(str::to_owned) };
    append(connection, id, request.view.attempt, &[entry], now).await?;
    if let Some(parent) = request.view.parent_id
        && (state.is_final() || state == RequestState::Unknown)
    {
        wake_parent(connection, parent, id, now).await?;
    }
    notifications::tell(connection, request, state, now).await
}

/// Tells the run of a parent that one of its steps goes no further by itself.
async fn wake_parent(
    connection: &mut Connection,
    parent: RequestId,
    step: RequestId,
    now: Moment,
) -> StoreResult<()> {
    let is_step: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM request WHERE id = $1 AND step IS NOT NULL)")
            .bind(step.0)
            .fetch_one(&mut *connection)
            .await?;
    if is_step { errands::wake(connection, parent, now).await } else { Ok(()) }
}

/// Writes entries at the end of a request's history.
pub(super) async fn append(
    connection: &mut Connection,
    request: RequestId,
    attempt: u32,
    entries: &[EventEntry],
    now: Moment,
) -> StoreResult<()> {
    let mut kept: Vec<&EventEntry> = entries.iter().collect();
    let is_log = |entry: &&EventEntry| matches!(entry, EventEntry::Log { .. });
    // Only log lines are bounded, so only before those one looks how long the history is.
    if kept.iter().any(is_log) {
        let last: i64 = sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM event WHERE request = $1")
            .bind(request.0)
            .fetch_one(&mut *connection)
            .await?;
        kept.retain(|entry| last < MOST_EVENTS || !is_log(entry));
    }
    if kept.is_empty() {
        return Ok(());
    }
    let array = serde_json::to_string(&kept).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    sqlx::query(AssertSqlSafe(format!(
        "WITH new AS ({ELEMENTS}),
              last AS (SELECT coalesce(max(seq), 0) AS seq FROM event WHERE request = $2)
         INSERT INTO event (request, seq, attempt, at, entry)
         SELECT $2, last.seq + 1 + place, $3, $4, element FROM new CROSS JOIN last",
    )))
    .bind(array)
    .bind(request.0)
    .bind(i64::from(attempt))
    .bind(now.millis())
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether a request's history holds this entry already.
pub(super) async fn is_told(
    connection: &mut Connection,
    request: RequestId,
    entry: &EventEntry,
) -> StoreResult<bool> {
    let entry = serde_json::to_string(entry).map_err(|error| corrupt(&error))?;
    let is = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM event WHERE request = $1 AND entry = $2)");
    Ok(is.bind(request.0).bind(entry).fetch_one(connection).await?)
}

/// Whether the hold still holds, and what the run is to do. A run that was given back is nobody's: a renewal that was
/// on its way would otherwise make it wait for a lease that nobody has.
pub(super) async fn check(connection: &mut Connection, hold: Hold) -> StoreResult<Held> {
    dialect::lock_request(connection, hold.request).await?;
    let intent: Option<String> = sqlx::query_scalar(
        "SELECT intent FROM run WHERE request = $1 AND attempt = $2 AND fence = $3 AND owner IS NOT NULL",
    )
    .bind(hold.request.0)
    .bind(i64::from(hold.attempt))
    .bind(hold.fence)
    .fetch_optional(connection)
    .await?;
    intent.map_or(Ok(Held::Lost), |word| rows::intent(&word).map(Held::Yes))
}

/// Prolongs the lease.
pub(super) async fn renew(
    connection: &mut Connection,
    hold: Hold,
    now: Moment,
    lease: Duration,
) -> StoreResult<Held> {
    let still = check(connection, hold).await?;
    if still != Held::Lost {
        let text = format!("UPDATE run SET due_at = {} + $2 WHERE request = $3", clock("$1"));
        let done = sqlx::query(AssertSqlSafe(text))
            .bind(now.millis())
            .bind(millis(lease))
            .bind(hold.request.0)
            .execute(connection)
            .await?;
        exactly_one(&done, "run")?;
    }
    Ok(still)
}

/// Writes into the history; with `touched`, also the recovery point that something outside may be changed from now.
pub(super) async fn note(
    connection: &mut Connection,
    hold: Hold,
    entries: &[EventEntry],
    touched: bool,
    now: Moment,
) -> StoreResult<Held> {
    let still = check(connection, hold).await?;
    if still == Held::Lost {
        return Ok(still);
    }
    if touched {
        let done = sqlx::query(
            "UPDATE run SET touched = $1, insisted = FALSE, lacks_since = NULL WHERE request = $2",
        )
        .bind(true)
        .bind(hold.request.0)
        .execute(&mut *connection)
        .await?;
        exactly_one(&done, "run")?;
    }
    append(connection, hold.request, hold.attempt, entries, now).await?;
    Ok(still)
}

/// Takes a recovery point back.
pub(super) async fn take_point_back(
    connection: &mut Connection,
    hold: Hold,
    (touched, insisted): (bool, bool),
) -> StoreResult<Held> {
    let still = check(connection, hold).await?;
    if still != Held::Lost {
        let done = sqlx::query("UPDATE run SET touched = $1, insisted = $2 WHERE request = $3")
            .bind(touched)
            .bind(insisted)
            .bind(hold.request.0)
            .execute(connection)
            .await?;
        exactly_one(&done, "run")?;
    }
    Ok(still)
}

/// Gives the run back to whoever knows its offering.
pub(super) async fn pass_on(
    connection: &mut Connection,
    hold: Hold,
    wait: Duration,
    entry: Option<&EventEntry>,
    now: Moment,
) -> StoreResult<Held> {
    let still = check(connection, hold).await?;
    if still != Held::Lost {
        let done = sqlx::query(AssertSqlSafe(format!(
            "UPDATE run SET owner = NULL, due_at = {now} + $2, lacks_since = coalesce(lacks_since, {now})
              WHERE request = $3",
            now = clock("$1"),
        )))
        .bind(now.millis())
        .bind(millis(wait))
        .bind(hold.request.0)
        .execute(&mut *connection)
        .await?;
        exactly_one(&done, "run")?;
        append(connection, hold.request, hold.attempt, entry.cloned().as_slice(), now).await?;
    }
    Ok(still)
}

/// Gives the run back.
pub(super) async fn give_back(
    connection: &mut Connection,
    (hold, meant): (Hold, Intent),
    wait: Duration,
    failed_try: bool,
    entry: Option<&EventEntry>,
    now: Moment,
) -> StoreResult<Held> {
    let still = check(connection, hold).await?;
    if let Held::Yes(intent) = still {
        // Somebody changed their mind meanwhile: that does not wait for a back-off.
        let wait = if intent == meant { wait } else { Duration::ZERO };
        let done = sqlx::query(AssertSqlSafe(format!(
            "UPDATE run SET owner = NULL, due_at = {} + CASE WHEN woken THEN 0 ELSE CAST($2 AS BIGINT) END, tries = tries + $3,
                            waits_since = NULL, lacks_since = NULL
              WHERE request = $4",
            clock("$1"),
        )))
        .bind(now.millis())
        .bind(millis(wait))
        .bind(i64::from(failed_try))
        .bind(hold.request.0)
        .execute(&mut *connection)
        .await?;
        exactly_one(&done, "run")?;
        append(connection, hold.request, hold.attempt, entry.cloned().as_slice(), now).await?;
    }
    Ok(still)
}

/// Ends the run, the request's attempt and, where nothing is left of it, the resource's life.
pub(super) async fn end(
    connection: &mut Connection,
    hold: Hold,
    ending: &Ending,
    now: Moment,
) -> StoreResult<Held> {
    let request = existing(connection, hold.request).await?;
    let kind = Kind::of(&request.view.action);
    // A retry gives a request another life, but then this hold does not hold any more.
    lives::lock(connection, request.resource).await?;
    let still = check(connection, hold).await?;
    if still == Held::Lost {
        return Ok(still);
    }
    let canceled = still == Held::Yes(Intent::Cancel);
    let life = lives::locked(connection, request.resource).await?;
    // A create is hardly ever followed by changes before it is done.
    let has_changes = life.view.version > 1;
    // What is done at the moment of its resource's deletion is done; the teardown takes it with all the rest.
    let deleted = kind != Kind::Delete && life.view.state == lives::DELETING;
    let can_be_undone = matches!(kind, Kind::Create | Kind::Update) && !deleted;
    if canceled && can_be_undone && (ending.state == RequestState::Succeeded || ending.leaves) {
        // Somebody was told that it is being stopped, just before its end. Its next hold undoes what was done of it.
        return release(connection, hold, now).await.map(|()| still);
    }
    if ending.state != RequestState::Succeeded && is_woken(connection, hold.request).await? {
        // There was news since it was taken, as that what it gave up is done after all. Its next hold knows of them.
        return release(connection, hold, now).await.map(|()| still);
    }
    let (state, reason) = match ending.state {
        // The teardown answers whatever question is left.
        RequestState::Failed | RequestState::Canceled | RequestState::Unknown if deleted => {
            (RequestState::Canceled, Some(lives::LOST))
        }
        RequestState::Failed if canceled => (RequestState::Canceled, ending.reason.as_deref()),
        // Somebody was told that it is being stopped.
        RequestState::Succeeded if canceled => (RequestState::Succeeded, Some(DONE_BEFORE)),
        state => (state, ending.reason.as_deref()),
    };
    remove(connection, hold.request).await?;
    set_state(connection, &request, state, reason, now).await?;
    match state {
        RequestState::Succeeded => {
            succeed(connection, &request, ending, now).await?;
            if has_changes {
                lives::wake_next(connection, request.resource, now).await?;
            }
        }
        RequestState::Failed | RequestState::Canceled => {
            lives::came_to_nothing(connection, &request, now).await?;
        }
        // Nobody can tell whether it is there: its name stays held, and what comes after it waits.
        _ => {}
    }
    Ok(still)
}

/// Makes a run nobody's, and due at once.
async fn release(connection: &mut Connection, hold: Hold, now: Moment) -> StoreResult<()> {
    let text = format!("UPDATE run SET owner = NULL, due_at = {} WHERE request = $2", clock("$1"));
    let done =
        sqlx::query(AssertSqlSafe(text)).bind(now.millis()).bind(hold.request.0).execute(connection).await?;
    exactly_one(&done, "run")
}

async fn is_woken(connection: &mut Connection, request: RequestId) -> StoreResult<bool> {
    let woken = sqlx::query_scalar("SELECT woken FROM run WHERE request = $1").bind(request.0);
    Ok(woken.fetch_one(connection).await?)
}

/// Takes a run off the queue.
pub(super) async fn remove(connection: &mut Connection, request: RequestId) -> StoreResult<()> {
    let done = sqlx::query("DELETE FROM run WHERE request = $1").bind(request.0).execute(connection).await?;
    exactly_one(&done, "run")
}

/// Names of outputs, as they are kept.
pub(super) fn names(names: &[String]) -> StoreResult<String> {
    serde_json::to_string(names).map_err(|error| StoreError::Corrupt(error.to_string()))
}

async fn succeed(
    connection: &mut Connection,
    request: &StoredRequest,
    ending: &Ending,
    now: Moment,
) -> StoreResult<()> {
    let outputs = canonical(&ending.outputs);
    let names = names(&ending.secret_names)?;
    let done = sqlx::query("UPDATE request SET outputs = $1, secret_names = $2 WHERE id = $3")
        .bind(&outputs)
        .bind(&names)
        .bind(request.view.id.0)
        .execute(&mut *connection)
        .await?;
    exactly_one(&done, "request")?;
    scrub(connection, request.view.id, &ending.scrubbed).await?;
    if Kind::of(&request.view.action) != Kind::Create {
        return lives::succeed(connection, request, ending, now).await;
    }
    let (at, after, warn) = lives::end_of(ending);
    // One that is being deleted meanwhile is not brought back.
    let done = sqlx::query(AssertSqlSafe(format!(
        "UPDATE resource SET state = CASE WHEN state = 'creating' THEN 'active' ELSE state END, outputs = $1,
                             secret_names = $2, secrets = $3, updated_at = $4, applied = $5, lasts_from = {now},
                             expires_at = coalesce(CAST($7 AS BIGINT), {now} + $8),
                             warn_at = coalesce(CAST($7 AS BIGINT), {now} + $8) - $9
          WHERE id = $6 AND ended_at IS NULL",
        now = clock("$4"),
    )))
    .bind(&outputs)
    .bind(&names)
    .bind(ending.secrets.as_deref())
    .bind(now.millis())
    .bind(canonical(&request.view.parameters))
    .bind(request.resource.0)
    .bind(at)
    .bind(after)
    .bind(warn)
    .execute(connection)
    .await?;
    exactly_one(&done, "resource")
}

fn corrupt(error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

/// What the database's clock shows.
pub(super) async fn time(connection: &mut Connection) -> StoreResult<Moment> {
    Ok(Moment::from_millis(sqlx::query_scalar(TIME).fetch_one(connection).await?))
}

/// Takes secrets out of what was told of a request before they were known as such.
async fn scrub(connection: &mut Connection, request: RequestId, secrets: &[String]) -> StoreResult<()> {
    let mut holding = BTreeMap::new();
    for secret in secrets {
        // As it stands within the JSON of an entry. Most secrets were never written, so often no row is met.
        let quoted = serde_json::to_string(secret).map_err(|error| corrupt(&error))?;
        let found: Vec<(i64, String)> = sqlx::query_as(
            "SELECT seq, entry FROM event WHERE request = $1 AND entry <> replace(entry, $2, '')",
        )
        .bind(request.0)
        .bind(quoted.trim_matches('"'))
        .fetch_all(&mut *connection)
        .await?;
        holding.extend(found);
    }
    for (seq, entry) in holding {
        // Not in the text itself, whose own words may be part of a secret.
        let mut entry: EventEntry = serde_json::from_str(&entry).map_err(|error| corrupt(&error))?;
        veil_entry(&mut entry, secrets);
        let done = sqlx::query("UPDATE event SET entry = $1 WHERE request = $2 AND seq = $3")
            .bind(serde_json::to_string(&entry).map_err(|error| corrupt(&error))?)
            .bind(request.0)
            .bind(seq)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "event")?;
    }
    Ok(())
}

/// Ends a resource's life; its name is free again.
pub(super) async fn end_life(connection: &mut Connection, resource: Uuid, now: Moment) -> StoreResult<()> {
    let done = sqlx::query(
        "UPDATE resource SET state = 'gone', secrets = NULL, ended_at = $1, updated_at = $1
          WHERE id = $2 AND ended_at IS NULL",
    )
    .bind(now.millis())
    .bind(resource)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "resource")?;
    hidden::forget(connection, resource).await
}
