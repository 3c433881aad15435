//! The service: one file a use case, each in the order of authorise, check, guard, write.

mod approve;
mod callbacks;
mod change;
mod children;
mod create;
mod decide;
mod dry_run;
mod duplicates;
mod export;
mod hidden;
mod history;
mod hooks;
mod keyed;
mod keys;
mod labels;
mod lineage;
mod notifications;
mod people;
mod quotas;
mod read;
mod signed;
#[cfg(test)]
mod tests;
mod tokens;
mod views;

pub use callbacks::Delivery;
pub use change::Target;
pub(crate) use children::Asking;
pub use duplicates::DuplicatesQuery;
pub use export::{Export, ExportFormat};
pub(crate) use history::History;
pub(crate) use hooks::DELIVERIES_KEPT;
pub use hooks::{Event, Tested};
pub(crate) use notifications::{SECRET_SHOWN_ONCE, old_is_over};
pub use people::SetUp;
pub use read::{RequestQuery, Scope as ListOf};
pub use views::{ViewOf, ViewToSave};

use crate::{
    Caller, Error, Result,
    answer::Answered,
    catalog::Catalog,
    clock::{Clock, Ids},
    guard,
    hidden::MarkingKey,
    keys::Keys,
    outbound::Outbound,
    settings::Settings,
    settled::Settled,
    store::{Arrived, Claim, Scope, Store, StoreError, StoredRequest, Submission, Submitted},
    throttle::Throttle,
    worker,
};
use domain::{
    command::{Command, Operation},
    id::SubmissionId,
    key::SubmissionKey,
    submission::SubmissionOutcome,
    time::Moment,
    view::GuardView,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many uses of tokens may wait to be noted.
const USES_WAITING: usize = 10_000;

/// What a portal is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What can be requested.
    pub catalog: Catalog,
    /// The portal's keys.
    pub keys: Keys,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers and randomness.
    pub ids: Arc<dyn Ids>,
    /// The way to the outside.
    pub outbound: Outbound,
    /// Where others reach the portal: `http://` or `https://`, a host and perhaps a port.
    pub public_url: String,
    /// How it runs.
    pub settings: Settings,
}

/// The single door for browser, API and events.
#[derive(Debug, Clone)]
pub struct Portal(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) outbound: Outbound,
    pub(crate) public_url: String,
    pub(crate) settings: Settings,
    throttle: Throttle,
    settled: Settled,
    set_up_link: String,
    pub(crate) deliveries: hooks::Waiting,
    /// What the marks of secret parameters are made with, once it is needed.
    marking_key: tokio::sync::OnceCell<MarkingKey>,
    pub(crate) history: History,
    tokens_used: mpsc::Sender<domain::id::TokenId>,
    tokens_waiting: std::sync::Mutex<Option<mpsc::Receiver<domain::id::TokenId>>>,
}

/// What comes with a submission besides its body.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// Every value that was sent as the key; more than one is refused.
    pub keys: Vec<Vec<u8>>,
    /// Every value that was sent as `If-Match`; together they are one list.
    pub if_match: Vec<Vec<u8>>,
}

impl Arrival {
    pub(crate) fn key(&self) -> Result<SubmissionKey> {
        Ok(SubmissionKey::parse_only(self.keys.iter().map(Vec::as_slice))?)
    }

    /// Refuses a body that says anything where address and key say all: after the key, as everywhere.
    pub fn says_all(&self, body: &[u8]) -> Result<()> {
        self.key()?;
        says_nothing(body)
    }
}

/// Refuses a body that is neither absent nor an object without members.
pub fn says_nothing(body: &[u8]) -> Result<()> {
    keyed::object(body, &[]).map(|_| ())
}

