//! `keyturn catalog check`: explains every mistake in a catalog.

use super::report::{Failure, Said};
use clap::Args;
use portal::{catalog::Catalog, provisioner::exec::Site};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The catalog's folder, which holds one folder an offering.
    dir: PathBuf,
}

impl Check {
    pub(super) fn run(&self) -> Result<Said, Failure> {
        if !self.dir.is_dir() {
            return Err(Failure::plain(format!("there is no folder {}", self.dir.display())));
        }
        let site = Site::of_this_binary(&self.dir).map_err(|error| Failure::plain(error.to_string()))?;
        let catalog = Catalog::load(&self.dir, &site);
        let good: Vec<String> = catalog.iter().map(|offering| offering.id.to_string()).collect();
        let mistakes: Vec<_> = catalog.broken().iter().flat_map(|broken| &broken.mistakes).collect();
        if good.is_empty() && mistakes.is_empty() {
            return Err(Failure::plain(format!(
                "{} holds no folder with an offering.yaml; name the folder that holds one folder an offering",
                self.dir.display()
            )));
        }
        if mistakes.is_empty() {
            let text = format!("no mistake in: {}", good.join(", "));
            return Ok(Said::new(text, json!({ "offerings": good, "mistakes": [] })));
        }
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let listed: Vec<_> = mistakes
            .iter()
            .map(|mistake| {
                json!({
                    "file": mistake.file, "line": mistake.line, "column": mistake.column, "message": mistake.message
                })
            })
            .collect();
        Ok(Said::bad(lines.join("\n"), json!({ "offerings": good, "mistakes": listed })))
    }
}
