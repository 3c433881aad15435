//! In the place of a provisioner where an offering is made of others: its steps are requests of their own, each with a
//! provisioner, and the worker looks at those. It is never asked, and knows nothing.

use super::{Context, Job, Observation, Outcome, Provisioner};
use async_trait::async_trait;

const NOTHING: &str = "What is made of steps is carried out by these.";

/// Nothing of its own.
#[derive(Debug)]
pub(crate) struct Steps;

#[async_trait]
impl Provisioner for Steps {
    async fn observe(&self, _: &Job, _: &Context) -> Observation {
        Observation::CannotTell(NOTHING.to_owned())
    }

    async fn apply(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::CannotTell(NOTHING.to_owned())
    }

    async fn destroy(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::CannotTell(NOTHING.to_owned())
    }
}
