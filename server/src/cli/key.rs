//! `keyturn key`: versions of the portal's key.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Subcommand;
use portal::Portal;
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Puts a new version into the secret key file. Old ones stay, for what was made with them.
    ///
    /// A server uses the new version from its next start on. Where several servers run, give each the new file first
    /// and start them again after that.
    Rotate,
    /// Lists the versions in the secret key file and what each is needed for; never the keys themselves.
    List,
    /// Encrypts secrets anew with the current version, and drops old versions that nothing needs any more.
    ///
    /// For when every server was started again with the current version. A version stays as long as there is a key to
    /// recognise that was hashed with it.
    Prune,
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
                let (text, versions) = listed(&portal).await?;
                Ok(Said::new(text, json!({ "versions": versions })))
            }
            Self::Prune => {
                let dropped = portal.prune_keys().await?;
                // What is left, as the file is now.
                let (text, versions) = listed(&common.open().await?).await?;
                let numbers: Vec<String> = dropped.iter().map(ToString::to_string).collect();
                let named = if dropped.is_empty() { "nothing".into() } else { numbers.join(", ") };
                let json = json!({ "dropped": dropped, "versions": versions });
                Ok(Said::new(format!("dropped: {named}\n{text}"), json))
            }
        }
    }
}

/// The versions in words and as JSON.
async fn listed(portal: &Portal) -> Result<(String, Vec<Value>), Failure> {
    let current = portal.current_key();
    let versions = portal.key_versions().await?;
    let text: Vec<String> = versions
        .iter()
        .map(|(number, needed)| {
            let mark = if *number == current { " (current)" } else { "" };
            format!("version {number}{mark}: {} keys and {} secrets", needed.claims, needed.secrets)
        })
        .collect();
    let versions = versions.iter().map(|(number, needed)| {
        json!({ "version": number, "current": *number == current, "keys": needed.claims, "secrets": needed.secrets })
    });
    Ok((text.join("\n"), versions.collect()))
}
