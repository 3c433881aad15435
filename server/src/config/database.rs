//! Where the portal keeps its data: a file of its own, or a PostgreSQL database that several servers share.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// What a PostgreSQL address may say after its `?`. Others are refused here: a misspelled one would be passed over, and
/// may hold a password.
const PARAMETERS: &[&str] = &[
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// A database, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Address),
}

/// The address of a PostgreSQL database. It may hold a password, so it is never shown whole.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// The whole of it, to connect.
    pub(crate) fn with_password(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", ""));
        let rest = rest.split('?').next().unwrap_or_default();
        // A password may hold anything, a host no @.
        match rest.rsplit_once('@') {
            Some((user, place)) => {
                let user = user.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
            None => write!(f, "{scheme}://{rest}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.display().fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

impl Database {
    /// Reads an address.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return address(url).map(Self::Postgres);
        }
        match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
            None | Some("") => Err("write sqlite://PATH, as sqlite://data/keyturn.db, or \
                                    postgres://USER:PASSWORD@HOST/DATABASE"
                .into()),
            Some(rest) if rest.contains('?') => Err("write sqlite://PATH without options".into()),
            Some(rest) if rest.starts_with(":memory:") => {
                Err("the data must be in a file; write sqlite://PATH".into())
            }
            Some(rest) => Ok(Self::Sqlite(PathBuf::from(rest))),
        }
    }

    /// The folder for what is kept beside the database: the key, the sample catalog, what programs keep.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::Sqlite(file) => {
                file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
            }
            Self::Postgres(_) => Path::new("data"),
        }
    }
}

fn address(url: &str) -> Result<Address, String> {
    let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
    if place.split_once("://").is_none_or(|(_, rest)| rest.is_empty()) && parameters.is_empty() {
        return Err("write postgres://USER:PASSWORD@HOST/DATABASE".into());
    }
    let unknown = parameters
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split('=').next().unwrap_or_default())
        .find(|name| !PARAMETERS.contains(name) && !name.starts_with("options["));
    match unknown {
        Some(name) => Err(format!("it knows no parameter {name}; known are {}", PARAMETERS.join(", "))),
        None => Ok(Address(url.to_owned())),
    }
}
