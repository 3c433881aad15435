//! Notifications: the outbox, who takes what of it, and what became of it.
//!
//! Of locks a delivery comes before what it goes to. Taking waits for neither, so it stands outside of that order.

mod decide;
mod ends;

pub(super) use decide::decide;

use super::{
    dialect::{Connection, Database, DbRow, Done, FOR_UPDATE, SKIP_LOCKED, clock},
    exactly_one,
    lists::paged,
    rows::{array, canonical, json, millis, moment, moment_if_any, number, parsed},
    seals::{self, NOTIFICATIONS},
    search::COUNTED,
    write_audit,
};
use crate::store::{
    AuditEntry, StoreResult, StoredRequest,
    notifications::{AfterTry, MOST_ATTEMPTS, MOST_GIVEN_UP, Notifications, TakenDelivery, of_resource},
};
use async_trait::async_trait;
use domain::{
    id::{NotificationDeliveryId, NotificationId, RequestId},
    notification::{
        NotificationAttemptView, NotificationDeliveryState, NotificationDeliveryView, NotificationEvent,
        NotificationView, WHOLE_PORTAL,
    },
    state::RequestState,
    time::Moment,
    view::{Object, Page},
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Row};
use std::time::Duration;
use uuid::Uuid;

const NOTIFICATION: &str = "id, team, label, url, events, secrets, old_until, created_by, created_at, updated_at, \
     disabled_at, disabled_reason";
const DELIVERY: &str = "id, event, request, data, state, due_at, tries, attempts, created_at";

fn notification(row: &DbRow) -> StoreResult<(NotificationView, Vec<u8>)> {
    let view = NotificationView {
        id: NotificationId(row.try_get("id")?),
        team: row.try_get("team")?,
        label: row.try_get("label")?,
        url: row.try_get("url")?,
        events: json(row, "events")?,
        created_by: row.try_get("created_by")?,
        created_at: moment(row, "created_at")?,
        updated_at: moment(row, "updated_at")?,
        disabled_at: moment_if_any(row, "disabled_at")?,
        disabled_reason: row.try_get("disabled_reason")?,
        old_secret_until: moment_if_any(row, "old_until")?,
        secret: None,
        note: None,
    };
    Ok((view, row.try_get("secrets")?))
}

fn delivery(row: &DbRow) -> StoreResult<NotificationDeliveryView> {
    let state: NotificationDeliveryState = parsed(row, "state")?;
    let due = moment(row, "due_at")?;
    let request_id = row.try_get::<Option<Uuid>, _>("request")?.map(RequestId);
    let resource = if request_id.is_none() { of_resource(&json(row, "data")?) } else { None };
    Ok(NotificationDeliveryView {
        id: NotificationDeliveryId(row.try_get("id")?),
        event: parsed(row, "event")?,
        request_id,
        resource,
        state,
        created_at: moment(row, "created_at")?,
        next_at: (state == NotificationDeliveryState::Waiting).then_some(due),
        tries: number(row, "tries")?,
        attempts: json(row, "attempts")?,
    })
}

/// Where a request's state is told: as part of the transaction that brings the request to it.
pub(super) async fn tell(
    connection: &mut Connection,
    request: &StoredRequest,
    state: RequestState,
    now: Moment,
) -> StoreResult<()> {
    let Some(event) = NotificationEvent::of_state(state) else { return Ok(()) };
    let view = &request.view;
    let told = who_wants(connection, view.team.as_str(), event).await?;
    if told.is_empty() {
        return Ok(());
    }
    // The place in its history tells this coming to the state from an earlier one.
    let place: i64 = sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM event WHERE request = $1")
        .bind(view.id.0)
        .fetch_one(&mut *connection)
        .await?;
    let data = object(json!({ "request": {
        "id": view.id,
        "team": view.team,
        "action": view.action,
        "offering": view.offering,
        "resource_type": view.resource_type,
        "name": view.name,
        "state": state,
        "attempt": view.attempt,
        "correlation_id": view.correlation_id,
        "parent_id": view.parent_id,
        "requested_by": view.requested_by,
        "created_at": view.created_at,
        "finished_at": state.is_final().then_some(now),
    }}));
    for to in told {
        let id = delivery_id(to, &[view.id.0.as_bytes(), &place.to_le_bytes()]);
        let done = insert(connection, id, to, event, Some(view.id), &data, now).await?;
        exactly_one(&done, "notification_delivery")?;
    }
    Ok(())
}

