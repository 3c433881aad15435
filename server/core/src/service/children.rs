//! What a request that is made of steps asks for: requests of their own, by the same principal, through the same guard.
//!
//! Their keys are made of the parent's ID and the step, so whoever carries the parent out again, after whatever crash,
//! meets what was asked for before.

use super::{Inner, create::Sent as Create, lineage::Lineage};
use crate::{
    Answered, Caller, Credential, Error, Result, guard,
    store::{
        Arrived, Effect, Hold, NewChange, Plan, Planned, Scope, StepRequest, StoredRequest, StoredResource,
        Submission, Turn,
    },
};
use domain::{
    action::{self, Kind},
    chain::ChainEntry,
    command::{Command, Operation},
    etag::IfMatch,
    id::{PrincipalId, RequestId, ResourceId},
    key::SubmissionKey,
    name::Name,
    role::{PortalRole, TeamRole},
    state::RequestState,
    submission::Channel,
    time::Moment,
};
use serde_json::{Value, json};
use std::{pin::Pin, sync::Arc};

/// One that asks for the steps of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    portal: &'a Inner,
    parent: &'a StoredRequest,
    /// Where a worker asks: that counts only while the parent's run is held like this.
    hold: Option<Hold>,
}

impl Inner {
    /// Who asks for the steps of this request.
    pub(crate) fn asking_for<'a>(&'a self, parent: &'a StoredRequest, hold: Hold) -> Asking<'a> {
        Asking { portal: self, parent, hold: Some(hold) }
    }

    /// The steps of a create, which has requests of these, that have not begun.
    pub(super) async fn not_begun(&self, create: &ChainEntry, begun: &[&str]) -> Result<Vec<String>> {
        let composite = self.catalog.get(&create.offering).and_then(|offering| offering.composite.as_ref());
        // What succeeded is whole, whatever its offering is made of by now.
        if Kind::of(&create.action) != Kind::Create || create.state == RequestState::Succeeded {
            return Ok(Vec::new());
        }
        let mut missing = Vec::new();
        for step in composite.iter().flat_map(|composite| &composite.steps) {
            // One that found what it wants there already has a key and no request of its own.
            if !begun.contains(&step.id.as_str())
                && self.store.claimed(&scope_of(&create.team, create.id, &step.id, "")?).await?.is_none()
            {
                missing.push(step.id.clone());
            }
        }
        Ok(missing)
    }

    /// Stops what the steps of the create of a resource have under way, now that it is to be deleted. A delete that waits for
    /// approval stops nothing.
    pub(super) async fn stop_for(&self, delete: RequestId) -> Result<()> {
        let Some(delete) = self.store.request(delete).await? else { return Ok(()) };
        let view = &delete.view;
        if Kind::of(&view.action) != Kind::Delete || view.state == RequestState::PendingApproval {
            return Ok(());
        }
        if let Some(life) = self.store.life(delete.resource).await?
            && self.catalog.get(&life.view.offering).is_some_and(|offering| offering.composite.is_some())
        {
            self.cancel_steps(life.view.created_by.id).await;
        }
        Ok(())
    }

    /// Stops what the steps of a request have under way, now that it is to be canceled. The request's own worker would do it
    /// too, but where all workers are busy with these very steps nobody takes its run.
    pub(super) fn cancel_steps(&self, parent: RequestId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let Ok(Some(request)) = self.store.request(parent).await else { return };
            let asking = Asking { portal: self, parent: &request, hold: None };
            for StepRequest { step, request: child } in self.store.steps_of(parent).await.unwrap_or_default()
            {
                let is_create = Kind::of(&child.view.action) == Kind::Create;
                if !is_create || child.view.state.is_final() {
                    continue;
                }
                if let Err(error) = asking.cancel(&step, &child).await {
                    tracing::debug!(%error, %parent, step, "a step is left to its parent's worker to stop");
                }
                self.cancel_steps(child.view.id).await;
            }
        })
    }
}

/// The scope of the key of a step of this request.
fn scope_of(team: &Name, parent: RequestId, step: &str, more: &str) -> Result<Scope> {
    let key = format!("{parent}/{step}{more}");
    let key = SubmissionKey::parse_only([key.as_bytes()])?;
    Ok(Scope { team: team.to_string(), principal: PrincipalId(parent.0), key })
}

