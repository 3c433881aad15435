//! Work that goes on elsewhere, and how a run waits for it without anybody holding it.

use super::{Held, Hold, Intent, StoreResult};
use async_trait::async_trait;
use domain::{id::RequestId, time::Moment, view::EventEntry};
use std::time::Duration;

/// How a run waits for work that goes on elsewhere.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// What the hold was to do; where somebody decided otherwise meanwhile, the run is due at once.
    pub meant: Intent,
    /// When it is looked at again, unless something wakes it before.
    pub wait: Duration,
    /// What the next hold is to do instead, and why.
    pub turned: Option<(Intent, Option<String>)>,
    /// What is written into the history.
    pub entry: Option<EventEntry>,
}

/// What is kept of work that goes on elsewhere.
#[async_trait]
pub trait Errands {
    /// Gives a run back until there may be news of what goes on elsewhere. That counts as no try. A run that was woken
    /// since it was taken is due at once.
    async fn wait_elsewhere(&self, hold: Hold, waiting: Waiting, now: Moment) -> StoreResult<Held>;
    /// Makes the run of a request due, if there is one: there may be news. One that somebody works on is due as soon as it
    /// is given back.
    async fn wake(&self, request: RequestId, now: Moment) -> StoreResult<()>;
}
