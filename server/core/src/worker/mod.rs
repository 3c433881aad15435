//! The worker: takes a run by a lease, carries it out step by step, and writes down what became of it.
//!
//! Whatever may have begun outside is looked at (`observe`) before it is done again. Every write names the hold; once
//! that is lost, nothing this worker does counts any more, and its program is stopped before the lease ends.

mod approvals;
mod arrivals;
mod carry_out;
mod change;
mod composite;
mod deliveries;
mod doubt;
mod elsewhere;
mod expiry;
mod hidden;
mod lease;
mod notify;
mod reports;
mod sweep;
#[cfg(test)]
mod tests;
mod words;

use crate::service::Inner;
use domain::id::TokenId;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// How long an idle worker relies on being woken before it looks by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often the histories of repeats and of deliveries are written.
const WRITE_EVERY: Duration = Duration::from_millis(200);

/// Runs the portal's own work until `shutdown`.
pub(crate) async fn background(portal: Arc<Inner>, shutdown: CancellationToken) {
    let mut tasks = JoinSet::new();
    for number in 0..portal.settings.workers {
        tasks.spawn(work(Arc::clone(&portal), number, shutdown.clone()));
    }
    if let Some(waiting) = portal.history.take_waiting() {
        tasks.spawn(arrivals::write(Arc::clone(&portal), waiting, shutdown.clone()));
    }
    if let Some(tokens) = portal.take_uses() {
        tasks.spawn(write_last_uses(Arc::clone(&portal), tokens, shutdown.clone()));
    }
    if let Some(waiting) = portal.deliveries.take() {
        tasks.spawn(deliveries::write(Arc::clone(&portal), waiting, shutdown.clone()));
    }
    tasks.spawn(words::index(Arc::clone(&portal), shutdown.clone()));
    if portal.settings.workers > 0 {
        tasks.spawn(notify::send_all(Arc::clone(&portal), shutdown.clone()));
    }
    tasks.spawn(approvals::watch(Arc::clone(&portal), shutdown.clone()));
    tasks.spawn(expiry::watch(Arc::clone(&portal), shutdown.clone()));
    tasks.spawn(sweep::sweep(portal, shutdown));
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a background task ended by a fault");
        }
    }
}

/// One worker: takes run after run.
async fn work(portal: Arc<Inner>, number: usize, shutdown: CancellationToken) {
    let mut random = [0; 8];
    portal.ids.fill(&mut random);
    let owner = format!("{:016x}-{number}", u64::from_le_bytes(random));
    while !shutdown.is_cancelled() {
        // The lease is reckoned from before it was asked for.
        let asked = Instant::now();
        let taken = portal.store.take_run(&owner, portal.clock.now(), portal.settings.lease).await;
        match taken {
            Ok(Some(run)) => {
                // A task of its own: a provisioner that panics costs one run, which its lease gives to another.
                let carried =
                    tokio::spawn(carry_out::carry_out(Arc::clone(&portal), run, asked, shutdown.clone()))
                        .await;
                if let Err(error) = carried {
                    tracing::error!(%error, "carrying out a run ended by a fault; its lease will end");
                }
            }
            Ok(None) => {
                tokio::select! {
                    () = shutdown.cancelled() => {}
                    () = portal.store.changes().work(LOOK_AGAIN) => {}
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a run");
                tokio::select! {
                    () = shutdown.cancelled() => {}
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
            }
        }
    }
}

/// Notes when tokens were last used.
async fn write_last_uses(
    portal: Arc<Inner>,
    mut waiting: mpsc::Receiver<TokenId>,
    shutdown: CancellationToken,
) {
    // What was noted within the last minute need not be written again.
    let mut noted: HashSet<TokenId> = HashSet::new();
    let mut since = portal.clock.now();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        let now = portal.clock.now();
        if now.since(since) >= Duration::from_mins(1) {
            noted.clear();
            since = now;
        }
        let mut fresh = Vec::new();
        while let Ok(token) = waiting.try_recv() {
            if noted.insert(token) {
                fresh.push(token);
            }
        }
        if !fresh.is_empty()
            && let Err(error) = portal.store.tokens_used(fresh, now).await
        {
            tracing::warn!(%error, "the last use of tokens was not noted");
        }
    }
}
