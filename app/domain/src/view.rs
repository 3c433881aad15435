//! The shapes in which the portal shows requests, resources and the rest: the API's bodies, and what pages render.

use crate::{
    approval::{ApprovalNeeded, ApprovalView},
    change::Changes,
    etag::Version,
    id::{PrincipalId, RequestId, ResourceId, SubmissionId, TokenId},
    name::Name,
    problem::RequestLink,
    role::{PortalRole, TeamRole},
    state::RequestState,
    submission::{Channel, SubmissionOutcome},
    time::Moment,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A JSON object whose members an offering defines.
pub type Object = Map<String, Value>;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestView {
    /// Its ID.
    pub id: RequestId,
    /// The team it belongs to.
    pub team: Name,
    /// The catalog entry.
    pub offering: Name,
    /// The entry's version when it was requested.
    pub offering_version: String,
    /// The resource's type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// The resource's name.
    pub name: Name,
    /// `create`, or the name of another action.
    pub action: String,
    /// Where it stands.
    pub state: RequestState,
    /// Why it stands there, in words for people; absent when there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Parameters after defaults: of a create or an update what the resource is meant to be, of an action its own.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Object,
    /// What an update was sent as: a merge patch (RFC 7396) of the resource's parameters.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Object>,
    /// What the resource is meant to be once this update or action is done, worked out when it was accepted.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Object>,
    /// Labels, the correlation ID among them.
    pub labels: BTreeMap<String, String>,
    /// Groups this request with all that descend from it.
    pub correlation_id: String,
    /// The request that this one descends from.
    pub parent_id: Option<RequestId>,
    /// Who asked.
    pub requested_by: String,
    /// The door by which it came.
    pub channel: Channel,
    /// What the provisioner answered; secret ones are named in `secret_outputs` instead.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub outputs: Object,
    /// Names of outputs that are shown only by an audited call.
    pub secret_outputs: Vec<String>,
    /// When it was accepted.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// When it came to its end.
    pub finished_at: Option<Moment>,
    /// The earlier request that it looked like, where its offering asks about those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<DuplicateView>,
    /// Who decides about it before it is carried out, or who did; absent where it needs no approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalView>,
}

/// What is known of a request that looked like an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DuplicateView {
    /// The earlier request.
    pub of: RequestLink,
    /// Why another was wanted; nothing where its sender could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An earlier request, in short: what one needs to know to tell whether it is what is asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EarlierRequest {
    /// Its ID.
    pub id: RequestId,
    /// Its address in the API.
    pub href: String,
    /// The catalog entry.
    pub offering: Name,
    /// The resource's name.
    pub name: Name,
    /// Where it stands.
    pub state: RequestState,
    /// Who asked.
    pub requested_by: String,
    /// When it was accepted.
    pub created_at: Moment,
}

impl From<&RequestView> for EarlierRequest {
    fn from(request: &RequestView) -> Self {
        Self {
            id: request.id,
            href: RequestLink::to(request.id).href,
            offering: request.offering.clone(),
            name: request.name.clone(),
            state: request.state,
            requested_by: request.requested_by.clone(),
            created_at: request.created_at,
        }
    }
}

/// One provisioned thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResourceView {
    /// The ID of this life of it.
    pub id: ResourceId,
    /// The team that owns it.
    pub team: Name,
    /// Its type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// Its name.
    pub name: Name,
    /// The catalog entry it came from.
    pub offering: Name,
    /// `creating`, `active` or `deleting`.
    pub state: String,
    /// Moves with every accepted change, and again when one is taken back; with the ID it is the `ETag`.
    pub version: i64,
    /// What it is meant to be.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Object,
    /// What its provisioner answered.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub outputs: Object,
    /// Names of its secret outputs.
    pub secret_outputs: Vec<String>,
    /// The request that made it.
    pub created_by: RequestLink,
    /// Since when it is there.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// When it ends, where its offering tells. Nothing is removed by that: the portal only warns.
    pub expires_at: Option<Moment>,
}

