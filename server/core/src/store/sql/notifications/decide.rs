//! Changes that people make to notifications, each within the transaction that claims its key.

use super::{
    super::{
        decide::{Decided, gone_before},
        dialect::{self, Connection, FOR_UPDATE, clock},
        exactly_one,
        rows::{array, text},
        seals::{self, NOTIFICATIONS},
    },
    DELIVERY, all, delivery, insert, one,
};
use crate::{
    answer::{Answer, AnswerKind},
    store::{
        StoreError, StoreResult, Submitted,
        notifications::{MOST_NOTIFICATIONS, NotificationChange, NotificationEffect},
    },
};
use domain::{
    id::{NotificationDeliveryId, NotificationId},
    notification::{NotificationEvent, NotificationView},
    time::Moment,
    view::RemovedView,
};
use sqlx::AssertSqlSafe;

fn done(answer: Answer, act: &'static str, id: NotificationId) -> Decided {
    Decided::Done { answer, request: None, existing: false, act, target: id.to_string() }
}

fn showing(kind: AnswerKind, view: &NotificationView) -> StoreResult<Answer> {
    Answer::showing(kind, Some(view.managed_at()), view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Carries out a change by a person, within the transaction that claims its key.
pub(in crate::store) async fn decide(
    connection: &mut Connection,
    (team, by): (&str, &str),
    effect: &NotificationEffect,
    now: Moment,
) -> StoreResult<Decided> {
    let id = effect.id();
    if let NotificationEffect::Create { view, secrets, answer } = effect {
        // Of two at the same moment the second counts the first.
        dialect::lock(connection, &[b"notification", team.as_bytes()]).await?;
        if all(connection, team).await?.len() >= MOST_NOTIFICATIONS as usize {
            return Ok(Decided::Not(Submitted::TooLate(
                "The team has 20 notifications already; remove or change one of them.",
            )));
        }
        create(connection, view, secrets).await?;
        return Ok(done(answer.clone(), "notification_create", id));
    }
    let Some((view, _)) = one(connection, team, id, FOR_UPDATE).await? else {
        return match (effect, removed_at(connection, team, id).await?) {
            (NotificationEffect::Remove(_), Some(removed_at)) => {
                let removed = RemovedView { id: id.to_string(), removed_at };
                gone_before(&removed, "notification_remove", id.to_string())
            }
            _ => Ok(Decided::Not(Submitted::Missing)),
        };
    };
    let off = "Nothing is sent to this address now; switch it on first.";
    match effect {
        NotificationEffect::Create { .. } => Err(StoreError::Corrupt("made twice".into())),
        NotificationEffect::Change { change, .. } => {
            let view = changed(connection, view, change, by, now).await?;
            Ok(done(showing(AnswerKind::Done, &view)?, "notification_change", id))
        }
        NotificationEffect::Rotate { before, after, old_until, .. } => {
            if !seals::reseal(connection, NOTIFICATIONS, id.0, before, after).await? {
                return Ok(Decided::Not(Submitted::TooLate(
                    "The secret was changed at the same moment; look at it again.",
                )));
            }
            let done_now =
                sqlx::query("UPDATE notification SET old_until = $1, updated_at = $2 WHERE id = $3")
                    .bind(old_until.millis())
                    .bind(now.millis())
                    .bind(id.0)
                    .execute(connection)
                    .await?;
            exactly_one(&done_now, "notification")?;
            let view = NotificationView {
                old_secret_until: Some(*old_until),
                updated_at: now,
                note: Some(crate::service::SECRET_SHOWN_ONCE.into()),
                ..view
            };
            Ok(done(showing(AnswerKind::Done, &view)?, "notification_rotate", id))
        }
        NotificationEffect::Remove(_) => {
            let removed = sqlx::query("UPDATE notification SET removed_at = $1 WHERE id = $2")
                .bind(now.millis())
                .bind(id.0)
                .execute(&mut *connection)
                .await?;
            exactly_one(&removed, "notification")?;
            // The row goes with its secrets once nothing is on its way there; that it was removed stays known.
            let known =
                sqlx::query("INSERT INTO removed_notification (id, team, removed_at) VALUES ($1, $2, $3)")
                    .bind(id.0)
                    .bind(team)
                    .bind(now.millis())
                    .execute(connection)
                    .await?;
            exactly_one(&known, "removed_notification")?;
            Ok(done(Answer::empty(), "notification_remove", id))
        }
        NotificationEffect::Ping { .. } | NotificationEffect::Resend { .. } if view.disabled_at.is_some() => {
            Ok(Decided::Not(Submitted::TooLate(off)))
        }
        NotificationEffect::Ping { delivery, data, .. } => {
            let put = insert(connection, *delivery, id, NotificationEvent::Ping, None, data, now).await?;
            exactly_one(&put, "notification_delivery")?;
            sent(connection, &view, *delivery, "notification_ping").await
        }
        NotificationEffect::Resend { delivery, .. } => {
            // One that is being sent at this moment is as good as sent again.
            let met = sqlx::query(AssertSqlSafe(format!(
                "UPDATE notification_delivery
                    SET state = 'waiting', since = $1, due_at = CASE WHEN owner IS NULL THEN {} ELSE due_at END
                  WHERE id = $2 AND notification = $3",
                clock("$1"),
            )))
            .bind(now.millis())
            .bind(delivery.0)
            .bind(id.0)
            .execute(&mut *connection)
            .await?;
            if met.rows_affected() == 0 {
                return Ok(Decided::Not(Submitted::Missing));
            }
            sent(connection, &view, *delivery, "notification_resend").await
        }
    }
}

/// When one of a team's was removed.
async fn removed_at(
    connection: &mut Connection,
    team: &str,
    id: NotificationId,
) -> StoreResult<Option<Moment>> {
    let removed: Option<i64> =
        sqlx::query_scalar("SELECT removed_at FROM removed_notification WHERE id = $1 AND team = $2")
            .bind(id.0)
            .bind(team)
            .fetch_optional(connection)
            .await?;
    Ok(removed.map(Moment::from_millis))
}

async fn create(connection: &mut Connection, view: &NotificationView, secrets: &[u8]) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO notification (id, team, label, url, events, secrets, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(view.id.0)
    .bind(&view.team)
    .bind(text(&view.label))
    .bind(text(&view.url))
    .bind(array(&view.events)?)
    .bind(secrets)
    .bind(&view.created_by)
    .bind(view.created_at.millis())
    .execute(connection)
    .await?;
    exactly_one(&done, "notification")
}

async fn changed(
    connection: &mut Connection,
    mut view: NotificationView,
    change: &NotificationChange,
    by: &str,
    now: Moment,
) -> StoreResult<NotificationView> {
    let NotificationChange { label, url, events, enabled } = change.clone();
    view.label = label.unwrap_or(view.label);
    view.url = url.unwrap_or(view.url);
    view.events = events.unwrap_or(view.events);
    view.updated_at = now;
    match enabled {
        Some(true) => (view.disabled_at, view.disabled_reason) = (None, None),
        Some(false) if view.disabled_at.is_none() => {
            (view.disabled_at, view.disabled_reason) = (Some(now), Some(format!("switched off by {by}")));
        }
        _ => {}
    }
    let done = sqlx::query(
        "UPDATE notification SET label = $1, url = $2, events = $3, updated_at = $4, disabled_at = $5,
                                 disabled_reason = $6, given_up = CASE WHEN $7 THEN 0 ELSE given_up END
          WHERE id = $8",
    )
    .bind(text(&view.label))
    .bind(text(&view.url))
    .bind(array(&view.events)?)
    .bind(now.millis())
    .bind(view.disabled_at.map(Moment::millis))
    .bind(view.disabled_reason.as_deref().map(text))
    .bind(enabled == Some(true))
    .bind(view.id.0)
    .execute(connection)
    .await?;
    exactly_one(&done, "notification")?;
    Ok(view)
}

/// The answer that shows a delivery which is to be sent.
async fn sent(
    connection: &mut Connection,
    view: &NotificationView,
    id: NotificationDeliveryId,
    act: &'static str,
) -> StoreResult<Decided> {
    let look = format!("SELECT {DELIVERY} FROM notification_delivery WHERE id = $1");
    let row = sqlx::query(AssertSqlSafe(look)).bind(id.0).fetch_one(connection).await?;
    let location = format!("{}/deliveries", view.managed_at());
    let answer = Answer::showing(AnswerKind::Accepted, Some(location), &delivery(&row)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(done(answer, act, view.id))
}
