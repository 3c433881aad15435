//! Carrying out what is done to a thing that is there: updates, actions and deletes.
//!
//! An update that fails or is stopped is taken back by bringing the thing to what it was before. An action cannot be
//! taken back, so it is looked at: done or not done; where that cannot tell, the word of a person counts either way. A
//! delete is one teardown, whoever asks how often. A change that meets the deletion of its resource is stopped and nothing
//! of it is taken back, since the teardown takes it all.

use super::{
    carry_out::{Attempt, Verdict},
    elsewhere::towards,
};
use crate::{
    provisioner::{Context, Job, Observation, Outcome, Work},
    store::{Held, Intent, StoreError},
};
use domain::{
    action::Kind,
    state::RequestState,
    view::{EventEntry, Object},
};

const NOT_THERE: &str = "The thing is not there any more: somebody removed it without the portal.";
const FOREIGN: &str = "Something else stands at this name; it is not what this resource was made as.";
/// The step under which a history says that a change was worked out anew.
const AGAIN: &str = "again";
/// How many entries of a history are looked through for that; it stands before the change is begun.
const FIRST_ENTRIES: u32 = 500;
pub(super) const STANDS: &str = "What was begun could not be taken back";
pub(super) const DELETED: &str = "The resource is being deleted.";

impl Attempt<'_> {
    /// Carries out an update or an action: looks first wherever an earlier hold may have begun.
    pub(super) async fn change(&self, intent: Intent) -> Result<Verdict, StoreError> {
        match intent {
            Intent::Apply => self.bring_about().await,
            Intent::Cancel => self.withdraw(RequestState::Canceled, None, self.run.touched).await,
            Intent::Abandon => self.withdraw(RequestState::Failed, Some(self.why()), true).await,
            Intent::Adopt => Ok(match self.observe_decided().await? {
                Observation::Ours(outputs) => Verdict::There(outputs),
                Observation::CannotTell(why) => {
                    self.step("adopt", &format!("taken as done without a look: {why}")).await?;
                    Verdict::There(Object::new())
                }
                Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
                Observation::CameToNothing(why) => Verdict::Unknown(why),
                Observation::Before(_) => {
                    Verdict::Unknown("It is not done, so there is nothing to adopt.".into())
                }
                Observation::Absent => Verdict::Unknown(NOT_THERE.into()),
                Observation::Foreign => Verdict::Unknown(FOREIGN.into()),
            }),
        }
    }

    async fn bring_about(&self) -> Result<Verdict, StoreError> {
        if self.run.touched
            && let Some(verdict) = self.looked(None).await?
        {
            return Ok(verdict);
        }
        if self.lease.stop.is_cancelled() {
            return Ok(Verdict::Stopped);
        }
        if let Some(why) = self.misfit().await? {
            return self.withdraw(RequestState::Failed, Some(why), self.run.touched).await;
        }
        match self.mark("apply").await? {
            Held::Yes(Intent::Cancel) => {
                return self.withdraw(RequestState::Canceled, None, self.run.touched).await;
            }
            Held::Yes(_) => {}
            Held::Lost => return Ok(Verdict::Stopped),
        }
        let call = self.call(async |job, context| self.offering.provisioner.apply(job, context).await);
        Ok(match self.begun(call).await {
            Outcome::Done(outputs) => Verdict::There(outputs),
            Outcome::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
            Outcome::NotBegun { why, again } if self.began_nothing() => Verdict::NotBegun(why, again),
            Outcome::Retryable(why) | Outcome::NotBegun { why, again: true } => Verdict::Again(why),
            Outcome::Stopped => Verdict::Stopped,
            Outcome::Failed(why) | Outcome::NotBegun { why, again: false } => {
                self.withdraw(RequestState::Failed, Some(why), true).await?
            }
            Outcome::CannotTell(why) => {
                self.step("doubt", &why).await?;
                if let Some(verdict) = self.by_report().await? {
                    return Ok(verdict);
                }
                self.looked(Some(why)).await?.unwrap_or(Verdict::Stopped)
            }
        })
    }

    /// Why it does not fit its offering's rules any more, where it was worked out anew on another footing than that on which
    /// it was accepted: after an earlier change was taken back, or for another try.
    async fn misfit(&self) -> Result<Option<String>, StoreError> {
        let Err(errors) = self.offering.schema.normalise(self.job().parameters) else { return Ok(None) };
        let view = &self.run.request.view;
        let is_again = |entry: &EventEntry| matches!(entry, EventEntry::Step { step, .. } if step == AGAIN);
        let begin = self.portal.store.events(view.id, 0, FIRST_ENTRIES).await?;
        if view.attempt == 1 && !begin.iter().any(|event| is_again(&event.entry)) {
            // As it was accepted; only the catalog changed since.
            return Ok(None);
        }
        let told = errors.iter().map(|error| format!("{} {}", error.pointer, error.detail));
        let told: Vec<String> = told.collect();
        Ok(Some(format!("It does not fit what the resource is meant to be by now: {}", told.join("; "))))
    }

    /// What a look at the thing says of the change; nothing where it is still to be done. After a doubt that is a reason
    /// to try again.
    async fn looked(&self, doubt: Option<String>) -> Result<Option<Verdict>, StoreError> {
        let seen = if doubt.is_none() { self.observe_again().await? } else { self.observe().await? };
        Ok(match seen {
            Observation::Ours(outputs) => Some(Verdict::There(outputs)),
            Observation::InProgress(elsewhere) => Some(Verdict::Waits(elsewhere, None)),
            Observation::CameToNothing(why) => {
                Some(self.withdraw(RequestState::Failed, Some(why), true).await?)
            }
            Observation::Before(_) => doubt.map(Verdict::Again),
            Observation::Absent => Some(Verdict::Gone(RequestState::Failed, Some(NOT_THERE.into()))),
            Observation::Foreign => Some(Verdict::Gone(RequestState::Failed, Some(FOREIGN.into()))),
            Observation::CannotTell(why) if doubt.is_none() => self.blind(why).await?,
            Observation::CannotTell(why) => Some(Verdict::LookAgain(why)),
        })
    }

    /// Takes the change back, or finds that it is done; it ends in `state` only once that is known.
    pub(super) async fn withdraw(
        &self,
        state: RequestState,
        reason: Option<String>,
        begun: bool,
    ) -> Result<Verdict, StoreError> {
        if !begun {
            return Ok(Verdict::Gone(state, reason));
        }
        if self.is_being_deleted().await? {
            return Ok(Verdict::Gone(RequestState::Canceled, Some(DELETED.into())));
        }
        if let Some(outputs) = self.stands(state).await? {
            return Ok(Verdict::There(outputs));
        }
        let turned = towards(state, reason.as_deref());
        let seen = self.observe_stopped().await?;
        let in_vain = self.goes_on_in_vain(&seen);
        if Kind::of(&self.run.request.view.action) == Kind::Action {
            return Ok(match seen {
                Observation::Ours(outputs) => Verdict::There(outputs),
                Observation::InProgress(elsewhere) if !in_vain => Verdict::Waits(elsewhere, turned),
                Observation::CannotTell(why) if !self.is_abandoned() => Verdict::LookAgain(why),
                Observation::CannotTell(why) => {
                    self.step("abandon", &format!("taken as not done without a look: {why}")).await?;
                    Verdict::Gone(state, reason)
                }
                Observation::InProgress(_)
                | Observation::Before(_)
                | Observation::CameToNothing(_)
                | Observation::Absent
                | Observation::Foreign => Verdict::Gone(state, reason),
            });
        }
        match seen {
            Observation::CannotTell(why) if !self.is_abandoned() => return Ok(Verdict::LookAgain(why)),
            Observation::InProgress(elsewhere) if !in_vain => return Ok(Verdict::Waits(elsewhere, turned)),
            // What is not done may still stand half-way.
            Observation::Ours(_)
            | Observation::Before(_)
            | Observation::CameToNothing(_)
            | Observation::InProgress(_)
            | Observation::CannotTell(_) => {}
            Observation::Absent | Observation::Foreign => return Ok(Verdict::Gone(state, reason)),
        }
        if let Some(verdict) = self.begin_back(Work::Undo, reason.as_deref(), in_vain).await? {
            return Ok(verdict);
        }
        let job = self.undoing();
        let undo = async |job: &Job, context: &Context| self.offering.provisioner.apply(job, context).await;
        let outcome = self.begun(self.call_to_the_end_with(&job, undo)).await;
        if let Some(verdict) = self.taken_back(Work::Undo, state, reason.as_deref()).await? {
            return Ok(verdict);
        }
        Ok(match outcome {
            Outcome::Done(_) => Verdict::Gone(state, reason),
            Outcome::InProgress(elsewhere) => Verdict::Waits(elsewhere, turned),
            Outcome::Retryable(why) | Outcome::NotBegun { why, again: true } => Verdict::LookAgain(why),
            Outcome::Stopped => Verdict::Stopped,
            Outcome::Failed(why) | Outcome::NotBegun { why, again: false } => {
                Verdict::Unknown(format!("{STANDS}: {why}"))
            }
            Outcome::CannotTell(why) => match self.observe().await? {
                Observation::Before(_) => Verdict::Gone(state, reason),
                _ => Verdict::Unknown(format!("{STANDS}: {why}")),
            },
        })
    }

    /// Whether the resource is being deleted, so that nothing needs to be taken back: the teardown takes it all.
    pub(super) async fn is_being_deleted(&self) -> Result<bool, StoreError> {
        let life = self.portal.store.life(self.run.request.resource).await?;
        Ok(life.is_none_or(|life| life.view.state == "deleting"))
    }

    /// Carries out a delete: one teardown, whatever was begun of it before.
    pub(super) async fn delete(&self, intent: Intent) -> Result<Verdict, StoreError> {
        match intent {
            Intent::Apply => self.tear_down().await,
            // Only accepted before anything was begun.
            Intent::Cancel => Ok(Verdict::Gone(RequestState::Canceled, None)),
            Intent::Abandon => Ok(match self.observe_decided().await? {
                Observation::Absent | Observation::Foreign => Verdict::There(Object::new()),
                Observation::InProgress(elsewhere) if !self.is_abandoned() => Verdict::Waits(elsewhere, None),
                _ => Verdict::Gone(RequestState::Failed, Some(self.why())),
            }),
            Intent::Adopt => Ok(match self.observe_decided().await? {
                Observation::Absent | Observation::Foreign => Verdict::There(Object::new()),
                Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
                Observation::CannotTell(why) => {
                    self.step("adopt", &format!("taken as gone without a look: {why}")).await?;
                    Verdict::There(Object::new())
                }
                Observation::Ours(_) | Observation::Before(_) | Observation::CameToNothing(_) => {
                    Verdict::Unknown("It is still there, so its end cannot be adopted.".into())
                }
            }),
        }
    }

    async fn tear_down(&self) -> Result<Verdict, StoreError> {
        if self.run.touched {
            match self.observe_again().await? {
                Observation::Absent | Observation::Foreign => return Ok(Verdict::There(Object::new())),
                Observation::InProgress(elsewhere) => return Ok(Verdict::Waits(elsewhere, None)),
                Observation::Ours(_) | Observation::Before(_) => {}
                Observation::CameToNothing(why) => {
                    return Ok(Verdict::Gone(RequestState::Failed, Some(why)));
                }
                Observation::CannotTell(why) => {
                    if let Some(verdict) = self.blind(why).await? {
                        return Ok(verdict);
                    }
                }
            }
        }
        if self.lease.stop.is_cancelled() {
            return Ok(Verdict::Stopped);
        }
        match self.mark("destroy").await? {
            Held::Yes(Intent::Cancel) => return Ok(Verdict::Gone(RequestState::Canceled, None)),
            Held::Yes(_) => {}
            Held::Lost => return Ok(Verdict::Stopped),
        }
        let call = self.call(async |job, context| self.offering.provisioner.destroy(job, context).await);
        Ok(match self.begun(call).await {
            Outcome::Done(_) => Verdict::There(Object::new()),
            Outcome::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
            Outcome::NotBegun { why, again } if self.began_nothing() => Verdict::NotBegun(why, again),
            Outcome::Retryable(why) | Outcome::NotBegun { why, again: true } => Verdict::Again(why),
            Outcome::Stopped => Verdict::Stopped,
            Outcome::Failed(why) | Outcome::NotBegun { why, again: false } => self.still_there(why).await?,
            Outcome::CannotTell(why) => {
                self.step("doubt", &why).await?;
                if let Some(verdict) = self.by_report().await? {
                    return Ok(verdict);
                }
                match self.observe().await? {
                    Observation::Absent | Observation::Foreign => Verdict::There(Object::new()),
                    Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
                    Observation::Ours(_) | Observation::Before(_) => Verdict::Again(why),
                    Observation::CameToNothing(why) => Verdict::Gone(RequestState::Failed, Some(why)),
                    Observation::CannotTell(why) => Verdict::LookAgain(why),
                }
            }
        })
    }

    /// What becomes of a delete whose program gave up: the look decides.
    pub(super) async fn still_there(&self, why: String) -> Result<Verdict, StoreError> {
        Ok(match self.observe().await? {
            Observation::Absent | Observation::Foreign => Verdict::There(Object::new()),
            Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
            Observation::Ours(_) | Observation::Before(_) | Observation::CameToNothing(_) => {
                Verdict::Gone(RequestState::Failed, Some(why))
            }
            Observation::CannotTell(_) => Verdict::Unknown(why),
        })
    }
}
