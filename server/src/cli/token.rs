//! `keyturn token create`.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Args;
use serde_json::json;

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Whose token it is.
    #[arg(long, value_name = "NAME")]
    user: String,
    /// What it is called, to be known by later.
    #[arg(long, value_name = "TEXT")]
    label: String,
    /// After what time it ends.
    #[arg(long, value_name = "90d")]
    expires: Option<String>,
}

impl Create {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        let portal = common.open().await?;
        let token = portal.token_for(&self.user, &self.label, self.expires.as_deref()).await?;
        let json = json!({ "token": token });
        Ok(Said::new(token, json))
    }
}
