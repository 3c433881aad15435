//! A provisioner for tests and speed measurements: it makes nothing outside memory and fails in the ways it is asked to.
//!
//! It keeps a ledger of what it did. Nothing in it guards against doing the same twice; that is the portal's task, and
//! the ledger shows whether the portal did it.

use super::{Context, Job, Observation, Outcome, Provisioner};
use async_trait::async_trait;
use domain::{action::Kind, id::RequestId, view::Object};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How often one that waits looks whether it is to behave otherwise.
const LOOK: Duration = Duration::from_millis(5);

/// What happens to the jobs of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// It succeeds at once.
    #[default]
    Succeed,
    /// It succeeds after a while; a stop before that leaves nothing.
    SucceedAfter(Duration),
    /// It fails without effect.
    Fail(String),
    /// It has its effect and fails.
    FailHalfWay(String),
    /// It is retryable this many times, without effect, then succeeds.
    RetryTimes(u32),
    /// It has no effect and cannot tell; observing cannot tell either.
    CannotTell,
    /// It has its effect and cannot tell; observing finds it.
    LoseAnswer,
    /// It has its effect and cannot tell; observing cannot tell either.
    Unobservable,
    /// It does nothing until it is stopped.
    Hang,
    /// It waits until it is asked to behave otherwise, and does that; a stop before leaves nothing.
    Wait,
}

impl Behaviour {
    /// What a job's parameters `behaviour` and `seconds` ask for.
    fn asked(parameters: &Object) -> Self {
        match parameters.get("behaviour").and_then(Value::as_str) {
            Some("fail") => Self::Fail("it was asked to fail".to_owned()),
            Some("retry-once") => Self::RetryTimes(1),
            Some("cannot-tell") => Self::CannotTell,
            Some("lose-answer") => Self::LoseAnswer,
            Some("observe-unknown") => Self::Unobservable,
            Some("hang") => Self::Hang,
            _ => match parameters.get("seconds").and_then(Value::as_f64) {
                Some(seconds) if seconds > 0.0 => {
                    Self::SucceedAfter(Duration::from_secs_f64(seconds.min(3600.0)))
                }
                _ => Self::Succeed,
            },
        }
    }
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// `apply`, `undo` or `destroy`.
    pub operation: &'static str,
    /// The request it was done for.
    pub request_id: RequestId,
    /// The attempt it was done in.
    pub attempt: u32,
}

/// What stands at a name.
#[derive(Debug)]
struct Thing {
    owner: RequestId,
    /// As JSON: a measurement makes many of them, and it is the portal's memory that is measured.
    parameters: Box<str>,
    /// The actions that were done to it.
    done: HashSet<RequestId>,
}

#[derive(Debug, Default)]
struct State {
    behaviours: HashMap<String, Behaviour>,
    retried: HashMap<RequestId, u32>,
    things: HashMap<String, Thing>,
    ledger: Vec<Effect>,
}

