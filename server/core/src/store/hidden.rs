//! The true values of secret parameters, sealed, each by the request that brought them.

use super::StoreResult;
use async_trait::async_trait;
use domain::id::{RequestId, ResourceId};

/// What the database keeps of secret parameters.
#[async_trait]
pub trait HiddenParameters: Send + Sync {
    /// What requests about this life brought.
    async fn hidden_of(&self, resource: ResourceId) -> StoreResult<Vec<(RequestId, Vec<u8>)>>;
    /// Such that do not begin with `head`, up to `limit` or twice that.
    async fn hidden_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(RequestId, Vec<u8>)>>;
    /// Puts a new seal in the place of an old one; whether that was still there.
    async fn reseal_hidden(&self, request: RequestId, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool>;
    /// Puts another value in the place of a setting's; whether that was still there.
    async fn change_setting(&self, name: &str, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool>;
}
