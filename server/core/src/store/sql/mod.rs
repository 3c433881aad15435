//! The SQL of every promise, one text for both databases. These rooms are compiled once for each of them, against its
//! `dialect`, which is the one place where the two differ.
//!
//! Whoever decides on what it reads uses the look that locks: SQLite's writer is alone anyway, PostgreSQL's are many.
//! Locks are taken in one order: the key (creates by claiming it, all else by [`dialect::lock`]), the life that a change is
//! about (`lives::lock`), the request, its run, its resource; at the very end the run of the parent that waits for it. A create that is looked at twice takes the lock of what it asks
//! for before its key, after all others of its group; where two groups meet over that, one is decided again.

mod arrivals;
mod callbacks;
mod change;
mod conditions;
pub(in crate::store) mod decide;
mod deliveries;
mod duplicates;
mod errands;
mod families;
pub(in crate::store) mod folding;
mod hooks;
mod lists;
mod lives;
pub(in crate::store) mod looks;
mod notifications;
mod people;
mod rows;
mod runs;
mod seals;
mod search;
mod searching;
mod second_look;
mod sources;
mod store;
pub(in crate::store) mod submit;
mod sweep;
mod views;

use super::dialect::{self, Connection, Done};
use crate::store::{AuditEntry, StoreError, StoreResult};
use std::pin::Pin;

/// A piece of work that is being done on a connection.
pub(in crate::store) type Running<'c, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'c>>;

/// A piece of work on what it is given. It keeps nothing of its own, so that it can be done again.
pub(in crate::store) type Work<A, T> = for<'c> fn(&'c A, &'c mut Connection) -> Running<'c, T>;

/// Checks that a write met exactly the row it was meant for.
fn exactly_one(done: &Done, what: &str) -> StoreResult<()> {
    match done.rows_affected() {
        1 => Ok(()),
        met => Err(StoreError::Corrupt(format!("{what}: {met} rows instead of one"))),
    }
}

async fn write_audit(connection: &mut Connection, entry: &AuditEntry) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO audit (at, actor, channel, act, team, target, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(entry.at.millis())
    .bind(&entry.actor)
    .bind(entry.channel)
    .bind(entry.act)
    .bind(&entry.team)
    .bind(&entry.target)
    .bind(&entry.detail)
    .execute(connection)
    .await?;
    exactly_one(&done, "audit")
}
