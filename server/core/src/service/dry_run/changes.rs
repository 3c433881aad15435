//! Dry runs of changes: what an update, a delete or an action would do to a resource as it stands.

use super::{
    super::{
        Arrival, Inner, Portal,
        change::{Meant, Sent, Target, input, offering_of, patch},
        keyed,
    },
    alone, with_approval,
};
use crate::{Caller, Error, Result, guard, store::Planned, store::StoredResource};
use domain::{
    action,
    command::Operation,
    plan::{PlanView, PlannedChange, PlannedOutcome, differing},
    problem::RequestLink,
    view::{Object, ResourceView},
};

/// What a change is to be tried on.
struct Tried<'a> {
    target: &'a Target,
    operation: Operation,
    /// The action's ID, where it is one.
    action: Option<&'a str>,
    body: Object,
    labels: Vec<String>,
}

impl Portal {
    /// What the update would do now, or the problem that it would meet; as [`Portal::update`], without a key.
    pub async fn plan_update(
        &self,
        caller: &Caller,
        target: &Target,
        arrival: &Arrival,
        body: &[u8],
        labels: Vec<String>,
    ) -> Result<PlanView> {
        let body = patch(body)?;
        let tried = Tried { target, operation: Operation::Update, action: None, body, labels };
        self.0.plan_change(caller, arrival, tried).await
    }

    /// What the delete would do now, or the problem that it would meet; as [`Portal::delete`], without a key.
    pub async fn plan_delete(
        &self,
        caller: &Caller,
        target: &Target,
        arrival: &Arrival,
        body: &[u8],
        labels: Vec<String>,
    ) -> Result<PlanView> {
        let body = keyed::object(body, &[])?;
        let tried = Tried { target, operation: Operation::Delete, action: None, body, labels };
        self.0.plan_change(caller, arrival, tried).await
    }

    /// What the action would do now, or the problem that it would meet; as [`Portal::act`], without a key.
    pub async fn plan_action(
        &self,
        caller: &Caller,
        target: &Target,
        action: &str,
        arrival: &Arrival,
        body: &[u8],
        labels: Vec<String>,
    ) -> Result<PlanView> {
        let body = input(body)?;
        let tried = Tried { target, operation: Operation::Act, action: Some(action), body, labels };
        self.0.plan_change(caller, arrival, tried).await
    }
}

impl Inner {
    async fn plan_change(&self, caller: &Caller, arrival: &Arrival, tried: Tried<'_>) -> Result<PlanView> {
        let Tried { target, operation, action, body, labels } = tried;
        let team = self.visible_team(caller, &target.team).await?;
        let sent = Sent::of(team, target, (operation, action), body, labels, arrival);
        let Meant { kind, name, command, plan, .. } = self.meant(caller, &sent).await?;
        let life = match self.store.resource(&sent.team, kind.as_str(), name.as_str()).await? {
            None if operation == Operation::Delete => {
                self.store.last_deleted(&sent.team, kind.as_str(), name.as_str()).await?
            }
            life => life,
        };
        let life = life.ok_or_else(Error::not_found)?;
        let planned = plan.on(&life)?;
        if let Some(delete) = life.ended_by.filter(|_| operation != Operation::Delete) {
            return Err(guard::deleting(delete));
        }
        let (plan, cost) = self.planned_change(&life, planned, operation, action).await?;
        let quota = self.quota_of(&sent.team, cost).await?;
        Ok(PlanView { dry_run: true, plan, command, quota, likely_duplicates: Vec::new() })
    }

    async fn planned_change(
        &self,
        life: &StoredResource,
        planned: Planned,
        operation: Operation,
        action: Option<&str>,
    ) -> Result<(PlannedChange, i64)> {
        let view = &life.view;
        if let Some(delete) = life.ended_by {
            let (kind, name, team) = (&view.resource_type, &view.name, &view.team);
            let gone = if view.state == "deleting" { "is being deleted" } else { "is deleted" };
            let summary = format!("{kind} {name} {gone} in team {team} already; nothing would be done");
            let request = Some(RequestLink::to(delete));
            let plan = PlannedChange { request, ..change(view, PlannedOutcome::Existing, summary, planned) };
            return Ok((plan, 0));
        }
        let offering = offering_of(&self.catalog, view)?;
        let told = told(view, operation, action, &planned);
        let desired = planned.desired.clone();
        let (outcome, word, handed) = match operation {
            Operation::Update => {
                (PlannedOutcome::Update, action::UPDATE, desired.clone().unwrap_or_default())
            }
            Operation::Delete => (PlannedOutcome::Delete, action::DELETE, Object::new()),
            _ => (PlannedOutcome::Action, action.unwrap_or_default(), planned.parameters.clone()),
        };
        let needed = planned.approval;
        let mut plan = change(view, outcome, with_approval(told, needed), planned);
        plan.approval = needed;
        if let Some(desired) = &desired {
            plan.changes = differing(&view.parameters, desired);
        }
        let (open, _) = self.store.requests_of(view.id).await?;
        plan.open_requests = open.iter().map(|request| RequestLink::to(request.id)).collect();
        plan.steps = if offering.composite.is_some() && operation == Operation::Delete {
            self.steps_of_delete(view.created_by.id).await?
        } else {
            vec![alone(&offering, word, &view.name, handed)]
        };
        let cost = self.cost(&offering, &plan);
        Ok((plan, cost))
    }
}

/// In words what would be done.
fn told(view: &ResourceView, operation: Operation, action: Option<&str>, planned: &Planned) -> String {
    let what = format!("{} {} in team {}", view.resource_type, view.name, view.team);
    let changes = planned.desired.as_ref().map_or(0, |desired| differing(&view.parameters, desired).len());
    match (operation, changes) {
        (Operation::Delete, _) => format!("would delete {what}"),
        (Operation::Act, 0) => format!("would do {} with {what}", action.unwrap_or_default()),
        (Operation::Act, _) => {
            format!("would do {} with {what}, which changes it", action.unwrap_or_default())
        }
        (_, 0) => format!("would change nothing of {what}"),
        _ => format!("would change {what}"),
    }
}

fn change(view: &ResourceView, outcome: PlannedOutcome, summary: String, planned: Planned) -> PlannedChange {
    PlannedChange {
        outcome,
        summary,
        team: view.team.clone(),
        resource_type: view.resource_type.clone(),
        name: view.name.clone(),
        offering_version: planned.offering_version,
        approval: None,
        request: None,
        changes: Vec::new(),
        steps: Vec::new(),
        open_requests: Vec::new(),
    }
}
