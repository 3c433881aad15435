//! Settings: a TOML file and `KEYTURN_*` variables, variables first. Whatever is unknown or wrong stops the start with
//! the setting's name, so a misspelled safeguard is never silently the default.

use portal::outbound::AllowList;
use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

mod database;
mod places;
mod span;

pub(crate) use database::Database;
pub(crate) use places::site_root;

/// A setting that cannot be used. Says which one, why, and what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {setting}: {why}")]
pub(crate) struct ConfigError {
    /// The setting as it was given: a variable's name, or a key of the file.
    pub(crate) setting: String,
    /// What is wrong and what to do.
    pub(crate) why: String,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// Where the server listens.
    pub(crate) listen: SocketAddr,
    /// The address people reach the portal at, where a proxy stands before it; `https` makes cookies secure.
    pub(crate) public_url: Option<String>,
    /// The database.
    pub(crate) database: Database,
    /// The catalog's folder; without one the sample catalog.
    pub(crate) catalog: Option<PathBuf>,
    /// How long a key is kept after its request's final state.
    pub(crate) guard_retention: Duration,
    /// How long an expired key is still recognised.
    pub(crate) guard_tombstones: Duration,
    /// The longest time over which any sender retries.
    pub(crate) guard_longest_retry: Duration,
    /// How long a repeat waits for the first.
    pub(crate) guard_wait: Duration,
    /// How many requests are carried out at a time.
    pub(crate) workers: usize,
    /// How long a worker that went silent keeps its run.
    pub(crate) lease: Duration,
    /// Added to the machine's time, in milliseconds; for tests.
    pub(crate) clock_offset_millis: i64,
    /// Where the portal may call.
    pub(crate) outbound_allow: AllowList,
    /// The file of the key that secrets are encrypted with.
    pub(crate) secret_key_file: PathBuf,
    /// Which log lines are written, in `tracing`'s words.
    pub(crate) log: String,
    /// How they are written.
    pub(crate) log_format: LogFormat,
}

/// The settings, by the last part of their variable's name in lower case, which is also their key in the file.
const KNOWN: &[&str] = &[
    "listen",
    "public_url",
    "database_url",
    "catalog",
    "guard_retention",
    "guard_tombstones",
    "guard_longest_retry",
    "guard_wait",
    "workers",
    "lease",
    "clock_offset",
    "outbound_allow",
    "secret_key_file",
    "log",
    "log_format",
];

/// Variables of this repository's Makefile and scripts, which are no settings of the server.
const OF_THE_BUILD: &[&str] = &["KEYTURN_GOAL", "KEYTURN_TOOLS", "KEYTURN_CAMPAIGN_MINUTES"];

/// A value and the name it was given under.
struct Given {
    setting: String,
    value: String,
}

