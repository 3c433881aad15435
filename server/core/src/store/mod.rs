//! The store: what is kept, and the one transaction in which a submission becomes a request.
//!
//! This module says what a store promises, in the portal's own terms; how a database keeps the promise is the business
//! of the module named after it. `conformance` states every promise as a test for all of them.

mod approvals;
mod change;
pub mod changes;
#[cfg(test)]
pub(crate) mod conformance;
pub mod cursor;
pub mod duplicates;
mod errands;
mod failure;
mod families;
mod gather;
mod hidden;
mod hooks;
pub mod notifications;
pub mod postgres;
mod quotas;
mod run;
mod search;
mod second_look;
pub mod sqlite;
mod turn;
pub mod views;

pub use approvals::Approvals;
pub use change::{Delta, NewChange, Plan, Planned};
pub use errands::{Back, Errand, ErrandSeal, Errands, Report, Taken, Waiting};
pub use failure::{StoreError, StoreResult};
pub use families::{Families, StepRequest};
pub use hidden::HiddenParameters;
pub use hooks::{Delivery, HookEffect, HookSeal, Hooks, MOST_HOOKS, SealedSecret, StoredHook};
pub use quotas::Quotas;
pub use run::{Ending, Held, Hold, Intent, Run};
pub use search::{ListScope, RequestList, Searching};
pub use second_look::{Confirmation, SecondLook};
pub use turn::Turn;

use crate::{answer::Answer, caller::Caller, keys};
use async_trait::async_trait;
use changes::Changes;
use domain::{
    approval::Verdict,
    command::Command,
    id::{PrincipalId, RequestId, ResourceId, SubmissionId, TokenId},
    key::SubmissionKey,
    name::Name,
    quota::QuotaShort,
    role::{PortalRole, TeamRole},
    state::{RequestState, Resolution},
    submission::{Channel, SubmissionOutcome},
    time::Moment,
    view::{EventEntry, EventView, Object, Page, RequestView, ResourceView, SubmissionsView, TokenView},
};
use notifications::{NotificationEffect, Notifications};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The team that stands in the scope of keys where no team is concerned.
pub const NO_TEAM: &str = "-";

/// Where a key is unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The team, or [`NO_TEAM`].
    pub team: String,
    /// Who asks.
    pub principal: PrincipalId,
    /// The sender's key.
    pub key: SubmissionKey,
}

impl Scope {
    /// The order in which keys are locked and written.
    #[must_use]
    pub fn order(&self) -> (&str, PrincipalId, &str) {
        (&self.team, self.principal, self.key.as_str())
    }
}

/// What a claim remembers of a submission's meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// The keyed hash of the validated command.
    pub fingerprint: [u8; 32],
    /// The keyed hash of the parsed body.
    pub body_hash: [u8; 32],
    /// The version of the key of both hashes.
    pub key_version: i64,
}

impl Meaning {
    /// Whether two submissions surely mean the same.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.fingerprint, self.key_version) == (other.fingerprint, other.key_version)
    }
}

/// A key that was claimed.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What it stands for.
    pub meaning: Meaning,
    /// The digest of the offering's schema at the first submission.
    pub schema_digest: Option<String>,
    /// The command, where it cannot be read off the request.
    pub command: Option<Command>,
    /// The request that it is bound to.
    pub request: Option<RequestId>,
    /// Whether the first answer was "already there".
    pub existing: bool,
    /// The first answer.
    pub answer: Answer,
    /// When it was claimed.
    pub claimed_at: Moment,
    /// Whether its retention counts from the claim, since its request had come to its end before.
    pub late: bool,
    /// When its retention ended, if it is a tombstone: meaning, command and answer are gone.
    pub retired_at: Option<Moment>,
}

/// A request as it is kept: what is shown of it, and what is not.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRequest {
    /// What is shown.
    pub view: RequestView,
    /// Who asked.
    pub principal: PrincipalId,
    /// The life of the resource that it is about.
    pub resource: ResourceId,
}

