//! The portal's keys: a file of versions. The newest makes hashes and seals; the older ones judge and open what was made
//! with them, for as long as anything is.

mod file;

use crate::{Error, Result, clock::Ids, secret::SecretKey};
use domain::problem::ProblemKind;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// The version of a key whose file does not name one, and of what was sealed before seals named theirs.
const FIRST: i64 = 1;
/// How a seal begins; its version follows.
const SEAL: [u8; 2] = *b"kt";
/// When a server that lacks a key may have been given it.
const GIVEN_BY_THEN: Duration = Duration::from_secs(5);

/// A key with its version.
#[derive(Debug, Clone)]
pub struct Version {
    /// Counts the portal's keys, from 1; never used twice.
    pub number: i64,
    /// The key.
    pub key: Arc<SecretKey>,
}

/// What a version of the key is still needed for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Claims that were hashed with it and are no tombstones yet.
    pub claims: i64,
    /// What is sealed with it: secrets of resources, of requests, of hooks and of work elsewhere, and events that were
    /// delivered.
    pub secrets: i64,
}

/// The keys of a running portal.
///
/// What it makes, it makes with the version that was the newest when it opened. A newer one that is put into the file
/// meanwhile is known as soon as something made with it is met, so that servers can be given it before any of them uses it.
#[derive(Debug, Clone)]
pub struct Keys {
    file: Option<PathBuf>,
    current: Version,
    known: Arc<RwLock<BTreeMap<i64, Arc<SecretKey>>>>,
}

impl Keys {
    /// The keys in the file, which is made (mode 0600) where it is missing.
    pub fn read_or_make(path: &Path, ids: &dyn Ids) -> io::Result<Self> {
        let masters = file::read_or_make(path, ids)?;
        let mut keys = Self::of(masters).ok_or_else(|| io::Error::other("the file holds no key"))?;
        keys.file = Some(path.to_owned());
        Ok(keys)
    }

    /// These keys, each with its version, of no file; nothing where there is none.
    #[must_use]
    pub fn of(masters: impl IntoIterator<Item = (i64, [u8; 32])>) -> Option<Self> {
        let known: BTreeMap<i64, Arc<SecretKey>> = masters
            .into_iter()
            .map(|(number, master)| (number, Arc::new(SecretKey::from_bytes(master))))
            .collect();
        let (number, key) = known.last_key_value()?;
        let current = Version { number: *number, key: Arc::clone(key) };
        Some(Self { file: None, current, known: Arc::new(RwLock::new(known)) })
    }

    /// The version that hashes and seals are made with.
    #[must_use]
    pub fn current(&self) -> &Version {
        &self.current
    }

