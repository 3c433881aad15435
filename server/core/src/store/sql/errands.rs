//! Runs that wait for work elsewhere, what wakes them, and what is kept of that work.

use super::{
    callbacks,
    dialect::{self, Connection, Database, DbRow, clock},
    exactly_one, lives,
    rows::{self, millis},
    runs,
    seals::{self, ERRAND_NOTES, ERRAND_REPORTS, ERRAND_SECRETS},
};
use crate::{
    provisioner::Work,
    store::{
        Back, Errand, ErrandSeal, Errands, Held, Hold, Intent, Report, StoreError, StoreResult, Taken,
        Waiting,
    },
};
use async_trait::async_trait;
use domain::{
    callback::{OrphanView, Progress},
    id::{ErrandId, RequestId},
    time::Moment,
    view::Page,
};
use sqlx::{AssertSqlSafe, Row};
use std::time::Duration;
use uuid::Uuid;

#[async_trait]
impl Errands for Database {
    async fn wait_elsewhere(&self, hold: Hold, waiting: Waiting, now: Moment) -> StoreResult<Held> {
        let still = self
            .write((hold, waiting, now), |(hold, waiting, now), connection| {
                Box::pin(wait(connection, *hold, waiting, *now))
            })
            .await?;
        self.tell(hold.request);
        Ok(still)
    }

    async fn wake(&self, request: RequestId, now: Moment) -> StoreResult<()> {
        self.write((request, now), |(request, now), connection| {
            Box::pin(async move {
                dialect::lock_request(connection, *request).await?;
                wake(connection, *request, *now).await
            })
        })
        .await?;
        self.tell(request);
        Ok(())
    }

    async fn begin_errand(&self, hold: Hold, errand: Errand, now: Moment) -> StoreResult<Option<Errand>> {
        self.write((hold, errand, now), |(hold, errand, now), connection| {
            Box::pin(begin(connection, *hold, errand, *now))
        })
        .await
    }

    async fn begin_back(
        &self,
        hold: Hold,
        errand: Errand,
        why: Option<String>,
        now: Moment,
    ) -> StoreResult<Back> {
        self.write((hold, errand, why, now), |(hold, errand, why, now), connection| {
            Box::pin(begin_back(connection, *hold, errand, why.as_deref(), *now))
        })
        .await
    }

    async fn errands_of(&self, request: RequestId, attempt: u32) -> StoreResult<Vec<Errand>> {
        self.read((request, attempt), |(request, attempt), connection| {
            Box::pin(of_attempt(connection, *request, *attempt))
        })
        .await
    }

    async fn errand(&self, id: ErrandId) -> StoreResult<Option<Errand>> {
        self.read(id, |id, connection| Box::pin(one(connection, *id))).await
    }

    async fn report(&self, report: Report) -> StoreResult<Taken> {
        let (taken, request) =
            self.write(report, |report, connection| Box::pin(callbacks::report(connection, report))).await?;
        if let Some(request) = request {
            self.tell(request);
        }
        Ok(taken)
    }

    async fn take_over_orphan(&self, errand: ErrandId, now: Moment) -> StoreResult<bool> {
        let request = self
            .write((errand, now), |(errand, now), connection| {
                Box::pin(callbacks::take_over(connection, *errand, *now))
            })
            .await?;
        if let Some(request) = request {
            self.tell(request);
        }
        Ok(request.is_some())
    }

    async fn sweep_errands(&self, now: Moment, known: Duration, limit: u32) -> StoreResult<u64> {
        self.write((now, known, limit), |(now, known, limit), connection| {
            Box::pin(sweep(connection, *now, *known, *limit))
        })
        .await
    }

    async fn orphans(&self, after: Option<(Moment, Uuid)>, size: u32) -> StoreResult<Page<OrphanView>> {
        self.snapshot((after, size), |(after, size), connection| {
            Box::pin(callbacks::orphans(connection, *after, *size))
        })
        .await
    }

    async fn errands_sealed_otherwise(
        &self,
        head: &[u8],
        limit: u32,
    ) -> StoreResult<Vec<(ErrandSeal, Vec<u8>)>> {
        self.read((head, limit), |(head, limit), connection| {
            Box::pin(sealed_otherwise(connection, head, *limit))
        })
        .await
    }