/// Who is to be told of this event of a team's.
async fn who_wants(
    connection: &mut Connection,
    team: &str,
    event: NotificationEvent,
) -> StoreResult<Vec<NotificationId>> {
    let rows = sqlx::query(
        "SELECT id, events FROM notification
          WHERE team IN ($1, $2) AND removed_at IS NULL AND disabled_at IS NULL",
    )
    .bind(team)
    .bind(WHOLE_PORTAL)
    .fetch_all(connection)
    .await?;
    let mut told = Vec::new();
    for row in &rows {
        let wanted: Vec<NotificationEvent> = json(row, "events")?;
        if wanted.contains(&event) {
            told.push(NotificationId(row.try_get("id")?));
        }
    }
    Ok(told)
}

fn object(value: serde_json::Value) -> Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// The same event has the same ID for the same receiver (RFC 9562, 5.8).
fn delivery_id(to: NotificationId, event: &[&[u8]]) -> NotificationDeliveryId {
    let mut hash = blake3::Hasher::new();
    hash.update(to.0.as_bytes());
    for part in event {
        hash.update(part);
    }
    let mut bytes = [0; 16];
    hash.finalize_xof().fill(&mut bytes);
    NotificationDeliveryId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// Puts a delivery into the outbox. None is met where the same is in it already.
async fn insert(
    connection: &mut Connection,
    id: NotificationDeliveryId,
    to: NotificationId,
    event: NotificationEvent,
    request: Option<RequestId>,
    data: &Object,
    now: Moment,
) -> StoreResult<Done> {
    let done = sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO notification_delivery (id, notification, event, request, data, since, due_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, {}, $6) ON CONFLICT (id) DO NOTHING",
        clock("$6"),
    )))
    .bind(id.0)
    .bind(to.0)
    .bind(event.as_str())
    .bind(request.map(|id| id.0))
    .bind(canonical(data))
    .bind(now.millis())
    .execute(connection)
    .await?;
    Ok(done)
}

#[async_trait]
impl Notifications for Database {
    async fn notifications(&self, team: &str) -> StoreResult<Vec<NotificationView>> {
        self.read(team, |team, connection| Box::pin(all(connection, team))).await
    }

    async fn notification(
        &self,
        team: &str,
        id: NotificationId,
    ) -> StoreResult<Option<(NotificationView, Vec<u8>)>> {
        self.read((team, id), |(team, id), connection| Box::pin(one(connection, team, *id, ""))).await
    }

    async fn notification_deliveries(
        &self,
        id: NotificationId,
        after: Option<(Moment, Uuid)>,
        size: u32,
    ) -> StoreResult<Page<NotificationDeliveryView>> {
        self.snapshot((id, after, size), |(id, after, size), connection| {
            Box::pin(deliveries(connection, *id, *after, *size))
        })
        .await
    }

    async fn take_delivery(
        &self,
        owner: &str,
        now: Moment,
        lease: Duration,
    ) -> StoreResult<Option<TakenDelivery>> {
        // Most looks find nothing; those should not cost a commit.
        if !self.read(now, |now, connection| Box::pin(any_due(connection, *now))).await? {
            return Ok(None);
        }
        self.write((owner.to_owned(), now, lease), |(owner, now, lease), connection| {
            Box::pin(take(connection, owner, *now, *lease))
        })
        .await
    }

    async fn delivery_tried(
        &self,
        delivery: NotificationDeliveryId,
        fence: i64,
        attempt: NotificationAttemptView,
        after: AfterTry,
        now: Moment,
    ) -> StoreResult<bool> {
        self.write(((delivery, fence), attempt, after, now), |(hold, attempt, after, now), connection| {
            Box::pin(tried(connection, *hold, attempt, after, *now))
        })
        .await
    }

    async fn tell_of_ends(&self, now: Moment, limit: u32) -> StoreResult<u64> {
        // Most looks find nothing; those should not cost a commit.
        if !self.read(now, |now, connection| Box::pin(ends::any_near(connection, *now))).await? {
            return Ok(0);
        }
        self.write((now, limit), |(now, limit), connection| Box::pin(ends::tell(connection, *now, *limit)))
            .await
    }

    async fn sweep_deliveries(&self, before: Moment, limit: u32) -> StoreResult<u64> {
        self.write((before, limit), |(before, limit), connection| {
            Box::pin(sweep(connection, *before, *limit))
        })
        .await
    }

    async fn notifications_sealed_otherwise(
        &self,
        head: &[u8],
        limit: u32,
    ) -> StoreResult<Vec<(NotificationId, Vec<u8>)>> {
        let found = self
            .read((head, limit), |(head, limit), connection| {
                Box::pin(seals::sealed_otherwise(connection, NOTIFICATIONS, head, *limit))
            })
            .await?;
        Ok(found.into_iter().map(|(id, sealed)| (NotificationId(id), sealed)).collect())
    }

