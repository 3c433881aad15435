//! Requests that wait for somebody's approval, and the end of their time.

use super::StoreResult;
use async_trait::async_trait;
use domain::{id::RequestId, name::Name, time::Moment, view::RequestView};

/// What the database knows of approvals.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// Up to `limit` requests that wait, of a team or of all: those first whose time to decide ends first.
    async fn waiting(&self, team: Option<&Name>, limit: u32) -> StoreResult<Vec<RequestView>>;
    /// Up to `limit` requests whose time to decide is over, those first that have waited longest. That time is reckoned by
    /// the one clock that all servers on a database share, as deadlines of runs are.
    async fn undecided(&self, now: Moment, limit: u32) -> StoreResult<Vec<RequestId>>;
    /// Rejects a request that nobody has decided about in time; whether it did. One that was decided at the same moment is
    /// left alone.
    async fn time_out(&self, request: RequestId, now: Moment) -> StoreResult<bool>;
}