impl ResourceView {
    /// Its version, as its `ETag` names it.
    #[must_use]
    pub fn etag(&self) -> Version {
        Version { resource: self.id, number: self.version }
    }
}

/// One provisioned thing, with what was asked of it last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResourceDetail {
    /// The thing.
    #[serde(flatten)]
    pub resource: ResourceView,
    /// What was last carried out, where that is not what it is meant to be.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Object>,
    /// Requests about this life of it that have not come to their end, in the order in which they are carried out.
    pub pending: Vec<RequestSummary>,
    /// The last requests about this life of it, newest first.
    pub requests: Vec<RequestSummary>,
}

/// A request in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestSummary {
    /// Its ID.
    pub id: RequestId,
    /// Its address in the API.
    pub href: String,
    /// `create`, `update`, `delete`, or the ID of an action.
    pub action: String,
    /// Where it stands.
    pub state: RequestState,
    /// Who asked.
    pub requested_by: String,
    /// When it was accepted.
    pub created_at: Moment,
}

impl From<&RequestView> for RequestSummary {
    fn from(request: &RequestView) -> Self {
        Self {
            id: request.id,
            href: RequestLink::to(request.id).href,
            action: request.action.clone(),
            state: request.state,
            requested_by: request.requested_by.clone(),
            created_at: request.created_at,
        }
    }
}

/// One arrival at the guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmissionView {
    /// Its ID.
    pub id: SubmissionId,
    /// The sender's key.
    pub key: String,
    /// The request it led to.
    pub request_id: Option<RequestId>,
    /// What was asked for, as `create`.
    pub operation: String,
    /// What became of it.
    pub outcome: SubmissionOutcome,
    /// The problem's name, where it was refused.
    pub problem: Option<String>,
    /// The door by which it came.
    pub channel: Channel,
    /// Who sent it.
    pub sent_by: String,
    /// The label of the token it was sent with.
    pub token: Option<String>,
    /// The sender's network address.
    pub address: Option<String>,
    /// The correlation ID that it carried.
    pub correlation_id: Option<String>,
    /// When it arrived.
    pub at: Moment,
}

/// Every arrival of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmissionsView {
    /// The arrivals that are kept, oldest first.
    pub results: Vec<SubmissionView>,
    /// How many there were.
    pub total: i64,
    /// How many were only counted, since one key keeps a bounded history.
    pub only_counted: i64,
}

/// One entry of a request's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventView {
    /// Its number within the request, from 1; the `id` of the event stream.
    pub seq: i64,
    /// When.
    pub at: Moment,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// What happened.
    #[serde(flatten)]
    pub entry: EventEntry,
}

/// What was removed before, to who asks for its removal once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovedView {
    /// Its ID.
    pub id: String,
    /// When it was removed.
    pub removed_at: Moment,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventEntry {
    /// It came to another state.
    State {
        /// The state it came to.
        state: RequestState,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A recovery point was reached.
    Step {
        /// The step's name: `observe`, `apply`, `destroy`, `retry`.
        step: String,
        /// What was seen.
        detail: String,
    },
    /// A line that the program wrote.
    Log {
        /// The line, with secrets masked.
        line: String,
    },
}

impl EventEntry {
    /// The event's name in the event stream.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::State { .. } => "state",
            Self::Step { .. } => "step",
            Self::Log { .. } => "log",
        }
    }
}

/// A page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows.
    pub results: Vec<T>,
    /// How many match; exact up to 10,000.
    pub total: i64,
    /// `at_least` where counting stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_is: Option<String>,
    /// What to send as `cursor` for the next page.
    pub next: Option<String>,
}