/// The fake; its clones share one memory.
#[derive(Debug, Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// Decides what happens to the jobs of a name, whatever their parameters ask for.
    ///
    /// `one` stands for making and changing it, `one/undo` for taking an update back, `one/delete` for removing it.
    pub fn behave(&self, name: &str, behaviour: Behaviour) {
        self.state().behaviours.insert(name.to_owned(), behaviour);
    }

    /// Everything that was done, in order.
    #[must_use]
    pub fn ledger(&self) -> Vec<Effect> {
        self.state().ledger.clone()
    }

    /// How often it was done for a request.
    #[must_use]
    pub fn applied(&self, request_id: RequestId) -> usize {
        self.count(request_id, "apply")
    }

    /// How often this was done for a request.
    #[must_use]
    pub fn count(&self, request_id: RequestId, operation: &str) -> usize {
        let state = self.state();
        let is_meant = |effect: &&Effect| effect.request_id == request_id && effect.operation == operation;
        state.ledger.iter().filter(is_meant).count()
    }

    /// How many things stand.
    #[must_use]
    pub fn things(&self) -> usize {
        self.state().things.len()
    }

    /// What the thing at a job's name is, if one stands there.
    #[must_use]
    pub fn parameters(&self, job: &Job) -> Option<Object> {
        let state = self.state();
        serde_json::from_str(&state.things.get(&place(job))?.parameters).ok()
    }

    /// Puts a thing there that no request made.
    pub fn plant(&self, job: &Job, owner: RequestId) {
        let thing = Thing { owner, parameters: text(&job.parameters), done: HashSet::new() };
        self.state().things.insert(place(job), thing);
    }

    /// Takes a thing away behind the portal's back.
    pub fn lose(&self, job: &Job) {
        self.state().things.remove(&place(job));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behaviour(&self, job: &Job) -> Behaviour {
        let told = |key: &str| self.state().behaviours.get(key).cloned();
        match Kind::of(&job.action) {
            Kind::Delete => told(&format!("{}/delete", job.name)).unwrap_or_default(),
            Kind::Update if job.undo => told(&format!("{}/undo", job.name)).unwrap_or_default(),
            Kind::Action => told(job.name.as_str()).unwrap_or_else(|| Behaviour::asked(&job.input)),
            _ => told(job.name.as_str()).unwrap_or_else(|| Behaviour::asked(&job.parameters)),
        }
    }

    fn take_effect(&self, job: &Job) -> Outcome {
        let mut state = self.state();
        let kind = Kind::of(&job.action);
        let standing = state.things.get_mut(&place(job));
        match (kind, standing) {
            (Kind::Create, None) => {
                let parameters = text(&job.parameters);
                let thing = Thing { owner: job.made_by, parameters, done: HashSet::new() };
                state.things.insert(place(job), thing);
            }
            (Kind::Delete, None) => return Outcome::Done(Object::new()),
            (_, None) => return Outcome::Failed("it is not there".to_owned()),
            (Kind::Delete, Some(thing)) if thing.owner != job.made_by => {
                return Outcome::Done(Object::new());
            }
            (_, Some(thing)) if thing.owner != job.made_by => {
                return Outcome::Failed("something else stands at this name".to_owned());
            }
            (Kind::Delete, Some(_)) => {
                state.things.remove(&place(job));
            }
            // Taken back already.
            (_, Some(thing)) if job.undo && thing.parameters == text(&job.parameters) => {
                return Outcome::Done(outputs(job));
            }
            (_, Some(thing)) => {
                thing.parameters = text(&job.parameters);
                if kind == Kind::Action {
                    thing.done.insert(job.request_id);
                }
            }
        }
        let operation = match kind {
            Kind::Delete => "destroy",
            _ if job.undo => "undo",
            _ => "apply",
        };
        state.ledger.push(Effect { operation, request_id: job.request_id, attempt: job.attempt });
        Outcome::Done(if kind == Kind::Delete { Object::new() } else { outputs(job) })
    }

    /// How a job is to behave, once it is not to wait any more; nothing where it was stopped before.
    async fn awaited(&self, job: &Job, context: &Context) -> Option<Behaviour> {
        loop {
            match self.behaviour(job) {
                Behaviour::Wait if context.stop.is_cancelled() => return None,
                Behaviour::Wait => tokio::time::sleep(LOOK).await,
                behaviour => return Some(behaviour),
            }
        }
    }

    async fn act(&self, job: &Job, context: &Context) -> Outcome {
        let Some(behaviour) = self.awaited(job, context).await else { return Outcome::Stopped };
        match behaviour {
            Behaviour::Succeed => self.take_effect(job),
            Behaviour::SucceedAfter(span) => tokio::select! {
                biased;
                () = context.stop.cancelled() => Outcome::Stopped,
                () = tokio::time::sleep(span) => self.take_effect(job),
            },
            Behaviour::Fail(why) => Outcome::Failed(why),
            Behaviour::FailHalfWay(why) => {
                self.take_effect(job);
                Outcome::Failed(why)
            }
            Behaviour::RetryTimes(times) => {
                let tried = {
                    let mut state = self.state();
                    let tried = state.retried.entry(job.request_id).or_default();
                    *tried += 1;
                    *tried
                };
                if tried <= times {
                    return Outcome::Retryable("it was asked to be busy".to_owned());
                }
                self.take_effect(job)
            }
            Behaviour::CannotTell => Outcome::CannotTell("it was asked not to know".to_owned()),
            Behaviour::LoseAnswer | Behaviour::Unobservable => match self.take_effect(job) {
                Outcome::Done(_) => Outcome::CannotTell("it was asked to lose its answer".to_owned()),
                other => other,
            },
            Behaviour::Hang | Behaviour::Wait => {
                context.stop.cancelled().await;
                Outcome::Stopped
            }
        }
    }
}

fn place(job: &Job) -> String {
    format!("{}/{}/{}", job.team, job.resource_type, job.name)
}

fn text(parameters: &Object) -> Box<str> {
    serde_json::Value::Object(parameters.clone()).to_string().into()
}

fn outputs(job: &Job) -> Object {
    Object::from_iter([("address".to_owned(), json!(format!("{}.{}.test", job.name, job.team)))])
}

