//! The catalog: a folder of offerings, each a folder with `offering.yaml` and whatever its provisioner needs.
//!
//! A catalog never fails as a whole. A folder with a mistake becomes a broken entry that says what is wrong and where;
//! the rest works.

mod action;
mod approval;
mod composite;
mod expiry;
mod mapping;
mod offering;
mod outside;
mod sample;
mod schema;
mod schema_check;
mod sheet;
mod yaml;

pub use action::Action;
pub use approval::ApprovalPolicy;
pub(crate) use composite::{Composite, Step};
pub use expiry::{Ends, ExpiryRule};
pub(crate) use mapping::{Mapping, known};
pub use offering::{Offering, duration};
pub use schema::ParameterSchema;

use crate::provisioner::exec::Site;
use domain::name::Name;
use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The name of the file that makes a folder an offering.
pub const OFFERING_FILE: &str = "offering.yaml";

/// One mistake in an offering's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The path of the file it is in.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// A folder that cannot be used as an offering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The name of its folder, which would be the offering's ID.
    pub id: String,
    /// The folder.
    pub folder: PathBuf,
    /// Everything that is wrong with it; at least one.
    pub mistakes: Vec<Mistake>,
}

/// What can be requested.
#[derive(Debug, Default)]
pub struct Catalog {
    offerings: BTreeMap<Name, Arc<Offering>>,
    broken: Vec<Broken>,
    has_secrets: bool,
}

impl Catalog {
    /// Reads every offering in `folder`; programs will run at `site`.
    ///
    /// Each folder inside is one offering, and its name is the offering's ID. Files, and folders that begin with a
    /// dot, are passed over. Nothing is written and nothing is run.
    #[must_use]
    pub fn load(folder: &Path, site: &Site) -> Self {
        let mut catalog = Self::default();
        match folders(folder) {
            Ok(folders) => {
                for (id, folder) in folders {
                    match offering::load(&id, &folder, site) {
                        Ok(offering) => {
                            catalog.offerings.insert(offering.id.clone(), Arc::new(offering));
                        }
                        Err(mistakes) => catalog.broken.push(Broken { id, folder, mistakes }),
                    }
                }
                composite::settle(&mut catalog, folder);
            }
            Err(error) => {
                let mistake = Mistake {
                    file: folder.display().to_string(),
                    line: 1,
                    column: 1,
                    message: format!("the catalog's folder cannot be read: {error}"),
                };
                let id = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
                catalog.broken.push(Broken { id, folder: folder.to_owned(), mistakes: vec![mistake] });
            }
        }
        catalog.counted()
    }

    fn counted(mut self) -> Self {
        self.has_secrets = self.offerings.values().any(|offering| offering.has_secrets());
        self
    }

    /// A catalog of offerings made elsewhere, for tests.
    #[must_use]
    pub fn of(offerings: impl IntoIterator<Item = Offering>) -> Self {
        let offerings =
            offerings.into_iter().map(|offering| (offering.id.clone(), Arc::new(offering))).collect();
        Self { offerings, ..Self::default() }.counted()
    }

    /// The offering of this ID, if it is there and without mistakes.
    #[must_use]
    pub fn get(&self, id: &Name) -> Option<&Arc<Offering>> {
        self.offerings.get(id)
    }

    /// Whether any offering has secret parameters.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        self.has_secrets
    }

    /// All offerings without mistakes, sorted by ID.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Offering>> {
        self.offerings.values()
    }

    /// The folders with mistakes, sorted by ID.
    #[must_use]
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// Writes the sample catalog, which this binary carries, into the folder `catalog` of `data`, and names it.
    ///
    /// A file that is already as it should be is left alone, so a program in use is not disturbed.
    pub fn sample(data: &Path) -> io::Result<PathBuf> {
        sample::write(data)
    }
}

/// The folders in a folder, by name.
fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && path.is_dir() {
            folders.push((name, path));
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests;