/// A catalog entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferingView {
    /// Its ID.
    pub id: Name,
    /// Its title.
    pub title: String,
    /// What one gets.
    pub description: String,
    /// The shelf it stands on.
    pub category: String,
    /// Its version.
    pub version: String,
    /// The type of the resources it makes.
    pub resource_type: Name,
    /// The JSON Schema (draft 2020-12) of its parameters.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Value,
    /// Whether a resource's parameters can be changed once it is there; those marked `x-immutable` never can.
    #[serde(default)]
    pub updatable: bool,
    /// What else can be done with a resource, by ID.
    #[serde(default)]
    pub actions: Vec<ActionView>,
    /// What it is made of, where that is other offerings: each is requested by itself, in this order as far as there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_of: Vec<PartView>,
    /// Who has to approve what is asked of it before it is carried out; absent where nobody has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<OfferingApprovalView>,
    /// How the guard treats its submissions.
    pub guard: OfferingGuardView,
    /// Whether it can be requested now.
    pub available: bool,
    /// Why it cannot be requested, for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One step of an offering that is made of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartView {
    /// The step's ID.
    pub step: String,
    /// The offering that it requests.
    pub offering: Name,
    /// The steps that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// Something that an offering does with a resource that is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionView {
    /// Its ID, the last part of its address.
    pub id: Name,
    /// Its title.
    pub title: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its own parameters.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Value,
    /// How it changes the resource's parameters, by their names: `{"set": "<its parameter>"}` or `{"add": "<its
    /// parameter>"}`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub changes: Changes,
}

/// What of an offering needs somebody's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferingApprovalView {
    /// Who gives it, and how long they have.
    #[serde(flatten)]
    pub needed: ApprovalNeeded,
    /// What needs it: `create`, `update`, `delete`, or the IDs of actions.
    #[serde(rename = "for")]
    pub actions: Vec<String>,
}

/// An offering's own guard policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferingGuardView {
    /// How often a run is tried before it counts as failed.
    pub max_tries: u32,
    /// How long one run of its program may take, in seconds.
    pub timeout_seconds: u64,
    /// For how long the same intention under another key is asked about, in seconds; null where it is not.
    #[serde(default)]
    pub duplicate_window_seconds: Option<u64>,
}

/// The published guard policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GuardView {
    /// How a key is written.
    pub key: KeyPolicy,
    /// How long a key is kept after its request's final state, in seconds.
    pub retention_seconds: u64,
    /// How long a late repeat is still recognised after that, in seconds.
    pub tombstone_seconds: u64,
    /// How long a repeat waits for the first to be written, in seconds.
    pub wait_seconds: u64,
    /// The longest time over which any of the portal's own senders retries, in seconds.
    pub longest_retry_seconds: u64,
    /// How the portal's own senders retry.
    pub retry_schedules: Vec<RetrySchedule>,
    /// How many arrivals of one key are kept one by one.
    pub submissions_kept_per_key: u32,
}

/// How a key is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyPolicy {
    /// The header it is sent in.
    pub header: String,
    /// The shortest, in characters.
    pub min_length: u32,
    /// The longest, in characters.
    pub max_length: u32,
    /// The characters it may hold.
    pub characters: String,
}

/// How one of the portal's own senders retries: exponential back-off with full jitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetrySchedule {
    /// Who retries.
    pub sender: String,
    /// The upper bound of the first wait, in milliseconds.
    pub base_millis: u64,
    /// The upper bound of every wait, in milliseconds.
    pub cap_millis: u64,
    /// How long it goes on by itself, in seconds.
    pub window_seconds: u64,
}

/// An API token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// Its ID.
    pub id: TokenId,
    /// What its owner called it.
    pub label: String,
    /// When it was made.
    pub created_at: Moment,
    /// When it ends.
    pub expires_at: Moment,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Moment>,
    /// When it was revoked.
    pub revoked_at: Option<Moment>,
    /// The token itself: in the first answer only, never in a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What a repeat says in the token's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Who is asking, and where they belong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeView {
    /// The principal.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Its role in the whole portal.
    pub role: PortalRole,
    /// Its teams.
    pub teams: Vec<MembershipView>,
}

/// Membership in a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MembershipView {
    /// The team.
    pub team: Name,
    /// The role in it.
    pub role: TeamRole,
}
