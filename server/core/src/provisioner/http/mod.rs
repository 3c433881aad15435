//! A provisioner that calls a service: what is sent, and what its answers mean, is what the offering says.
//!
//! A call that may have been carried out is never repeated before a look, unless the service says that it carries out once
//! what comes with the same `Idempotency-Key`. That key stands for one operation of one attempt, so that another attempt
//! is not answered with the failure of the one before.

mod call;
pub mod plan;
pub mod texts;

use super::{Context, Elsewhere, Job, Observation, Outcome, Provisioner, Work};
use crate::signature::SharedSecret;
use async_trait::async_trait;
use call::{Ended, Mapped};
use domain::{action::Kind, view::Object};
use plan::{CallPlan, LookPlan, Plan};
use serde_json::Value;
use std::time::Duration;
use texts::Texts;

/// The members of a note: the address to ask at, that the service took the work in, and that it was stopped.
const POLL: &str = "poll";
const BEGUN: &str = "begun";
const STOPPED: &str = "stopped";

/// The service of one offering.
#[derive(Debug)]
pub struct Http {
    plan: Plan,
    texts: Texts,
}

impl Http {
    /// A service that is called like this.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, texts: Texts::default() }
    }

    /// The plan for what a job asks for.
    fn plan_of(&self, job: &Job) -> Option<&CallPlan> {
        match Kind::of(&job.action) {
            Kind::Create => Some(&self.plan.apply),
            Kind::Update => self.plan.update.as_ref(),
            Kind::Action => self.plan.actions.get(&job.action),
            Kind::Delete => Some(&self.plan.destroy),
        }
    }

    fn in_progress(&self) -> Elsewhere {
        // Where only a report can tell, one looks to see whether patience is over.
        let sees = self.plan.poll.is_some() || self.plan.observe.is_some();
        Elsewhere {
            what: "the service works on it".into(),
            look_again: match (sees, self.plan.by_callback) {
                (true, _) => self.plan.look_again,
                (false, true) => self.plan.patience,
                // Nobody will ever tell.
                (false, false) => Duration::ZERO,
            },
            patience: Some(self.plan.patience),
        }
    }

    /// Makes a call that changes something, and says what its answer means.
    async fn change(&self, plan: &CallPlan, work: Work, job: &Job, context: &Context) -> Outcome {
        let step = work.as_str();
        let ended = match self.known(job, context, step) {
            Ok(mut known) => match self.send(plan, step, &mut known, context).await {
                Ended::Answered => self.judge(&plan.answer, &known, work == Work::Destroy),
                Ended::Mapped(mapped) => mapped,
            },
            Err(why) => Mapped::Retryable(why),
        };
        match ended {
            Mapped::Done(outputs) => Outcome::Done(outputs),
            Mapped::InProgress(poll) => {
                let mut note = Object::from_iter([(BEGUN.to_owned(), true.into())]);
                if let Some(poll) = poll {
                    note.insert(POLL.to_owned(), poll.into());
                }
                context.set_note(note);
                Outcome::InProgress(self.in_progress())
            }
            Mapped::Accepted(why) => {
                context.set_note(Object::from_iter([(BEGUN.to_owned(), true.into())]));
                Outcome::InProgress(Elsewhere {
                    what: format!("the service took it in ({why})"),
                    ..self.in_progress()
                })
            }
            Mapped::Failed(why) => Outcome::Failed(why),
            Mapped::NeverSent(why) => Outcome::NotBegun { why, again: false },
            Mapped::Retryable(why) => Outcome::NotBegun { why, again: true },
            Mapped::Doubt(why) => Outcome::CannotTell(why),
            Mapped::Stopped => Outcome::Stopped,
        }
    }

    /// What has become of work that the service took in.
    async fn follow(&self, job: &Job, context: &Context) -> Mapped {
        let note = context.note();
        let Some(address) = note.get(POLL).and_then(Value::as_str) else {
            return Mapped::InProgress(None);
        };
        match self.known(job, context, "poll") {
            Ok(mut known) => self.ask(address, &mut known, context).await,
            Err(why) => Mapped::Doubt(why),
        }
    }

    /// Looks at the thing, once.
    async fn look_once(&self, look: &LookPlan, job: &Job, context: &Context) -> Observation {
        let mut known = match self.known(job, context, "observe") {
            Ok(known) => known,
            Err(why) => return Observation::CannotTell(why),
        };
        match self.get(&look.url, &look.headers, "observe", &mut known, context).await {
            Ended::Answered => {}
            Ended::Mapped(mapped) => return Observation::CannotTell(mapped.why()),
        }
        let seen = |expression: &str| self.texts.is_so(expression, &known.values());
        let judged = || -> Result<Observation, String> {
            let absent = match &look.absent {
                Some(absent) => seen(absent)?,
                None => matches!(known.status(), 404 | 410),
            };
            if absent {
                return Ok(Observation::Absent);
            }
            if !(200..300).contains(&known.status()) {
                let why = format!("the service answered a look with {}", known.status());
                return Ok(Observation::CannotTell(why));
            }
            if !seen(&look.ours)? {
                return Ok(Observation::Foreign);
            }
            if let Some(in_progress) = &look.in_progress
                && seen(in_progress)?
            {
                return Ok(Observation::InProgress(self.in_progress()));
            }
            let outputs = self.outputs(&look.outputs, &known)?;
            Ok(match (Kind::of(&job.action), &look.done) {
                (Kind::Create | Kind::Delete, _) => Observation::Ours(outputs),
                (Kind::Update | Kind::Action, Some(done)) if seen(done)? => Observation::Ours(outputs),
                (Kind::Update | Kind::Action, Some(_)) => Observation::Before(outputs),
                (Kind::Update | Kind::Action, None) if self.plan.idempotent => Observation::Before(outputs),
                (Kind::Update | Kind::Action, None) => Observation::CannotTell(
                    "the offering does not say by what one sees that a change is done".into(),
                ),
            })
        };
        judged().unwrap_or_else(|why| Observation::CannotTell(format!("observe: {why}")))
    }

    /// Looks at the thing. One that a call in doubt may yet bring about is only absent when it still is after a while.
    async fn look(&self, job: &Job, context: &Context) -> Observation {
        let Some(look) = &self.plan.observe else {
            return if self.plan.idempotent {
                // What comes next is safe to repeat, whatever stands.
                Observation::Before(job.outputs.clone())
            } else {
                Observation::CannotTell("the offering does not say how one looks".into())
            };
        };
        let seen = self.look_once(look, job, context).await;
        if seen != Observation::Absent || self.plan.idempotent {
            return seen;
        }
        tokio::select! {
            () = context.stop.cancelled() => Observation::CannotTell("the look was broken off".into()),
            () = tokio::time::sleep(self.plan.settled_after) => self.look_once(look, job, context).await,
        }
    }

    fn work(context: &Context) -> Work {
        context.begun.as_ref().map_or(Work::Apply, |begun| begun.work)
    }
}

