//! Writes repeats and refusals into the history, in batches, and counts what comes faster than that.

use super::WRITE_EVERY;
use crate::{
    service::Inner,
    store::{Arrived, Tally},
};
use std::sync::Arc;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

/// How often a batch is tried before it is only counted, so that what waits stays bounded.
const MOST_FAILURES: u32 = 60;
/// How many arrivals one write takes. It is small, so that no submission waits for long behind it, and little is in memory.
const WRITE_AT_ONCE: usize = 1000;

/// Writes until `shutdown`, and then what is left.
pub(super) async fn write(
    portal: Arc<Inner>,
    mut waiting: mpsc::Receiver<Arrived>,
    shutdown: CancellationToken,
) {
    let mut batch: Arc<[Arrived]> = Arc::default();
    let (mut failures, mut counted) = (0, Instant::now());
    loop {
        // Where more waits than one write takes, the next follows at once.
        if failures > 0 || waiting.len() < WRITE_AT_ONCE {
            tokio::select! {
                () = tokio::time::sleep(WRITE_EVERY) => {}
                () = shutdown.cancelled() => waiting.close(),
            }
        }
        if batch.is_empty() {
            batch = std::iter::from_fn(|| waiting.try_recv().ok()).take(WRITE_AT_ONCE).collect();
        }
        if !batch.is_empty() {
            match portal.store.record(Arc::clone(&batch)).await {
                Ok(()) => {
                    batch = Arc::default();
                    failures = 0;
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, count = batch.len(), failures, "arrivals are not yet in the history");
                }
            }
        }
        if failures >= MOST_FAILURES {
            portal.history.only_count(batch.iter().map(|one| Tally { arrived: one.clone(), count: 1 }));
            batch = Arc::default();
        }
        let ends = waiting.is_closed() && waiting.is_empty() && batch.is_empty();
        if ends || counted.elapsed() >= WRITE_EVERY {
            let done = count(&portal, ends && failures >= MOST_FAILURES).await;
            counted = Instant::now();
            if ends && done {
                return;
            }
            if !done {
                failures += 1;
            } else if batch.is_empty() {
                failures = 0;
            }
        }
    }
}

/// Counts what is only counted; whether nothing of it is left. Where it cannot be counted it waits, unless this is the
/// last time.
async fn count(portal: &Inner, last: bool) -> bool {
    let (tallies, mut left_out) = portal.history.take_counts();
    let tallies: Arc<[Tally]> = tallies.into();
    let mut done = true;
    if !tallies.is_empty() {
        match portal.store.tally(Arc::clone(&tallies)).await {
            Ok(unclaimed) => left_out += unclaimed,
            Err(error) if last => {
                tracing::error!(%error, "the history ends without its last counts");
                left_out += tallies.iter().map(|tally| tally.count).sum::<u64>();
            }
            Err(error) => {
                tracing::warn!(%error, "arrivals are not counted yet");
                portal.history.only_count(tallies.iter().cloned());
                done = false;
            }
        }
    }
    if left_out > 0 {
        // Told together: one line for each would fill the log as fast as they come.
        tracing::warn!(left_out, "more arrived than the history has a place for");
    }
    done
}
