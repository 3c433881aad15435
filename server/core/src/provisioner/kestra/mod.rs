//! A provisioner that starts flows of Kestra and follows their executions to the end, by Kestra's public API.
//!
//! Kestra does not carry out once what is sent twice. So every execution bears the request's ID as a label, and before
//! anything is started that may have been started before, all executions with that label are looked for, in whatever
//! state, and once more after a while, since the search may lag behind. The correlation ID alone would not do: a relative
//! of the request bears the same.

mod api;

use super::{Context, Elsewhere, Job, Observation, Outcome, Provisioner, Work, http::texts::Shape};
use super::{http::texts::Texts, named_secrets::NamedSecrets};
use crate::signature::SharedSecret;
use api::{Execution, Stage, Trouble};
use async_trait::async_trait;
use domain::{action::Kind, view::Object};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The member of a note that holds the execution's ID.
const EXECUTION: &str = "execution";

/// A flow, and what it is given.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Its namespace.
    pub namespace: String,
    /// Its ID.
    pub id: String,
    /// Its inputs.
    pub inputs: Vec<(String, Shape)>,
}

/// What an offering says of its flows.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where Kestra is.
    pub url: String,
    /// The tenant.
    pub tenant: String,
    /// The secrets that inputs may use; the one named `token` is sent as a bearer token.
    pub secrets: NamedSecrets,
    /// The names of those that sign reports as well as each callback's own.
    pub shared: Vec<String>,
    /// How long one call may take.
    pub call_within: Duration,
    /// How long an execution may take.
    pub patience: Duration,
    /// How often one looks at an execution.
    pub look_again: Duration,
    /// After what time one searches once more for what a first search did not find.
    pub search_again: Duration,
    /// Makes the thing.
    pub apply: Flow,
    /// Changes it.
    pub update: Option<Flow>,
    /// What else is done with it.
    pub actions: BTreeMap<String, Flow>,
    /// Removes it.
    pub destroy: Flow,
}

/// The flows of one offering.
#[derive(Debug)]
pub struct Kestra {
    plan: Plan,
    texts: Texts,
}

/// What is known of the execution of some work.
enum Found {
    None,
    One(Execution),
    CannotTell(String),
}

impl Kestra {
    /// Flows as the plan says.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, texts: Texts::default() }
    }

    fn flow_of(&self, job: &Job) -> Option<&Flow> {
        match Kind::of(&job.action) {
            Kind::Create => Some(&self.plan.apply),
            Kind::Update => self.plan.update.as_ref(),
            Kind::Action => self.plan.actions.get(&job.action),
            Kind::Delete => Some(&self.plan.destroy),
        }
    }

    fn in_progress(&self, execution: &str) -> Elsewhere {
        Elsewhere {
            what: format!("execution {execution} of Kestra"),
            look_again: self.plan.look_again,
            patience: Some(self.plan.patience),
        }
    }

    /// The execution of this work, if there is one, by its ID or else by its label.
    async fn find(&self, job: &Job, work: Work, context: &Context) -> Found {
        if let Some(id) = context.note().get(EXECUTION).and_then(Value::as_str) {
            match self.execution(id, context).await {
                Ok(Some(execution)) => return Found::One(execution),
                Err(trouble) => return Found::CannotTell(trouble.why),
                Ok(None) => {}
            }
        }
        match self.search(job, work, context).await {
            Ok(Some(execution)) => return Found::One(execution),
            Err(trouble) => return Found::CannotTell(trouble.why),
            Ok(None) => {}
        }
        tokio::select! {
            () = context.stop.cancelled() => return Found::CannotTell("the search was broken off".into()),
            () = tokio::time::sleep(self.plan.search_again) => {}
        }
        match self.search(job, work, context).await {
            Ok(Some(execution)) => Found::One(execution),
            Ok(None) => Found::None,
            Err(trouble) => Found::CannotTell(trouble.why),
        }
    }

    fn remember(context: &Context, execution: &Execution) {
        context.set_note(Object::from_iter([(EXECUTION.to_owned(), json!(execution.id))]));
    }

    /// What an execution that was found or started means for the work.
    fn outcome(&self, execution: Execution, context: &Context) -> Outcome {
        Self::remember(context, &execution);
        match execution.stage() {
            Stage::Going => Outcome::InProgress(self.in_progress(&execution.id)),
            Stage::Done => Outcome::Done(execution.outputs),
            Stage::Over => Outcome::Failed(execution.ended()),
        }
    }

    /// Starts a flow, unless one was started for this work.
    async fn start(&self, flow: &Flow, job: &Job, work: Work, context: &Context) -> Outcome {
        let fresh = context.begun.as_ref().is_some_and(|begun| begun.fresh);
        if !fresh {
            match self.find(job, work, context).await {
                Found::None => {}
                Found::One(execution) => return self.outcome(execution, context),
                Found::CannotTell(why) => return Outcome::CannotTell(why),
            }
        }
        match self.post(flow, job, work, context).await {
            Ok(execution) => self.outcome(execution, context),
            Err(Trouble { stopped: true, .. }) => Outcome::Stopped,
            Err(Trouble { doubt: true, why, .. }) => Outcome::CannotTell(why),
            Err(Trouble { passing: true, why, .. }) => Outcome::NotBegun { why, again: true },
            Err(Trouble { refused: true, why, .. }) => Outcome::Failed(why),
            Err(Trouble { why, .. }) => Outcome::NotBegun { why, again: false },
        }
    }

    fn work(context: &Context) -> Work {
        context.begun.as_ref().map_or(Work::Apply, |begun| begun.work)
    }
}