    async fn reseal_errand(&self, seal: ErrandSeal, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool> {
        self.write((seal, before, after), |(seal, before, after), connection| {
            Box::pin(reseal(connection, *seal, before, after))
        })
        .await
    }
}

/// Gives a run back until there may be news.
async fn wait(connection: &mut Connection, hold: Hold, waiting: &Waiting, now: Moment) -> StoreResult<Held> {
    let still = runs::check(connection, hold).await?;
    let Held::Yes(intent) = still else { return Ok(still) };
    let wait = if intent == waiting.meant { waiting.wait } else { Duration::ZERO };
    let done = sqlx::query(AssertSqlSafe(format!(
        "UPDATE run SET owner = NULL, due_at = {now} + CASE WHEN woken THEN 0 ELSE CAST($2 AS BIGINT) END,
                        waits_since = coalesce(waits_since, {now}), insisted = FALSE, lacks_since = NULL
          WHERE request = $3",
        now = clock("$1"),
    )))
    .bind(now.millis())
    .bind(millis(wait))
    .bind(hold.request.0)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "run")?;
    if let Some((turned, why)) = &waiting.turned
        && intent == waiting.meant
    {
        let done = sqlx::query("UPDATE run SET intent = $1, why = $2 WHERE request = $3")
            .bind(rows::intent_word(*turned))
            .bind(why.as_deref().map(rows::text))
            .bind(hold.request.0)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "run")?;
    }
    if let Some((errand, note)) = &waiting.note {
        let done = sqlx::query("UPDATE errand SET note = $1 WHERE id = $2 AND request = $3")
            .bind(note)
            .bind(errand.0)
            .bind(hold.request.0)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "errand")?;
    }
    runs::append(connection, hold.request, hold.attempt, waiting.entry.clone().as_slice(), now).await?;
    Ok(still)
}

/// Makes the run of a request due, whatever it waits for, but for the changes of its resource that come before it. One
/// that somebody works on is due as soon as it is given back. Nothing is met where there is no run.
///
/// Whoever wakes has locked the request, and tells of it after the commit.
pub(super) async fn wake(connection: &mut Connection, request: RequestId, now: Moment) -> StoreResult<()> {
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE run SET woken = TRUE,
                        due_at = CASE WHEN owner IS NULL AND due_at <> $2 THEN {} ELSE due_at END
          WHERE request = $3",
        clock("$1"),
    )))
    .bind(now.millis())
    .bind(lives::WAITS)
    .bind(request.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// The columns of an errand.
const ERRAND: &str = "id, request, attempt, operation, secret, note, state, outcome";

pub(super) fn work(word: &str) -> StoreResult<Work> {
    [Work::Apply, Work::Undo, Work::Destroy]
        .into_iter()
        .find(|work| work.as_str() == word)
        .ok_or_else(|| StoreError::Corrupt(format!("work of an errand: {word}")))
}

pub(super) fn progress(word: &str) -> StoreResult<Progress> {
    word.parse().map_err(|error| StoreError::Corrupt(format!("state of an errand: {error}")))
}

fn of_row(row: &DbRow) -> StoreResult<Errand> {
    let state: Option<String> = row.try_get("state")?;
    let reported = match state {
        Some(state) => Some((progress(&state)?, row.try_get("outcome")?)),
        None => None,
    };
    Ok(Errand {
        id: ErrandId(row.try_get("id")?),
        request: RequestId(row.try_get("request")?),
        attempt: rows::number(row, "attempt")?,
        work: work(row.try_get("operation")?)?,
        secret: row.try_get("secret")?,
        note: row.try_get("note")?,
        reported,
    })
}

/// Keeps an errand, unless there is one for its work; the one that is kept.
async fn begin(
    connection: &mut Connection,
    hold: Hold,
    errand: &Errand,
    now: Moment,
) -> StoreResult<Option<Errand>> {
    if runs::check(connection, hold).await? == Held::Lost {
        return Ok(None);
    }
    // None is met where an earlier hold kept one.
    sqlx::query(
        "INSERT INTO errand (id, request, attempt, operation, secret, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (request, attempt, operation) DO NOTHING",
    )
    .bind(errand.id.0)
    .bind(hold.request.0)
    .bind(i64::from(hold.attempt))
    .bind(errand.work.as_str())
    .bind(&errand.secret)
    .bind(now.millis())
    .execute(&mut *connection)
    .await?;
    let text = format!("SELECT {ERRAND} FROM errand WHERE request = $1 AND attempt = $2 AND operation = $3");
    let row = sqlx::query(AssertSqlSafe(text))
        .bind(hold.request.0)
        .bind(i64::from(hold.attempt))
        .bind(errand.work.as_str())
        .fetch_one(connection)
        .await?;
    of_row(&row).map(Some)
}

async fn begin_back(
    connection: &mut Connection,
    hold: Hold,
    errand: &Errand,
    why: Option<&str>,
    now: Moment,
) -> StoreResult<Back> {
    let Held::Yes(meant) = runs::check(connection, hold).await? else { return Ok(Back::Lost) };
    let is_decided = matches!(meant, Intent::Cancel | Intent::Abandon);
    if !is_decided {
        let succeeded: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM errand
                             WHERE request = $1 AND attempt = $2 AND operation = 'apply' AND state = 'succeeded')",
        )
        .bind(hold.request.0)
        .bind(i64::from(hold.attempt))
        .fetch_one(&mut *connection)
        .await?;
        if succeeded {
            return Ok(Back::Stands);
        }
    }
    let (turned, why) = if is_decided { (meant, None) } else { (Intent::Abandon, why) };
    // What was reported before is no news for whoever takes it back.
    let done =
        sqlx::query("UPDATE run SET intent = $1, why = coalesce($2, why), woken = FALSE WHERE request = $3")
            .bind(rows::intent_word(turned))
            .bind(why.map(rows::text))
            .bind(hold.request.0)
            .execute(&mut *connection)
            .await?;
    exactly_one(&done, "run")?;
    Ok(match begin(connection, hold, errand, now).await? {
        Some(kept) => Back::Begun(kept, turned),
        None => Back::Lost,
    })
}

