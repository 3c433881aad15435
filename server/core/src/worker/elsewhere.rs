//! Waiting for work that goes on elsewhere, without a worker being held up by it.
//!
//! What is begun elsewhere is kept as an errand before the call that begins it, so that a report on it that is quicker than
//! that call's answer is known to belong to it. What was reported of the end counts before any look.
//!
//! The run is given back with the time of the next look. Who takes it then looks first, as after any doubt. What is to be
//! taken back is stopped before; where that takes time as well, the run keeps what it is turned to.

use super::carry_out::{Attempt, Verdict, cut};
use crate::{
    Error,
    provisioner::{Begun, Context, Elsewhere, Observation, Outcome, Work},
    store::{Ending, Errand, Held, Intent, StoreError, Waiting},
};
use domain::{
    action::Kind,
    callback::{Progress, is_the_same},
    id::ErrandId,
    state::RequestState,
    view::{EventEntry, Object},
};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The bounds of the time between two looks.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOOK: Duration = Duration::from_hours(1);

/// What the next hold of a run is to do instead of what this one was to do, and why.
pub(super) type Turned = Option<(Intent, Option<String>)>;

/// What a run is turned to whose request is to end in this state.
pub(super) fn towards(state: RequestState, reason: Option<&str>) -> Turned {
    match state {
        RequestState::Failed => Some((Intent::Abandon, reason.map(cut))),
        // A cancellation is written where it was asked for.
        _ => None,
    }
}

/// What this hold knows of the work elsewhere.
#[derive(Debug, Default)]
pub(super) struct Away {
    begun: Mutex<Option<(ErrandId, Begun)>>,
    /// Whether the note is not kept yet.
    noted: Mutex<bool>,
}

impl Away {
    fn begun(&self) -> MutexGuard<'_, Option<(ErrandId, Begun)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted(&self) -> MutexGuard<'_, bool> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why something failed that was reported as failed.
fn reason(said: &Object) -> String {
    said.get("error").and_then(|why| why.as_str()).unwrap_or("it failed elsewhere").to_owned()
}

fn corrupt(error: &Error) -> StoreError {
    StoreError::Corrupt(error.context.clone().unwrap_or_else(|| error.to_string()))
}

impl Attempt<'_> {
    /// Keeps what is about to be begun elsewhere; whether the hold still holds.
    pub(super) async fn begin(&self, step: &str) -> Result<bool, StoreError> {
        let works_elsewhere = self.offering.provisioner.works_elsewhere();
        let work = [Work::Apply, Work::Undo, Work::Destroy].into_iter().find(|work| work.as_str() == step);
        let (true, Some(work)) = (works_elsewhere, work) else { return Ok(true) };
        let now = self.portal.clock.now();
        let id = ErrandId(self.portal.ids.uuid(now));
        let secret = self.portal.new_errand_secret(id).map_err(|error| corrupt(&error))?;
        let hold = self.hold();
        let (request, attempt) = (hold.request, hold.attempt);
        let errand = Errand { id, request, attempt, work, secret, note: None, reported: None };
        let Some(errand) = self.portal.store.begin_errand(hold, errand, now).await? else {
            return Ok(false);
        };
        // Where no call was carried out, nobody was asked to begin it.
        self.know(&errand, errand.id == id || !self.run.touched)?;
        Ok(true)
    }

    /// Finds what an earlier hold began, unless this one knows already.
    pub(super) async fn recall(&self) -> Result<(), StoreError> {
        if !self.offering.provisioner.works_elsewhere() || self.away.begun().is_some() {
            return Ok(());
        }
        let back = matches!(self.run.intent, Intent::Cancel | Intent::Abandon);
        let mut errands = self.errands().await?;
        // What takes back comes after what it takes back.
        errands.sort_by_key(|errand| (errand.work == Work::Apply) == (back || self.kind() == Kind::Delete));
        match errands.first() {
            Some(errand) => self.know(errand, false),
            None => Ok(()),
        }
    }