#[async_trait]
impl Provisioner for Kestra {
    async fn observe(&self, job: &Job, context: &Context) -> Observation {
        let work = Self::work(context);
        let known = context.note().get(EXECUTION).and_then(Value::as_str).map(str::to_owned);
        let execution = match self.find(job, work, context).await {
            Found::One(execution) => execution,
            // It was there; what cannot be told now may be told later.
            Found::CannotTell(_) if known.is_some() => {
                return Observation::InProgress(self.in_progress(known.as_deref().unwrap_or_default()));
            }
            Found::CannotTell(why) => return Observation::CannotTell(why),
            Found::None if work == Work::Apply && Kind::of(&job.action) == Kind::Create => {
                return Observation::Absent;
            }
            Found::None => return Observation::Before(job.outputs.clone()),
        };
        Self::remember(context, &execution);
        match execution.stage() {
            Stage::Going => Observation::InProgress(self.in_progress(&execution.id)),
            Stage::Done if work == Work::Destroy => Observation::Absent,
            // What an update was before stands again.
            Stage::Done if work == Work::Undo => Observation::Before(execution.outputs),
            Stage::Done => Observation::Ours(execution.outputs),
            Stage::Over => Observation::CameToNothing(execution.ended()),
        }
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        match self.flow_of(job) {
            Some(flow) => {
                let work = if job.undo { Work::Undo } else { Work::Apply };
                self.start(flow, job, work, context).await
            }
            None => Outcome::Failed(format!("the offering does not say how {:?} is done", job.action)),
        }
    }

    async fn destroy(&self, job: &Job, context: &Context) -> Outcome {
        match self.start(&self.plan.destroy, job, Work::Destroy, context).await {
            Outcome::Done(_) => Outcome::Done(Object::new()),
            other => other,
        }
    }

    async fn stop(&self, job: &Job, context: &Context) -> Outcome {
        if Self::work(context) != Work::Apply {
            return Outcome::Done(Object::new());
        }
        let execution = match self.find(job, Work::Apply, context).await {
            Found::One(execution) => execution,
            Found::None => return Outcome::Done(Object::new()),
            Found::CannotTell(why) => return Outcome::CannotTell(why),
        };
        if !matches!(execution.stage(), Stage::Going) {
            return Outcome::Done(Object::new());
        }
        match self.kill(&execution.id, context).await {
            Ok(()) => Outcome::Done(Object::new()),
            Err(trouble) => Outcome::CannotTell(trouble.why),
        }
    }

    fn works_elsewhere(&self) -> bool {
        true
    }

    fn shared_secrets(&self) -> Vec<SharedSecret> {
        self.plan.secrets.shared(&self.plan.shared)
    }

    fn lacks(&self) -> Option<String> {
        self.plan.secrets.read().err()
    }
}