impl Config {
    /// Reads the file, if one is named, and the environment.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let text = match file {
            Some(path) => std::fs::read_to_string(path).map_err(|error| ConfigError {
                setting: "--config".into(),
                why: format!("{} cannot be read: {error}", path.display()),
            })?,
            None => String::new(),
        };
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            name.starts_with("KEYTURN_").then(|| (name, value.to_string_lossy().into_owned()))
        });
        Self::read(&text, environment)
    }

    /// The settings that a file's text and variables mean.
    fn read(file: &str, variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let mut given = from_file(file)?;
        for (name, value) in variables {
            if OF_THE_BUILD.contains(&name.as_str()) {
                continue;
            }
            let key = name.strip_prefix("KEYTURN_").unwrap_or(&name).to_ascii_lowercase();
            if !KNOWN.contains(&key.as_str()) || name.chars().any(|c| c.is_ascii_lowercase()) {
                return Err(unknown(&name, "KEYTURN_", &str::to_ascii_uppercase));
            }
            given.insert(key, Given { setting: name, value });
        }
        let config = Self::from_given(&given)?;
        config.check_retention(&given)?;
        Ok(config)
    }

    fn from_given(given: &BTreeMap<String, Given>) -> Result<Self, ConfigError> {
        let database = parse(given, "database_url", "sqlite://data/keyturn.db", Database::parse)?;
        let secret_key_file = match given.get("secret_key_file") {
            Some(_) => parse(given, "secret_key_file", "", path)?,
            None => match &database {
                Database::Sqlite(file) => file.with_file_name("secret.key"),
                Database::Postgres(_) => database.folder().join("secret.key"),
            },
        };
        let catalog = match given.get("catalog") {
            Some(_) => Some(parse(given, "catalog", "", path)?),
            None => None,
        };
        let public_url = match given.get("public_url") {
            Some(_) => Some(parse(given, "public_url", "", public_url)?),
            None => None,
        };
        let long = |key: &str, default: &str| {
            parse(given, key, default, |text| span::between(text, Duration::from_secs(1), span::DECADE))
        };
        Ok(Self {
            listen: parse(given, "listen", "127.0.0.1:3000", |text| {
                text.parse().map_err(|_| "write an address and a port, as 127.0.0.1:3000".into())
            })?,
            guard_retention: long("guard_retention", "7d")?,
            guard_tombstones: long("guard_tombstones", "90d")?,
            guard_longest_retry: long("guard_longest_retry", "76h")?,
            guard_wait: parse(given, "guard_wait", "5s", |text| {
                span::between(text, Duration::ZERO, Duration::from_mins(1))
            })?,
            workers: parse(given, "workers", "4", |text| match text.parse() {
                Ok(workers @ 0..=256) => Ok(workers),
                _ => Err("write a whole number from 0 to 256".into()),
            })?,
            lease: parse(given, "lease", "30s", |text| {
                span::between(text, Duration::from_secs(1), Duration::from_hours(1))
            })?,
            clock_offset_millis: parse(given, "clock_offset", "0s", span::signed_millis)?,
            outbound_allow: parse(given, "outbound_allow", "public", str::parse)?,
            log: parse(given, "log", "info", log)?,
            log_format: parse(given, "log_format", "text", |text| match text {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                _ => Err("write text or json".into()),
            })?,
            public_url,
            database,
            catalog,
            secret_key_file,
        })
    }

    /// A key must outlive every honest retry, with a tenth to spare.
    fn check_retention(&self, given: &BTreeMap<String, Given>) -> Result<(), ConfigError> {
        let least = self.guard_longest_retry.mul_f64(1.1);
        if self.guard_retention >= least {
            return Ok(());
        }
        let name = |key: &str| {
            given.get(key).map_or(format!("KEYTURN_{}", key.to_uppercase()), |g| g.setting.clone())
        };
        Err(ConfigError {
            setting: name("guard_retention"),
            why: format!(
                "keys must be kept at least a tenth longer than the longest retry ({} is {}), so at least {}; \
                 lengthen the one or shorten the other",
                name("guard_longest_retry"),
                span::Shown(self.guard_longest_retry),
                span::Shown(least),
            ),
        })
    }
}

/// The keys of a settings file, each with a text, a number or a truth value.
fn from_file(text: &str) -> Result<BTreeMap<String, Given>, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError {
        setting: "--config".into(),
        why: format!("the file is not TOML: {}", error.to_string().trim_end()),
    })?;
    table
        .into_iter()
        .map(|(key, value)| {
            if !KNOWN.contains(&key.as_str()) {
                return Err(unknown(&key, "", &str::to_owned));
            }
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                _ => {
                    return Err(ConfigError { setting: key, why: "write a text or a whole number".into() });
                }
            };
            Ok((key.clone(), Given { setting: key, value }))
        })
        .collect()
}

fn unknown(name: &str, prefix: &str, spelled: &dyn Fn(&str) -> String) -> ConfigError {
    let known: Vec<String> = KNOWN.iter().map(|key| format!("{prefix}{}", spelled(key))).collect();
    ConfigError {
        setting: name.to_owned(),
        why: format!("there is no such setting; known are {}", known.join(", ")),
    }
}

fn parse<T>(
    given: &BTreeMap<String, Given>,
    key: &str,
    default: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, ConfigError> {
    match given.get(key) {
        Some(Given { setting, value }) => {
            read(value.trim()).map_err(|why| ConfigError { setting: setting.clone(), why })
        }
        None => read(default).map_err(|why| ConfigError { setting: key.to_owned(), why }),
    }
}

/// A word that is no level would be taken for a target alone, and everything else be left out of the log.
fn log(text: &str) -> Result<String, String> {
    let understood = text.split(',').map(str::trim).all(|part| {
        let level = part.split_once('=').map_or(part, |(_, level)| level);
        level.parse::<tracing::level_filters::LevelFilter>().is_ok() && !level.is_empty()
    });
    match text.parse::<tracing_subscriber::filter::Targets>() {
        Ok(_) if understood => Ok(text.to_owned()),
        _ => Err("write a level (off, error, warn, info, debug, trace) or target=level pairs".into()),
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("write a path".into()) } else { Ok(PathBuf::from(text)) }
}

fn public_url(text: &str) -> Result<String, String> {
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match authority.map(|rest| rest.trim_end_matches('/')) {
        Some(rest) if !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("write http:// or https:// and a host, without a path".into()),
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Json { "json" } else { "text" })
    }
}

#[cfg(test)]
mod tests;
