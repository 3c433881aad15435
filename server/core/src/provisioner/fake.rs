//! A provisioner for tests and speed measurements: it makes nothing outside memory and fails in the ways it is asked to.
//!
//! It keeps a ledger of what it did. Nothing in it guards against doing the same twice; that is the portal's task, and
//! the ledger shows whether the portal did it.

use super::{Context, Job, Observation, Outcome, Provisioner};
use async_trait::async_trait;
use domain::{id::RequestId, view::Object};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// What happens to the applies of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// It succeeds at once.
    #[default]
    Succeed,
    /// It succeeds after a while; a stop before that leaves nothing.
    SucceedAfter(Duration),
    /// It fails without effect.
    Fail(String),
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
    /// `apply` or `destroy`.
    pub operation: &'static str,
    /// The request it was done for.
    pub request_id: RequestId,
    /// The attempt it was done in.
    pub attempt: u32,
}

#[derive(Debug, Default)]
struct State {
    behaviours: HashMap<String, Behaviour>,
    retried: HashMap<RequestId, u32>,
    things: HashMap<String, RequestId>,
    ledger: Vec<Effect>,
}

/// The fake; its clones share one memory.
#[derive(Debug, Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// Decides what happens to the applies of a name, whatever their parameters ask for.
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
        let state = self.state();
        state
            .ledger
            .iter()
            .filter(|effect| effect.request_id == request_id && effect.operation == "apply")
            .count()
    }

    /// How many things stand.
    #[must_use]
    pub fn things(&self) -> usize {
        self.state().things.len()
    }

    /// Puts a thing there that no request made.
    pub fn plant(&self, job: &Job, owner: RequestId) {
        self.state().things.insert(place(job), owner);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behaviour(&self, job: &Job) -> Behaviour {
        let told = self.state().behaviours.get(job.name.as_str()).cloned();
        told.unwrap_or_else(|| Behaviour::asked(&job.parameters))
    }

    fn take_effect(&self, job: &Job) -> Outcome {
        let mut state = self.state();
        if state.things.get(&place(job)).is_some_and(|owner| *owner != job.request_id) {
            return Outcome::Failed("something else stands at this name".to_owned());
        }
        state.things.insert(place(job), job.request_id);
        state.ledger.push(Effect { operation: "apply", request_id: job.request_id, attempt: job.attempt });
        Outcome::Done(outputs(job))
    }
}

fn place(job: &Job) -> String {
    format!("{}/{}/{}", job.team, job.resource_type, job.name)
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
        match self.state().things.get(&place(job)) {
            None => Observation::Absent,
            Some(owner) if *owner == job.request_id => Observation::Ours(outputs(job)),
            Some(_) => Observation::Foreign,
        }
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        match self.behaviour(job) {
            Behaviour::Succeed => self.take_effect(job),
            Behaviour::SucceedAfter(span) => tokio::select! {
                biased;
                () = context.stop.cancelled() => Outcome::Stopped,
                () = tokio::time::sleep(span) => self.take_effect(job),
            },
            Behaviour::Fail(why) => Outcome::Failed(why),
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
            Behaviour::Hang => {
                context.stop.cancelled().await;
                Outcome::Stopped
            }
        }
    }

    async fn destroy(&self, job: &Job, _: &Context) -> Outcome {
        let mut state = self.state();
        if state.things.get(&place(job)) == Some(&job.request_id) {
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
