//! Hooks: definitions and secrets.

use super::{
    decide::{Decided, gone_before},
    deliveries,
    dialect::{self, Connection, Database, DbRow, FOR_UPDATE, SKIP_LOCKED},
    exactly_one, lists,
    rows::{json, moment, moment_if_any, name},
    seals::{self, DELIVERIES, HOOK_SECRETS},
};
use crate::{
    Error,
    answer::{Answer, AnswerKind},
    store::{
        Delivery, HookEffect, HookSeal, Hooks, MOST_HOOKS, SealedSecret, StoreError, StoreResult, StoredHook,
        Submission, Submitted,
    },
};
use async_trait::async_trait;
use domain::{
    hook::{DeliveryView, HookDefinition, HookView},
    id::{DeliveryId, HookId},
    name::Name,
    problem::ProblemKind,
    time::Moment,
    view::{Page, RemovedView},
};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

const HOOK: &str = "id, team, definition, version, created_by, created_at, updated_at, removed_at";

#[async_trait]
impl Hooks for Database {
    async fn hook(&self, id: HookId) -> StoreResult<Option<StoredHook>> {
        self.snapshot(id, |id, connection| Box::pin(hook(connection, *id, ""))).await
    }

    async fn hooks(
        &self,
        team: &Name,
        after: Option<(Moment, Uuid)>,
        size: u32,
        now: Moment,
    ) -> StoreResult<Page<HookView>> {
        self.snapshot((team, after, size, now), |(team, after, size, now), connection| {
            Box::pin(hooks(connection, team, *after, *size, *now))
        })
        .await
    }

    async fn record_deliveries(&self, deliveries: Vec<Delivery>) -> StoreResult<()> {
        self.write(deliveries, |given, connection| Box::pin(deliveries::record(connection, given))).await
    }

    async fn deliveries(
        &self,
        hook: HookId,
        after: Option<(Moment, Uuid)>,
        size: u32,
    ) -> StoreResult<Page<DeliveryView>> {
        self.snapshot((hook, after, size), |(hook, after, size), connection| {
            Box::pin(deliveries::page(connection, *hook, *after, *size))
        })
        .await
    }

    async fn delivery(&self, hook: HookId, id: DeliveryId) -> StoreResult<Option<(DeliveryView, Vec<u8>)>> {
        self.read((hook, id), |(hook, id), connection| Box::pin(deliveries::one(connection, *hook, *id)))
            .await
    }

    async fn sweep_hooks(&self, now: Moment, before: Moment, limit: u32) -> StoreResult<u64> {
        let old = self
            .write((before, limit), |(before, limit), connection| {
                Box::pin(deliveries::sweep(connection, *before, *limit))
            })
            .await?;
        let ended = self
            .write((now, limit), |(now, limit), connection| Box::pin(sweep_secrets(connection, *now, *limit)))
            .await?;
        Ok(old.max(ended))
    }

    async fn hooks_sealed_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(HookSeal, Vec<u8>)>> {
        self.read((head, limit), |(head, limit), connection| {
            Box::pin(sealed_otherwise(connection, head, *limit))
        })
        .await
    }

    async fn reseal_hook(&self, seal: HookSeal, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool> {
        let (column, id) = match seal {
            HookSeal::Secret(id) => (HOOK_SECRETS, id),
            HookSeal::Delivery(id) => (DELIVERIES, id.0),
        };
        self.write((column, id, before, after), |(column, id, before, after), connection| {
            Box::pin(seals::reseal(connection, *column, *id, before, after))
        })
        .await
    }
}

fn view(row: &DbRow) -> StoreResult<HookView> {
    let id = HookId(row.try_get("id")?);
    Ok(HookView {
        id,
        team: name(row, "team")?,
        address: HookView::address_of(id),
        definition: json(row, "definition")?,
        version: row.try_get("version")?,
        created_by: row.try_get("created_by")?,
        created_at: moment(row, "created_at")?,
        updated_at: moment(row, "updated_at")?,
        old_secret_ends_at: None,
        secret: None,
        note: None,
    })
}

async fn hook(
    connection: &mut Connection,
    id: HookId,
    lock: &'static str,
) -> StoreResult<Option<StoredHook>> {
    let statement = format!("SELECT {HOOK} FROM hook WHERE id = $1{lock}");
    let Some(row) = sqlx::query(AssertSqlSafe(statement)).bind(id.0).fetch_optional(&mut *connection).await?
    else {
        return Ok(None);
    };
    let secrets = sqlx::query(
        "SELECT id, sealed, ends_at FROM hook_secret WHERE hook = $1 ORDER BY ends_at IS NOT NULL, made_at DESC",
    )
    .bind(id.0)
    .fetch_all(connection)
    .await?;
    let secrets: Vec<SealedSecret> = secrets
        .iter()
        .map(|row| {
            Ok(SealedSecret {
                id: row.try_get("id")?,
                sealed: row.try_get("sealed")?,
                ends_at: moment_if_any(row, "ends_at")?,
            })
        })
        .collect::<StoreResult<_>>()?;
    let mut view = view(&row)?;
    view.old_secret_ends_at = secrets.iter().find_map(|secret| secret.ends_at);
    Ok(Some(StoredHook { view, secrets, removed_at: moment_if_any(&row, "removed_at")? }))
}

async fn hooks(
    connection: &mut Connection,
    team: &Name,
    after: Option<(Moment, Uuid)>,
    size: u32,
    now: Moment,
) -> StoreResult<Page<HookView>> {
    let total = living(connection, team).await?;
    // No hook comes after the latest moment there is.
    let (at, id) = after.unwrap_or((Moment::from_millis(i64::MAX), Uuid::max()));
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {HOOK}, (SELECT max(ends_at) FROM hook_secret
                          WHERE hook_secret.hook = hook.id AND ends_at > $5) AS old_ends_at
           FROM hook WHERE team = $1 AND removed_at IS NULL AND (created_at, id) < ($2, $3)
          ORDER BY created_at DESC, id DESC LIMIT $4"
    )))
    .bind(team.as_str())
    .bind(at.millis())
    .bind(id)
    .bind(i64::from(size) + 1)
    .bind(now.millis())
    .fetch_all(connection)
    .await?;
    let results = rows
        .iter()
        .map(|row| Ok(HookView { old_secret_ends_at: moment_if_any(row, "old_ends_at")?, ..view(row)? }))
        .collect::<StoreResult<Vec<_>>>()?;
    Ok(lists::paged(results, size, total, |last| (last.created_at, last.id.0)))
}

