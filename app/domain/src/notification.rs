//! Notifications: what the portal tells other systems of by itself, and what is shown of each telling.

use crate::{
    id::{NotificationDeliveryId, NotificationId, RequestId},
    name::Name,
    state::RequestState,
    time::Moment,
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The team that stands for the whole portal, which only administrators are told of.
pub const WHOLE_PORTAL: &str = "-";

/// Something that is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum NotificationEvent {
    /// A request waits for a person's decision.
    #[serde(rename = "request.pending_approval")]
    PendingApproval,
    /// A request was carried out.
    #[serde(rename = "request.succeeded")]
    Succeeded,
    /// A request failed, and nothing of it is left behind but what its steps made, if it has any.
    #[serde(rename = "request.failed")]
    Failed,
    /// Nobody can tell what became of a request; a person chooses.
    #[serde(rename = "request.unknown")]
    Unknown,
    /// A request was stopped.
    #[serde(rename = "request.canceled")]
    Canceled,
    /// Somebody decided against a request.
    #[serde(rename = "request.rejected")]
    Rejected,
    /// A resource comes to its end soon.
    #[serde(rename = "resource.expiring")]
    Expiring,
    /// Somebody wants to see whether notifications arrive.
    #[serde(rename = "ping")]
    Ping,
}

/// A word that names no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event: {0}")]
pub struct UnknownEvent(String);

impl NotificationEvent {
    /// Those that one can ask to be told of.
    pub const CHOICES: [Self; 7] = [
        Self::PendingApproval,
        Self::Succeeded,
        Self::Failed,
        Self::Unknown,
        Self::Canceled,
        Self::Rejected,
        Self::Expiring,
    ];

    /// The event that a request's coming to a state is, if it is one.
    #[must_use]
    pub fn of_state(state: RequestState) -> Option<Self> {
        match state {
            RequestState::PendingApproval => Some(Self::PendingApproval),
            RequestState::Succeeded => Some(Self::Succeeded),
            RequestState::Failed => Some(Self::Failed),
            RequestState::Unknown => Some(Self::Unknown),
            RequestState::Canceled => Some(Self::Canceled),
            RequestState::Rejected => Some(Self::Rejected),
            RequestState::Queued | RequestState::Running => None,
        }
    }

    /// The event's word: the payload's `type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PendingApproval => "request.pending_approval",
            Self::Succeeded => "request.succeeded",
            Self::Failed => "request.failed",
            Self::Unknown => "request.unknown",
            Self::Canceled => "request.canceled",
            Self::Rejected => "request.rejected",
            Self::Expiring => "resource.expiring",
            Self::Ping => "ping",
        }
    }

    /// What it is, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::PendingApproval => "waits for approval",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "has an unknown outcome, somebody must decide",
            Self::Canceled => "was canceled",
            Self::Rejected => "was rejected",
            Self::Expiring => "ends soon",
            Self::Ping => "test",
        }
    }

    /// Of what it is told, for people.
    #[must_use]
    pub fn subject(self) -> &'static str {
        match self {
            Self::Expiring => "a resource",
            _ => "a request",
        }
    }
}

impl fmt::Display for NotificationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NotificationEvent {
    type Err = UnknownEvent;

    fn from_str(word: &str) -> Result<Self, UnknownEvent> {
        let all = Self::CHOICES.into_iter().chain([Self::Ping]);
        all.into_iter().find(|event| event.as_str() == word).ok_or_else(|| UnknownEvent(word.to_owned()))
    }
}

/// Where a team wants to be told, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationView {
    /// Its ID.
    pub id: NotificationId,
    /// The team; `-` for the whole portal.
    pub team: String,
    /// What its owners call it.
    pub label: String,
    /// The address that is called.
    pub url: String,
    /// What is told of.
    pub events: Vec<NotificationEvent>,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Moment,
    /// When it was last changed.
    pub updated_at: Moment,
    /// Since when nothing is sent any more.
    pub disabled_at: Option<Moment>,
    /// Why nothing is sent any more.
    pub disabled_reason: Option<String>,
    /// Until when the secret before the last rotation signs as well.
    pub old_secret_until: Option<Moment>,
    /// The signing secret: in the first answer only, never in a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What a repeat says in the secret's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl NotificationView {
    /// Where its owners look after it.
    #[must_use]
    pub fn managed_at(&self) -> String {
        format!("/api/v1/teams/{}/notifications/{}", self.team, self.id)
    }
}

/// How a telling stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotificationDeliveryState {
    /// It is to be sent, for the first time or again.
    Waiting,
    /// The other side took it.
    Delivered,
    /// It was tried for as long as it is; only a person sends it again.
    GivenUp,
}

impl NotificationDeliveryState {
    /// The state's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given_up",
        }
    }

    /// The state, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given up",
        }
    }
}

impl FromStr for NotificationDeliveryState {
    type Err = UnknownEvent;

    fn from_str(word: &str) -> Result<Self, UnknownEvent> {
        [Self::Waiting, Self::Delivered, Self::GivenUp]
            .into_iter()
            .find(|state| state.as_str() == word)
            .ok_or_else(|| UnknownEvent(word.to_owned()))
    }
}

/// One event on its way to one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationDeliveryView {
    /// Its ID, which is the `webhook-id` of every try.
    pub id: NotificationDeliveryId,
    /// What it tells of.
    pub event: NotificationEvent,
    /// The request that it is about.
    pub request_id: Option<RequestId>,
    /// The resource that it is about, where it is about no request.
    pub resource: Option<NotificationResource>,
    /// How it stands.
    pub state: NotificationDeliveryState,
    /// When what it tells of happened.
    pub created_at: Moment,
    /// When it is tried next.
    pub next_at: Option<Moment>,
    /// How often it was tried.
    pub tries: u32,
    /// The last tries, oldest first.
    pub attempts: Vec<NotificationAttemptView>,
}

/// A resource, by where it is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationResource {
    /// The team that owns it.
    pub team: Name,
    /// Its type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// Its name.
    pub name: Name,
}

impl NotificationResource {
    /// Where its page is; below `/api/v1` also where the API shows it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/teams/{}/resources/{}/{}", self.team, self.resource_type, self.name)
    }
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationAttemptView {
    /// When it was sent.
    pub at: Moment,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// The status that came back.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_word() {
        for event in NotificationEvent::CHOICES {
            assert_eq!(event.as_str().parse(), Ok(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
        assert!("request.started".parse::<NotificationEvent>().is_err());
        for state in RequestState::ALL {
            let told = NotificationEvent::of_state(state);
            assert!(told.is_none_or(|event| event.as_str() == format!("request.{state}")));
            assert!(told.is_none_or(|event| event.subject() == "a request"));
        }
    }
}
