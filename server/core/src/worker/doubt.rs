//! What a hold makes of work that it can see nothing of: what a person's decision means for it, whether it was never begun,
//! and what becomes of a run whose offering this server does not know.
//!
//! Whoever chose to try again something that nobody can tell of has decided that it may be done twice; whoever tries a
//! create again that has failed means that it be made. Their word counts once: it is used up with the recovery point before
//! the call, so that neither that call's own doubt nor a crash after it leads to another. A call that was surely not carried
//! out is none at all: it leaves the run as it was before.

use super::carry_out::{Attempt, Verdict, cut};
use crate::{
    provisioner::Observation,
    service::Inner,
    store::{Ending, Held, Intent, Run, StoreError},
};
use domain::{action::Kind, state::RequestState, view::EventEntry};
use std::time::Duration;

/// How long a run waits for a server that knows its offering.
const KNOWN_WITHIN: Duration = Duration::from_mins(10);
/// When a run is due again that this server does not know how to carry out.
const PASSED_ON: Duration = Duration::from_secs(2);

impl Attempt<'_> {
    /// A look on which a person's decision is acted. Where something is said to go on without end, the thing itself counts,
    /// and not what is said of the work.
    pub(super) async fn observe_decided(&self) -> Result<Observation, StoreError> {
        match self.observe().await? {
            Observation::InProgress(_) => self.observe_itself().await,
            seen => Ok(seen),
        }
    }

    /// The same where a person only wants it to be looked at once more: what goes on is not disturbed unless it is done.
    pub(super) async fn observe_again(&self) -> Result<Observation, StoreError> {
        let seen = self.observe().await?;
        if !self.run.insisted || !matches!(seen, Observation::InProgress(_)) {
            return Ok(seen);
        }
        let done = match (self.observe_itself().await?, self.kind()) {
            (itself @ Observation::Ours(_), Kind::Create | Kind::Update | Kind::Action)
            | (itself @ (Observation::Absent | Observation::Foreign), Kind::Delete) => Some(itself),
            _ => None,
        };
        Ok(done.unwrap_or(seen))
    }

    /// Looks at the thing as if nothing were known of work that goes on.
    async fn observe_itself(&self) -> Result<Observation, StoreError> {
        self.forget_note();
        self.observe().await
    }

    /// Whether a person decided that it be taken back, whatever can be told of it; not what this hold takes back by itself.
    pub(super) fn is_abandoned(&self) -> bool {
        self.run.insisted && self.run.intent == Intent::Abandon
    }

    /// Whether what is said to go on is taken back all the same.
    pub(super) fn goes_on_in_vain(&self, seen: &Observation) -> bool {
        self.is_abandoned() && matches!(seen, Observation::InProgress(_))
    }

    /// What comes of a look that cannot tell, before anything is begun; nothing where it is to be done all the same.
    pub(super) async fn blind(&self, why: String) -> Result<Option<Verdict>, StoreError> {
        if !self.run.insisted {
            return Ok(Some(Verdict::LookAgain(why)));
        }
        let detail = "nobody can tell, so it is carried out once more, as was decided";
        self.step("resolve", detail).await?;
        Ok(None)
    }

    /// Whether a call that was never carried out leaves nothing that one has to look for.
    pub(super) fn began_nothing(&self) -> bool {
        !self.run.touched || self.run.insisted
    }

    /// Writes down that nothing was begun: the next try needs no look, and after the last one nothing is left.
    pub(super) async fn not_begun(&self, why: &str, again: bool) -> Result<Held, StoreError> {
        let (store, run, now) = (&self.portal.store, self.run, self.portal.clock.now());
        if again && self.may_try_again() {
            return match store.take_point_back(self.hold(), run.touched, run.insisted).await? {
                Held::Lost => Ok(Held::Lost),
                Held::Yes(_) => self.give_back(why).await,
            };
        }
        let tries = format!("{} of {} tries: {why}", run.tries + 1, self.offering.max_tries);
        let why = if again { &tries } else { why };
        // Nothing of this try, but what of those before it?
        let is_absent = !run.touched
            || self.kind() == Kind::Create && matches!(self.observe().await?, Observation::Absent);
        let state = if is_absent { RequestState::Failed } else { RequestState::Unknown };
        store.end_run(self.hold(), Ending::without_outputs(state, Some(cut(why))), now).await
    }
}

/// Leaves a run to a server that knows its offering, as while a catalog is being exchanged; after a while it ends.
pub(super) async fn without_offering(portal: &Inner, run: &Run) -> Result<Held, StoreError> {
    let now = portal.clock.now();
    if run.lacked.is_none_or(|lacked| lacked < KNOWN_WITHIN) {
        let detail = "this server's catalog lacks the offering; another server may know it";
        let entry = EventEntry::Step { step: "wait".into(), detail: detail.into() };
        return portal.store.pass_on(run.hold(), PASSED_ON, run.lacked.is_none().then_some(entry), now).await;
    }
    let ending = if run.touched {
        let reason = "The offering is missing from the catalog, so nobody can look at what was begun.";
        Ending::without_outputs(RequestState::Unknown, Some(reason.into()))
    } else {
        let reason = "The offering is missing from the catalog; nothing was begun.";
        Ending::without_outputs(RequestState::Failed, Some(reason.into()))
    };
    portal.store.end_run(run.hold(), ending, now).await
}
