//! The sweeper: keys whose retention is over become tombstones, tombstones, sessions and deliveries to hooks end. In small batches with pauses
//! between, so that it takes a bounded share of the database however much there is to do.

use crate::{
    service::{DELIVERIES_KEPT, Inner},
    store::StoreResult,
};
use domain::time::Moment;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many rows a batch has at the most.
const AT_ONCE: u32 = 500;
/// How long one waits when there was nothing more to do.
const EVERY: Duration = Duration::from_secs(30);
/// A pause is so many times as long as the batch before it took, within bounds.
const SHARE: u32 = 4;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Sweeps until `shutdown`.
pub(super) async fn sweep(portal: Arc<Inner>, shutdown: CancellationToken) {
    loop {
        let begun = Instant::now();
        let more = batch(&portal).await;
        let pause = if more { (begun.elapsed() * SHARE).clamp(SHORTEST, LONGEST) } else { EVERY };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Sweeps one batch of each kind; whether more of any waits.
async fn batch(portal: &Inner) -> bool {
    let (store, guard) = (&portal.store, portal.settings.guard);
    let now = portal.clock.now();
    let retired = more("keys", store.retire(now, guard.retention, AT_ONCE).await);
    let removed =
        more("tombstones", store.drop_tombstones(now, guard.retention, guard.tombstones, AT_ONCE).await);
    let sessions = more("sessions", store.sweep_sessions(now, AT_ONCE).await);
    let before = Moment::from_millis(now.millis().saturating_sub(millis(DELIVERIES_KEPT)));
    let hooks = more("deliveries", store.sweep_hooks(now, before, AT_ONCE).await);
    // A callback that is over is still told from one that never was, as a key is.
    let known = guard.retention.saturating_add(guard.tombstones);
    let errands = more("errands", store.sweep_errands(now, known, AT_ONCE).await);
    // A delivery is tried for less long than keys are kept.
    let old = Moment::from_millis(now.millis().saturating_sub(millis(guard.retention)));
    let told = more("notifications", store.sweep_deliveries(old, AT_ONCE).await);
    retired || removed || sessions || hooks || errands || told
}

/// Whether more waits. What failed is tried again at the next turn, and holds nothing else up.
fn more(what: &str, swept: StoreResult<u64>) -> bool {
    match swept {
        Ok(rows) => {
            if rows > 0 {
                tracing::debug!(what, rows, "swept");
            }
            rows >= u64::from(AT_ONCE)
        }
        Err(error) => {
            tracing::warn!(%error, what, "what is over was not swept");
            false
        }
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
