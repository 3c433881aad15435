//! Secret parameters at work: the provisioner is told the true values, and nothing that it says may hold them.

use super::carry_out::Attempt;
use crate::{
    catalog::Offering,
    hidden::{Hidden, texts, veiled, veiled_value},
    provisioner::{Elsewhere, Observation, Outcome},
    service::Inner,
    store::Run,
};
use domain::{hidden::is_mark, view::Object};
use serde_json::Value;
use std::collections::BTreeSet;

/// The secrets of a run.
#[derive(Default)]
pub(super) struct Secrets {
    hidden: Hidden,
    /// What must not stand in what is said.
    texts: Vec<String>,
}

impl Secrets {
    /// Those of a run, with what earlier runs answered in secret; an error where the key for parameters is not here. Most have
    /// none, which is seen without a look.
    pub(super) async fn of(portal: &Inner, run: &Run) -> crate::Result<Self> {
        let hidden =
            if has_marks(run) { portal.hidden_of(run.request.resource).await? } else { Hidden::default() };
        // Without their key a job goes without the secret outputs of before, so it cannot tell them either.
        let sealed = run.resource.secrets.as_deref();
        let outputs =
            sealed.and_then(|sealed| portal.open_secrets(run.request.resource, sealed).ok().flatten());
        let texts = match &outputs {
            Some(outputs) => texts(hidden.values().chain(outputs.values())),
            None => hidden.texts(),
        };
        Ok(Self { hidden, texts })
    }

    /// What a provisioner is told in the place of these parameters of its resource.
    pub(super) fn told(&self, offering: &Offering, mut parameters: Object) -> Object {
        if self.hidden.reveal(offering.schema.secrets(), &mut parameters).is_err() {
            tracing::error!(offering = %offering.id, "a job goes without a secret parameter that is not kept any more");
        }
        parameters
    }

    /// What a provisioner is told in the place of these parameters of an action.
    pub(super) fn told_input(&self, offering: &Offering, action: &str, mut input: Object) -> Object {
        let none = BTreeSet::new();
        let action = offering.actions.iter().find(|(id, _)| id.as_str() == action);
        let names = action.map_or(&none, |(_, action)| action.schema.secrets());
        if self.hidden.reveal_input(names, &mut input).is_err() {
            tracing::error!(offering = %offering.id, "a job goes without a secret parameter that is not kept any more");
        }
        input
    }

    /// A text without secrets.
    pub(super) fn veil(&self, text: String) -> String {
        if self.texts.is_empty() { text } else { veiled(text, &self.texts) }
    }

    /// Outputs without secrets; what is kept sealed stays whole.
    pub(super) fn veil_outputs(&self, outputs: Object, sealed: &BTreeSet<String>) -> Object {
        if self.texts.is_empty() {
            return outputs;
        }
        let veil = |(name, value): (String, Value)| {
            let value = if sealed.contains(&name) { value } else { veiled_value(value, &self.texts) };
            (name, value)
        };
        outputs.into_iter().map(veil).collect()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.texts.clone()
    }
}

/// Whether anything that a run is about holds what stands for a secret.
fn has_marks(run: &Run) -> bool {
    let (view, resource) = (&run.request.view, &run.resource);
    let has = |parameters: &Object| parameters.values().any(is_mark);
    has(&view.parameters)
        || has(&resource.view.parameters)
        || view.desired.as_ref().is_some_and(has)
        || resource.applied.as_ref().is_some_and(has)
}

/// What a provisioner says.
pub(super) trait Said {
    /// The same without secrets.
    fn veiled(self, secrets: &Secrets, sealed: &BTreeSet<String>) -> Self;
}

impl Said for Elsewhere {
    fn veiled(self, secrets: &Secrets, _: &BTreeSet<String>) -> Self {
        Self { what: secrets.veil(self.what), ..self }
    }
}

impl Said for Observation {
    fn veiled(self, secrets: &Secrets, sealed: &BTreeSet<String>) -> Self {
        match self {
            Self::Ours(outputs) => Self::Ours(secrets.veil_outputs(outputs, sealed)),
            Self::Before(outputs) => Self::Before(secrets.veil_outputs(outputs, sealed)),
            Self::InProgress(elsewhere) => Self::InProgress(elsewhere.veiled(secrets, sealed)),
            Self::CameToNothing(why) => Self::CameToNothing(secrets.veil(why)),
            Self::CannotTell(why) => Self::CannotTell(secrets.veil(why)),
            Self::Absent | Self::Foreign => self,
        }
    }
}

impl Said for Outcome {
    fn veiled(self, secrets: &Secrets, sealed: &BTreeSet<String>) -> Self {
        match self {
            Self::Done(outputs) => Self::Done(secrets.veil_outputs(outputs, sealed)),
            Self::InProgress(elsewhere) => Self::InProgress(elsewhere.veiled(secrets, sealed)),
            Self::Retryable(why) => Self::Retryable(secrets.veil(why)),
            Self::NotBegun { why, again } => Self::NotBegun { why: secrets.veil(why), again },
            Self::Failed(why) => Self::Failed(secrets.veil(why)),
            Self::CannotTell(why) => Self::CannotTell(secrets.veil(why)),
            Self::Stopped => self,
        }
    }
}

impl Attempt<'_> {
    /// The true value of the parameter that a step takes up as it is; what is no mark stays.
    pub(super) fn handed_on(&self, parameter: &str, value: Value) -> Option<Value> {
        if !is_mark(&value) {
            return Some(value);
        }
        let mut one = Object::from_iter([(parameter.to_owned(), value)]);
        let names = self.offering.schema.secrets();
        self.secrets.hidden.reveal(names, &mut one).ok()?;
        one.remove(parameter)
    }
}