/// One arrival, as it is written down.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// Its ID.
    pub id: SubmissionId,
    /// The key's scope.
    pub scope: Scope,
    /// The request that it led to.
    pub request: Option<RequestId>,
    /// What was asked for.
    pub operation: &'static str,
    /// What became of it.
    pub outcome: SubmissionOutcome,
    /// The problem's slug, where it was refused.
    pub problem: Option<&'static str>,
    /// The door.
    pub channel: Channel,
    /// The sender's name.
    pub sent_by: String,
    /// The label of the sender's token.
    pub token_label: Option<String>,
    /// The sender's address.
    pub address: Option<String>,
    /// The correlation ID that it carried.
    pub correlation_id: Option<String>,
    /// The labels that it carried, as JSON.
    pub labels: String,
    /// When.
    pub at: Moment,
}

/// Arrivals that are only counted: one of them, and how many like it there were.
#[derive(Debug, Clone)]
pub struct Tally {
    /// One of them.
    pub arrived: Arrived,
    /// How many.
    pub count: u64,
}

impl Arrived {
    /// An arrival of this caller, not yet judged.
    #[must_use]
    pub fn of(caller: &Caller, id: SubmissionId, scope: Scope, operation: &'static str, at: Moment) -> Self {
        Self {
            id,
            scope,
            request: None,
            operation,
            outcome: SubmissionOutcome::First,
            problem: None,
            channel: caller.channel,
            sent_by: caller.name.clone(),
            token_label: caller.token_label().map(str::to_owned),
            address: caller.address.map(|address| address.to_string()),
            correlation_id: None,
            labels: "{}".into(),
            at,
        }
    }
}

/// A submission at the moment of its claim.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The arrival; its scope is what is claimed.
    pub arrived: Arrived,
    /// What it means.
    pub meaning: Meaning,
    /// The command, where it cannot be read off the request.
    pub command: Option<Command>,
    /// What it changes.
    pub effect: Effect,
    /// By which it is called back, as long as it is not being written for good.
    pub turn: Turn,
}

/// What a submission changes, in the transaction that claims its key.
#[derive(Debug, Clone)]
pub enum Effect {
    /// A new request for a new resource, with the answer that says so.
    Create {
        /// The request.
        request: Box<StoredRequest>,
        /// The digest of the schema under which its parameters were understood.
        schema_digest: String,
        /// The answer, written before the commit since nothing in it depends on the database.
        answer: Answer,
        /// What tells it from an earlier one that may mean the same, where its offering asks about those.
        second_look: Option<SecondLook>,
        /// Its secret parameters, sealed, where it brings any.
        hidden: Option<Vec<u8>>,
        /// What it takes up of its team's quota.
        cost: u32,
    },
    /// Stop a request.
    Cancel(RequestId),
    /// Open the next attempt of a failed request, for a new life of its resource.
    Retry(RequestId, ResourceId),
    /// Decide about a request of which nobody can tell the outcome.
    Resolve {
        /// The request.
        request: RequestId,
        /// The decision.
        resolution: Resolution,
        /// Close it without asking the provisioner, for this reason.
        forced: Option<String>,
        /// Why it is decided so, where it is not forced.
        reason: Option<String>,
    },
    /// Let a request be carried out that waits for that, or refuse to.
    Decide {
        /// The request.
        request: RequestId,
        /// Which of both.
        verdict: Verdict,
        /// Why.
        reason: Option<String>,
    },
    /// A new token.
    TokenCreate {
        /// What is shown of it.
        token: TokenView,
        /// Its digest.
        digest: [u8; 32],
        /// The answer to store: without the token itself.
        answer: Answer,
    },
    /// A change of a resource: an update, a delete or an action.
    Change(Box<NewChange>),
    /// What a step of a request asks for; only as long as the request's run is held like this.
    Step(Hold, Box<Effect>),
    /// The end of a token.
    TokenRevoke(TokenId),
    /// What is done to a hook.
    Hook(HookEffect),
    /// A change of where a team is told.
    Notification(Box<NotificationEffect>),
}

