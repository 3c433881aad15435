//! Holding on to a run: renewing its lease while it is worked on, and stopping the work in time when that fails.

use crate::{
    service::Inner,
    store::{Held, Hold, Intent},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// The shortest time between two renewals that a change of the request brings about.
const AT_MOST_EVERY: Duration = Duration::from_millis(200);

/// A lease that is being renewed; ends with this value.
#[derive(Debug)]
pub(super) struct Lease {
    /// Fires when the work must stop, for whatever reason.
    pub(super) stop: CancellationToken,
    lost: Arc<AtomicBool>,
    renewing: JoinHandle<()>,
}

impl Lease {
    /// Begins to renew. `stop` fires when the request is to be canceled, when the portal shuts down, or when the lease
    /// cannot be renewed and is about to end.
    pub(super) fn keep(portal: Arc<Inner>, hold: Hold, shutdown: &CancellationToken) -> Self {
        let stop = shutdown.child_token();
        let lost = Arc::new(AtomicBool::new(false));
        let renewing = tokio::spawn(renew(portal, hold, stop.clone(), Arc::clone(&lost)));
        Self { stop, lost, renewing }
    }

    /// Whether another may hold the run by now.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

async fn renew(portal: Arc<Inner>, hold: Hold, stop: CancellationToken, lost: Arc<AtomicBool>) {
    let lease = portal.settings.lease;
    let mut listener = portal.store.changes().listen();
    let mut good_until = Instant::now() + lease;
    loop {
        // A third of the lease leaves two more tries before the work has to stop.
        listener.change_of(hold.request, lease / 3).await;
        let renewal = portal.store.renew(hold, portal.clock.now().plus(lease));
        let begun = Instant::now();
        match tokio::time::timeout(lease / 3, renewal).await {
            Ok(Ok(Held::Yes(intent))) => {
                good_until = begun + lease;
                if intent == Intent::Cancel {
                    stop.cancel();
                }
            }
            Ok(Ok(Held::Lost)) => {
                lost.store(true, Ordering::Release);
                stop.cancel();
                return;
            }
            Ok(Err(error)) => tracing::warn!(%error, request = %hold.request, "a lease was not renewed"),
            Err(_) => tracing::warn!(request = %hold.request, "a lease was not renewed in time"),
        }
        if Instant::now() + lease / 4 >= good_until {
            lost.store(true, Ordering::Release);
            stop.cancel();
            return;
        }
        tokio::time::sleep(AT_MOST_EVERY.min(lease / 10)).await;
    }
}
