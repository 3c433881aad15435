//! Hooks: how an outside system's events become requests of a team, and what is shown of that.

use crate::{
    id::{DeliveryId, HookId, RequestId},
    name::Name,
    plan::PlanView,
    time::Moment,
    view::Object,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// How many deliveries of a hook are kept; older ones go.
pub const KEPT_DELIVERIES: u32 = 100;
/// How many bytes of a delivery's payload are kept.
pub const KEPT_PAYLOAD: usize = 64 * 1024;
/// The longest name of a header that holds an event's identity, in characters.
const LONGEST_HEADER: usize = 64;

/// How a hook's events prove where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Signing {
    /// As Standard Webhooks say: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    Standard,
    /// As GitHub does: `X-Hub-Signature-256`.
    Github,
    /// By the secret itself, as `Authorization: Bearer`.
    Bearer,
}

/// A word that names no way of signing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be standard, github or bearer")]
pub struct UnknownSigning;

impl Signing {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Standard, Self::Github, Self::Bearer];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Github => "github",
            Self::Bearer => "bearer",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Standard => "Standard Webhooks",
            Self::Github => "GitHub (X-Hub-Signature-256, content type application/json)",
            Self::Bearer => "Bearer secret",
        }
    }

    /// The header that holds an event's identity where nobody names another.
    #[must_use]
    pub fn usual_identity(self) -> &'static str {
        match self {
            Self::Standard => "webhook-id",
            Self::Github => "x-github-delivery",
            Self::Bearer => "idempotency-key",
        }
    }
}

impl fmt::Display for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Signing {
    type Err = UnknownSigning;
    fn from_str(word: &str) -> Result<Self, UnknownSigning> {
        Self::ALL.into_iter().find(|one| one.as_str() == word).ok_or(UnknownSigning)
    }
}

/// The name of the header that holds an event's identity, in lower case; nothing if it is no header's name or that of
/// one that proves something or names the connection.
#[must_use]
pub fn identity_header(name: &str) -> Option<String> {
    const NEVER: [&str; 10] = [
        "authorization",
        "cookie",
        "host",
        "content-length",
        "content-type",
        "user-agent",
        "connection",
        "date",
        "x-hub-signature-256",
        "webhook-signature",
    ];
    let name = name.trim().to_ascii_lowercase();
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    let good = (1..=LONGEST_HEADER).contains(&name.len()) && name.bytes().all(fits);
    (good && !NEVER.contains(&name.as_str())).then_some(name)
}

/// An example of an event, against which a mapping is tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sample {
    /// Headers that the mapping reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The payload.
    pub payload: Value,
}

/// What a hook is: what its owners say of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HookDefinition {
    /// What its owners call it.
    pub title: String,
    /// The offering that its events ask for.
    pub offering: Name,
    /// The header that holds an event's identity; where a hook is made without it, the usual one of its signature.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub identity: String,
    /// How its events are signed.
    pub signature: Signing,
    /// Which events count, as an expression; all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The resource's name, as a template.
    pub name: String,
    /// The offering's parameters: texts are templates, and one that is a single expression keeps its value's type.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    #[serde(default)]
    pub parameters: Object,
    /// Labels of the request, as templates.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The request's correlation ID, as a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// An example of an event, shown to owners only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// A hook, without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HookView {
    /// Its ID.
    pub id: HookId,
    /// The team it belongs to.
    pub team: Name,
    /// Where its events are sent.
    pub address: String,
    /// What it is.
    #[serde(flatten)]
    pub definition: HookDefinition,
    /// Counts its changes, from 1.
    pub version: i64,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// Until when the secret before the current one still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_ends_at: Option<Moment>,
    /// The new secret: in the first answer to its making only, never in a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What a repeat says in the secret's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl HookView {
    /// Where a hook's events are sent.
    #[must_use]
    pub fn address_of(id: HookId) -> String {
        format!("/api/v1/hooks/{id}")
    }

    /// Where its owners look after it.
    #[must_use]
    pub fn managed_at(&self) -> String {
        format!("/api/v1/teams/{}/hooks/{}", self.team, self.id)
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeliveryOutcome {
    /// It made a request.
    Requested,
    /// It asked for something that was there already.
    Existing,
    /// It was delivered before and got the first answer.
    Replayed,
    /// It is an event that does not count.
    Ignored,
    /// Its identity was delivered before with another payload: refused.
    Mismatched,
    /// It was refused and does not count as seen.
    Refused,
}

/// A word that names no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown outcome of a delivery: {0}")]
pub struct UnknownOutcome(String);

impl DeliveryOutcome {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Existing => "existing",
            Self::Replayed => "replayed",
            Self::Ignored => "ignored",
            Self::Mismatched => "mismatched",
            Self::Refused => "refused",
        }
    }
}

impl FromStr for DeliveryOutcome {
    type Err = UnknownOutcome;
    fn from_str(word: &str) -> Result<Self, UnknownOutcome> {
        let all =
            [Self::Requested, Self::Existing, Self::Replayed, Self::Ignored, Self::Mismatched, Self::Refused];
        let found = all.into_iter().find(|one| one.as_str() == word);
        found.ok_or_else(|| UnknownOutcome(word.to_owned()))
    }
}

/// One arrival of a genuine event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    /// Its ID.
    pub id: DeliveryId,
    /// When it arrived.
    pub at: Moment,
    /// The event's identity, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The sender's network address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What became of it.
    pub outcome: DeliveryOutcome,
    /// The problem's name, where it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why it was refused or ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The request that it led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// How many bytes its payload had.
    pub size: i64,
    /// The headers that a mapping may read; of one delivery only, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The payload as it came, or its beginning; of one delivery only, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// What an event would do, were it delivered now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HookTrial {
    /// Always true: nothing was claimed, recorded or made.
    pub dry_run: bool,
    /// Whether the event counts.
    pub counts: bool,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it would ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanView>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_in_a_header_of_its_own() {
        assert_eq!(identity_header("X-GitHub-Delivery").as_deref(), Some("x-github-delivery"));
        assert_eq!(identity_header(" Idempotency-Key ").as_deref(), Some("idempotency-key"));
        for bad in ["", "a b", "x:y", "é", "Authorization", "cookie", &"x".repeat(65)] {
            assert_eq!(identity_header(bad), None, "{bad}");
        }
        for way in Signing::ALL {
            assert_eq!(way.as_str().parse::<Signing>(), Ok(way));
            assert_eq!(identity_header(way.usual_identity()).as_deref(), Some(way.usual_identity()));
        }
    }
}
