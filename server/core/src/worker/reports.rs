//! What is reported of work elsewhere, and what that means for whoever waits for it.
//!
//! A report belongs to the errand by whose callback it comes: what one attempt applies, or takes back. Its end counts once.
//! Until taking back has begun, the end of what is applied is the end of the request, and counts before any answer and any
//! look; a success that was reported by then stands, unless somebody decided otherwise. With the beginning of taking back,
//! in one transaction, the run is turned to that: from then on only the end of taking back is the end of the request, and
//! a success of what was applied is an orphan.

use super::{
    carry_out::{Attempt, Verdict},
    change::STANDS,
    elsewhere::corrupt,
};
use crate::{
    provisioner::{Observation, Outcome, Work},
    store::{Intent, StoreError},
};
use domain::{action::Kind, callback::Progress, state::RequestState, view::Object};
use std::{collections::BTreeSet, time::Duration};

/// How long one waits for an answer whose call was reported to be at its end.
const OVERTAKEN: Duration = Duration::from_secs(1);
/// How often one looks for a report while a call goes on, where none is heard of.
const LOOK: Duration = Duration::from_secs(2);

/// Why something failed that was reported as failed.
pub(super) fn reason(said: &Object) -> String {
    said.get("error").and_then(|why| why.as_str()).unwrap_or("it failed elsewhere").to_owned()
}

impl Attempt<'_> {
    /// What the run is to do, as far as this hold knows.
    pub(super) fn meant(&self) -> Intent {
        self.away.known().turned.as_ref().map_or(self.run.intent, |(turned, _)| *turned)
    }

    /// Why the request is abandoned.
    pub(super) fn why(&self) -> String {
        let turned = self.away.known().turned.as_ref().and_then(|(_, why)| why.clone());
        turned.or_else(|| self.run.why.clone()).unwrap_or_else(|| "abandoned".into())
    }

    /// The work whose end is the end of what is meant.
    fn decisive(&self) -> Option<Work> {
        let back = matches!(self.meant(), Intent::Cancel | Intent::Abandon);
        match (self.kind(), back) {
            (Kind::Delete, _) | (Kind::Create, true) => Some(Work::Destroy),
            (Kind::Update, true) => Some(Work::Undo),
            (Kind::Action, true) => None,
            (_, false) => Some(Work::Apply),
        }
    }

    /// What the other side has reported of the end of what is meant, if that was not acted upon yet.
    pub(super) async fn by_report(&self) -> Result<Option<Verdict>, StoreError> {
        let Some(work) = self.decisive() else { return Ok(None) };
        if work != Work::Apply && self.kind() != Kind::Delete {
            let (state, reason) = match self.meant() {
                Intent::Abandon => (RequestState::Failed, Some(self.why())),
                _ => (RequestState::Canceled, None),
            };
            return self.taken_back(work, state, reason.as_deref()).await;
        }
        let Some((progress, said)) = self.heard(work).await? else { return Ok(None) };
        Ok(Some(match (progress, work) {
            (Progress::Succeeded, Work::Apply) => Verdict::There(said),
            (Progress::Succeeded, _) => Verdict::There(Object::new()),
            (_, Work::Apply) => self.take_back(RequestState::Failed, Some(reason(&said))).await?,
            (_, _) => self.not_removed(reason(&said)).await?,
        }))
    }

    /// What the other side has reported of the end of taking back.
    pub(super) async fn taken_back(
        &self,
        work: Work,
        state: RequestState,
        why: Option<&str>,
    ) -> Result<Option<Verdict>, StoreError> {
        let Some((progress, said)) = self.heard(work).await? else { return Ok(None) };
        Ok(Some(match progress {
            Progress::Succeeded => Verdict::Gone(state, why.map(str::to_owned)),
            _ => Verdict::Unknown(format!("{STANDS}: {}", reason(&said))),
        }))
    }

    /// What is there by a report, before it is taken back because it failed.
    pub(super) async fn stands(&self, state: RequestState) -> Result<Option<Object>, StoreError> {
        if state != RequestState::Failed || self.meant() != Intent::Apply {
            return Ok(None);
        }
        match self.reported(Work::Apply).await? {
            Some((Progress::Succeeded, _)) => Ok(self.heard(Work::Apply).await?.map(|(_, said)| said)),
            _ => Ok(None),
        }
    }

    /// What becomes of a removal that was reported as failed: the service is done with it, so a look shows what stands.
    async fn not_removed(&self, why: String) -> Result<Verdict, StoreError> {
        self.recall().await?;
        self.forget_note();
        Ok(match self.observe().await? {
            Observation::Absent | Observation::Foreign => Verdict::There(Object::new()),
            Observation::Ours(_) | Observation::Before(_) | Observation::CameToNothing(_) => {
                Verdict::Gone(RequestState::Failed, Some(why))
            }
            Observation::InProgress(_) | Observation::CannotTell(_) => Verdict::Unknown(why),
        })
    }

    /// The end that was reported of this work, once for each hold.
    pub(super) async fn heard(&self, work: Work) -> Result<Option<(Progress, Object)>, StoreError> {
        if self.away.known().heard == Some(work) {
            return Ok(None);
        }
        let Some((progress, said)) = self.reported(work).await? else { return Ok(None) };
        if progress == Progress::Failed && self.run.intent == Intent::Adopt {
            return Ok(None);
        }
        self.away.known().heard = Some(work);
        self.step("report", progress.as_str()).await?;
        Ok(Some((progress, said)))
    }

    /// The end that was reported of this work in this attempt, if any: outputs, or why it failed.
    pub(super) async fn reported(&self, work: Work) -> Result<Option<(Progress, Object)>, StoreError> {
        if !self.offering.provisioner.works_elsewhere() {
            return Ok(None);
        }
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

    /// Waits for the answer of a call that begins something elsewhere, but not for long once its end is reported.
    pub(super) async fn begun(&self, call: impl Future<Output = Outcome>) -> Outcome {
        if !self.offering.provisioner.works_elsewhere() {
            return call.await;
        }
        tokio::select! {
            biased;
            outcome = call => outcome,
            () = self.reported_before() => {
                Outcome::CannotTell("its end was reported, but the call was not answered".into())
            }
        }
    }

    /// Until the end of what is begun is reported, and a moment more.
    async fn reported_before(&self) {
        let request = self.hold().request;
        let mut listener = self.portal.store.changes().listen();
        loop {
            let is_over = match self.away.work() {
                Some(work) => self.errands().await.is_ok_and(|errands| {
                    errands.iter().filter(|errand| errand.work == work).any(|errand| {
                        errand.reported.as_ref().is_some_and(|(progress, _)| progress.is_final())
                    })
                }),
                None => false,
            };
            if is_over {
                return tokio::time::sleep(OVERTAKEN).await;
            }
            listener.change_of(request, LOOK).await;
        }
    }
}
