//! Carrying one run out: which question the provisioner is asked, and what its answer means for the request.

use super::{
    change::DELETED,
    composite::Family,
    doubt::without_offering,
    elsewhere::{Away, Turned, towards},
    hidden::{Said, Secrets},
    lease::Lease,
};
use crate::{
    catalog::Offering,
    hidden::{texts, veiled, veiled_value},
    provisioner::{Context, Elsewhere, Job, Observation, Outcome, Work},
    service::Inner,
    store::{Ending, Held, Hold, Intent, Run, StoreError},
};
use domain::{
    action::Kind,
    state::RequestState,
    view::{EventEntry, Object},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// How many log lines may wait to be written; a program that is faster waits.
const LINES_WAITING: usize = 256;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(100);
/// When a run is looked at again whose secret parameters did not open.
const WITHOUT_KEY: Duration = Duration::from_secs(5);
/// The longest reason that is kept.
const LONGEST_REASON: usize = 1000;

/// What the provisioner's answers came to.
pub(super) enum Verdict {
    /// Done: it is there and ours, or, after a delete, gone.
    There(Object),
    /// Nothing of it is left; the request ends like this.
    Gone(RequestState, Option<String>),
    /// It failed as a whole; what its steps made stays.
    Left(String),
    /// Try again after a back-off, if the limit allows; else end as failed, once nothing of it is left.
    Again(String),
    /// Look again after a back-off, if the limit allows; else nobody can tell.
    LookAgain(String),
    /// It was never carried out; whether trying again may help.
    NotBegun(String, bool),
    /// Nobody can tell.
    Unknown(String),
    /// It goes on elsewhere; what the next hold is to do instead of what was meant.
    Waits(Elsewhere, Turned),
    /// Stopped: because of a cancellation, a shutdown or a lost lease.
    Stopped,
}

/// Carries a run out, as far as it comes, and writes down how it ended.
pub(super) async fn carry_out(portal: Arc<Inner>, run: Run, taken: Instant, shutdown: CancellationToken) {
    let hold = run.hold();
    let lease = Lease::keep(Arc::clone(&portal), hold, taken, &shutdown);
    let written = if let Some(offering) = portal.catalog.get(&run.request.view.offering) {
        match Secrets::of(&portal, &run).await {
            Ok(secrets) => {
                let (portal, run, lease, away) = (&portal, &run, &lease, Away::default());
                Attempt { portal, run, offering, lease, away, secrets }.carry_out(&shutdown).await
            }
            Err(error) => {
                // Another server may have the key; the request is as good then as now.
                tracing::error!(%error, context = error.context, request = %hold.request, "secret parameters do not open");
                let now = portal.clock.now();
                portal.store.give_back(hold, run.intent, WITHOUT_KEY, false, None, now).await
            }
        }
    } else {
        without_offering(&portal, &run).await
    };
    match written {
        Ok(Held::Yes(_)) => {}
        Ok(Held::Lost) => {
            tracing::warn!(request = %hold.request, "the lease was lost; another worker goes on");
        }
        Err(error) => {
            tracing::warn!(%error, request = %hold.request, "a run's end was not written; its lease will end");
        }
    }
}

/// One hold of a run, at work.
pub(super) struct Attempt<'a> {
    pub(super) portal: &'a Arc<Inner>,
    pub(super) run: &'a Run,
    pub(super) offering: &'a Offering,
    pub(super) lease: &'a Lease,
    pub(super) away: Away,
    pub(super) secrets: Secrets,
}

