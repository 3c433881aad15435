//! A dry run: what a submission would mean and do. Nothing is claimed, and nothing is stored.

mod changes;
mod quota;
mod steps;

use super::{
    Inner, Portal,
    create::{Sent, second_look},
};
use crate::{
    Caller, Error, Result,
    catalog::Offering,
    guard,
    store::{NameHolder, StoredResource},
};
use domain::{
    action,
    approval::ApprovalNeeded,
    json,
    name::Name,
    plan::{PlanView, PlannedChange, PlannedOutcome, PlannedStep, differing},
    problem::RequestLink,
    role::TeamAct,
    view::{Object, RequestView},
};
use serde_json::Value;

/// How many likely duplicates a plan lists.
const MOST_DUPLICATES: u32 = 10;

impl Portal {
    /// What the create would do now, or the problem that it would meet; as [`Portal::create_request`], without a key.
    pub async fn plan_request(
        &self,
        caller: &Caller,
        team: &str,
        body: &[u8],
        labels: Vec<String>,
    ) -> Result<PlanView> {
        let sent = Sent::read(body, labels)?;
        let team = self.0.visible_team(caller, team).await?;
        caller.must(TeamAct::Request, &team)?;
        self.0.plan_create(caller, &team, &sent).await
    }
}

impl Inner {
    /// What a create that was sent would do now in a team.
    pub(super) async fn plan_create(&self, caller: &Caller, team: &Name, sent: &Sent) -> Result<PlanView> {
        let offering = self.offering(sent)?;
        let mut command = sent.command(&offering.schema).map_err(Error::fields)?;
        let confirmed = sent.confirmation()?;
        let lineage = self.lineage(caller, team, &command).await?;
        let parameters = &mut command.parameters;
        let hidden =
            self.hide_created(team, &offering, caller.channel, parameters).await?.unwrap_or_default();
        let now = self.clock.now();
        let wanted = self.new_request(caller, team, &offering, &command, &lineage, now).view;
        let likely_duplicates = match second_look(&offering, &command, confirmed, caller.channel, now) {
            Some(look) => {
                let (id, most) = (&offering.id, MOST_DUPLICATES);
                let same = self.store.same_creates(team, id, look.parameters, look.since, most).await?;
                same.iter().filter(|earlier| earlier.name != wanted.name).map(Into::into).collect()
            }
            None => Vec::new(),
        };
        let known = steps::Known::of(&wanted, lineage.correlation_id.as_deref(), &offering, &hidden);
        let mut plan = self.planned(&wanted, &offering, known).await?;
        let quota = self.quota_effect(team, &offering, &mut plan).await?;
        Ok(PlanView { dry_run: true, plan, command, quota, likely_duplicates })
    }

    async fn planned(
        &self,
        wanted: &RequestView,
        offering: &Offering,
        known: steps::Known,
    ) -> Result<PlannedChange> {
        let (kind, name, team) = (&wanted.resource_type, &wanted.name, &wanted.team);
        let there = self.is_there(wanted).await?;
        let (outcome, summary) = match there {
            None => (PlannedOutcome::Create, format!("would create {kind} {name} in team {team}")),
            Some(_) => (
                PlannedOutcome::Existing,
                format!("{kind} {name} is there in team {team}, just as asked; nothing would be made"),
            ),
        };
        let needed = offering.approval_of(action::CREATE).filter(|_| outcome == PlannedOutcome::Create);
        let steps = match (&there, &offering.composite) {
            (Some(_), _) => Vec::new(),
            (None, Some(composite)) => self.steps_of_create(composite, known).await?,
            (None, None) => vec![alone(offering, action::CREATE, name, wanted.parameters.clone())],
        };
        Ok(PlannedChange {
            outcome,
            summary: with_approval(summary, needed),
            team: team.clone(),
            resource_type: kind.clone(),
            name: name.clone(),
            offering_version: wanted.offering_version.clone(),
            approval: needed,
            request: there,
            changes: if outcome == PlannedOutcome::Create {
                differing(&Object::new(), &wanted.parameters)
            } else {
                Vec::new()
            },
            steps,
            open_requests: Vec::new(),
        })
    }

    /// The request that made what is asked for, if it is there just so; or why its name cannot be had.
    async fn is_there(&self, wanted: &RequestView) -> Result<Option<RequestLink>> {
        let (kind, name) = (wanted.resource_type.as_str(), wanted.name.as_str());
        let Some(StoredResource { view: held, .. }) = self.store.resource(&wanted.team, kind, name).await?
        else {
            return Ok(None);
        };
        let maker = held.created_by.id;
        if held.state == "deleting" {
            return Err(guard::deleting(maker));
        }
        if held.offering != wanted.offering || canonical(&held.parameters) != canonical(&wanted.parameters) {
            let holder = NameHolder { request: maker, offering: held.offering, parameters: held.parameters };
            return Err(guard::name_taken(&holder, wanted));
        }
        Ok(Some(RequestLink::to(maker)))
    }
}

/// In words, also by whose approval.
fn with_approval(summary: String, needed: Option<ApprovalNeeded>) -> String {
    match needed {
        Some(needed) => format!("{summary}, once {} has approved it", needed.by.title()),
        None => summary,
    }
}

/// The one step of an offering that is not made of others.
fn alone(offering: &Offering, action: &str, name: &Name, parameters: Object) -> PlannedStep {
    PlannedStep {
        step: action.to_owned(),
        action: action.to_owned(),
        offering: offering.id.clone(),
        resource_type: offering.resource_type.clone(),
        name: Some(name.clone()),
        parameters,
        unknown: Vec::new(),
        needs: Vec::new(),
        approval: None,
        problem: None,
        steps: Vec::new(),
    }
}

fn canonical(object: &Object) -> Vec<u8> {
    json::canonical(&Value::Object(object.clone()))
}
