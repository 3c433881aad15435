//! `keyturn key`: versions of the portal's key.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Puts a new version into the secret key file. Old ones stay, for what was made with them.
    ///
    /// A server uses the new version from its next start on. Where several servers run, give each the new file first
    /// and start them again after that.
    Rotate,
    /// Lists the versions in the secret key file; never the keys themselves.
    List,
}

impl Key {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        let portal = common.open().await?;
        match self {
            Self::Rotate => {
                let version = portal.rotate_key().await?;
                let text = format!(
                    "Version {version} is in the secret key file. Servers use it from their next start on."
                );
                Ok(Said::new(text, json!({ "version": version })))
            }
            Self::List => {
                let newest = portal.current_key();
                let versions = portal.key_versions();
                let text: Vec<String> = versions
                    .iter()
                    .map(|number| {
                        format!("version {number}{}", if *number == newest { " (current)" } else { "" })
                    })
                    .collect();
                let versions: Vec<Value> = versions
                    .iter()
                    .map(|number| json!({ "version": number, "current": *number == newest }))
                    .collect();
                Ok(Said::new(text.join("\n"), json!({ "versions": versions })))
            }
        }
    }
}
