//! Telling other systems of what happens: to whom, and what is on its way.
//!
//! What is to be told is written by the transaction that makes it true, so a crash neither loses it nor makes it up. It is
//! sent by whoever takes it for the length of a lease; a server that ends between sending and writing that down leaves it
//! to be sent again under the same ID, by which the other side knows it.

use super::StoreResult;
use crate::answer::Answer;
use async_trait::async_trait;
use domain::{
    id::{NotificationDeliveryId, NotificationId, RequestId},
    notification::{
        NotificationAttemptView, NotificationDeliveryView, NotificationEvent, NotificationResource,
        NotificationView,
    },
    time::Moment,
    view::{Object, Page},
};
use std::time::Duration;

/// How many a team may have.
pub const MOST_NOTIFICATIONS: u32 = 20;
/// How many tries of one delivery are kept.
pub const MOST_ATTEMPTS: usize = 20;
/// After how many deliveries in a row that were given up nothing more is sent.
pub const MOST_GIVEN_UP: u32 = 3;

/// A change of where a team wants to be told.
#[derive(Debug, Clone)]
pub enum NotificationEffect {
    /// A new one.
    Create {
        /// What is shown of it.
        view: Box<NotificationView>,
        /// Its signing secrets, sealed.
        secrets: Vec<u8>,
        /// The answer to store: without the secret.
        answer: Answer,
    },
    /// Another label, address or choice of events, or whether anything is sent.
    Change {
        /// Which.
        id: NotificationId,
        /// What it becomes; what is not named stays.
        change: Box<NotificationChange>,
    },
    /// Another signing secret.
    Rotate {
        /// Which.
        id: NotificationId,
        /// The sealed secrets that the new ones were made from.
        before: Vec<u8>,
        /// The new ones, sealed.
        after: Vec<u8>,
        /// Until when the old one signs as well.
        old_until: Moment,
    },
    /// The end of one, and of what is on its way to it.
    Remove(NotificationId),
    /// Something to send by itself.
    Ping {
        /// To whom.
        id: NotificationId,
        /// The delivery's ID.
        delivery: NotificationDeliveryId,
        /// What it says.
        data: Object,
    },
    /// Send a delivery again, whatever became of it.
    Resend {
        /// To whom.
        id: NotificationId,
        /// Which.
        delivery: NotificationDeliveryId,
    },
}

impl NotificationEffect {
    /// Which one it is about.
    #[must_use]
    pub fn id(&self) -> NotificationId {
        match self {
            Self::Create { view, .. } => view.id,
            Self::Change { id, .. }
            | Self::Rotate { id, .. }
            | Self::Remove(id)
            | Self::Ping { id, .. }
            | Self::Resend { id, .. } => *id,
        }
    }
}

/// What a change names.
#[derive(Debug, Clone, Default)]
pub struct NotificationChange {
    /// What its owners call it.
    pub label: Option<String>,
    /// The address that is called.
    pub url: Option<String>,
    /// What is told of.
    pub events: Option<Vec<NotificationEvent>>,
    /// Whether anything is sent.
    pub enabled: Option<bool>,
}

/// A delivery that a server has taken to send.
#[derive(Debug, Clone)]
pub struct TakenDelivery {
    /// Its ID.
    pub id: NotificationDeliveryId,
    /// The number of the hold: what an earlier one writes does not count.
    pub fence: i64,
    /// To whom.
    pub notification: NotificationId,
    /// The address.
    pub url: String,
    /// The signing secrets, sealed.
    pub secrets: Vec<u8>,
    /// Until when the older secret signs as well.
    pub old_until: Option<Moment>,
    /// What it tells of.
    pub event: NotificationEvent,
    /// The request that it is about.
    pub request: Option<RequestId>,
    /// What it says.
    pub data: Object,
    /// When what it tells of happened.
    pub created_at: Moment,
    /// When the time began over which it is tried.
    pub since: Moment,
    /// How often it was tried before.
    pub tries: u32,
}

/// The resource that this says something of, if it does.
pub(crate) fn of_resource(data: &Object) -> Option<NotificationResource> {
    serde_json::from_value(data.get("resource")?.clone()).ok()
}

/// What is to become of a delivery after a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterTry {
    /// It arrived.
    Delivered,
    /// It is tried again after this time.
    Again(Duration),
    /// It is not tried any more.
    GiveUp,
    /// It is not tried any more, and nothing else is sent there either, for this reason.
    Disable(&'static str),
}

/// What every database keeps of notifications.
#[async_trait]
pub trait Notifications {
    /// A team's, newest first. At most [`MOST_NOTIFICATIONS`] are made.
    async fn notifications(&self, team: &str) -> StoreResult<Vec<NotificationView>>;
    /// One of a team's, and its sealed secrets.
    async fn notification(
        &self,
        team: &str,
        id: NotificationId,
    ) -> StoreResult<Option<(NotificationView, Vec<u8>)>>;
    /// A page of what was and is to be sent there, newest first.
    async fn notification_deliveries(
        &self,
        id: NotificationId,
        after: Option<(Moment, uuid::Uuid)>,
        size: u32,
    ) -> StoreResult<Page<NotificationDeliveryView>>;
    /// Takes a delivery that is due, for the length of a lease; of each address one at a time, so that a slow one is
    /// waited for by nobody else.
    async fn take_delivery(
        &self,
        owner: &str,
        now: Moment,
        lease: Duration,
    ) -> StoreResult<Option<TakenDelivery>>;
    /// Writes down what a try came to; whether the hold still held.
    async fn delivery_tried(
        &self,
        delivery: NotificationDeliveryId,
        fence: i64,
        attempt: NotificationAttemptView,
        after: AfterTry,
        now: Moment,
    ) -> StoreResult<bool>;
    /// Tells of up to `limit` resources whose end is near: of each once, until it ends at another time; how many.
    async fn tell_of_ends(&self, now: Moment, limit: u32) -> StoreResult<u64>;
    /// Removes up to `limit` deliveries whose time began before `before`, and what was removed altogether; how many rows.
    async fn sweep_deliveries(&self, before: Moment, limit: u32) -> StoreResult<u64>;
    /// Sealed secrets that do not begin with `head`, up to `limit` or twice that.
    async fn notifications_sealed_otherwise(
        &self,
        head: &[u8],
        limit: u32,
    ) -> StoreResult<Vec<(NotificationId, Vec<u8>)>>;
    /// Puts a new seal in the place of an old one; whether that was still there.
    async fn reseal_notification(
        &self,
        id: NotificationId,
        before: Vec<u8>,
        after: Vec<u8>,
    ) -> StoreResult<bool>;
}
