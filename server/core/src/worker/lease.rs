//! Holding on to a run: renewing its lease while it is worked on, and stopping the work in time when that fails.

use crate::{
    service::Inner,
    store::{Held, Hold, Intent, changes::Listener},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The shortest time between two renewals that a change of the request brings about.
const AT_MOST_EVERY: Duration = Duration::from_millis(200);

/// A lease that is being renewed; ends with this value.
#[derive(Debug)]
pub(super) struct Lease {
    /// Fires when the work must stop, for whatever reason.
    pub(super) stop: CancellationToken,
    /// Until when the work may go on without another renewal.
    pub(super) held: watch::Receiver<Instant>,
    lost: Arc<AtomicBool>,
    _renewing: DropGuard,
}

impl Lease {
    /// Begins to renew a lease that began at `taken`. `stop` fires when the request is to be canceled, when the portal
    /// shuts down, or when the lease cannot be renewed and is about to end.
    pub(super) fn keep(portal: Arc<Inner>, hold: Hold, taken: Instant, shutdown: &CancellationToken) -> Self {
        let stop = shutdown.child_token();
        let lost = Arc::new(AtomicBool::new(false));
        // Listens before anything is begun, so that no cancellation falls between.
        let listener = portal.store.changes().listen();
        let over = CancellationToken::new();
        // A quarter of the lease is left for the program to be stopped in.
        let safe = portal.settings.lease * 3 / 4;
        let (until, until_when) = watch::channel(taken + safe);
        let renewing = Renewing {
            portal,
            hold,
            stop: stop.clone(),
            safe,
            until,
            lost: Arc::clone(&lost),
            over: over.clone(),
        };
        tokio::spawn(renewing.run(listener));
        Self { stop, held: until_when, lost, _renewing: over.drop_guard() }
    }

    /// Whether another may hold the run by now.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

struct Renewing {
    portal: Arc<Inner>,
    hold: Hold,
    stop: CancellationToken,
    /// For how long after a renewal the work may go on.
    safe: Duration,
    until: watch::Sender<Instant>,
    lost: Arc<AtomicBool>,
    /// Fires when nobody works on the run any more. A renewal that is under way is not broken off by it.
    over: CancellationToken,
}

impl Renewing {
    async fn run(self, mut listener: Listener) {
        let lease = self.portal.settings.lease;
        let mut stop_at = *self.until.borrow();
        // A third of the lease leaves room for more tries before the work has to stop.
        let mut wait = lease / 3;
        loop {
            let left = stop_at.saturating_duration_since(Instant::now());
            let next = async {
                listener.change_of(self.hold.request, wait.min(left)).await;
                // Most changes are the run's own, which often ends soon after.
                tokio::time::sleep_until(stop_at.min(Instant::now() + AT_MOST_EVERY.min(lease / 10))).await;
            };
            tokio::select! {
                () = self.over.cancelled() => return,
                () = next => {}
            }
            let begun = Instant::now();
            let renewal = self.portal.store.renew(self.hold, self.portal.clock.now(), lease);
            // However long the database takes, the work does not go on past its lease.
            match tokio::time::timeout_at(stop_at, renewal).await {
                Ok(Ok(Held::Yes(intent))) => {
                    stop_at = begun + self.safe;
                    self.until.send_replace(stop_at);
                    wait = lease / 3;
                    if intent == Intent::Cancel {
                        self.stop.cancel();
                    }
                }
                Ok(Ok(Held::Lost)) => return self.lose(),
                Ok(Err(error)) => {
                    wait = lease / 10;
                    tracing::warn!(%error, request = %self.hold.request, "a lease was not renewed");
                }
                Err(_) => tracing::warn!(request = %self.hold.request, "a lease was not renewed in time"),
            }
            if Instant::now() >= stop_at {
                return self.lose();
            }
        }
    }

    fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.stop.cancel();
    }
}