fn is_change(job: &Job) -> bool {
    matches!(Kind::of(&job.action), Kind::Update | Kind::Action)
}

fn is_set(note: &Object, member: &str) -> bool {
    note.get(member).and_then(Value::as_bool).unwrap_or_default()
}

#[async_trait]
impl Provisioner for Http {
    async fn observe(&self, job: &Job, context: &Context) -> Observation {
        let note = context.note();
        if !is_set(&note, BEGUN) || is_set(&note, STOPPED) {
            return self.look(job, context).await;
        }
        let removes = Self::work(context) == Work::Destroy;
        if note.contains_key(POLL) {
            return match self.follow(job, context).await {
                Mapped::Done(_) if removes => Observation::Absent,
                Mapped::Done(outputs) => Observation::Ours(outputs),
                Mapped::Failed(why) => Observation::CameToNothing(why),
                // It was taken in; what cannot be told now may be told later.
                Mapped::InProgress(_)
                | Mapped::Accepted(_)
                | Mapped::NeverSent(_)
                | Mapped::Retryable(_)
                | Mapped::Doubt(_)
                | Mapped::Stopped => Observation::InProgress(self.in_progress()),
            };
        }
        let Some(look) = &self.plan.observe else {
            return if self.plan.by_callback {
                Observation::InProgress(self.in_progress())
            } else {
                Observation::CannotTell(
                    "the service took it in, and nothing tells how one asks what became of it".into(),
                )
            };
        };
        match self.look_once(look, job, context).await {
            Observation::Absent if removes => Observation::Absent,
            Observation::Foreign => Observation::Foreign,
            Observation::Ours(outputs) if !removes => Observation::Ours(outputs),
            _ => Observation::InProgress(self.in_progress()),
        }
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        match self.plan_of(job) {
            Some(plan) => {
                let work = if job.undo { Work::Undo } else { Work::Apply };
                self.change(plan, work, job, context).await
            }
            None => Outcome::NotBegun {
                why: format!("the offering does not say how {:?} is done", job.action),
                again: false,
            },
        }
    }

    async fn destroy(&self, job: &Job, context: &Context) -> Outcome {
        if Self::work(context) == Work::Destroy && is_set(&context.note(), BEGUN) {
            // Asked once more, about a removal that the service took in.
            return match self.observe(job, context).await {
                Observation::Absent | Observation::Foreign => Outcome::Done(Object::new()),
                Observation::CameToNothing(why) => Outcome::Failed(why),
                Observation::CannotTell(why) => Outcome::CannotTell(why),
                _ => Outcome::InProgress(self.in_progress()),
            };
        }
        match self.change(&self.plan.destroy, Work::Destroy, job, context).await {
            Outcome::Done(_) => Outcome::Done(Object::new()),
            other => other,
        }
    }

    async fn stop(&self, job: &Job, context: &Context) -> Outcome {
        let Some(plan) = &self.plan.stop else { return Outcome::Done(Object::new()) };
        if Self::work(context) != Work::Apply {
            return Outcome::Done(Object::new());
        }
        let mut known = match self.known(job, context, "stop") {
            Ok(known) => known,
            Err(why) => return Outcome::CannotTell(why),
        };
        let mapped = match self.send(plan, "stop", &mut known, context).await {
            Ended::Answered => self.judge(&plan.answer, &known, true),
            Ended::Mapped(mapped) => mapped,
        };
        if let Mapped::Done(_) = mapped {
            let mut note = context.note();
            note.insert(STOPPED.to_owned(), true.into());
            context.set_note(note);
            return Outcome::Done(Object::new());
        }
        Outcome::CannotTell(mapped.why())
    }

    fn works_elsewhere(&self) -> bool {
        true
    }

    fn before(&self, job: &Job) -> &'static str {
        match &self.plan.observe {
            None => "nobody can look; the service carries out once what is sent again",
            Some(look) if look.done.is_none() && self.plan.idempotent && is_change(job) => {
                "it is there; whether this is done cannot be seen, and the service carries out once what is sent again"
            }
            Some(_) => "it is there, and this is not done",
        }
    }

    fn shared_secrets(&self) -> Vec<SharedSecret> {
        self.plan.secrets.shared(&self.plan.shared)
    }

    fn lacks(&self) -> Option<String> {
        self.plan.secrets.read().err()
    }
}
