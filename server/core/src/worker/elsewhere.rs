//! Waiting for work that goes on elsewhere, without a worker being held up by it.
//!
//! The run is given back with the time of the next look. Who takes it then looks first, as after any doubt. What is to be
//! taken back is stopped before; where that takes time as well, the run keeps what it is turned to.

use super::carry_out::{Attempt, cut};
use crate::{
    provisioner::{Elsewhere, Observation, Outcome},
    store::{Ending, Held, Intent, StoreError, Waiting},
};
use domain::{state::RequestState, view::EventEntry};
use std::time::Duration;

/// The bounds of the time between two looks.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOOK: Duration = Duration::from_hours(1);

/// What the next hold of a run is to do instead of what this one was to do, and why.
pub(super) type Turned = Option<(Intent, Option<String>)>;

/// What a run is turned to whose request is to end in this state.
pub(super) fn towards(state: RequestState, reason: Option<&str>) -> Turned {
    match state {
        RequestState::Failed => Some((Intent::Abandon, reason.map(cut))),
        // A cancellation is written where it was asked for.
        _ => None,
    }
}

impl Attempt<'_> {
    /// Why the request is abandoned.
    pub(super) fn why(&self) -> String {
        self.run.why.clone().unwrap_or_else(|| "abandoned".into())
    }

    /// Looks, and stops what goes on elsewhere. Where that is still going on then, its end has to be awaited.
    pub(super) async fn observe_stopped(&self) -> Result<Observation, StoreError> {
        let seen = self.observe().await?;
        if !matches!(seen, Observation::InProgress(_)) {
            return Ok(seen);
        }
        let outcome = self
            .call_to_the_end(async |job, context| self.offering.provisioner.stop(job, context).await)
            .await;
        match outcome {
            Outcome::Done(_) | Outcome::InProgress(_) | Outcome::Stopped => {}
            Outcome::Retryable(why) | Outcome::Failed(why) | Outcome::CannotTell(why) => {
                self.step("stop", &why).await?;
            }
        }
        self.observe().await
    }

    /// Gives the run back until there may be news; or ends the patience.
    pub(super) async fn wait(&self, elsewhere: Elsewhere, turned: Turned) -> Result<Held, StoreError> {
        let now = self.portal.clock.now();
        if let (Some(waited), Some(patience)) = (self.run.waited, elsewhere.patience)
            && waited > patience
        {
            let why = format!("{}: no end after {} s", elsewhere.what, waited.as_secs());
            let ending = Ending::without_outputs(RequestState::Unknown, Some(cut(&why)));
            return self.portal.store.end_run(self.hold(), ending, now).await;
        }
        // Once, however often one looks.
        let entry = self
            .run
            .waited
            .is_none()
            .then(|| EventEntry::Step { step: "wait".into(), detail: cut(&elsewhere.what) });
        let wait = elsewhere.look_again.clamp(SHORTEST_LOOK, LONGEST_LOOK);
        let waiting = Waiting { meant: self.run.intent, wait, turned, entry };
        self.portal.store.wait_elsewhere(self.hold(), waiting, now).await
    }
}
