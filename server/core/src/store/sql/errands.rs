//! Runs that wait for work elsewhere, and what wakes them.

use super::{
    dialect::{self, Connection, Database, clock},
    exactly_one, lives,
    rows::{self, millis},
    runs,
};
use crate::store::{Errands, Held, Hold, StoreResult, Waiting};
use async_trait::async_trait;
use domain::{id::RequestId, time::Moment};
use sqlx::AssertSqlSafe;
use std::time::Duration;

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
}

/// Gives a run back until there may be news.
async fn wait(connection: &mut Connection, hold: Hold, waiting: &Waiting, now: Moment) -> StoreResult<Held> {
    let still = runs::check(connection, hold).await?;
    let Held::Yes(intent) = still else { return Ok(still) };
    let wait = if intent == waiting.meant { waiting.wait } else { Duration::ZERO };
    let done = sqlx::query(AssertSqlSafe(format!(
        "UPDATE run SET owner = NULL, due_at = {now} + CASE WHEN woken THEN 0 ELSE CAST($2 AS BIGINT) END,
                        waits_since = coalesce(waits_since, {now})
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