async fn living(connection: &mut Connection, team: &Name) -> StoreResult<i64> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM hook WHERE team = $1 AND removed_at IS NULL")
        .bind(team.as_str())
        .fetch_one(connection)
        .await?)
}

/// Does to a hook what a submission asks for, within its open transaction.
pub(super) async fn decide(
    connection: &mut Connection,
    submission: &Submission,
    effect: &HookEffect,
    now: Moment,
) -> StoreResult<Decided> {
    match effect {
        HookEffect::Create { view, secret, answer } => {
            // Of two at the same moment the second counts the first.
            dialect::lock(connection, &[b"hooks", view.team.as_str().as_bytes()]).await?;
            if living(connection, &view.team).await? >= MOST_HOOKS {
                return Ok(unfit(
                    ProblemKind::AlreadyDecided,
                    format!("A team has at most {MOST_HOOKS} hooks. Remove one that is no longer needed."),
                ));
            }
            let done = sqlx::query(
                "INSERT INTO hook (id, team, definition, version, created_by, created_at, updated_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $6)",
            )
            .bind(view.id.0)
            .bind(view.team.as_str())
            .bind(written(&view.definition)?)
            .bind(view.version)
            .bind(&view.created_by)
            .bind(view.created_at.millis())
            .execute(&mut *connection)
            .await?;
            exactly_one(&done, "hook")?;
            add_secret(connection, view.id, secret, now).await?;
            Ok(Decided::Done {
                answer: answer.clone(),
                request: None,
                existing: false,
                act: "hook_create",
                target: view.id.to_string(),
            })
        }
        HookEffect::Change { id, definition, version } => {
            change(connection, submission, *id, definition, *version, now).await
        }
        HookEffect::Rotate { id, secret, old_ends_at, note } => {
            let Some(found) = of_team(connection, submission, *id).await? else {
                return Ok(Decided::Not(Submitted::Missing));
            };
            rotate(connection, found, secret, (*old_ends_at, note), now).await
        }
        HookEffect::EndSecret(id) => {
            let Some(mut found) = of_team(connection, submission, *id).await? else {
                return Ok(Decided::Not(Submitted::Missing));
            };
            // There may be none left to end, which is what was asked for.
            sqlx::query("DELETE FROM hook_secret WHERE hook = $1 AND ends_at IS NOT NULL")
                .bind(id.0)
                .execute(connection)
                .await?;
            found.view.old_secret_ends_at = None;
            done(&found.view, "hook_end_secret")
        }
        HookEffect::Remove(id) => remove(connection, submission, *id, now).await,
    }
}

fn unfit(kind: ProblemKind, detail: impl Into<String>) -> Decided {
    Decided::Not(Submitted::Unfit(Box::new(Error::new(kind, detail))))
}