    async fn reseal_notification(
        &self,
        id: NotificationId,
        before: Vec<u8>,
        after: Vec<u8>,
    ) -> StoreResult<bool> {
        self.write((id, before, after), |(id, before, after), connection| {
            Box::pin(seals::reseal(connection, NOTIFICATIONS, id.0, before, after))
        })
        .await
    }
}

/// A team's, newest first.
pub(super) async fn all(connection: &mut Connection, team: &str) -> StoreResult<Vec<NotificationView>> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {NOTIFICATION} FROM notification WHERE team = $1 AND removed_at IS NULL
          ORDER BY created_at DESC, id DESC LIMIT 1000",
    )))
    .bind(team)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| notification(row).map(|(view, _)| view)).collect()
}

/// One of a team's; `end` is what stands at the end of the look.
pub(super) async fn one(
    connection: &mut Connection,
    team: &str,
    id: NotificationId,
    end: &str,
) -> StoreResult<Option<(NotificationView, Vec<u8>)>> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "SELECT {NOTIFICATION} FROM notification WHERE id = $1 AND team = $2 AND removed_at IS NULL{end}",
    )))
    .bind(id.0)
    .bind(team)
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(notification).transpose()
}

/// A page of deliveries, newest first.
pub(super) async fn deliveries(
    connection: &mut Connection,
    id: NotificationId,
    after: Option<(Moment, Uuid)>,
    size: u32,
) -> StoreResult<Page<NotificationDeliveryView>> {
    let total: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM notification_delivery WHERE notification = $1 LIMIT $2) AS found",
    )
    .bind(id.0)
    .bind(COUNTED + 1)
    .fetch_one(&mut *connection)
    .await?;
    let (at, last) = after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.millis(), id));
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {DELIVERY} FROM notification_delivery WHERE notification = $1 AND (created_at, id) < ($2, $3)
          ORDER BY created_at DESC, id DESC LIMIT $4",
    )))
    .bind(id.0)
    .bind(at)
    .bind(last)
    .bind(i64::from(size) + 1)
    .fetch_all(connection)
    .await?;
    let results = rows.iter().map(delivery).collect::<StoreResult<Vec<_>>>()?;
    Ok(paged(results, size, total, |last| (last.created_at, last.id.0)))
}

/// Whether there is a delivery to take.
pub(super) async fn any_due(connection: &mut Connection, now: Moment) -> StoreResult<bool> {
    let text = format!(
        "SELECT EXISTS (SELECT 1 FROM notification_delivery one JOIN notification ON notification.id = one.notification
                         WHERE one.state = 'waiting' AND one.due_at <= {}
                           AND notification.disabled_at IS NULL AND notification.removed_at IS NULL)",
        clock("$1"),
    );
    Ok(sqlx::query_scalar(AssertSqlSafe(text)).bind(now.millis()).fetch_one(connection).await?)
}

/// Takes the delivery that has been due longest, of those to an address that nothing is on its way to.
pub(super) async fn take(
    connection: &mut Connection,
    owner: &str,
    now: Moment,
    lease: Duration,
) -> StoreResult<Option<TakenDelivery>> {
    let now_here = clock("$2");
    let taken: Option<Uuid> = sqlx::query_scalar(AssertSqlSafe(format!(
        "UPDATE notification_delivery SET owner = $1, fence = fence + 1, due_at = {now_here} + $3
          WHERE id = (
              SELECT one.id FROM notification_delivery one JOIN notification ON notification.id = one.notification
               WHERE one.state = 'waiting' AND one.due_at <= {now_here}
                 AND notification.disabled_at IS NULL AND notification.removed_at IS NULL
                 AND NOT EXISTS (SELECT 1 FROM notification_delivery other
                                  WHERE other.notification = one.notification AND other.owner IS NOT NULL
                                    AND other.due_at > {now_here})
               ORDER BY one.due_at LIMIT 1{SKIP_LOCKED})
      RETURNING id",
    )))
    .bind(owner)
    .bind(now.millis())
    .bind(millis(lease))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(id) = taken else { return Ok(None) };
    let row = sqlx::query(
        "SELECT one.id, fence, notification, url, secrets, old_until, event, request, data, one.created_at, since, tries
           FROM notification_delivery one JOIN notification ON notification.id = one.notification WHERE one.id = $1",
    )
    .bind(id)
    .fetch_one(connection)
    .await?;
    Ok(Some(TakenDelivery {
        id: NotificationDeliveryId(id),
        fence: row.try_get("fence")?,
        notification: NotificationId(row.try_get("notification")?),
        url: row.try_get("url")?,
        secrets: row.try_get("secrets")?,
        old_until: moment_if_any(&row, "old_until")?,
        event: parsed(&row, "event")?,
        request: row.try_get::<Option<Uuid>, _>("request")?.map(RequestId),
        data: json(&row, "data")?,
        created_at: moment(&row, "created_at")?,
        since: moment(&row, "since")?,
        tries: number(&row, "tries")?,
    }))
}

