//! Taking away what steps made, where nothing of the whole is to be left.

use super::{Family, NOT_TOLD, TOLD, Trouble, is_create, waits};
use crate::{
    store::{Held, Intent, StepRequest, StoredRequest, StoredResource},
    worker::{carry_out::Verdict, change::DELETED},
};
use domain::{action, problem::ProblemKind, state::RequestState, view::Object};
use std::time::Duration;

/// What became of a removal.
enum Removal {
    Done,
    Waiting(Duration),
    Again(String),
    Stuck(String),
}

impl Family<'_> {
    /// Takes away what was made, and ends in `state` once nothing of it is left.
    pub(super) async fn leave_nothing(
        &mut self,
        state: RequestState,
        reason: Option<String>,
    ) -> Result<Verdict, Trouble> {
        if self.work.is_being_deleted().await? {
            return Ok(Verdict::Gone(RequestState::Canceled, Some(DELETED.into())));
        }
        Ok(match self.remove().await? {
            Removal::Done => Verdict::Gone(state, reason),
            Removal::Waiting(wait) => waits(wait),
            Removal::Again(why) => Verdict::LookAgain(why),
            Removal::Stuck(why) => Verdict::Unknown(format!("What was made could not be removed: {why}")),
        })
    }

    /// Removes what a create made, for the delete of the whole.
    pub(super) async fn tear_down(&mut self) -> Result<Verdict, Trouble> {
        if !self.work.run.touched {
            match self.work.mark("destroy").await? {
                Held::Yes(Intent::Cancel) => return Ok(Verdict::Gone(RequestState::Canceled, None)),
                Held::Yes(_) => {}
                Held::Lost => return Ok(Verdict::Stopped),
            }
        }
        Ok(match self.remove().await? {
            Removal::Done => Verdict::There(Object::new()),
            Removal::Waiting(wait) => waits(wait),
            Removal::Again(why) => Verdict::LookAgain(why),
            Removal::Stuck(why) => Verdict::Gone(RequestState::Failed, Some(why)),
        })
    }

    /// What the steps asked for, and in the place of each that failed also what its own steps have left.
    pub(super) async fn with_what_failed_ones_left(
        &self,
        made: Vec<StepRequest>,
    ) -> Result<Vec<StepRequest>, Trouble> {
        let (mut all, mut open) = (Vec::new(), made);
        open.reverse();
        while let Some(one) = open.pop() {
            if one.request.view.state == RequestState::Failed {
                let left = self.work.portal.store.steps_of(one.request.view.id).await?;
                let left = left.into_iter().rev().filter(|left| is_create(&left.request));
                open.extend(left.map(|left| StepRequest { step: one.step.clone(), ..left }));
            }
            all.push(one);
        }
        Ok(all)
    }

    /// Stops what is under way, then removes what was made: one after the other, the last first.
    async fn remove(&mut self) -> Result<Removal, Trouble> {
        let made = self.with_what_failed_ones_left(self.made().await?).await?;
        let mut wait = None;
        for StepRequest { step, request } in &made {
            match request.view.state {
                RequestState::PendingApproval | RequestState::Queued | RequestState::Running => {
                    let is_own = request.view.parent_id == Some(self.work.run.request.view.id);
                    let soon = if is_own { TOLD } else { NOT_TOLD };
                    wait = Some(wait.map_or(soon, |wait: Duration| wait.min(soon)));
                    match self.asking.cancel(step, request).await {
                        // It came to its end in this moment.
                        Err(error) if error.kind == ProblemKind::AlreadyDecided => wait = Some(NOT_TOLD),
                        asked => asked?,
                    }
                    self.note(step, format!("request {} is asked to stop", request.view.id)).await?;
                }
                RequestState::Unknown => {
                    wait = wait.or(Some(NOT_TOLD));
                    self.note_unknown(step, request).await?;
                }
                _ => {}
            }
        }
        if let Some(wait) = wait {
            return Ok(Removal::Waiting(wait));
        }
        let mut removing = self.work.portal.store.steps_of(self.work.run.request.view.id).await?;
        removing.retain(|one| one.request.view.action == action::DELETE);
        for StepRequest { step, request } in made.iter().rev() {
            if request.view.state != RequestState::Succeeded {
                continue;
            }
            let life = self.work.portal.store.life(request.resource).await?;
            let Some(life) = life.filter(|life| life.view.state != "gone") else { continue };
            return self.remove_one(step, &life, &removing).await;
        }
        Ok(Removal::Done)
    }

    async fn remove_one(
        &mut self,
        step: &str,
        life: &StoredResource,
        removing: &[StepRequest],
    ) -> Result<Removal, Trouble> {
        let ours: Vec<&StoredRequest> = removing
            .iter()
            .map(|one| &one.request)
            .filter(|request| request.resource == life.view.id)
            .collect();
        // Whatever came of it before, it is tried once more each time that the whole is.
        let may_ask_again = self.work.run.tries == 0;
        match ours.last() {
            Some(request) if !request.view.state.is_final() => {
                if request.view.state == RequestState::Unknown {
                    self.note_unknown(step, request).await?;
                }
                return Ok(Removal::Waiting(TOLD));
            }
            Some(request) if request.view.state == RequestState::Failed => {
                let id = request.view.id;
                let why = request.view.reason.as_deref().unwrap_or("no reason was given");
                let why = format!("Step {step}: request {id} failed: {why}");
                if !may_ask_again {
                    return Ok(Removal::Stuck(why));
                }
                let more = format!("/delete/{}/retry/{}", life.view.id, request.view.attempt);
                self.asking.retry((step, &more), id).await?;
                return Ok(Removal::Again(why));
            }
            Some(request) if !may_ask_again => {
                return Ok(Removal::Stuck(format!("Step {step}: request {} was canceled", request.view.id)));
            }
            _ => {}
        }
        if life.view.state == "deleting" {
            return Ok(Removal::Waiting(NOT_TOLD));
        }
        let more = format!("/delete/{}/{}", life.view.id, ours.len());
        match self.asking.delete((step, &more), life).await {
            Ok(asked) => {
                if let Some(id) = asked.request_id {
                    self.note(step, format!("removed by request {id}")).await?;
                }
                Ok(Removal::Waiting(if asked.existing { NOT_TOLD } else { TOLD }))
            }
            // It went in this moment.
            Err(error) if error.kind == ProblemKind::NotFound => Ok(Removal::Waiting(Duration::ZERO)),
            Err(error) => match Trouble::from(error) {
                Trouble::Refused(why) => Ok(Removal::Stuck(format!("Step {step}: {why}"))),
                Trouble::Again(why) => Ok(Removal::Again(format!("Step {step}: {why}"))),
                trouble => Err(trouble),
            },
        }
    }
}