/// Why a portal did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings contradict each other.
    #[error("KEYTURN_GUARD_RETENTION: {0}")]
    Settings(String),
    /// The database was made with another key.
    #[error(
        "KEYTURN_SECRET_KEY_FILE: the database was made with another key of version {0}; supply that one"
    )]
    OtherKey(i64),
    /// The database was made with a key that is not here.
    #[error(
        "KEYTURN_SECRET_KEY_FILE: the file lacks version {0}, with which the database was made; supply one that holds it"
    )]
    LackingKey(i64),
    /// The database did not answer.
    #[error("KEYTURN_DATABASE_URL: {0}")]
    Store(#[from] StoreError),
}

impl Portal {
    /// Opens the portal on its parts.
    pub async fn open(parts: Parts) -> Result<Self, OpenError> {
        let Parts { store, catalog, keys, clock, ids, outbound, public_url, settings } = parts;
        settings.guard.check().map_err(OpenError::Settings)?;
        keys::check(&keys, store.as_ref()).await?;
        for offering in catalog.iter() {
            let actions = offering.actions.values().map(|action| &action.schema);
            for schema in std::iter::once(&offering.schema).chain(actions) {
                let schema = schema.value();
                store.keep_schema(&schema_digest(schema), &schema.to_string()).await?;
            }
        }
        let mut link = [0; 16];
        ids.fill(&mut link);
        let (tokens_used, tokens_waiting) = mpsc::channel(USES_WAITING);
        let portal = Self(Arc::new(Inner {
            store,
            catalog: Arc::new(catalog),
            keys,
            clock,
            ids,
            outbound,
            public_url,
            settings,
            throttle: Throttle::default(),
            settled: Settled::default(),
            deliveries: hooks::Waiting::default(),
            marking_key: tokio::sync::OnceCell::new(),
            set_up_link: uuid::Uuid::from_bytes(link).simple().to_string(),
            history: History::default(),
            tokens_used,
            tokens_waiting: std::sync::Mutex::new(Some(tokens_waiting)),
        }));
        portal.0.prepare_marking().await;
        Ok(portal)
    }

    /// Carries out what waits, writes histories and sweeps, until `shutdown`; then finishes what it writes.
    pub async fn run_background(&self, shutdown: CancellationToken) {
        worker::background(Arc::clone(&self.0), shutdown).await;
    }

    /// The published guard policy.
    #[must_use]
    pub fn guard_policy(&self) -> GuardView {
        self.0.settings.guard.published()
    }

    /// The store's rows of sessions.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0.store)
    }

    /// Now, by the portal's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.0.clock.now()
    }

    /// A fresh identifier for a form that is about to be opened.
    #[must_use]
    pub fn new_submission_key(&self) -> String {
        self.0.ids.uuid(self.0.clock.now()).to_string()
    }

    /// Encrypts what a page carries for its own later use; opened only for the same purpose.
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> Result<Vec<u8>> {
        self.0.keys.seal(&format!("page:{purpose}"), plain, self.0.ids.as_ref())
    }

    /// Opens what [`Self::seal`] made for the same purpose.
    #[must_use]
    pub fn unseal(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        // A page that is too old for its key is one that cannot be opened.
        self.0.keys.unseal(&format!("page:{purpose}"), sealed).ok().flatten()
    }

    /// Whether the portal takes writes now.
    pub async fn ready(&self) -> Result<()> {
        let probe = self.0.store.probe(self.0.clock.now());
        match tokio::time::timeout(Duration::from_secs(2), probe).await {
            Ok(probed) => Ok(probed?),
            Err(_) => Err(StoreError::Unavailable("no answer within 2 s".into()).into()),
        }
    }
}

/// The name under which a schema is kept.
pub(crate) fn schema_digest(schema: &Value) -> String {
    blake3::hash(&domain::json::canonical(schema)).to_hex().to_string()
}

impl Inner {
    /// The claim of a scope with its request, unless the key's retention is over.
    pub(crate) async fn looked_up(&self, scope: &Scope) -> Result<Option<(Claim, Option<StoredRequest>)>> {
        guard::look_up(self.store.as_ref(), scope, &self.settings.guard, self.clock.now()).await
    }

