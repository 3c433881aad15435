//! Dry runs of what is made of others: which step would ask for what, as far as that is known before any of them is
//! carried out.

use super::super::Inner;
use crate::{
    Result,
    catalog::{Composite, Mapping, Offering, Step, known},
    hidden::Hidden,
    store::StepRequest,
};
use domain::{
    action::{self, Kind},
    id::RequestId,
    name::Name,
    plan::PlannedStep,
    state::RequestState,
    view::{Object, RequestView},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, pin::Pin};

/// The action of a step that is under way and would be stopped.
pub(super) const CANCEL: &str = "cancel";
/// The action of a step whose thing is there already.
const EXISTING: &str = "existing";
/// What is said of a step that nobody can tell the outcome of.
const UNKNOWN: &str = "nobody can tell what became of its request; it waits until somebody decides there";

type Planning<'a> = Pin<Box<dyn Future<Output = Result<Vec<PlannedStep>>> + Send + 'a>>;

/// What is known of a request before it is one.
pub(super) struct Known {
    /// As it would be, with nothing in the place of what is not known.
    view: RequestView,
    has_name: bool,
    has_correlation: bool,
    /// All parameters that can be read, secrets by their true values; one without a value is null.
    parameters: Object,
    /// Parameters that are not known.
    unknown: BTreeSet<String>,
}

impl Known {
    /// What is known of a create of one of these.
    pub(super) fn of(
        wanted: &RequestView,
        correlation_id: Option<&str>,
        offering: &Offering,
        hidden: &Hidden,
    ) -> Self {
        let mut parameters = Object::new();
        for name in offering.schema.names() {
            parameters.insert(name.clone(), wanted.parameters.get(name).cloned().unwrap_or_default());
        }
        // All of them are there: they came with the submission.
        let _ = hidden.reveal(offering.schema.secrets(), &mut parameters);
        Self {
            view: wanted.clone(),
            has_name: true,
            has_correlation: correlation_id.is_some(),
            parameters,
            unknown: BTreeSet::new(),
        }
    }

    /// Whether all that a mapping reads is known. What a step answers is not, nor is the request's own ID.
    fn covers(&self, mapping: &Mapping) -> bool {
        mapping.variables().iter().all(|variable| {
            let mut way = variable.split('.');
            match (way.next().unwrap_or_default(), way.next()) {
                ("name", _) => self.has_name,
                ("team", _) => true,
                ("correlation_id", _) => self.has_correlation,
                ("parameters", Some(name)) => !self.unknown.contains(name),
                ("parameters", None) => self.unknown.is_empty(),
                _ => false,
            }
        })
    }

    fn variables(&self) -> minijinja::Value {
        let view = &self.view;
        known(json!({
            "name": view.name, "team": view.team, "correlation_id": view.correlation_id,
            "parameters": self.parameters,
        }))
    }
}

impl Inner {
    /// What the steps of a create would ask for.
    pub(super) fn steps_of_create<'a>(&'a self, composite: &'a Composite, known: Known) -> Planning<'a> {
        Box::pin(async move {
            let mut steps = Vec::with_capacity(composite.steps.len());
            for step in &composite.steps {
                if let Some(child) = self.catalog.get(&step.offering) {
                    steps.push(self.step_of_create(step, child, &known).await?);
                }
            }
            Ok(steps)
        })
    }

