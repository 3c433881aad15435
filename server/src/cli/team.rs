//! `keyturn team add`.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Args;
use serde_json::json;

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The team's name: lower-case letters, digits and hyphens.
    name: String,
}

impl Add {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        common.open().await?.add_team(&self.name).await?;
        Ok(Said::new(format!("Team {} is there.", self.name), json!({ "team": self.name })))
    }
}