/// What came of a submission at the store.
#[derive(Debug, Clone)]
pub enum Submitted {
    /// The first with its key: done, and this is its answer from now on.
    First(Answer, Option<RequestId>),
    /// The thing is already there as asked; the key is bound to the request that made it.
    Existing(Answer, RequestId),
    /// What was to end has ended before, under another key; nothing was changed.
    Gone(Answer),
    /// The key was claimed before; nothing was changed.
    Repeat(Box<Claim>),
    /// A change was taken in; requests that it stopped are told too.
    Accepted(Answer, RequestId, Vec<RequestId>),
    /// The change does not fit the resource as it stands; nothing was changed.
    Unfit(Box<crate::Error>),
    /// The same was requested a short while ago under another key, and nobody said that another is meant.
    Suspected(Box<RequestView>),
    /// The name is held by something else.
    NameTaken(Box<NameHolder>),
    /// The name's holder is being deleted.
    Deleting(RequestId),
    /// It has no place in its team's quota.
    QuotaExceeded(QuotaShort),
    /// The request stands where this cannot be done to it.
    Undecidable(RequestState),
    /// What the request is about stands where this cannot be done, for this reason.
    TooLate(&'static str),
    /// There is nothing of that ID.
    Missing,
}

/// Who holds a name.
#[derive(Debug, Clone)]
pub struct NameHolder {
    /// The request that made it.
    pub request: RequestId,
    /// Its offering.
    pub offering: Name,
    /// What it is meant to be now.
    pub parameters: Object,
}

/// A principal as it is kept.
#[derive(Debug, Clone)]
pub struct Principal {
    /// Its ID.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Its role in the whole portal.
    pub role: PortalRole,
    /// Its teams.
    pub teams: Vec<(Name, TeamRole)>,
    /// The hash of its password; none for who uses tokens only.
    pub password_hash: Option<String>,
}

/// Who shows a token.
#[derive(Debug, Clone)]
pub struct Bearer {
    /// The principal, without the hash of its password.
    pub principal: Principal,
    /// The token.
    pub token: TokenId,
    /// The token's label.
    pub label: String,
    /// When the token ends.
    pub expires_at: Moment,
}

/// A new principal.
#[derive(Debug, Clone)]
pub struct NewPrincipal {
    /// Its ID.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Its role in the whole portal.
    pub role: PortalRole,
    /// The hash of its password.
    pub password_hash: Option<String>,
    /// Its first team, and its role there.
    pub team: Option<(Name, TeamRole)>,
}

/// What came of making something with a name that must be its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It was made.
    New,
    /// There is one of that name already; nothing was changed.
    Exists,
    /// The team it should belong to does not exist; nothing was changed.
    NoSuchTeam,
}

/// A fact for the audit.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// When.
    pub at: Moment,
    /// Who.
    pub actor: String,
    /// The door.
    pub channel: &'static str,
    /// What was done.
    pub act: &'static str,
    /// In which team.
    pub team: String,
    /// To what.
    pub target: String,
    /// More about it; never a secret.
    pub detail: String,
}

/// A resource with what is not shown of it.
#[derive(Debug, Clone)]
pub struct StoredResource {
    /// What is shown.
    pub view: ResourceView,
    /// Its secret outputs, sealed.
    pub secrets: Option<Vec<u8>>,
    /// What was last carried out; nothing before its create is done.
    pub applied: Option<Object>,
    /// The delete that ended this life or is about to.
    pub ended_by: Option<RequestId>,
}

