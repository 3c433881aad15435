//! Quotas of teams: seen by who sees the team, set from the machine's own command line.

use super::Portal;
use crate::{Caller, Error, Result, store::AuditEntry};
use domain::{
    name::Name,
    problem::ProblemKind,
    quota::{HIGHEST_LIMIT, QuotaUse},
    role::TeamAct,
};

/// Refuses a limit that nobody means.
pub(super) fn within_reason(limit: Option<u64>) -> Result<()> {
    match limit {
        Some(limit) if limit > HIGHEST_LIMIT => {
            Err(Error::field("/quota", format!("at most {HIGHEST_LIMIT}; without a limit say none")))
        }
        _ => Ok(()),
    }
}

fn no_team(team: &str) -> Error {
    let detail = format!("There is no team {team}; make it first: keyturn team add {team}");
    Error::new(ProblemKind::NotFound, detail)
}

impl Portal {
    /// How much of its quota a team uses, where it has a limit.
    pub async fn limit_of(&self, caller: &Caller, team: &str) -> Result<Option<QuotaUse>> {
        let team = self.0.visible_team(caller, team).await?;
        Ok(self.0.store.limits(&[team]).await?.pop().map(|(_, uses)| uses))
    }

    /// How much of their quotas those of the teams use that have a limit; of others that the caller sees nothing is told.
    pub async fn limits_of(&self, caller: &Caller, teams: &[Name]) -> Result<Vec<(Name, QuotaUse)>> {
        let seen: Vec<Name> = teams.iter().filter(|team| caller.may(TeamAct::See, team)).cloned().collect();
        Ok(self.0.store.limits(&seen).await?)
    }

    /// How much a team uses, for the machine's own command line.
    pub async fn team_quota(&self, team: &str) -> Result<QuotaUse> {
        let known = Name::parse(team).map_err(|error| Error::field("/team", error))?;
        self.0.store.quota(&known).await?.ok_or_else(|| no_team(team))
    }

    /// Sets a team's limit, or none, from the machine's own command line; how much of it is used. One below that is no
    /// mistake: it refuses what is new until enough was given back.
    pub async fn set_team_quota(&self, team: &str, limit: Option<u64>) -> Result<QuotaUse> {
        let known = Name::parse(team).map_err(|error| Error::field("/team", error))?;
        within_reason(limit)?;
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: "command line".into(),
            channel: "cli",
            act: "team_quota",
            team: known.to_string(),
            target: known.to_string(),
            detail: limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()),
        };
        self.0.store.set_quota(&known, limit, entry).await?.ok_or_else(|| no_team(team))
    }
}
