//! Workers of the test's own: they take runs and write down how they ended, as the portal's do, but some are cut off after
//! they began and come back when another has taken over.

use super::{
    faults::Fault,
    history::{Dice, Effect},
};
use crate::{
    store::{Ending, Hold, Intent, Store},
    testing::{House, SOON},
};
use domain::{id::RequestId, state::RequestState};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A lease that never ends by itself while a test runs.
const LEASE: Duration = Duration::from_mins(10);

/// What all workers have in common.
pub(super) struct Shop {
    pub(super) house: Arc<House>,
    pub(super) fault: Fault,
    /// What was done outside, in order.
    pub(super) ledger: Mutex<Vec<Effect>>,
    pub(super) enough: AtomicBool,
    /// How many more may be cut off at the same time: somebody has to take over.
    pub(super) away: tokio::sync::Semaphore,
}

impl Shop {
    /// One worker, until there is enough.
    pub(super) async fn work(self: Arc<Self>, mut dice: Dice) {
        let owner = format!("worker-{}", dice.next());
        let (store, portal) = (Arc::clone(&self.house.store), &self.house.portal);
        while !self.enough.load(Ordering::Relaxed) {
            let Some(run) = store.take_run(&owner, portal.now(), LEASE).await.unwrap() else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let (hold, name) = (run.hold(), run.request.view.name.to_string());
            let (deed, undoing) =
                if run.request.view.action == "create" { ("apply", "destroy") } else { ("change", "undo") };
            let ending = match run.intent {
                Intent::Cancel => {
                    // Long enough for whoever got the name meanwhile.
                    let long = if self.fault == Fault::NameEarly { 150 } else { 0 };
                    tokio::time::sleep(Duration::from_millis(long + 10 + dice.below(20))).await;
                    if self.stands(hold.request, deed) {
                        self.write(undoing, hold.request, name);
                    }
                    RequestState::Canceled
                }
                _ if run.touched && self.stands(hold.request, deed) => RequestState::Succeeded,
                _ => {
                    store.note(hold, Vec::new(), true, portal.now()).await.unwrap();
                    if dice.below(4) == 0
                        && let Ok(_away) = self.away.try_acquire()
                    {
                        self.come_back_late(hold).await;
                        continue;
                    }
                    tokio::time::sleep(Duration::from_millis(10 + dice.below(20))).await;
                    self.write(deed, hold.request, name);
                    RequestState::Succeeded
                }
            };
            end(store.as_ref(), hold, ending, portal.now()).await;
        }
    }

    /// The worker is cut off: its work fails without effect, its lease ends, another takes over, and only then does it
    /// write down what it knows.
    async fn come_back_late(&self, hold: Hold) {
        let (ground, request) = (&self.house.ground, self.house.ground.literal(hold.request.0));
        let lapse = format!("UPDATE run SET due_at = 0 WHERE request = {request} AND fence = {}", hold.fence);
        ground.execute(&lapse).await;
        let by = Instant::now() + SOON;
        let latest = loop {
            let latest = ground.number(&format!("SELECT fence FROM run WHERE request = {request}")).await;
            if latest != Some(hold.fence) {
                break latest;
            }
            if self.enough.load(Ordering::Relaxed) {
                return;
            }
            assert!(Instant::now() < by, "nobody takes over from {hold:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let hold = match latest {
            // The fence is there to tell these two apart.
            Some(fence) if self.fault == Fault::NoFence => Hold { fence, ..hold },
            _ => hold,
        };
        end(self.house.store.as_ref(), hold, RequestState::Failed, self.house.portal.now()).await;
    }

    fn stands(&self, request: RequestId, deed: &str) -> bool {
        let (ledger, request) = (self.ledger.lock().unwrap(), request.to_string());
        ledger.iter().rev().find(|effect| effect.request == request).is_some_and(|last| last.deed == deed)
    }

    fn write(&self, deed: &str, request: RequestId, name: String) {
        let (deed, request) = (deed.to_owned(), request.to_string());
        let effect = Effect { deed, request, attempt: 1, name, count: None };
        self.ledger.lock().unwrap().push(effect);
    }
}

async fn end(store: &dyn Store, hold: Hold, state: RequestState, now: domain::time::Moment) {
    // A hold that was lost writes nothing, and there is nothing more to do about it.
    let _ = store.end_run(hold, Ending::without_outputs(state, None), now).await.unwrap();
}
