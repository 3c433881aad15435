//! What a dry run says about a team's quota: what all of it would add, and who of it would have no place.

use super::{super::Inner, steps};
use crate::{Result, catalog::Offering, guard};
use domain::{
    action,
    name::Name,
    plan::{PlannedChange, PlannedOutcome, PlannedStep, QuotaEffect},
    quota::QuotaUse,
};

impl Inner {
    /// What a plan does to its team's quota. What would be refused is refused; a step that would be is told as such.
    pub(super) async fn quota_effect(
        &self,
        team: &Name,
        offering: &Offering,
        plan: &mut PlannedChange,
    ) -> Result<QuotaEffect> {
        let cost = self.cost(offering, plan);
        let limits = self.store.limits(std::slice::from_ref(team)).await?;
        let Some((_, now)) = limits.first() else { return Ok(QuotaEffect { cost, used: None, limit: None }) };
        if plan.outcome == PlannedOutcome::Create {
            let mut then = *now;
            let own = u64::from(offering.quota_cost);
            then.take(own).map_err(|short| guard::quota_exceeded(team.as_str(), short))?;
            if offering.composite.is_some() {
                self.place(team, &mut plan.steps, &mut then);
            }
        }
        Ok(QuotaEffect { cost, used: Some(now.used), limit: now.limit })
    }

    /// Gives steps their places, in the order in which they are told.
    fn place(&self, team: &Name, steps: &mut [PlannedStep], room: &mut QuotaUse) {
        for step in steps {
            if step.action != action::CREATE || step.problem.is_some() {
                continue;
            }
            match room.take(u64::from(self.cost_of_one(&step.offering))) {
                Ok(()) => self.place(team, &mut step.steps, room),
                Err(short) => step.problem = Some(guard::quota_exceeded(team.as_str(), short).detail),
            }
        }
    }

    /// What a change of something that is there does to the quota.
    pub(super) async fn quota_of(&self, team: &Name, cost: i64) -> Result<QuotaEffect> {
        let limits = self.store.limits(std::slice::from_ref(team)).await?;
        let now = limits.first().map(|(_, now)| *now);
        Ok(QuotaEffect { cost, used: now.map(|now| now.used), limit: now.and_then(|now| now.limit) })
    }

    /// What a plan adds to the quota, with all that its steps ask for.
    pub(super) fn cost(&self, offering: &Offering, plan: &PlannedChange) -> i64 {
        let own = match (&offering.composite, plan.outcome) {
            (Some(_), PlannedOutcome::Create) => i64::from(offering.quota_cost),
            (Some(_), PlannedOutcome::Delete) => -i64::from(offering.quota_cost),
            // Its one step is itself.
            _ => 0,
        };
        own + self.cost_of(&plan.steps)
    }

    fn cost_of(&self, steps: &[PlannedStep]) -> i64 {
        let cost = |step: &PlannedStep| {
            let cost = i64::from(self.cost_of_one(&step.offering));
            let own = match step.action.as_str() {
                action::CREATE => cost,
                action::DELETE | steps::CANCEL => -cost,
                _ => 0,
            };
            own + self.cost_of(&step.steps)
        };
        steps.iter().map(cost).sum()
    }

    fn cost_of_one(&self, offering: &Name) -> u32 {
        self.catalog.get(offering).map_or(0, |offering| offering.quota_cost)
    }
}
