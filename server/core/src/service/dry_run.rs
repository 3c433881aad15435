//! A dry run: what a submission would mean and do. Nothing is claimed, and nothing is stored.

use super::{
    Inner, Portal,
    create::{Sent, second_look},
};
use crate::{
    Caller, Error, Result, guard,
    store::{NameHolder, StoredResource},
};
use domain::{
    json,
    name::Name,
    plan::{PlanView, PlannedChange, PlannedOutcome, QuotaEffect},
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
        let command = sent.command(&offering.schema).map_err(Error::fields)?;
        let confirmed = sent.confirmation()?;
        let lineage = self.lineage(caller, team, &command).await?;
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
        Ok(PlanView {
            dry_run: true,
            plan: self.planned(&wanted).await?,
            command,
            quota: QuotaEffect { cost: offering.quota_cost, limit: None },
            likely_duplicates,
        })
    }

    async fn planned(&self, wanted: &RequestView) -> Result<PlannedChange> {
        let (kind, name) = (&wanted.resource_type, &wanted.name);
        let planned = |outcome, summary, request| PlannedChange {
            outcome,
            summary,
            team: wanted.team.clone(),
            resource_type: kind.clone(),
            name: name.clone(),
            offering_version: wanted.offering_version.clone(),
            request,
        };
        let Some(StoredResource { view: held, .. }) =
            self.store.resource(&wanted.team, kind.as_str(), name.as_str()).await?
        else {
            let summary = format!("would create {kind} {name} in team {}", wanted.team);
            return Ok(planned(PlannedOutcome::Create, summary, None));
        };
        let maker = held.created_by.id;
        if held.state == "deleting" {
            return Err(guard::deleting(maker));
        }
        if held.offering != wanted.offering || canonical(&held.parameters) != canonical(&wanted.parameters) {
            let holder = NameHolder { request: maker, offering: held.offering, parameters: held.parameters };
            return Err(guard::name_taken(&holder, wanted));
        }
        let summary =
            format!("{kind} {name} is there in team {}, just as asked; nothing would be made", wanted.team);
        Ok(planned(PlannedOutcome::Existing, summary, Some(RequestLink::to(maker))))
    }
}

fn canonical(object: &Object) -> Vec<u8> {
    json::canonical(&Value::Object(object.clone()))
}
