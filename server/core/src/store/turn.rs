//! Submissions on their way into the database: who waits for one no longer calls it back, as long as it is not being
//! written for good.

use super::{Scope, Submission};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Where a submission stands. Whoever waits for it withdraws it, the store begins with it; only one of both succeeds.
#[derive(Debug, Clone, Default)]
pub struct Turn(Arc<AtomicU8>);

impl Turn {
    /// From here on it may be kept; false where it was withdrawn, and then nothing of it may be.
    #[must_use]
    pub fn begin(&self) -> bool {
        self.0.compare_exchange(WAITING, BEGUN, SeqCst, SeqCst) != Err(WITHDRAWN)
    }

    /// Nothing of it was kept after all.
    pub fn put_back(&self) {
        // One that was not begun stays what it is.
        let _ = self.0.compare_exchange(BEGUN, WAITING, SeqCst, SeqCst);
    }

    /// Calls it back; whether nothing of it is kept and nothing will be. If not, its outcome is not known yet.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.0.compare_exchange(WAITING, WITHDRAWN, SeqCst, SeqCst) != Err(BEGUN)
    }

    /// Whether it was called back.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.0.load(SeqCst) == WITHDRAWN
    }
}

/// Begins with all, or with none where one was withdrawn; whether it did.
pub(super) fn begin_all(turns: &[&Turn]) -> bool {
    let withdrawn = turns.iter().position(|turn| !turn.begin());
    for turn in &turns[..withdrawn.unwrap_or_default()] {
        turn.put_back();
    }
    withdrawn.is_none()
}

/// The submissions with each key that are on their way, whether or not anybody waits for them still.
#[derive(Debug, Default)]
pub(super) struct Keys(Mutex<HashMap<Scope, Vec<Turn>>>);

impl Keys {
    fn turns(&self) -> MutexGuard<'_, HashMap<Scope, Vec<Turn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, submission: &Submission) -> UnderWay {
        let (scope, turn) = (submission.arrived.scope.clone(), submission.turn.clone());
        self.turns().entry(scope.clone()).or_default().push(turn.clone());
        UnderWay { keys: Arc::clone(self), scope, turn }
    }

    /// Whether one with this key is on its way that was not withdrawn; nothing where there is none at all.
    pub(super) fn under_way(&self, scope: &Scope) -> Option<bool> {
        self.turns().get(scope).map(|turns| turns.iter().any(|turn| !turn.is_withdrawn()))
    }
}

/// One submission is on its way; when this is dropped it is no more.
pub(super) struct UnderWay {
    keys: Arc<Keys>,
    scope: Scope,
    pub(super) turn: Turn,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut all = self.keys.turns();
        if let Some(turns) = all.get_mut(&self.scope) {
            if let Some(place) = turns.iter().position(|turn| Arc::ptr_eq(&turn.0, &self.turn.0)) {
                turns.swap_remove(place);
            }
            if turns.is_empty() {
                all.remove(&self.scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_withdrawn_is_never_begun_and_what_was_begun_is_never_withdrawn() {
        let (withdrawn, begun, waiting) = (Turn::default(), Turn::default(), Turn::default());
        assert!(withdrawn.withdraw() && !withdrawn.begin() && withdrawn.is_withdrawn());
        assert!(begun.begin() && begun.begin() && !begun.withdraw() && !begun.is_withdrawn());
        // With one of them gone none is begun, and those may be called back still.
        assert!(!begin_all(&[&waiting, &withdrawn]) && waiting.withdraw());
        begun.put_back();
        assert!(begun.withdraw(), "nothing of it was kept, so it can be called back");
    }
}
