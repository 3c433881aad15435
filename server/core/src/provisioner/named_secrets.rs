//! Secrets that an offering names: where each comes from, read anew for every call so that an exchange needs no start.

use crate::{hidden::SHORTEST_VEILED, signature::SharedSecret};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// The largest file of a secret, in bytes.
const LARGEST: u64 = 64 << 10;

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An environment variable of the server.
    Environment(String),
    /// A file; the line break at its end is not part of it.
    File(PathBuf),
}

/// The secrets of an offering, by the name that it gives them.
#[derive(Debug, Clone, Default)]
pub struct NamedSecrets(pub BTreeMap<String, Source>);

impl NamedSecrets {
    /// Reads all of them; the name of one that is missing, and why.
    pub(crate) fn read(&self) -> Result<Known, String> {
        self.0
            .iter()
            .map(|(name, source)| Ok((name.clone(), read(name, source)?)))
            .collect::<Result<_, _>>()
            .map(Known)
    }

    /// One of them, if it can be read.
    pub(crate) fn one(&self, name: &str) -> Option<String> {
        read(name, self.0.get(name)?).ok()
    }

    /// Those of these names that can be read, to judge signatures by.
    pub(crate) fn shared(&self, names: &[String]) -> Vec<SharedSecret> {
        names.iter().filter_map(|name| SharedSecret::kept(self.one(name)?)).collect()
    }
}

fn read(name: &str, source: &Source) -> Result<String, String> {
    let secret = match source {
        Source::Environment(variable) => std::env::var(variable)
            .map_err(|_| format!("the secret {name:?} is missing: the variable {variable} is not set"))?,
        Source::File(path) => {
            let small = fs::metadata(path).is_ok_and(|about| about.len() <= LARGEST);
            let text = if small { fs::read_to_string(path).ok() } else { None };
            let text =
                text.ok_or_else(|| format!("the secret {name:?} is missing: its file cannot be read"))?;
            text.trim_end_matches(['\n', '\r']).to_owned()
        }
    };
    if secret.is_empty() { Err(format!("the secret {name:?} is empty")) } else { Ok(secret) }
}

/// Secrets in the clear, for one call. Never shown.
#[derive(Default)]
pub(crate) struct Known(BTreeMap<String, String>);

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Known {
    /// By name.
    pub(crate) fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// One more text that must not be shown.
    pub(crate) fn and(&mut self, name: &str, secret: &str) {
        self.0.insert(name.to_owned(), secret.to_owned());
    }

    /// A text without them.
    pub(crate) fn masked(&self, text: String) -> String {
        let secrets = self.0.values().filter(|secret| secret.len() >= SHORTEST_VEILED);
        secrets.fold(
            text,
            |text, secret| if text.contains(secret.as_str()) { text.replace(secret, "***") } else { text },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_anew_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let named = NamedSecrets(BTreeMap::from([("token".to_owned(), Source::File(file.clone()))]));
        assert!(named.read().unwrap_err().contains("its file cannot be read"));
        fs::write(&file, "hunter2\n").unwrap();
        let known = named.read().unwrap();
        assert_eq!(known.all()["token"], "hunter2");
        assert_eq!(known.masked("with hunter2!".into()), "with ***!");
        assert!(!format!("{known:?}").contains("hunter2"));
        fs::write(&file, "hunter3\n").unwrap();
        assert_eq!(named.one("token").as_deref(), Some("hunter3"));
        let missing = Source::Environment("THERE_IS_NO_SUCH_VARIABLE".to_owned());
        let named = NamedSecrets(BTreeMap::from([("token".to_owned(), missing)]));
        assert!(named.read().unwrap_err().contains("THERE_IS_NO_SUCH_VARIABLE"));
    }
}