impl Asking<'_> {
    fn held(&self, effect: Effect) -> Effect {
        match self.hold {
            Some(hold) => Effect::Step(hold, Box::new(effect)),
            None => effect,
        }
    }

    /// The parent's principal with the rights in the one team that it had when it asked, which are those to ask.
    fn caller(&self) -> Caller {
        let view = &self.parent.view;
        Caller {
            id: self.parent.principal,
            name: view.requested_by.clone(),
            role: PortalRole::Member,
            teams: vec![(view.team.clone(), TeamRole::Member)],
            via: Credential::Step,
            channel: Channel::Composite,
            address: None,
        }
    }

    /// The scope of the key of a step; `more` where it is not the step's first. The key belongs to the parent, not to who
    /// asked for that, so nothing that this person sends under the same letters is taken for the step.
    fn scope(&self, step: &str, more: &str) -> Result<Scope> {
        scope_of(&self.parent.view.team, self.parent.view.id, step, more)
    }

    /// What is written down of an arrival with a key of a step.
    fn arrived(&self, caller: &Caller, scope: Scope, operation: Operation, now: Moment) -> Arrived {
        let arrived = self.portal.arrived(caller, &scope.team, scope.key.clone(), operation, now);
        Arrived { scope, ..arrived }
    }

    /// Whether something was asked for with this key, and the request that it led to.
    pub(crate) async fn claimed(&self, step: &str, more: &str) -> Result<Option<Option<StoredRequest>>> {
        let claimed = self.portal.store.claimed(&self.scope(step, more)?).await?;
        Ok(claimed.map(|(_, request)| request))
    }

    /// Asks for a new resource.
    pub(crate) async fn create(
        &self,
        (step, more): (&str, &str),
        offering: &Name,
        name: &Value,
        parameters: &Value,
    ) -> Result<Answered> {
        let now = self.portal.clock.now();
        let body = json!({
            "offering": offering, "name": name, "parameters": parameters, "parent_id": self.parent.view.id,
        });
        let sent = Create::read(body.to_string().as_bytes(), Vec::new())?;
        let (caller, scope) = (self.caller(), self.scope(step, more)?);
        let team = &self.parent.view.team;
        let arrived = self.arrived(&caller, scope, Operation::Create, now);
        self.portal.create(&caller, team, &arrived, &sent, (now, self.hold), &mut false).await
    }

    /// Stops a step's request.
    pub(crate) async fn cancel(&self, step: &str, child: &StoredRequest) -> Result<()> {
        let more = format!("/cancel/{}/{}", child.view.id, child.view.attempt);
        self.decide((step, &more), Operation::Cancel, child.view.id, Effect::Cancel(child.view.id)).await
    }

    /// Opens the next attempt of a step's request.
    pub(crate) async fn retry(&self, (step, more): (&str, &str), child: RequestId) -> Result<()> {
        let now = self.portal.clock.now();
        self.portal.store.retire_request(child, now, self.portal.settings.guard.retention).await?;
        let resource = ResourceId(self.portal.ids.uuid(now));
        self.decide((step, more), Operation::Retry, child, Effect::Retry(child, resource)).await
    }

    async fn decide(
        &self,
        (step, more): (&str, &str),
        operation: Operation,
        target: RequestId,
        effect: Effect,
    ) -> Result<()> {
        let scope = self.scope(step, more)?;
        let now = self.portal.clock.now();
        let arrived = self.arrived(&self.caller(), scope, operation, now);
        let command = Command::on(operation, target.to_string(), serde_json::Map::new());
        let hashed = json!({ "operation": operation.as_str(), "target": target, "body": {} });
        let meaning = guard::meaning(&self.portal.keys, &command, &hashed);
        let effect = self.held(effect);
        let submission =
            Submission { arrived, meaning, command: Some(command.clone()), effect, turn: Turn::default() };
        self.portal.guarded(submission, &command, &hashed, || Ok(())).await.map(drop)
    }

    /// Asks for the removal of one life of a resource, whatever its version is by then.
    pub(crate) async fn delete(&self, (step, more): (&str, &str), life: &StoredResource) -> Result<Answered> {
        let (view, parent) = (&life.view, &self.parent.view);
        let (scope, now) = (self.scope(step, more)?, self.portal.clock.now());
        let target = format!("{}/{}/{}", view.team, view.resource_type, view.name);
        let command = Command {
            parent_id: Some(parent.id),
            ..Command::on(Operation::Delete, target, serde_json::Map::new())
        };
        let lineage = Lineage::of(&command, Some(self.parent))?;
        let caller = self.caller();
        let mut arrived = self.arrived(&caller, scope, Operation::Delete, now);
        arrived.correlation_id.clone_from(&lineage.correlation_id);
        arrived.labels = serde_json::to_string(&lineage.labels).map_err(Error::internal)?;
        let (catalog, id) = (Arc::clone(&self.portal.catalog), view.id);
        let plan = Plan::new(move |resource| {
            if resource.view.id != id {
                return Err(Error::not_found());
            }
            // What the whole was approved for needs no approval part by part, and what failed is always taken away.
            let planned = super::change::delete(&catalog, resource, &IfMatch::Absent)?;
            Ok(Planned { approval: None, ..planned })
        });
        let change = NewChange {
            id: RequestId(self.portal.ids.uuid(now)),
            team: view.team.clone(),
            kind: view.resource_type.clone(),
            name: view.name.clone(),
            action: action::DELETE.to_owned(),
            labels: lineage.labels,
            correlation_id: lineage.correlation_id,
            parent_id: Some(parent.id),
            schema_digest: None,
            hidden: None,
            plan,
        };
        let hashed = json!({ "operation": "delete", "target": id, "parent": parent.id });
        let meaning = guard::meaning(&self.portal.keys, &command, &hashed);
        let effect = self.held(Effect::Change(Box::new(change)));
        let submission =
            Submission { arrived, meaning, command: Some(command.clone()), effect, turn: Turn::default() };
        self.portal.guarded(submission, &command, &hashed, || Ok(())).await
    }
}