/// Whether what an attempt began is being taken back, or was before nobody could tell any more.
pub(super) async fn is_taken_back(
    connection: &mut Connection,
    request: RequestId,
    attempt: u32,
) -> StoreResult<bool> {
    let is = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM errand WHERE request = $1 AND attempt = $2 AND operation <> 'apply')
            AND NOT EXISTS (SELECT 1 FROM run WHERE request = $1 AND intent NOT IN ('cancel', 'abandon'))",
    )
    .bind(request.0)
    .bind(i64::from(attempt));
    Ok(is.fetch_one(connection).await?)
}

/// Forgets the end of what a person lets be done once more; its reports go on from where they were.
pub(super) async fn reopen(
    connection: &mut Connection,
    request: RequestId,
    attempt: u32,
    works: &[Work],
) -> StoreResult<()> {
    for work in works {
        // None is met where its end was not reported.
        sqlx::query(
            "UPDATE errand SET state = 'running', outcome = NULL, note = NULL
              WHERE request = $1 AND attempt = $2 AND operation = $3 AND state IN ('succeeded', 'failed')",
        )
        .bind(request.0)
        .bind(i64::from(attempt))
        .bind(work.as_str())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn of_attempt(
    connection: &mut Connection,
    request: RequestId,
    attempt: u32,
) -> StoreResult<Vec<Errand>> {
    let text = format!("SELECT {ERRAND} FROM errand WHERE request = $1 AND attempt = $2");
    let found = sqlx::query(AssertSqlSafe(text))
        .bind(request.0)
        .bind(i64::from(attempt))
        .fetch_all(connection)
        .await?;
    found.iter().map(of_row).collect()
}

async fn one(connection: &mut Connection, id: ErrandId) -> StoreResult<Option<Errand>> {
    let text = format!("SELECT {ERRAND} FROM errand WHERE id = $1");
    let row = sqlx::query(AssertSqlSafe(text)).bind(id.0).fetch_optional(connection).await?;
    row.as_ref().map(of_row).transpose()
}

/// Removes errands whose time is over, with the reports on them; how many.
async fn sweep(connection: &mut Connection, now: Moment, known: Duration, limit: u32) -> StoreResult<u64> {
    // What was begun so long ago and goes on still is rare, so that few rows are met in vain.
    let over = sqlx::query(
        "SELECT errand.id FROM errand JOIN request ON request.id = errand.request
          WHERE errand.created_at <= $1 AND request.finished_at IS NOT NULL AND request.finished_at <= $1
            AND (errand.orphaned_at IS NULL OR errand.orphaned_at <= $1)
          ORDER BY errand.created_at LIMIT $2",
    )
    .bind(now.millis().saturating_sub(millis(known)))
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    for row in &over {
        let id: Uuid = row.try_get("id")?;
        // Another server may sweep the same: what is gone is gone.
        sqlx::query("DELETE FROM callback WHERE errand = $1").bind(id).execute(&mut *connection).await?;
        sqlx::query("DELETE FROM errand WHERE id = $1").bind(id).execute(&mut *connection).await?;
    }
    Ok(u64::try_from(over.len()).unwrap_or(u64::MAX))
}

/// Whatever is sealed of errands and does not begin with `head`.
async fn sealed_otherwise(
    connection: &mut Connection,
    head: &[u8],
    limit: u32,
) -> StoreResult<Vec<(ErrandSeal, Vec<u8>)>> {
    type Seal = fn(ErrandId) -> ErrandSeal;
    let all = [
        (ERRAND_SECRETS, ErrandSeal::Secret as Seal),
        (ERRAND_NOTES, ErrandSeal::Note),
        (ERRAND_REPORTS, ErrandSeal::Report),
    ];
    let mut found = Vec::new();
    for (sealed, seal) in all {
        let some = seals::sealed_otherwise(connection, sealed, head, limit).await?;
        found.extend(some.into_iter().map(|(id, bytes)| (seal(ErrandId(id)), bytes)));
    }
    Ok(found)
}

/// Puts a new seal in the place of an old one; whether that was still there.
async fn reseal(
    connection: &mut Connection,
    seal: ErrandSeal,
    before: &[u8],
    after: &[u8],
) -> StoreResult<bool> {
    let (sealed, id) = match seal {
        ErrandSeal::Secret(id) => (ERRAND_SECRETS, id),
        ErrandSeal::Note(id) => (ERRAND_NOTES, id),
        ErrandSeal::Report(id) => (ERRAND_REPORTS, id),
    };
    seals::reseal(connection, sealed, id.0, before, after).await
}