    /// The numbers of the versions, oldest first.
    #[must_use]
    pub fn versions(&self) -> Vec<i64> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// The key of this version, as far as it is known.
    #[must_use]
    pub fn get(&self, number: i64) -> Option<Arc<SecretKey>> {
        if number == self.current.number {
            return Some(Arc::clone(&self.current.key));
        }
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// The key of this version as the file holds it now. Whoever judges by it must know it to be the right one.
    pub(crate) fn read_again(&self, number: i64) -> Option<Arc<SecretKey>> {
        let masters = file::read(self.file.as_deref()?);
        let masters = masters
            .inspect_err(|error| tracing::error!(%error, "the secret key file cannot be read"))
            .ok()?;
        masters.get(&number).map(|master| Arc::new(SecretKey::from_bytes(*master)))
    }

    /// Knows a version that was found to be right.
    pub(crate) fn learn(&self, number: i64, key: Arc<SecretKey>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(number, key);
    }

    /// How everything begins that is sealed with the current version.
    pub(crate) fn seal_head(&self) -> Result<Vec<u8>> {
        let number = u32::try_from(self.current.number).map_err(Error::internal)?;
        Ok([SEAL.as_slice(), &number.to_be_bytes()].concat())
    }

    /// Encrypts, naming the version; only the same `purpose` opens it again.
    pub fn seal(&self, purpose: &str, plain: &[u8], ids: &dyn Ids) -> Result<Vec<u8>> {
        Ok([self.seal_head()?, self.current.key.seal(purpose, plain, ids)?].concat())
    }

    /// Opens what [`Self::seal`] made for the same purpose; nothing if it was made otherwise or changed, an error where
    /// the key of its version is not here.
    pub fn unseal(&self, purpose: &str, sealed: &[u8]) -> Result<Option<Vec<u8>>> {
        // A seal says whether it is genuine, so a key straight from the file cannot open the wrong thing.
        let open = |number, sealed| {
            let key = self.get(number).or_else(|| self.read_again(number));
            key.map(|key| key.unseal(purpose, sealed))
        };
        let Some((number, rest)) = head(sealed) else {
            return open(FIRST, sealed).ok_or_else(|| lacking(FIRST));
        };
        match open(number, rest) {
            Some(Some(plain)) => Ok(Some(plain)),
            // Before seals named their version they began with anything.
            other => match open(FIRST, sealed).flatten() {
                None if other.is_none() => Err(lacking(number)),
                plain => Ok(plain),
            },
        }
    }

    /// Puts a new version into the file; its number. It counts for a portal that is opened from then on.
    pub(crate) fn rotate(&self, ids: &dyn Ids) -> io::Result<(i64, SecretKey)> {
        file::change(self.file()?, |masters| {
            let number = masters.last_key_value().map_or(FIRST, |(number, _)| number + 1);
            let mut master = [0; 32];
            ids.fill(&mut master);
            masters.insert(number, master);
            (number, SecretKey::from_bytes(master))
        })
    }

    /// Takes versions out of the file.
    pub(crate) fn drop_versions(&self, numbers: &[i64]) -> io::Result<()> {
        file::change(self.file()?, |masters| masters.retain(|number, _| !numbers.contains(number)))
    }

    fn file(&self) -> io::Result<&Path> {
        self.file.as_deref().ok_or_else(|| io::Error::other("these keys are in no file"))
    }
}

/// The version that a seal names, and what is sealed.
fn head(sealed: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = sealed.strip_prefix(&SEAL)?.split_first_chunk()?;
    Some((u32::from_be_bytes(*number).into(), rest))
}

/// The version of the key that opens it.
pub(crate) fn version_of(sealed: &[u8]) -> i64 {
    head(sealed).map_or(FIRST, |(number, _)| number)
}

/// The refusal of what cannot be judged without a key that is not here.
pub(crate) fn lacking(number: i64) -> Error {
    let kind = ProblemKind::ServerBehind;
    let context = format!("the secret key file lacks version {number}, which the database was made with");
    Error { context: Some(context), ..Error::new(kind, kind.help()).after(GIVEN_BY_THEN) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemIds;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn seals_open_for_their_purpose_under_the_version_that_they_name() {
        let old = Keys::of([(1, [7; 32])]).unwrap();
        let both = Keys::of([(1, [7; 32]), (2, [8; 32])]).unwrap();
        let one = old.seal("outputs", b"hunter2", &SystemIds).unwrap();
        let two = both.seal("outputs", b"hunter3", &SystemIds).unwrap();
        assert_eq!((version_of(&one), version_of(&two)), (1, 2));
        assert_eq!(both.unseal("outputs", &one).unwrap().unwrap(), b"hunter2");
        assert_eq!(both.unseal("outputs", &two).unwrap().unwrap(), b"hunter3");
        assert!(both.unseal("form", &two).unwrap().is_none());
        assert_eq!(old.unseal("outputs", &two).unwrap_err().kind, ProblemKind::ServerBehind);
    }

    #[test]
    fn a_seal_from_before_versions_is_the_first_versions() {
        let both = Keys::of([(1, [7; 32]), (2, [8; 32])]).unwrap();
        let sealed = SecretKey::from_bytes([7; 32]).seal("outputs", b"old", &SystemIds).unwrap();
        assert_eq!(both.unseal("outputs", &sealed).unwrap().unwrap(), b"old");
    }

    #[test]
    fn the_key_file_is_made_once_and_private_and_keeps_old_versions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.key");
        let one = Keys::read_or_make(&path, &SystemIds).unwrap();
        let two = Keys::read_or_make(&path, &SystemIds).unwrap();
        let check = |keys: &Keys, number| keys.get(number).unwrap().check_value();
        assert_eq!(check(&one, 1), check(&two, 1));
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        assert_eq!((one.rotate(&SystemIds).unwrap().0, two.rotate(&SystemIds).unwrap().0), (2, 3));
        assert_eq!(mode(), 0o600);
        let all = Keys::read_or_make(&path, &SystemIds).unwrap();
        assert_eq!(all.versions(), [1, 2, 3]);
        assert_eq!((all.current().number, check(&all, 1)), (3, check(&one, 1)));
        // A portal that runs makes nothing with a version that came later, but finds it in the file.
        assert_eq!(one.current().number, 1);
        assert_eq!(one.read_again(3).unwrap().check_value(), check(&all, 3));
        all.drop_versions(&[1, 2]).unwrap();
        assert!(one.read_again(2).is_none());
        assert_eq!(one.rotate(&SystemIds).unwrap().0, 4);
    }
}
