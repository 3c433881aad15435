//! Requests that descend from each other: the steps of a composite, and the whole chain from its root down.

use super::{Arrived, StoreResult, StoredRequest};
use async_trait::async_trait;
use domain::{chain::ChainView, id::RequestId, submission::Channel};

impl Arrived {
    /// The step of its parent that it comes from: what stands in its key after the parent's ID.
    #[must_use]
    pub fn step(&self) -> Option<&str> {
        (self.channel == Channel::Composite).then(|| self.scope.key.as_str().split('/').nth(1)).flatten()
    }
}

/// A request that a step of its parent asked for.
#[derive(Debug, Clone)]
pub struct StepRequest {
    /// The step.
    pub step: String,
    /// What it asked for.
    pub request: StoredRequest,
}

/// What the database knows of families.
#[async_trait]
pub trait Families: Send + Sync {
    /// What the steps of a request asked for, oldest first.
    async fn steps_of(&self, parent: RequestId) -> StoreResult<Vec<StepRequest>>;
    /// The chain that a request belongs to, root first: at most `most` requests, of which it is one. Nothing where there is
    /// no such request.
    async fn chain(&self, of: RequestId, most: u32) -> StoreResult<Option<ChainView>>;
}