    /// An arrival of this caller with a well-formed key.
    pub(crate) fn arrived(
        &self,
        caller: &Caller,
        team: &str,
        key: SubmissionKey,
        operation: Operation,
        now: Moment,
    ) -> Arrived {
        let scope = Scope { team: team.to_owned(), principal: caller.id, key };
        Arrived::of(caller, SubmissionId(self.ids.uuid(now)), scope, operation.as_str(), now)
    }

    /// Writes down what became of an arrival that changed nothing; never makes the answer wait.
    pub(crate) fn record(&self, mut arrived: Arrived, result: &Result<Answered>, waited: bool) {
        match result {
            // The first of a key is written in the transaction that claims it.
            Ok(answered) if !answered.replayed => return,
            Ok(answered) => {
                arrived.outcome =
                    if waited { SubmissionOutcome::Waited } else { SubmissionOutcome::Replayed };
                arrived.request = answered.request_id;
            }
            Err(error) => {
                use domain::problem::ProblemKind::{KeyExpired, KeyReused};
                arrived.outcome = if error.kind == KeyReused {
                    SubmissionOutcome::Mismatched
                } else {
                    SubmissionOutcome::Refused
                };
                arrived.problem = Some(error.kind.slug());
                if matches!(error.kind, KeyReused | KeyExpired) {
                    arrived.request = error.request;
                }
            }
        }
        // Of its own: a first that was told to come again may yet be written, under the ID it was sent with.
        arrived.id = SubmissionId(self.ids.uuid(self.clock.now()));
        self.history.put(arrived);
    }

    /// Writes down that somebody repeated an own key whose request it may no longer see. Nothing is kept of senders who
    /// never could.
    pub(crate) async fn record_unseen(
        &self,
        caller: &Caller,
        team: &str,
        key: SubmissionKey,
        operation: Operation,
        error: &Error,
    ) {
        let mut arrived = self.arrived(caller, team, key, operation, self.clock.now());
        if let Ok(Some((claim, _))) = self.store.claimed(&arrived.scope).await {
            arrived.request = claim.request;
            self.record(arrived, &Err(error.clone()), false);
        }
    }