/// What every database keeps, and how.
#[async_trait]
pub trait Store:
    Send
    + Sync
    + std::fmt::Debug
    + Approvals
    + Errands
    + Families
    + HiddenParameters
    + Hooks
    + duplicates::Duplicates
    + Searching
    + Notifications
    + Quotas
    + views::Views
{
    /// Where one hears of changes.
    fn changes(&self) -> &Changes;

    /// The claim of a key within its full scope, with the request that it is bound to as it stands now.
    async fn claimed(&self, scope: &Scope) -> StoreResult<Option<(Claim, Option<StoredRequest>)>>;
    /// Claims the key and makes the change in one transaction, or does nothing. Answers after the commit. Of what was
    /// withdrawn before the store began to write it for good, nothing is done.
    async fn submit(&self, submission: Submission) -> StoreResult<Submitted>;
    /// Whether a submission with this key that was not withdrawn is being decided at this moment, on whichever server.
    async fn key_in_use(&self, scope: &Scope) -> StoreResult<bool>;
    /// Writes arrivals down that changed nothing (repeats and refusals); past 1,000 a key they are only counted.
    async fn record(&self, arrivals: Arc<[Arrived]>) -> StoreResult<()>;
    /// Counts arrivals that changed nothing and are not written down; how many of them came under keys that nobody
    /// claimed, and so stand nowhere but among the duplicates, if they are any.
    async fn tally(&self, tallies: Arc<[Tally]>) -> StoreResult<u64>;

    /// Creates of the same since a moment that did not come to nothing, newest first.
    async fn same_creates(
        &self,
        team: &Name,
        offering: &Name,
        parameters: [u8; 32],
        since: Moment,
        limit: u32,
    ) -> StoreResult<Vec<RequestView>>;

    /// Shortens claims whose retention is over to tombstones; how many rows were met, at least `limit` where more wait.
    async fn retire(&self, now: Moment, retention: Duration, limit: u32) -> StoreResult<u64>;
    /// Shortens what is over of one request, before somebody opens it again: its keys stay over then, swept before or not,
    /// and what a create that failed was kept with for another try is forgotten.
    async fn retire_request(&self, id: RequestId, now: Moment, retention: Duration) -> StoreResult<()>;
    /// Removes up to `limit` tombstones that are older than `tombstones`; how many. None goes whose request was opened
    /// again and is not at its end, or came to it so lately that its keys would not be over yet.
    async fn drop_tombstones(
        &self,
        now: Moment,
        retention: Duration,
        tombstones: Duration,
        limit: u32,
    ) -> StoreResult<u64>;
    /// Removes one claim, if its retention ended by `before`.
    async fn drop_claim(&self, scope: &Scope, claim: &Claim, before: Moment) -> StoreResult<()>;

    /// What each version of the portal's key is needed for.
    async fn key_use(&self) -> StoreResult<BTreeMap<i64, keys::Use>>;
    /// Sealed secrets that do not begin with `head`, up to `limit` or twice that.
    async fn sealed_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(ResourceId, Vec<u8>)>>;
    /// Puts a new seal in the place of an old one; whether that was still there.
    async fn reseal(&self, resource: ResourceId, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool>;

    /// Keeps an offering's schema under its digest, so that repeats are understood after the catalog has changed.
    async fn keep_schema(&self, digest: &str, schema: &str) -> StoreResult<()>;
    /// The schema of this digest.
    async fn schema(&self, digest: &str) -> StoreResult<Option<String>>;

    /// One request.
    async fn request(&self, id: RequestId) -> StoreResult<Option<StoredRequest>>;
    /// What happened to a request after entry `after`, oldest first, at most `limit`.
    async fn events(&self, request: RequestId, after: i64, limit: u32) -> StoreResult<Vec<EventView>>;
    /// Every arrival of a request.
    async fn submissions(&self, request: RequestId) -> StoreResult<SubmissionsView>;
    /// A page of a team's living resources, newest first.
    async fn resources(
        &self,
        team: &Name,
        after: Option<(Moment, uuid::Uuid)>,
        size: u32,
    ) -> StoreResult<Page<ResourceView>>;
    /// One life of a resource, also when it is over.
    async fn life(&self, id: ResourceId) -> StoreResult<Option<StoredResource>>;
    /// A living resource's requests: those that are not at their end, in the order in which they are carried out, and the
    /// last ones, newest first.
    async fn requests_of(&self, resource: ResourceId) -> StoreResult<(Vec<RequestView>, Vec<RequestView>)>;
    /// One living resource.
    async fn resource(&self, team: &Name, kind: &str, name: &str) -> StoreResult<Option<StoredResource>>;
    /// The last life at a name that a delete ended.
    async fn last_deleted(&self, team: &Name, kind: &str, name: &str) -> StoreResult<Option<StoredResource>>;

    /// What the database's clock shows, where it is one that several servers share.
    async fn time(&self) -> StoreResult<Option<Moment>>;
    /// Bounds by a lease what waits longer only because a clock was ahead before. Where deadlines are reckoned by the
    /// database's own clock, nothing does.
    async fn bound_waits(&self, now: Moment, lease: Duration) -> StoreResult<()>;
    /// Takes a run that is due, for the length of a lease. Deadlines of runs are reckoned by the one clock that all
    /// servers on a database share; where that is the database's own, `now` is only written into the history.
    async fn take_run(&self, owner: &str, now: Moment, lease: Duration) -> StoreResult<Option<Run>>;
    /// Holds on to a run for another lease.
    async fn renew(&self, hold: Hold, now: Moment, lease: Duration) -> StoreResult<Held>;
    /// Writes entries into the request's history; with `touched`, also that something outside may be changed from now, by
    /// which the word of whoever insisted on that is used up.
    async fn note(
        &self,
        hold: Hold,
        entries: Vec<EventEntry>,
        touched: bool,
        now: Moment,
    ) -> StoreResult<Held>;
    /// Lets a run stand as it did before its recovery point, since nothing was begun after all.
    async fn take_point_back(&self, hold: Hold, touched: bool, insisted: bool) -> StoreResult<Held>;
    /// Gives a run back after `wait` that this server does not know how to carry out; another may.
    async fn pass_on(
        &self,
        hold: Hold,
        wait: Duration,
        entry: Option<EventEntry>,
        now: Moment,
    ) -> StoreResult<Held>;
    /// Gives a run back, to be taken again after `wait`; `failed_try` counts a try that ended without a result.
    /// The wait is for who still means `meant`: where somebody decided otherwise meanwhile, it is due at once.
    async fn give_back(
        &self,
        hold: Hold,
        meant: Intent,
        wait: Duration,
        failed_try: bool,
        entry: Option<EventEntry>,
        now: Moment,
    ) -> StoreResult<Held>;
    /// Ends a run, and with it the request's attempt. One that is to be canceled meanwhile is not ended as done: it is
    /// given back, to be undone.
    async fn end_run(&self, hold: Hold, ending: Ending, now: Moment) -> StoreResult<Held>;
    /// When the next run is due, if any waits.
    async fn next_due(&self) -> StoreResult<Option<Moment>>;

    /// The principal of this name.
    async fn principal_by_name(&self, name: &str) -> StoreResult<Option<Principal>>;
    /// The principal of this ID.
    async fn principal(&self, id: PrincipalId) -> StoreResult<Option<Principal>>;
    /// Makes a principal.
    async fn add_principal(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made>;
    /// Makes a team, with a limit of what its resources may cost together or without one.
    async fn add_team(&self, name: &Name, limit: Option<u64>, now: Moment) -> StoreResult<Made>;
    /// Whether there is a team of this name.
    async fn has_team(&self, name: &Name) -> StoreResult<bool>;
    /// Makes a principal and its team at once if there is no administrator yet; whether it did.
    async fn set_up(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made>;
    /// Whether there is an administrator.
    async fn has_admin(&self) -> StoreResult<bool>;
    /// Who shows a valid token with this digest.
    async fn bearer(&self, digest: [u8; 32], now: Moment) -> StoreResult<Option<Bearer>>;
    /// A principal's tokens, newest first.
    async fn tokens(&self, principal: PrincipalId) -> StoreResult<Vec<TokenView>>;
    /// Makes a token without a claim, for the command line.
    async fn add_token(&self, principal: PrincipalId, token: TokenView, digest: [u8; 32]) -> StoreResult<()>;
    /// Notes that tokens were used.
    async fn tokens_used(&self, tokens: Vec<TokenId>, now: Moment) -> StoreResult<()>;

    /// A session's data, unless it is over.
    async fn session(&self, id: &str, now: Moment) -> StoreResult<Option<Vec<u8>>>;
    /// Keeps a session; `fresh` refuses (false) where one of that ID exists.
    async fn save_session(&self, id: &str, data: Vec<u8>, expires: Moment, fresh: bool) -> StoreResult<bool>;
    /// Ends a session.
    async fn delete_session(&self, id: &str) -> StoreResult<()>;
    /// Removes up to `limit` sessions that are over; how many.
    async fn sweep_sessions(&self, now: Moment, limit: u32) -> StoreResult<u64>;

    /// A named setting of the database itself.
    async fn setting(&self, name: &str) -> StoreResult<Option<Vec<u8>>>;
    /// Sets a named setting unless it is set; what it is then.
    async fn set_once(&self, name: &str, value: Vec<u8>) -> StoreResult<Vec<u8>>;
    /// Writes a fact into the audit.
    async fn audit(&self, entry: AuditEntry) -> StoreResult<()>;
    /// Whether the database takes writes now.
    async fn probe(&self, now: Moment) -> StoreResult<()>;
}