/// Writes down what a try came to, if the hold still holds.
pub(super) async fn tried(
    connection: &mut Connection,
    (id, fence): (NotificationDeliveryId, i64),
    attempt: &NotificationAttemptView,
    after: &AfterTry,
    now: Moment,
) -> StoreResult<bool> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "SELECT notification, attempts FROM notification_delivery
          WHERE id = $1 AND fence = $2 AND owner IS NOT NULL{FOR_UPDATE}",
    )))
    .bind(id.0)
    .bind(fence)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(false) };
    let to = NotificationId(row.try_get("notification")?);
    let mut attempts: Vec<NotificationAttemptView> = json(&row, "attempts")?;
    attempts.push(attempt.clone());
    let over = attempts.len().saturating_sub(MOST_ATTEMPTS);
    attempts.drain(..over);
    let (state, wait) = match after {
        AfterTry::Delivered => (NotificationDeliveryState::Delivered, Duration::ZERO),
        AfterTry::Again(wait) => (NotificationDeliveryState::Waiting, *wait),
        AfterTry::GiveUp | AfterTry::Disable(_) => (NotificationDeliveryState::GivenUp, Duration::ZERO),
    };
    let done = sqlx::query(AssertSqlSafe(format!(
        "UPDATE notification_delivery SET state = $1, owner = NULL, due_at = {} + $3, tries = tries + 1, attempts = $4
          WHERE id = $5",
        clock("$2"),
    )))
    .bind(state.as_str())
    .bind(now.millis())
    .bind(millis(wait))
    .bind(array(&attempts)?)
    .bind(id.0)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "notification_delivery")?;
    match after {
        AfterTry::Again(_) => {}
        AfterTry::Delivered => {
            // Most often none was given up before it.
            sqlx::query("UPDATE notification SET given_up = 0 WHERE id = $1 AND given_up <> 0")
                .bind(to.0)
                .execute(connection)
                .await?;
        }
        AfterTry::GiveUp => {
            let given_up: Option<i64> = sqlx::query_scalar(
                "UPDATE notification SET given_up = given_up + 1 WHERE id = $1 RETURNING given_up",
            )
            .bind(to.0)
            .fetch_optional(&mut *connection)
            .await?;
            if given_up.is_some_and(|given_up| given_up >= i64::from(MOST_GIVEN_UP)) {
                disable(connection, to, "several notifications in a row did not arrive", now).await?;
            }
        }
        AfterTry::Disable(reason) => disable(connection, to, reason, now).await?,
    }
    Ok(true)
}

/// Sends nothing there any more, until a person says otherwise.
async fn disable(
    connection: &mut Connection,
    id: NotificationId,
    reason: &str,
    now: Moment,
) -> StoreResult<()> {
    let team: Option<String> = sqlx::query_scalar(
        "UPDATE notification SET disabled_at = $1, disabled_reason = $2 WHERE id = $3 AND disabled_at IS NULL
      RETURNING team",
    )
    .bind(now.millis())
    .bind(reason)
    .bind(id.0)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(team) = team else { return Ok(()) };
    let entry = AuditEntry {
        at: now,
        actor: "portal".into(),
        channel: "worker",
        act: "notification_disable",
        team,
        target: id.to_string(),
        detail: reason.to_owned(),
    };
    write_audit(connection, &entry).await
}

/// What is over: deliveries that are old, and what was removed with all that was on its way there.
pub(super) async fn sweep(connection: &mut Connection, before: Moment, limit: u32) -> StoreResult<u64> {
    let old = sqlx::query(AssertSqlSafe(format!(
        "DELETE FROM notification_delivery WHERE id IN (
             SELECT id FROM notification_delivery WHERE since <= $1 ORDER BY since LIMIT $2{SKIP_LOCKED})",
    )))
    .bind(before.millis())
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    let removed: Option<Uuid> = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT id FROM notification WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT 1{SKIP_LOCKED}",
    )))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(removed) = removed else { return Ok(old) };
    let gone = sqlx::query(AssertSqlSafe(format!(
        "DELETE FROM notification_delivery WHERE id IN (
             SELECT id FROM notification_delivery WHERE notification = $1 LIMIT $2{SKIP_LOCKED})",
    )))
    .bind(removed)
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if gone == 0 {
        // What another server holds right now is met at the next turn.
        sqlx::query(
            "DELETE FROM notification WHERE id = $1
                AND NOT EXISTS (SELECT 1 FROM notification_delivery WHERE notification = $1)",
        )
        .bind(removed)
        .execute(connection)
        .await?;
    }
    Ok(old.max(gone))
}
