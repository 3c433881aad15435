//! What is kept of hooks: their definitions, their sealed secrets, and what was delivered to them lately.

use super::StoreResult;
use crate::answer::Answer;
use async_trait::async_trait;
use domain::{
    hook::{DeliveryOutcome, DeliveryView, HookDefinition, HookView},
    id::{DeliveryId, HookId, RequestId},
    name::Name,
    time::Moment,
    view::Page,
};
use uuid::Uuid;

/// How many living hooks a team may have.
pub const MOST_HOOKS: i64 = 200;

/// A hook as it is kept.
#[derive(Debug, Clone)]
pub struct StoredHook {
    /// What is shown.
    pub view: HookView,
    /// Its secrets, the current one first.
    pub secrets: Vec<SealedSecret>,
    /// When it was removed.
    pub removed_at: Option<Moment>,
}

/// One of a hook's secrets.
#[derive(Debug, Clone)]
pub struct SealedSecret {
    /// Its ID, to which it is sealed.
    pub id: Uuid,
    /// The secret, sealed.
    pub sealed: Vec<u8>,
    /// When it stops to count; the current one does not.
    pub ends_at: Option<Moment>,
}

/// What is done to a hook, in the transaction that claims the key.
#[derive(Debug, Clone)]
pub enum HookEffect {
    /// It is made.
    Create {
        /// What is shown of it.
        view: Box<HookView>,
        /// Its secret.
        secret: SealedSecret,
        /// The answer to store: without the secret.
        answer: Answer,
    },
    /// It is another from now on.
    Change {
        /// The hook.
        id: HookId,
        /// What it is to be.
        definition: Box<HookDefinition>,
        /// The version that this was worked out from.
        version: i64,
    },
    /// It gets a new secret, and the one before ends after a while.
    Rotate {
        /// The hook.
        id: HookId,
        /// The new secret.
        secret: SealedSecret,
        /// When the one before ends.
        old_ends_at: Moment,
        /// What a repeat says in the secret's place.
        note: &'static str,
    },
    /// The secret before the current one ends now.
    EndSecret(HookId),
    /// It takes no more events.
    Remove(HookId),
}

/// One arrival at a hook, as it is written down.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its ID, to which headers and payload are sealed.
    pub id: DeliveryId,
    /// The hook.
    pub hook: HookId,
    /// When.
    pub at: Moment,
    /// The event's identity.
    pub event_id: Option<String>,
    /// The sender's address.
    pub address: Option<String>,
    /// What became of it.
    pub outcome: DeliveryOutcome,
    /// The problem's slug, where it was refused.
    pub problem: Option<&'static str>,
    /// Why it was refused or ignored.
    pub detail: Option<String>,
    /// The request that it led to.
    pub request: Option<RequestId>,
    /// How long its payload was.
    pub size: i64,
    /// Headers and payload, sealed.
    pub sealed: Vec<u8>,
}

/// What is sealed with a version of the portal's key besides the secrets of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookSeal {
    /// A hook's secret.
    Secret(Uuid),
    /// A delivery's headers and payload.
    Delivery(DeliveryId),
}

/// What every database keeps of hooks.
#[async_trait]
pub trait Hooks {
    /// One hook, also when it was removed.
    async fn hook(&self, id: HookId) -> StoreResult<Option<StoredHook>>;
    /// A page of a team's living hooks, newest first.
    async fn hooks(
        &self,
        team: &Name,
        after: Option<(Moment, Uuid)>,
        size: u32,
        now: Moment,
    ) -> StoreResult<Page<HookView>>;
    /// Writes deliveries down; of each hook only the last ones stay.
    async fn record_deliveries(&self, deliveries: Vec<Delivery>) -> StoreResult<()>;
    /// A page of what was delivered to a hook, newest first.
    async fn deliveries(
        &self,
        hook: HookId,
        after: Option<(Moment, Uuid)>,
        size: u32,
    ) -> StoreResult<Page<DeliveryView>>;
    /// One delivery to a hook, with its headers and payload sealed.
    async fn delivery(&self, hook: HookId, id: DeliveryId) -> StoreResult<Option<(DeliveryView, Vec<u8>)>>;
    /// Removes up to `limit` deliveries from before a moment, and as many secrets that have ended; how many of the more.
    async fn sweep_hooks(&self, now: Moment, before: Moment, limit: u32) -> StoreResult<u64>;
    /// What is sealed and does not begin with `head`, in batches of about `limit`.
    async fn hooks_sealed_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(HookSeal, Vec<u8>)>>;
    /// Puts a new seal in the place of an old one; whether that was still there.
    async fn reseal_hook(&self, seal: HookSeal, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool>;
}