fn written(definition: &HookDefinition) -> StoreResult<String> {
    serde_json::to_string(definition).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn done(view: &HookView, act: &'static str) -> StoreResult<Decided> {
    let answer = Answer::showing(AnswerKind::Done, Some(view.managed_at()), view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Decided::Done { answer, request: None, existing: false, act, target: view.id.to_string() })
}

/// The living hook, locked, if it is one of the team in the submission's scope.
async fn of_team(
    connection: &mut Connection,
    submission: &Submission,
    id: HookId,
) -> StoreResult<Option<StoredHook>> {
    let found = hook(connection, id, FOR_UPDATE).await?;
    let team = &submission.arrived.scope.team;
    Ok(found.filter(|hook| hook.view.team.as_str() == team && hook.removed_at.is_none()))
}

async fn add_secret(
    connection: &mut Connection,
    hook: HookId,
    secret: &SealedSecret,
    now: Moment,
) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO hook_secret (id, hook, sealed, made_at, ends_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(secret.id)
    .bind(hook.0)
    .bind(secret.sealed.as_slice())
    .bind(now.millis())
    .bind(secret.ends_at.map(Moment::millis))
    .execute(connection)
    .await?;
    exactly_one(&done, "hook_secret")
}

async fn change(
    connection: &mut Connection,
    submission: &Submission,
    id: HookId,
    definition: &HookDefinition,
    version: i64,
    now: Moment,
) -> StoreResult<Decided> {
    let Some(found) = of_team(connection, submission, id).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if found.view.version != version {
        return Ok(unfit(
            ProblemKind::PreconditionFailed,
            format!(
                "The hook has changed since you looked: it is at version {} now, and your change was made from version \
                 {version}. Look again, and send the change anew.",
                found.view.version
            ),
        ));
    }
    let done_now = sqlx::query(
        "UPDATE hook SET definition = $1, version = version + 1, updated_at = $2 WHERE id = $3 AND version = $4",
    )
    .bind(written(definition)?)
    .bind(now.millis())
    .bind(id.0)
    .bind(version)
    .execute(connection)
    .await?;
    exactly_one(&done_now, "hook")?;
    let view =
        HookView { definition: definition.clone(), version: version + 1, updated_at: now, ..found.view };
    done(&view, "hook_change")
}

async fn rotate(
    connection: &mut Connection,
    found: StoredHook,
    secret: &SealedSecret,
    (old_ends_at, note): (Moment, &'static str),
    now: Moment,
) -> StoreResult<Decided> {
    let id = found.view.id;
    if let Some(ends) = found.view.old_secret_ends_at.filter(|ends| *ends > now) {
        return Ok(unfit(
            ProblemKind::AlreadyDecided,
            format!(
                "The secret before the current one still counts until {ends}. End it first; then the sender can be \
                 given another."
            ),
        ));
    }
    sqlx::query("DELETE FROM hook_secret WHERE hook = $1 AND ends_at IS NOT NULL")
        .bind(id.0)
        .execute(&mut *connection)
        .await?;
    let ended = sqlx::query("UPDATE hook_secret SET ends_at = $1 WHERE hook = $2 AND ends_at IS NULL")
        .bind(old_ends_at.millis())
        .bind(id.0)
        .execute(&mut *connection)
        .await?;
    exactly_one(&ended, "hook_secret")?;
    add_secret(connection, id, secret, now).await?;
    let view = HookView {
        old_secret_ends_at: Some(old_ends_at).filter(|ends| *ends > now),
        note: Some(note.to_owned()),
        ..found.view
    };
    done(&view, "hook_rotate")
}

async fn remove(
    connection: &mut Connection,
    submission: &Submission,
    id: HookId,
    now: Moment,
) -> StoreResult<Decided> {
    let team = &submission.arrived.scope.team;
    let found = hook(connection, id, FOR_UPDATE).await?.filter(|hook| hook.view.team.as_str() == team);
    let Some(found) = found else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if let Some(removed_at) = found.removed_at {
        return gone_before(&RemovedView { id: id.to_string(), removed_at }, "hook_remove", id.to_string());
    }
    for table in ["hook_secret", "delivery"] {
        sqlx::query(AssertSqlSafe(format!("DELETE FROM {table} WHERE hook = $1")))
            .bind(id.0)
            .execute(&mut *connection)
            .await?;
    }
    let removed = sqlx::query("UPDATE hook SET removed_at = $1 WHERE id = $2")
        .bind(now.millis())
        .bind(id.0)
        .execute(connection)
        .await?;
    exactly_one(&removed, "hook")?;
    Ok(Decided::Done {
        answer: Answer::empty(),
        request: None,
        existing: false,
        act: "hook_remove",
        target: id.to_string(),
    })
}

/// Removes secrets that have ended; how many.
async fn sweep_secrets(connection: &mut Connection, now: Moment, limit: u32) -> StoreResult<u64> {
    let done = sqlx::query(AssertSqlSafe(format!(
        "DELETE FROM hook_secret WHERE id IN (
             SELECT id FROM hook_secret WHERE ends_at IS NOT NULL AND ends_at <= $1
              ORDER BY ends_at LIMIT $2{SKIP_LOCKED})"
    )))
    .bind(now.millis())
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

async fn sealed_otherwise(
    connection: &mut Connection,
    head: &[u8],
    limit: u32,
) -> StoreResult<Vec<(HookSeal, Vec<u8>)>> {
    let secrets = seals::sealed_otherwise(connection, HOOK_SECRETS, head, limit).await?;
    let events = seals::sealed_otherwise(connection, DELIVERIES, head, limit).await?;
    let secrets = secrets.into_iter().map(|(id, sealed)| (HookSeal::Secret(id), sealed));
    let events = events.into_iter().map(|(id, sealed)| (HookSeal::Delivery(DeliveryId(id)), sealed));
    Ok(secrets.chain(events).collect())
}
