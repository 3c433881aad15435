//! Waiting for work that goes on elsewhere, without a worker being held up by it.
//!
//! What is begun elsewhere is kept as an errand before the call that begins it, so that a report on it that is quicker than
//! that call's answer is known to belong to it. What was reported of the end counts before any look (see `reports`).
//!
//! The run is given back with the time of the next look. Who takes it then looks first, as after any doubt. What is to be
//! taken back is stopped before; where that takes time as well, the run keeps what it is turned to.

use super::{
    carry_out::{Attempt, Verdict, cut},
    reports::reason,
};
use crate::{
    Error,
    provisioner::{Begun, Context, Elsewhere, Observation, Outcome, Work},
    store::{Back, Ending, Errand, Held, Hold, Intent, StoreError, Waiting},
};
use domain::{
    action::Kind,
    callback::{Progress, is_the_same},
    id::ErrandId,
    state::RequestState,
    time::Moment,
    view::{EventEntry, Object},
};
use std::{
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
pub(super) struct Away(Mutex<Known>);

#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) begun: Option<(ErrandId, Begun)>,
    /// Whether there is a note that is not kept yet.
    noted: bool,
    /// What the run is to do instead of what it was taken for, since taking back has begun, and why.
    pub(super) turned: Turned,
    /// The work whose reported end was acted upon.
    pub(super) heard: Option<Work>,
}

impl Away {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is being done there.
    pub(super) fn work(&self) -> Option<Work> {
        self.known().begun.as_ref().map(|(_, begun)| begun.work)
    }
}

pub(super) fn corrupt(error: &Error) -> StoreError {
    StoreError::Corrupt(error.context.clone().unwrap_or_else(|| error.to_string()))
}

impl Attempt<'_> {
    /// The recovery point before what was begun is taken back; what this hold comes to where that is not begun, since the hold
    /// was lost or its success was reported before. What was taken back `in_vain`, without end, is asked for again.
    pub(super) async fn begin_back(
        &self,
        work: Work,
        reason: Option<&str>,
        in_vain: bool,
    ) -> Result<Option<Verdict>, StoreError> {
        if self.offering.provisioner.works_elsewhere() {
            let why = reason.map(cut);
            let (store, now) = (&self.portal.store, self.portal.clock.now());
            let errand = self.errand(work, now)?;
            let id = errand.id;
            match store.begin_back(self.hold(), errand, why.clone(), now).await? {
                Back::Lost => return Ok(Some(Verdict::Stopped)),
                Back::Stands => {
                    let said = self.heard(Work::Apply).await?.map(|(_, said)| said);
                    return Ok(Some(Verdict::There(said.unwrap_or_default())));
                }
                Back::Begun(errand, turned) => {
                    self.know(&errand, errand.id == id)?;
                    self.away.known().turned = Some((turned, why));
                }
            }
        }
        if in_vain {
            self.forget_note();
        }
        Ok(match self.point(work.as_str()).await? {
            Held::Yes(_) => None,
            Held::Lost => Some(Verdict::Stopped),
        })
    }

    fn errand(&self, work: Work, now: Moment) -> Result<Errand, StoreError> {
        let id = ErrandId(self.portal.ids.uuid(now));
        let secret = self.portal.new_errand_secret(id).map_err(|error| corrupt(&error))?;
        let Hold { request, attempt, .. } = self.hold();
        Ok(Errand { id, request, attempt, work, secret, note: None, reported: None })
    }

    /// Keeps what is about to be begun elsewhere; whether the hold still holds.
    pub(super) async fn begin(&self, step: &str) -> Result<bool, StoreError> {
        let works_elsewhere = self.offering.provisioner.works_elsewhere();
        let work = [Work::Apply, Work::Destroy].into_iter().find(|work| work.as_str() == step);
        let (true, Some(work)) = (works_elsewhere, work) else { return Ok(true) };
        let now = self.portal.clock.now();
        let (hold, errand) = (self.hold(), self.errand(work, now)?);
        let id = errand.id;
        let Some(errand) = self.portal.store.begin_errand(hold, errand, now).await? else {
            return Ok(false);
        };
        // Where no call was carried out, nobody was asked to begin it.
        self.know(&errand, errand.id == id || !self.run.touched)?;
        Ok(true)
    }

    /// Finds what an earlier hold began, unless this one knows already.
    pub(super) async fn recall(&self) -> Result<(), StoreError> {
        if !self.offering.provisioner.works_elsewhere() || self.away.work().is_some() {
            return Ok(());
        }
        let back = matches!(self.meant(), Intent::Cancel | Intent::Abandon);
        let mut errands = self.errands().await?;
        // What takes back comes after what it takes back.
        errands.sort_by_key(|errand| (errand.work == Work::Apply) == (back || self.kind() == Kind::Delete));
        match errands.first() {
            Some(errand) => self.know(errand, false),
            None => Ok(()),
        }
    }

    pub(super) async fn errands(&self) -> Result<Vec<Errand>, StoreError> {
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
        self.away.known().begun =
            Some((errand.id, Begun { work: errand.work, callback, secret, note, fresh }));
        Ok(())
    }

    /// Forgets what was noted of the work, in this hold: the next question is asked as if nothing were known of it.
    pub(super) fn forget_note(&self) {
        if let Some((_, begun)) = self.away.known().begun.as_mut() {
            begun.note = Object::new();
        }
    }

    /// Gives a provisioner what it needs to work elsewhere.
    pub(super) fn equip(&self, context: &mut Context) {
        if self.offering.provisioner.works_elsewhere() {
            context.outbound = Some(self.portal.outbound.clone());
            context.begun = self.away.known().begun.as_ref().map(|(_, begun)| begun.clone());
        }
    }

    /// Takes over what a provisioner noted.
    pub(super) fn remember(&self, note: Option<Object>) {
        let mut known = self.away.known();
        if let (Some(note), Some((_, begun))) = (note, known.begun.as_mut()) {
            begun.note = note;
            known.noted = true;
        }
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
        let known = self.away.known();
        let (true, Some((id, begun))) = (known.noted, known.begun.as_ref()) else { return Ok(None) };
        let sealed = self.portal.seal_errand(*id, "note", &begun.note).map_err(|error| corrupt(&error))?;
        Ok(Some((*id, sealed)))
    }

    /// Looks, and stops what goes on elsewhere. Where that is still going on then, its end has to be awaited.
    pub(super) async fn observe_stopped(&self) -> Result<Observation, StoreError> {
        let seen = self.observe().await?;
        if !matches!(seen, Observation::InProgress(_)) {
            return Ok(seen);
        }
        // What was reported to be at its end needs no stop, whatever the look says.
        if self.away.work() == Some(Work::Apply)
            && let Some((progress, said)) = self.reported(Work::Apply).await?
        {
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
        let meant = self.meant();
        // What takes back already is not turned to it once more.
        let turned = turned.filter(|_| meant == Intent::Apply);
        let waiting = Waiting { meant, wait, turned, entry, note };
        self.portal.store.wait_elsewhere(self.hold(), waiting, now).await
    }
}