    async fn step_of_create(&self, step: &Step, child: &Offering, known: &Known) -> Result<PlannedStep> {
        let variables = known.variables();
        let mut problems = Vec::new();
        let mut name = None;
        if known.covers(&step.name) {
            match step.name.value(&variables) {
                Ok(value) => match Name::parse(value.as_str().unwrap_or_default()) {
                    Ok(parsed) => name = Some(parsed),
                    Err(rule) => problems.push(format!("/name {rule}")),
                },
                Err(why) => problems.push(why),
            }
        }
        let (mut parameters, mut unknown) = (Object::new(), Vec::new());
        for (parameter, mapping) in &step.parameters {
            if !known.covers(mapping) {
                unknown.push(parameter.clone());
                continue;
            }
            match mapping.value(&variables) {
                Ok(Value::Null) => {}
                Ok(value) => {
                    parameters.insert(parameter.clone(), value);
                }
                Err(why) => problems.push(why),
            }
        }
        if unknown.is_empty() && problems.is_empty() {
            match child.schema.normalise(parameters.clone()) {
                Ok(filled) => parameters = filled,
                Err(errors) => {
                    problems.extend(
                        errors.into_iter().map(|error| format!("{} {}", error.pointer, error.detail)),
                    );
                }
            }
        }
        let mut hidden = Hidden::default();
        if !child.schema.secrets().is_empty() {
            let marking = self.marking(&known.view.team, &child.id).await?;
            hidden.take(child.schema.secrets(), &mut parameters, &marking);
        }
        let mut planned = PlannedStep {
            step: step.id.clone(),
            action: action::CREATE.to_owned(),
            offering: child.id.clone(),
            resource_type: child.resource_type.clone(),
            name,
            parameters,
            unknown,
            needs: step.needs.iter().cloned().collect(),
            approval: child.approval_of(action::CREATE),
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
            steps: Vec::new(),
        };
        let view = RequestView {
            offering: child.id.clone(),
            offering_version: child.version.clone(),
            resource_type: child.resource_type.clone(),
            name: planned.name.clone().unwrap_or_else(|| child.id.clone()),
            parameters: planned.parameters.clone(),
            ..known.view.clone()
        };
        let is_plain = planned.problem.is_none() && planned.unknown.is_empty();
        if planned.name.is_some() && is_plain {
            match self.is_there(&view).await {
                Ok(None) => {}
                Ok(Some(_)) => {
                    EXISTING.clone_into(&mut planned.action);
                    planned.approval = None;
                }
                Err(error) => planned.problem = Some(error.detail),
            }
        }
        if let (Some(composite), action::CREATE) = (&child.composite, planned.action.as_str()) {
            let unknown = if is_plain {
                BTreeSet::new()
            } else {
                // Without all of them no default is sure either.
                child.schema.names().filter(|name| !view.parameters.contains_key(*name)).cloned().collect()
            };
            let below = Known {
                has_name: planned.name.is_some(),
                has_correlation: known.has_correlation,
                unknown,
                ..Known::of(&view, None, child, &hidden)
            };
            planned.steps = self.steps_of_create(composite, below).await?;
        }
        Ok(planned)
    }

    /// What the delete of something would do to what the steps of its create made: the last goes first.
    pub(super) fn steps_of_delete(&self, maker: RequestId) -> Planning<'_> {
        Box::pin(async move {
            let mut steps = Vec::new();
            for StepRequest { step, request } in self.store.steps_of(maker).await?.into_iter().rev() {
                let view = &request.view;
                if Kind::of(&view.action) != Kind::Create {
                    continue;
                }
                let (action, problem) = match view.state {
                    RequestState::Succeeded => (action::DELETE, None),
                    RequestState::Unknown => (CANCEL, Some(UNKNOWN.to_owned())),
                    state if state.is_final() => continue,
                    _ => (CANCEL, None),
                };
                let life = self.store.life(request.resource).await?;
                if life.is_none_or(|life| life.view.state == "gone") {
                    continue;
                }
                let is_composite =
                    self.catalog.get(&view.offering).is_some_and(|offering| offering.composite.is_some());
                steps.push(PlannedStep {
                    step,
                    action: action.to_owned(),
                    offering: view.offering.clone(),
                    resource_type: view.resource_type.clone(),
                    name: Some(view.name.clone()),
                    parameters: Object::new(),
                    unknown: Vec::new(),
                    needs: Vec::new(),
                    approval: None,
                    problem,
                    steps: if is_composite { self.steps_of_delete(view.id).await? } else { Vec::new() },
                });
            }
            Ok(steps)
        })
    }
}
