//! The end of the time to decide: what nobody approved or rejected in time is rejected, so that nobody waits for ever and no
//! name is held for nothing.

use crate::service::Inner;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How many are looked for at once. Each ends in a transaction of its own, so that nobody waits behind many.
const AT_ONCE: u32 = 100;
/// How often one looks when there was nothing more to end.
const EVERY: Duration = Duration::from_secs(5);
/// How long one rests between two batches.
const PAUSE: Duration = Duration::from_millis(50);

/// Rejects what nobody decided about in time, until `shutdown`.
pub(super) async fn watch(portal: Arc<Inner>, shutdown: CancellationToken) {
    loop {
        let pause = if batch(&portal).await { PAUSE } else { EVERY };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Ends one batch; whether more may wait. What failed is tried again at a later turn, and holds nothing else up.
async fn batch(portal: &Inner) -> bool {
    let now = portal.clock.now();
    let undecided = match portal.store.undecided(now, AT_ONCE).await {
        Ok(undecided) => undecided,
        Err(error) => {
            tracing::warn!(%error, "it is not known what nobody decided about in time; it is tried again");
            return false;
        }
    };
    let mut ended = 0;
    for &request in &undecided {
        match portal.store.time_out(request, now).await {
            Ok(true) => ended += 1,
            // Somebody decided at this moment, or another server was here before.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, %request, "what nobody decided about in time was not ended; it is tried again");
            }
        }
    }
    if ended > 0 {
        tracing::info!(ended, "rejected what nobody decided about in time");
    }
    ended > 0 && undecided.len() >= usize::try_from(AT_ONCE).unwrap_or(usize::MAX)
}