    async fn errands(&self) -> Result<Vec<Errand>, StoreError> {
        let hold = self.hold();
        self.portal.store.errands_of(hold.request, hold.attempt).await
    }

    fn know(&self, errand: &Errand, fresh: bool) -> Result<(), StoreError> {
        let secret = self.portal.errand_secret(errand).map_err(|error| corrupt(&error))?;
        let note = match &errand.note {
            None => Object::new(),
            Some(sealed) => {
                self.portal.open_errand(errand.id, "note", sealed).map_err(|error| corrupt(&error))?
            }
        };
        let callback = self.portal.callback_url(errand.id);
        *self.away.begun() = Some((errand.id, Begun { work: errand.work, callback, secret, note, fresh }));
        Ok(())
    }

    /// Gives a provisioner what it needs to work elsewhere.
    pub(super) fn equip(&self, context: &mut Context) {
        if self.offering.provisioner.works_elsewhere() {
            context.outbound = Some(self.portal.outbound.clone());
            context.begun = self.away.begun().as_ref().map(|(_, begun)| begun.clone());
        }
    }

    /// Takes over what a provisioner noted.
    pub(super) fn remember(&self, note: Option<Object>) {
        if let (Some(note), Some((_, begun))) = (note, self.away.begun().as_mut()) {
            begun.note = note;
            *self.away.noted() = true;
        }
    }

    /// What the other side has reported of the end of what is meant, if anything.
    pub(super) async fn by_report(&self) -> Result<Option<Verdict>, StoreError> {
        if !self.offering.provisioner.works_elsewhere() {
            return Ok(None);
        }
        let back = matches!(self.run.intent, Intent::Cancel | Intent::Abandon);
        let work = match (self.kind(), back) {
            (Kind::Delete, _) | (Kind::Create, true) => Work::Destroy,
            (Kind::Update, true) => Work::Undo,
            (Kind::Action, true) => return Ok(None),
            (_, false) => Work::Apply,
        };
        let Some((progress, said)) = self.reported(work).await? else { return Ok(None) };
        if progress == Progress::Failed && self.run.intent == Intent::Adopt {
            return Ok(None);
        }
        self.step("report", progress.as_str()).await?;
        if progress == Progress::Succeeded {
            return Ok(Some(match (work, self.run.intent) {
                (Work::Apply, _) => Verdict::There(said),
                (Work::Destroy, _) if self.kind() == Kind::Delete => Verdict::There(Object::new()),
                (_, Intent::Abandon) => Verdict::Gone(RequestState::Failed, Some(self.why())),
                _ => Verdict::Gone(RequestState::Canceled, None),
            }));
        }
        let why = reason(&said);
        Ok(Some(match work {
            Work::Destroy if self.kind() == Kind::Delete => self.still_there(why).await?,
            Work::Apply => self.take_back(RequestState::Failed, Some(why)).await?,
            Work::Undo | Work::Destroy => {
                Verdict::Unknown(format!("What was begun could not be taken back: {why}"))
            }
        }))
    }

    /// The end that was reported of this work in this attempt, if any: outputs, or why it failed.
    async fn reported(&self, work: Work) -> Result<Option<(Progress, Object)>, StoreError> {
        let errands = self.errands().await?;
        let Some(errand) = errands.iter().find(|errand| errand.work == work) else { return Ok(None) };
        let Some((progress, sealed)) = &errand.reported else { return Ok(None) };
        if !progress.is_final() {
            return Ok(None);
        }
        let said = match sealed {
            Some(sealed) => {
                self.portal.open_errand(errand.id, "report", sealed).map_err(|error| corrupt(&error))?
            }
            None => Object::new(),
        };
        let none = BTreeSet::new();
        // What failed has no outputs, but a reason.
        let sealed = if *progress == Progress::Succeeded { &self.offering.secret_outputs } else { &none };
        Ok(Some((*progress, self.secrets.veil_outputs(said, sealed))))
    }

