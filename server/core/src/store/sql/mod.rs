//! The SQL of every promise, one text for both databases. These rooms are compiled once for each of them, against its
//! `dialect`, which is the one place where the two differ.
//!
//! Whoever decides on what it reads uses the look that locks: SQLite's writer is alone anyway, PostgreSQL's are many.
//! Locks are taken in one order, by everybody:
//!
//! 1. what a create asks for, where its offering asks about likely duplicates (`second_look::lock`);
//! 2. of creates, the rows of the teams that have a limit (`quotas`);
//! 3. the key: creates by claiming it, all else by [`dialect::lock`] (a step's: and the request that it is a step of,
//!    whose run must still be held);
//! 4. a new resource's name;
//! 5. the life that a change is about, or whose run ends (`lives::lock`), also where it is a create's;
//! 6. the request, its run, its resource, and others of the same life: only one who has the life takes more than one of
//!    these, so they need no order among themselves;
//! 7. the run of the parent that waits for it.
//!
//! Of several of a kind the smaller comes first: keys as [`Scope::order`](crate::store::Scope::order) says, names by team,
//! type and name, teams by their names. Who tries a create again has its life and itself when it comes to team and name:
//! nobody who has one of these waits for the former. Workers that renew, note, give back or wait take the request only, as reports of callbacks do. Who takes
//! whatever is there (the next run, the next batch to sweep) skips what is locked and waits for nothing. A deadlock that
//! PostgreSQL finds all the same is a fault here, though a decision that met one is taken once more.

mod approvals;
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
mod hidden;
mod hooks;
mod lists;
mod lives;
pub(in crate::store) mod looks;
mod notifications;
mod people;
mod quotas;
mod rows;
mod runs;
pub(in crate::store) mod samples;
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