    /// What was read of a body; where it cannot be read, that is written down of who may see the team, and of nobody else.
    pub(crate) async fn readable<T>(
        &self,
        read: Result<T>,
        (caller, team): (&Caller, &str),
        arrival: &Arrival,
        operation: Operation,
    ) -> Result<T> {
        let error = match read {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        if let Ok(team) = self.visible_team(caller, team).await {
            let arrived = self.arrived(caller, team.as_str(), arrival.key()?, operation, self.clock.now());
            self.record(arrived, &Err(error.clone()), false);
        }
        Err(error)
    }

    /// What the caller was to see of a team for a keyed call; where it may not, a repeat of an own key is written down.
    pub(crate) async fn seen<T>(
        &self,
        found: Result<T>,
        (caller, team): (&Caller, &str),
        arrival: &Arrival,
        operation: Operation,
    ) -> Result<T> {
        if let Err(error) = &found {
            self.record_unseen(caller, team, arrival.key()?, operation, error).await;
        }
        found
    }

    /// Takes the tokens whose use waits to be noted; only the first caller gets them.
    pub(crate) fn take_uses(&self) -> Option<mpsc::Receiver<domain::id::TokenId>> {
        self.tokens_waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Passes a submission that is not a create through the guard: a repeat, a refusal, or the change and its answer.
    ///
    /// `may` refuses who may not do it; a repeat is answered before that, to who may see the request.
    pub(crate) async fn guarded(
        &self,
        submission: Submission,
        command: &Command,
        body: &Value,
        may: impl FnOnce() -> Result<()>,
    ) -> Result<Answered> {
        let arrived = submission.arrived.clone();
        let mut waited = false;
        let result = self.pass(submission, command, body, may, &mut waited).await;
        self.record(arrived, &result, waited);
        result
    }

    /// Refuses a first whose values do not fit. A repeat is answered all the same: it was understood before.
    pub(crate) async fn refused(
        &self,
        arrived: Arrived,
        command: &Command,
        body: &Value,
        error: Error,
    ) -> Result<Answered> {
        let result = match self.looked_up(&arrived.scope).await? {
            Some((claim, request)) => self.repeat(claim, request.as_ref(), (command, body), arrived.at).await,
            None => Err(error),
        };
        self.record(arrived, &result, false);
        result
    }

    async fn pass(
        &self,
        submission: Submission,
        command: &Command,
        body: &Value,
        may: impl FnOnce() -> Result<()>,
        waited: &mut bool,
    ) -> Result<Answered> {
        let (store, at) = (self.store.as_ref(), submission.arrived.at);
        if let Some((claim, request)) = self.looked_up(&submission.arrived.scope).await? {
            return self.repeat(claim, request.as_ref(), (command, body), at).await;
        }
        may()?;
        let scope = submission.arrived.scope.clone();
        match guard::submit(store, submission, self.settings.guard.wait).await? {
            Submitted::Repeat(_) => {
                *waited = true;
                let (claim, request) = self.looked_up(&scope).await?.ok_or_else(Error::not_found)?;
                self.repeat(claim, request.as_ref(), (command, body), at).await
            }
            Submitted::QuotaExceeded(short) => Err(guard::quota_exceeded(&scope.team, short)),
            other => self.first(other, at),
        }
    }

    /// A repeat that arrived `at` this moment gets the first answer, if it means the same.
    async fn repeat(
        &self,
        claim: Claim,
        request: Option<&StoredRequest>,
        (command, body): (&Command, &Value),
        at: Moment,
    ) -> Result<Answered> {
        let key = self.key_of(claim.meaning.key_version).await?;
        let same = claim.meaning.body_hash == guard::body_hash(&key, body)
            || claim.meaning.fingerprint == key.fingerprint(&command.canonical());
        if same {
            return Ok(guard::replay(claim, request, &self.settings.guard, at));
        }
        let differs = guard::first_command(&claim, request).map(|first| first.differences(command));
        Err(guard::reused(&claim, differs.unwrap_or_default()))
    }

    /// What the caller is told of a first submission that arrived `at` this moment. Whatever it made may have come to its end
    /// meanwhile, so no more is promised than counts from there.
    fn first(&self, submitted: Submitted, at: Moment) -> Result<Answered> {
        use domain::problem::ProblemKind;
        let expires = Some(at.plus(self.settings.guard.retention));
        match submitted {
            Submitted::First(answer, request_id) => {
                Ok(Answered { answer, replayed: false, existing: false, state: None, expires, request_id })
            }
            Submitted::Existing(answer, request) => Ok(Answered {
                answer,
                replayed: false,
                existing: true,
                state: None,
                expires,
                request_id: Some(request),
            }),
            Submitted::Gone(answer) => Ok(Answered {
                answer,
                replayed: false,
                existing: true,
                state: None,
                expires,
                request_id: None,
            }),
            Submitted::Accepted(answer, request, _) => Ok(Answered {
                answer,
                replayed: false,
                existing: false,
                state: None,
                expires,
                request_id: Some(request),
            }),
            Submitted::Unfit(error) => Err(*error),
            Submitted::TooLate(why) => {
                Err(Error::new(ProblemKind::AlreadyDecided, format!("{why} Nothing was changed.")))
            }
            Submitted::Undecidable(state) => Err(Error::new(
                ProblemKind::AlreadyDecided,
                format!("The request is {state}; this cannot be done to it now. Nothing was changed."),
            )),
            Submitted::Deleting(request) => Err(guard::deleting(request)),
            Submitted::NameTaken(holder) => Err(Error::new(
                ProblemKind::NameTaken,
                "Something else has taken the name meanwhile. Nothing was changed.",
            )
            .about(holder.request)),
            Submitted::Suspected(_) => Err(Error::internal("a question about what is no create")),
            Submitted::QuotaExceeded(_) => Err(Error::internal("a quota of no team")),
            Submitted::Missing => Err(Error::not_found()),
            Submitted::Repeat(_) => Err(Error::internal("a repeat was taken for a first")),
        }
    }
}