    /// What earlier attempts were reported to have made after all is no orphan where this one came to the same.
    pub(super) async fn take_over_orphans(&self, came_to: &Object) -> Result<(), StoreError> {
        let hold = self.hold();
        if !self.offering.provisioner.works_elsewhere() {
            return Ok(());
        }
        for attempt in 1..hold.attempt {
            for errand in self.portal.store.errands_of(hold.request, attempt).await? {
                let Some((Progress::Succeeded, Some(sealed))) = &errand.reported else { continue };
                let said =
                    self.portal.open_errand(errand.id, "report", sealed).map_err(|error| corrupt(&error))?;
                let (_, open, _) =
                    self.parted(self.secrets.veil_outputs(said, &self.offering.secret_outputs));
                if is_the_same(&open, came_to) {
                    self.portal.store.take_over_orphan(errand.id, self.portal.clock.now()).await?;
                }
            }
        }
        Ok(())
    }

    /// The note that is not kept yet, sealed.
    fn unkept(&self) -> Result<Option<(ErrandId, Vec<u8>)>, StoreError> {
        let begun = self.away.begun();
        let (true, Some((id, begun))) = (*self.away.noted(), begun.as_ref()) else { return Ok(None) };
        let sealed = self.portal.seal_errand(*id, "note", &begun.note).map_err(|error| corrupt(&error))?;
        Ok(Some((*id, sealed)))
    }

    /// Why the request is abandoned.
    pub(super) fn why(&self) -> String {
        self.run.why.clone().unwrap_or_else(|| "abandoned".into())
    }

    /// Looks, and stops what goes on elsewhere. Where that is still going on then, its end has to be awaited.
    pub(super) async fn observe_stopped(&self) -> Result<Observation, StoreError> {
        let seen = self.observe().await?;
        if !matches!(seen, Observation::InProgress(_)) {
            return Ok(seen);
        }
        // What was reported to be at its end needs no stop, whatever the look says.
        if let Some((progress, said)) = self.reported(Work::Apply).await? {
            return Ok(match progress {
                Progress::Succeeded => Observation::Ours(said),
                _ => Observation::CameToNothing(reason(&said)),
            });
        }
        let outcome = self
            .call_to_the_end(async |job, context| self.offering.provisioner.stop(job, context).await)
            .await;
        match outcome {
            Outcome::Done(_) | Outcome::InProgress(_) | Outcome::Stopped => {}
            Outcome::Retryable(why)
            | Outcome::NotBegun { why, .. }
            | Outcome::Failed(why)
            | Outcome::CannotTell(why) => {
                self.step("stop", &why).await?;
            }
        }
        self.observe().await
    }

    /// Gives the run back until there may be news; or ends the patience.
    pub(super) async fn wait(&self, elsewhere: Elsewhere, turned: Turned) -> Result<Held, StoreError> {
        let now = self.portal.clock.now();
        if let (Some(waited), Some(patience)) = (self.run.waited, elsewhere.patience)
            && waited >= patience
        {
            let why = format!("{}: no end after {} s", elsewhere.what, waited.as_secs());
            let ending = Ending::without_outputs(RequestState::Unknown, Some(cut(&why)));
            return self.portal.store.end_run(self.hold(), ending, now).await;
        }
        // Once, however often one looks.
        let entry = self
            .run
            .waited
            .is_none()
            .then(|| EventEntry::Step { step: "wait".into(), detail: cut(&elsewhere.what) });
        let wait = elsewhere.look_again.clamp(SHORTEST_LOOK, LONGEST_LOOK);
        let note = self.unkept()?;
        let waiting = Waiting { meant: self.run.intent, wait, turned, entry, note };
        self.portal.store.wait_elsewhere(self.hold(), waiting, now).await
    }
}
