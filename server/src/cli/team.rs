//! `keyturn team`.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Args;
use domain::quota::QuotaUse;
use serde_json::json;
use std::str::FromStr;

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The team's name: lower-case letters, digits and hyphens.
    name: String,
    /// The most that its resources may cost together, as the offerings' quota.cost tells; without this there is no limit.
    #[arg(long, value_name = "N")]
    quota: Option<u64>,
}

impl Add {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        common.open().await?.add_team(&self.name, self.quota).await?;
        let mut json = json!({ "team": self.name });
        let mut text = format!("Team {} is there.", self.name);
        if let Some(limit) = self.quota {
            let uses = QuotaUse { used: 0, limit: Some(limit) };
            text = format!("Team {} is there, and {uses} of its quota.", self.name);
            json["quota"] = json!(uses);
        }
        Ok(Said::new(text, json))
    }
}

/// A limit as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit(Option<u64>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self(None)),
            number => number
                .parse()
                .map(|limit| Self(Some(limit)))
                .map_err(|_| "a whole number from 0 on, or none".to_owned()),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Quota {
    /// The team's name.
    name: String,
    /// The most that its resources may cost together, or none; without this it stays as it is.
    #[arg(value_name = "N|none")]
    limit: Option<Limit>,
}

impl Quota {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        let portal = common.open().await?;
        let uses = match self.limit {
            Some(Limit(limit)) => portal.set_team_quota(&self.name, limit).await?,
            None => portal.team_quota(&self.name).await?,
        };
        let json = json!({ "team": self.name, "quota": uses });
        Ok(Said::new(format!("Team {} {uses}.", self.name), json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_none() {
        assert_eq!(("0".parse(), "12".parse()), (Ok(Limit(Some(0))), Ok(Limit(Some(12)))));
        assert_eq!("none".parse(), Ok(Limit(None)));
        for wrong in ["", "-1", "1.5", "None", "many"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}