impl Attempt<'_> {
    pub(super) fn hold(&self) -> Hold {
        self.run.hold()
    }

    async fn carry_out(&self, shutdown: &CancellationToken) -> Result<Held, StoreError> {
        // What was reported of its end needs no look.
        let reported = if self.run.touched { self.by_report().await? } else { None };
        let mut verdict = match reported {
            Some(verdict) => verdict,
            None => self.do_what_is_meant(self.run.intent).await?,
        };
        let open = matches!(
            verdict,
            Verdict::There(_)
                | Verdict::Again(_)
                | Verdict::LookAgain(_)
                | Verdict::NotBegun(..)
                | Verdict::Unknown(_)
                | Verdict::Waits(..)
        );
        // A report may have overtaken the answer of the call that it is about, or what a look shows of that.
        if open && let Some(reported) = self.by_report().await? {
            verdict = match (verdict, reported) {
                (Verdict::There(mut outputs), Verdict::There(said)) => {
                    outputs.extend(said);
                    Verdict::There(outputs)
                }
                (_, reported) => reported,
            };
        }
        if matches!(verdict, Verdict::Stopped) && !self.lease.is_lost() {
            if shutdown.is_cancelled() {
                let entry = EventEntry::Step { step: "stop".into(), detail: "the portal shuts down".into() };
                let now = self.portal.clock.now();
                return self
                    .portal
                    .store
                    .give_back(self.hold(), self.meant(), Duration::ZERO, false, Some(entry), now)
                    .await;
            }
            // Not shut down and not lost: the request was canceled while its program ran.
            verdict = self.take_back(RequestState::Canceled, None).await?;
        }
        let in_doubt = matches!(verdict, Verdict::Again(_) | Verdict::LookAgain(_) | Verdict::Unknown(_));
        if in_doubt && self.lease.is_lost() {
            // The question was broken off because the lease was about to end, so the doubt is this worker's own. Whoever
            // takes the run next asks again.
            return Ok(Held::Lost);
        }
        self.write(verdict).await
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(&self.run.request.view.action)
    }

    async fn do_what_is_meant(&self, intent: Intent) -> Result<Verdict, StoreError> {
        if let Some(composite) = &self.offering.composite {
            return Family::of(self, composite).await?.carry_out(intent).await;
        }
        match self.kind() {
            Kind::Create => self.create(intent).await,
            Kind::Update | Kind::Action => self.change(intent).await,
            Kind::Delete => self.delete(intent).await,
        }
    }

    /// Leaves nothing of what was begun; or finds that it is done and cannot be taken back.
    pub(super) async fn take_back(
        &self,
        state: RequestState,
        reason: Option<String>,
    ) -> Result<Verdict, StoreError> {
        if let Some(composite) = &self.offering.composite {
            return Family::of(self, composite).await?.take_back(state, reason).await;
        }
        match self.kind() {
            Kind::Create => self.undo(state, reason).await,
            Kind::Update | Kind::Action => self.withdraw(state, reason, true).await,
            Kind::Delete => self.still_there(reason.unwrap_or_else(|| "stopped".into())).await,
        }
    }

    async fn create(&self, intent: Intent) -> Result<Verdict, StoreError> {
        match intent {
            Intent::Apply => self.apply().await,
            Intent::Cancel if !self.run.touched => Ok(Verdict::Gone(RequestState::Canceled, None)),
            Intent::Cancel => self.undo(RequestState::Canceled, None).await,
            Intent::Abandon => self.undo(RequestState::Failed, Some(self.why())).await,
            Intent::Adopt => Ok(match self.observe_decided().await? {
                Observation::Ours(outputs) => Verdict::There(outputs),
                Observation::CannotTell(why) => {
                    self.step("adopt", &format!("taken as done without a look: {why}")).await?;
                    Verdict::There(Object::new())
                }
                Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
                Observation::CameToNothing(why) => Verdict::Unknown(why),
                Observation::Absent | Observation::Before(_) => {
                    Verdict::Unknown("There is nothing to adopt.".into())
                }
                Observation::Foreign => Verdict::Unknown(
                    "Something of this name is there, but this request did not make it.".into(),
                ),
            }),
        }
    }

    /// Brings the thing about: looks first wherever an earlier hold may have begun.
    async fn apply(&self) -> Result<Verdict, StoreError> {
        if self.run.touched {
            match self.observe_again().await? {
                Observation::Ours(outputs) => return Ok(Verdict::There(outputs)),
                Observation::Absent | Observation::Before(_) => {}
                Observation::InProgress(elsewhere) => return Ok(Verdict::Waits(elsewhere, None)),
                Observation::CameToNothing(why) => return self.undo(RequestState::Failed, Some(why)).await,
                Observation::Foreign => return Ok(foreign()),
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
        match self.mark("apply").await? {
            Held::Yes(Intent::Cancel) => return self.undo(RequestState::Canceled, None).await,
            Held::Yes(_) => {}
            Held::Lost => return Ok(Verdict::Stopped),
        }
        let call = self.call(async |job, context| self.offering.provisioner.apply(job, context).await);
        match self.begun(call).await {
            Outcome::Done(outputs) => Ok(Verdict::There(outputs)),
            Outcome::InProgress(elsewhere) => Ok(Verdict::Waits(elsewhere, None)),
            Outcome::NotBegun { why, again } if self.began_nothing() => Ok(Verdict::NotBegun(why, again)),
            Outcome::Retryable(why) | Outcome::NotBegun { why, again: true } => Ok(Verdict::Again(why)),
            Outcome::Failed(why) | Outcome::NotBegun { why, again: false } => {
                self.undo(RequestState::Failed, Some(why)).await
            }
            Outcome::Stopped => Ok(Verdict::Stopped),
            Outcome::CannotTell(why) => {
                self.step("doubt", &why).await?;
                if let Some(verdict) = self.by_report().await? {
                    return Ok(verdict);
                }
                Ok(match self.observe().await? {
                    Observation::Ours(outputs) => Verdict::There(outputs),
                    Observation::InProgress(elsewhere) => Verdict::Waits(elsewhere, None),
                    Observation::CameToNothing(why) => self.undo(RequestState::Failed, Some(why)).await?,
                    Observation::Absent | Observation::Before(_) => Verdict::Again(why),
                    Observation::Foreign => foreign(),
                    Observation::CannotTell(why) => Verdict::LookAgain(why),
                })
            }
        }
    }

    /// Leaves nothing behind; the request ends in `state` only once that is known.
    async fn undo(&self, state: RequestState, reason: Option<String>) -> Result<Verdict, StoreError> {
        if self.is_being_deleted().await? {
            return Ok(Verdict::Gone(RequestState::Canceled, Some(DELETED.into())));
        }
        if let Some(outputs) = self.stands(state).await? {
            return Ok(Verdict::There(outputs));
        }
        let turned = towards(state, reason.as_deref());
        let seen = self.observe_stopped().await?;
        let in_vain = self.goes_on_in_vain(&seen);
        match seen {
            Observation::Absent | Observation::Foreign => return Ok(Verdict::Gone(state, reason)),
            Observation::InProgress(elsewhere) if !in_vain => return Ok(Verdict::Waits(elsewhere, turned)),
            // What came to nothing may have left something.
            Observation::Ours(_)
            | Observation::Before(_)
            | Observation::CameToNothing(_)
            | Observation::InProgress(_)
            | Observation::CannotTell(_) => {}
        }
        if let Some(verdict) = self.begin_back(Work::Destroy, reason.as_deref(), in_vain).await? {
            return Ok(verdict);
        }
        let call =
            self.call_to_the_end(async |job, context| self.offering.provisioner.destroy(job, context).await);
        let outcome = self.begun(call).await;
        if let Some(verdict) = self.taken_back(Work::Destroy, state, reason.as_deref()).await? {
            return Ok(verdict);
        }
        Ok(match outcome {
            Outcome::Done(_) => Verdict::Gone(state, reason),
            Outcome::InProgress(elsewhere) => Verdict::Waits(elsewhere, turned),
            Outcome::Retryable(why) | Outcome::NotBegun { why, again: true } => Verdict::LookAgain(why),
            Outcome::Failed(why) | Outcome::CannotTell(why) | Outcome::NotBegun { why, again: false } => {
                match self.observe().await? {
                    Observation::Absent => Verdict::Gone(state, reason),
                    _ => Verdict::Unknown(format!("What was begun could not be removed: {why}")),
                }
            }
            Outcome::Stopped => Verdict::Stopped,
        })
    }

    pub(super) async fn observe(&self) -> Result<Observation, StoreError> {
        self.recall().await?;
        let seen = self
            .call_to_the_end(async |job, context| self.offering.provisioner.observe(job, context).await)
            .await;
        let detail = match &seen {
            Observation::Absent => "it is not there".to_owned(),
            Observation::Ours(_) if self.kind() == Kind::Delete => "it is there".to_owned(),
            Observation::Ours(_) if self.kind() != Kind::Create => "it is there, and this is done".to_owned(),
            Observation::Ours(_) => "it is there, made by this request".to_owned(),
            Observation::Before(_) => self.offering.provisioner.before(&self.job()).to_owned(),
            Observation::CameToNothing(why) => format!("it came to nothing: {why}"),
            // Said once, by whoever waits for it.
            Observation::InProgress(_) => return Ok(seen),
            Observation::Foreign => "something of this name is there, made by somebody else".to_owned(),
            Observation::CannotTell(why) => format!("cannot tell: {why}"),
        };
        self.step("observe", &detail).await?;
        Ok(seen)
    }

    pub(super) async fn step(&self, step: &str, detail: &str) -> Result<Held, StoreError> {
        let entry = EventEntry::Step { step: step.to_owned(), detail: cut(detail) };
        self.portal.store.note(self.hold(), vec![entry], false, self.portal.clock.now()).await
    }

    /// The recovery point before something outside may change.
    pub(super) async fn mark(&self, step: &str) -> Result<Held, StoreError> {
        if !self.begin(step).await? {
            return Ok(Held::Lost);
        }
        self.point(step).await
    }

    pub(super) async fn point(&self, step: &str) -> Result<Held, StoreError> {
        let entry = EventEntry::Step { step: step.to_owned(), detail: "begun".into() };
        self.portal.store.note(self.hold(), vec![entry], true, self.portal.clock.now()).await
    }

    /// Asks the provisioner something that a cancellation interrupts.
    pub(super) async fn call<T: Said>(&self, ask: impl AsyncFnOnce(&Job, &Context) -> T) -> T {
        self.ask(&self.job(), self.lease.stop.clone(), ask).await
    }

    /// Asks the provisioner something that a cancellation does not interrupt, since it is what a cancellation needs.
    pub(super) async fn call_to_the_end<T: Said>(&self, ask: impl AsyncFnOnce(&Job, &Context) -> T) -> T {
        self.call_to_the_end_with(&self.job(), ask).await
    }

    /// The same about another job.
    pub(super) async fn call_to_the_end_with<T: Said>(
        &self,
        job: &Job,
        ask: impl AsyncFnOnce(&Job, &Context) -> T,
    ) -> T {
        let stop = CancellationToken::new();
        let only_when_lost = async {
            self.lease.stop.cancelled().await;
            while !self.lease.is_lost() {
                tokio::time::sleep(GATHER).await;
            }
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = self.ask(job, stop.clone(), ask) => answer,
            () = only_when_lost => std::future::pending().await,
        }
    }

    async fn ask<T: Said>(
        &self,
        job: &Job,
        stop: CancellationToken,
        ask: impl AsyncFnOnce(&Job, &Context) -> T,
    ) -> T {
        let (log, lines) = mpsc::channel(LINES_WAITING);
        let writing = self.write_lines(lines);
        let mut context = Context::new(stop, log);
        context.held = Some(self.lease.held.clone());
        self.equip(&mut context);
        let answer = ask(job, &context).await;
        // With it the log ends.
        self.remember(context.noted());
        if let Err(error) = writing.await {
            tracing::warn!(%error, "log lines of a run were not written");
        }
        answer.veiled(&self.secrets, &self.offering.secret_outputs)
    }

    pub(super) fn job(&self) -> Job {
        let (view, resource) = (&self.run.request.view, &self.run.resource);
        let before = resource.applied.clone().unwrap_or_default();
        let (parameters, input) = match self.kind() {
            Kind::Create => (view.parameters.clone(), Object::new()),
            Kind::Delete => {
                (resource.applied.clone().unwrap_or_else(|| resource.view.parameters.clone()), Object::new())
            }
            Kind::Update => (view.desired.clone().unwrap_or_default(), Object::new()),
            Kind::Action => (view.desired.clone().unwrap_or_default(), view.parameters.clone()),
        };
        let told = |parameters| self.secrets.told(self.offering, parameters);
        Job {
            request_id: view.id,
            made_by: resource.view.created_by.id,
            correlation_id: view.correlation_id.clone(),
            attempt: view.attempt,
            team: view.team.clone(),
            action: view.action.clone(),
            offering: view.offering.clone(),
            resource_type: view.resource_type.clone(),
            name: view.name.clone(),
            parameters: told(parameters),
            previous: told(before),
            input: self.secrets.told_input(self.offering, &view.action, input),
            undo: false,
            outputs: self.outputs_before(),
        }
    }

    /// The job that takes an update back.
    pub(super) fn undoing(&self) -> Job {
        let job = self.job();
        Job { parameters: job.previous, previous: job.parameters, undo: true, ..job }
    }

    /// What earlier runs of this resource answered, secret outputs included.
    fn outputs_before(&self) -> Object {
        let resource = &self.run.resource;
        let mut outputs = resource.view.outputs.clone();
        if let Some(sealed) = &resource.secrets {
            match self.portal.open_secrets(self.run.request.resource, sealed) {
                Ok(secrets) => outputs.extend(secrets.unwrap_or_default()),
                Err(error) => {
                    tracing::error!(%error, context = error.context, "a job goes without its secrets");
                }
            }
        }
        outputs
    }

    /// Writes log lines as they come, a few at a time.
    fn write_lines(&self, mut lines: mpsc::Receiver<String>) -> JoinHandle<()> {
        let (portal, hold, secrets) = (Arc::clone(self.portal), self.hold(), self.secrets.lines());
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while lines.recv_many(&mut batch, LINES_WAITING).await > 0 {
                let lines = batch.drain(..).map(|line| veiled(line, &secrets));
                let entries = lines.map(|line| EventEntry::Log { line }).collect();
                if let Err(error) = portal.store.note(hold, entries, false, portal.clock.now()).await {
                    tracing::warn!(%error, request = %hold.request, "log lines were not written");
                }
                tokio::time::sleep(GATHER).await;
            }
        })
    }

    /// Writes down what the run came to.
    async fn write(&self, verdict: Verdict) -> Result<Held, StoreError> {
        let (store, now) = (&self.portal.store, self.portal.clock.now());
        match verdict {
            Verdict::There(outputs) => {
                let ending = self.success(outputs).await?;
                let came_to = ending.outputs.clone();
                let held = store.end_run(self.hold(), ending, now).await?;
                if held != Held::Lost {
                    // It has ended whatever becomes of this.
                    if let Err(error) = self.take_over_orphans(&came_to).await {
                        tracing::warn!(%error, request = %self.run.request.view.id, "orphans were not looked at");
                    }
                }
                Ok(held)
            }
            Verdict::Gone(state, reason) => {
                store
                    .end_run(self.hold(), Ending::without_outputs(state, reason.map(|why| cut(&why))), now)
                    .await
            }
            Verdict::Left(why) => {
                let failed = Ending::without_outputs(RequestState::Failed, Some(cut(&why)));
                store.end_run(self.hold(), Ending { leaves: true, ..failed }, now).await
            }
            Verdict::Again(why) if self.may_try_again() => self.give_back(&why).await,
            Verdict::Again(why) => {
                // Nothing more is tried; what the last try left is taken back before the request counts as failed.
                let last = format!("{} of {} tries: {why}", self.run.tries + 1, self.offering.max_tries);
                let ending = match self.take_back(RequestState::Failed, Some(last)).await? {
                    Verdict::There(outputs) => self.success(outputs).await?,
                    Verdict::Gone(state, reason) => {
                        Ending::without_outputs(state, reason.map(|why| cut(&why)))
                    }
                    Verdict::Waits(elsewhere, turned) => return self.wait(elsewhere, turned).await,
                    _ => Ending::without_outputs(RequestState::Unknown, Some(cut(&why))),
                };
                store.end_run(self.hold(), ending, self.portal.clock.now()).await
            }
            Verdict::LookAgain(why) if self.may_try_again() => self.give_back(&why).await,
            Verdict::NotBegun(why, again) => self.not_begun(&why, again).await,
            Verdict::Unknown(why) | Verdict::LookAgain(why) => {
                store
                    .end_run(
                        self.hold(),
                        Ending::without_outputs(RequestState::Unknown, Some(cut(&why))),
                        now,
                    )
                    .await
            }
            Verdict::Waits(elsewhere, turned) => self.wait(elsewhere, turned).await,
            Verdict::Stopped => Ok(Held::Lost),
        }
    }

    pub(super) fn may_try_again(&self) -> bool {
        self.run.tries + 1 < self.offering.max_tries
    }

    pub(super) async fn give_back(&self, why: &str) -> Result<Held, StoreError> {
        let wait = self.offering.retry.wait(self.run.tries, self.portal.ids.random());
        let now = self.portal.clock.now();
        let entry = EventEntry::Step {
            step: "retry".into(),
            detail: cut(&format!("again in {:.1} s: {why}", wait.as_secs_f64())),
        };
        self.portal.store.give_back(self.hold(), self.meant(), wait, true, Some(entry), now).await
    }

    /// Outputs that are secrets, the others without them, and the texts of the secrets.
    pub(super) fn parted(&self, outputs: Object) -> (Object, Object, Vec<String>) {
        let secret: &BTreeSet<String> = &self.offering.secret_outputs;
        let (secrets, outputs): (Object, Object) =
            outputs.into_iter().partition(|(name, _)| secret.contains(name));
        let scrubbed = texts(secrets.values());
        let open = outputs.into_iter().map(|(name, value)| (name, veiled_value(value, &scrubbed))).collect();
        (secrets, open, scrubbed)
    }

    /// A success with these outputs; what a change does not answer anew stays as it was.
    async fn success(&self, answered: Object) -> Result<Ending, StoreError> {
        let mut outputs = match self.kind() {
            Kind::Create | Kind::Delete => Object::new(),
            Kind::Update | Kind::Action => self.outputs_before(),
        };
        outputs.extend(answered);
        let (secrets, outputs, scrubbed) = self.parted(outputs);
        let expiry = self.expiry(&outputs).await?;
        let without = Ending { expiry, ..Ending::without_outputs(RequestState::Succeeded, None) };
        if secrets.is_empty() {
            return Ok(Ending { outputs, ..without });
        }
        Ok(match self.portal.seal_secrets(self.run.request.resource, &secrets) {
            Ok(sealed) => Ending {
                outputs,
                scrubbed,
                secret_names: secrets.keys().cloned().collect(),
                secrets: Some(sealed),
                ..without
            },
            Err(error) => {
                tracing::error!(%error, "secret outputs were not sealed and are dropped");
                Ending { outputs, ..without }
            }
        })
    }
}

fn foreign() -> Verdict {
    let reason = "Something of this name is there already, and this request did not make it.";
    Verdict::Gone(RequestState::Failed, Some(reason.into()))
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(LONGEST_REASON).collect()
}
