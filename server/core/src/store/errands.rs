//! Work that goes on elsewhere: how a run waits for it without anybody holding it, what is kept of it, and what the
//! other side reports.
//!
//! An errand is what one attempt of a request has begun elsewhere. It is kept before the call that begins it, so that a
//! report that overtakes the answer of that call finds it. A report is taken in once, by its source and the ID that the
//! source gave it, in the same transaction as its effect.

use super::{Held, Hold, Intent, StoreResult};
use crate::provisioner::Work;
use async_trait::async_trait;
use domain::{
    callback::{Heard, OrphanView, Progress},
    id::{ErrandId, RequestId},
    time::Moment,
    view::{EventEntry, Object, Page},
};
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
    /// What is noted of an errand, sealed.
    pub note: Option<(ErrandId, Vec<u8>)>,
}

/// What is kept of something that was begun elsewhere.
#[derive(Debug, Clone)]
pub struct Errand {
    /// Its ID, which is that of the callback by which it is reported on.
    pub id: ErrandId,
    /// The request.
    pub request: RequestId,
    /// The attempt that began it.
    pub attempt: u32,
    /// What is done.
    pub work: Work,
    /// The secret that the other side signs its reports with, sealed.
    pub secret: Vec<u8>,
    /// What was noted of it, sealed.
    pub note: Option<Vec<u8>>,
    /// What was last reported, with outputs or a reason, sealed.
    pub reported: Option<(Progress, Option<Vec<u8>>)>,
}

/// What came of beginning to take back what an attempt began.
#[derive(Debug, Clone)]
pub enum Back {
    /// The hold was lost.
    Lost,
    /// That it succeeded was reported before, and nobody decided otherwise: it stands.
    Stands,
    /// It is being taken back, and that is what the run is to do from now on, whoever holds it.
    Begun(Errand, Intent),
}

/// A report, known to be genuine.
#[derive(Debug, Clone)]
pub struct Report {
    /// What it reports on.
    pub errand: ErrandId,
    /// The ID that its source gave it.
    pub event: String,
    /// A keyed hash of its bytes.
    pub body_hash: [u8; 32],
    /// Its place among the reports on the errand.
    pub sequence: i64,
    /// Whether it says of itself that it belongs to an earlier attempt.
    pub earlier: bool,
    /// How far the work has come.
    pub progress: Progress,
    /// What it adds to the history, if it counts.
    pub entries: Vec<EventEntry>,
    /// What it adds to the history, if what it tells of may stand and nobody answers for it.
    pub made: Option<EventEntry>,
    /// Outputs or a reason, sealed.
    pub outcome: Option<Vec<u8>>,
    /// Of the outputs those that are no secrets.
    pub outputs: Object,
    /// When it came.
    pub at: Moment,
}

/// What became of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It was taken in now, or (`again`) before, when this became of it.
    In {
        /// What became of it the first time.
        heard: Heard,
        /// When that was.
        at: Moment,
        /// Whether this is a repeat.
        again: bool,
    },
    /// Another report of this ID was taken in before; that this one was refused is recorded.
    Reused,
    /// The errand has had as many reports as are kept.
    Full,
    /// There is no such errand.
    Missing,
}

/// What is sealed of an errand with a version of the portal's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrandSeal {
    /// The secret of its callback.
    Secret(ErrandId),
    /// What was noted of it.
    Note(ErrandId),
    /// What was reported of it.
    Report(ErrandId),
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

    /// Keeps an errand of the attempt that is held, unless there is one for this work; the one that is kept. Nothing where
    /// the hold was lost.
    async fn begin_errand(&self, hold: Hold, errand: Errand, now: Moment) -> StoreResult<Option<Errand>>;
    /// Keeps the errand that takes back what the attempt began, and turns the run to it for this reason, unless what was
    /// begun succeeded. Reports of that come before this or after it: after it they change nothing.
    async fn begin_back(
        &self,
        hold: Hold,
        errand: Errand,
        why: Option<String>,
        now: Moment,
    ) -> StoreResult<Back>;
    /// The errands of one attempt.
    async fn errands_of(&self, request: RequestId, attempt: u32) -> StoreResult<Vec<Errand>>;
    /// One errand.
    async fn errand(&self, id: ErrandId) -> StoreResult<Option<Errand>>;
    /// Takes a report in, with its effect, once.
    async fn report(&self, report: Report) -> StoreResult<Taken>;
    /// Takes back that what this errand made is an orphan, since its request came to the same at a later attempt; whether
    /// it was one.
    async fn take_over_orphan(&self, errand: ErrandId, now: Moment) -> StoreResult<bool>;
    /// Removes up to `limit` errands, with the reports on them, that were begun longer ago than they are `known` and whose
    /// requests ended as long ago; orphans as long after they were reported. How many.
    async fn sweep_errands(&self, now: Moment, known: Duration, limit: u32) -> StoreResult<u64>;
    /// A page of what succeeded elsewhere after its request had come to another end or attempt, newest first.
    async fn orphans(&self, after: Option<(Moment, uuid::Uuid)>, size: u32) -> StoreResult<Page<OrphanView>>;
    /// What is sealed of errands and does not begin with `head`, in batches of about `limit`.
    async fn errands_sealed_otherwise(
        &self,
        head: &[u8],
        limit: u32,
    ) -> StoreResult<Vec<(ErrandSeal, Vec<u8>)>>;
    /// Puts a new seal in the place of an old one; whether that was still there.
    async fn reseal_errand(&self, seal: ErrandSeal, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool>;
}