#[async_trait]
impl Provisioner for Fake {
    async fn observe(&self, job: &Job, _: &Context) -> Observation {
        let behaviour = self.behaviour(job);
        if matches!(behaviour, Behaviour::CannotTell | Behaviour::Unobservable) {
            return Observation::CannotTell("it was asked not to know".to_owned());
        }
        let state = self.state();
        let Some(thing) = state.things.get(&place(job)) else { return Observation::Absent };
        if thing.owner != job.made_by {
            return Observation::Foreign;
        }
        let done = match Kind::of(&job.action) {
            Kind::Create | Kind::Delete => true,
            Kind::Update => thing.parameters == text(&job.parameters),
            Kind::Action => thing.done.contains(&job.request_id),
        };
        if done { Observation::Ours(outputs(job)) } else { Observation::Before(outputs(job)) }
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        self.act(job, context).await
    }

    async fn destroy(&self, job: &Job, context: &Context) -> Outcome {
        if Kind::of(&job.action) == Kind::Delete {
            return self.act(job, context).await;
        }
        // A create that is taken back.
        let mut state = self.state();
        if state.things.get(&place(job)).is_some_and(|thing| thing.owner == job.made_by) {
            state.things.remove(&place(job));
            state.ledger.push(Effect {
                operation: "destroy",
                request_id: job.request_id,
                attempt: job.attempt,
            });
        }
        Outcome::Done(Object::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provisioner::tests::{context, job};

    #[tokio::test]
    async fn the_ledger_shows_every_effect_and_a_lost_answer_is_found_by_observing() {
        let (fake, (context, _log)) = (Fake::default(), context());
        let job = job("vm-one", json!({"behaviour": "lose-answer"}));
        assert_eq!(fake.observe(&job, &context).await, Observation::Absent);
        assert!(matches!(fake.apply(&job, &context).await, Outcome::CannotTell(_)));
        assert!(matches!(fake.observe(&job, &context).await, Observation::Ours(_)));
        assert_eq!(fake.applied(job.request_id), 1);
        fake.apply(&job, &context).await;
        assert_eq!(fake.applied(job.request_id), 2, "a second effect is not hidden");
        assert!(matches!(fake.destroy(&job, &context).await, Outcome::Done(_)));
        assert_eq!(fake.things(), 0);
    }

    #[tokio::test]
    async fn an_update_is_seen_undone_and_an_action_is_seen_done() {
        let (fake, (context, _log)) = (Fake::default(), context());
        let made = job("vm-one", json!({"size": "small"}));
        fake.apply(&made, &context).await;
        let mut update = Job { action: "update".into(), ..job("vm-two", json!({"size": "large"})) };
        (update.made_by, update.name) = (made.request_id, made.name.clone());
        assert!(matches!(fake.observe(&update, &context).await, Observation::Before(_)));
        fake.apply(&update, &context).await;
        assert!(matches!(fake.observe(&update, &context).await, Observation::Ours(_)));
        let back = Job { undo: true, parameters: made.parameters.clone(), ..update.clone() };
        assert!(matches!(fake.observe(&back, &context).await, Observation::Before(_)));
        fake.apply(&back, &context).await;
        assert_eq!(fake.parameters(&made), Some(made.parameters.clone()));
        let action = Job { action: "restart".into(), ..back.clone() };
        assert!(matches!(fake.observe(&action, &context).await, Observation::Before(_)));
        let action = Job { undo: false, ..action };
        fake.apply(&action, &context).await;
        assert!(matches!(fake.observe(&action, &context).await, Observation::Ours(_)));
        let delete = Job { action: "delete".into(), ..action };
        assert!(matches!(fake.destroy(&delete, &context).await, Outcome::Done(_)));
        assert_eq!(fake.observe(&update, &context).await, Observation::Absent);
        let done: Vec<_> = fake.ledger().iter().map(|effect| effect.operation).collect();
        assert_eq!(done, ["apply", "apply", "undo", "apply", "destroy"]);
    }

    #[tokio::test]
    async fn a_scripted_name_retries_and_another_one_hangs_until_stopped() {
        let (fake, (context, _log)) = (Fake::default(), context());
        fake.behave("busy", Behaviour::RetryTimes(2));
        fake.behave("stuck", Behaviour::Hang);
        let busy = job("busy", json!({}));
        for _ in 0..2 {
            assert!(matches!(fake.apply(&busy, &context).await, Outcome::Retryable(_)));
        }
        assert!(matches!(fake.apply(&busy, &context).await, Outcome::Done(_)));
        context.stop.cancel();
        assert_eq!(fake.apply(&job("stuck", json!({})), &context).await, Outcome::Stopped);
        assert_eq!(fake.ledger().len(), 1);
    }
}
