//! Versions of the portal's keys: that they are the database's own, and which one judges what.

use super::{Inner, OpenError, Portal};
use crate::{
    Error, Result,
    keys::{self, Keys},
    secret::SecretKey,
    store::{AuditEntry, Store, StoreResult},
};
use domain::{id::ResourceId, view::Object};
use std::sync::Arc;

/// The setting by which the database recognises a version of the key.
fn check_name(number: i64) -> String {
    if number == 1 { "key_check".into() } else { format!("key_check.{number}") }
}

/// The setting that says that nothing needs a version any more.
fn gone_name(number: i64) -> String {
    format!("key_gone.{number}")
}

/// Whether the database knows this key by this number. The first key of a number counts.
async fn is_right(store: &dyn Store, number: i64, key: &SecretKey) -> StoreResult<bool> {
    let check = key.check_value().to_vec();
    Ok(store.set_once(&check_name(number), check.clone()).await? == check)
}

/// Refuses keys that are not the ones that the database was made with, or not all of them.
pub(super) async fn check(keys: &Keys, store: &dyn Store) -> Result<(), OpenError> {
    // Numbers follow each other, so the one after the newest tells whether there is a newer one.
    for number in 1..=keys.current().number + 1 {
        let right = match keys.get(number) {
            Some(key) => is_right(store, number, &key).await?,
            None => {
                let made_with = store.setting(&check_name(number)).await?.is_some();
                if made_with && store.setting(&gone_name(number)).await?.is_none() {
                    return Err(OpenError::LackingKey(number));
                }
                true
            }
        };
        if !right {
            return Err(OpenError::OtherKey(number));
        }
    }
    Ok(())
}

impl Inner {
    /// The key by which what was hashed with this version is judged. Without it nothing is judged at all.
    pub(crate) async fn key_of(&self, number: i64) -> Result<Arc<SecretKey>> {
        if let Some(key) = self.keys.get(number) {
            return Ok(key);
        }
        let key = self.keys.read_again(number).ok_or_else(|| keys::lacking(number))?;
        if !is_right(self.store.as_ref(), number, &key).await? {
            return Err(keys::lacking(number));
        }
        self.keys.learn(number, Arc::clone(&key));
        Ok(key)
    }

    /// Seals the secret outputs of a resource.
    pub(crate) fn seal_secrets(&self, resource: ResourceId, secrets: &Object) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(secrets).map_err(Error::internal)?;
        self.keys.seal(&purpose(resource), &plain, self.ids.as_ref())
    }

    /// Opens the secret outputs of a resource; an error where the key for it is not here.
    pub(crate) fn open_secrets(&self, resource: ResourceId, sealed: &[u8]) -> Result<Option<Object>> {
        let plain = self.keys.unseal(&purpose(resource), sealed)?;
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}

fn purpose(resource: ResourceId) -> String {
    format!("outputs:{resource}")
}

impl Portal {
    /// Puts a new version of the key into the file; its number. Whatever portal opens from then on uses it.
    pub async fn rotate_key(&self) -> Result<i64> {
        let portal = &self.0;
        // Into the file first: a version that the database knew and no file held would stop every start.
        let (number, key) = portal.keys.rotate(portal.ids.as_ref()).map_err(Error::internal)?;
        if !is_right(portal.store.as_ref(), number, &key).await? {
            return Err(Error::internal(format!("another file was given another key of version {number}")));
        }
        portal.keys.learn(number, Arc::new(key));
        self.audit_key("key_rotate", number).await?;
        Ok(number)
    }

    /// The numbers of the key's versions, oldest first.
    #[must_use]
    pub fn key_versions(&self) -> Vec<i64> {
        self.0.keys.versions()
    }

    /// The number of the version that this portal makes hashes and seals with.
    #[must_use]
    pub fn current_key(&self) -> i64 {
        self.0.keys.current().number
    }

    async fn audit_key(&self, act: &'static str, number: i64) -> Result<()> {
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: "command line".into(),
            channel: "cli",
            act,
            team: crate::store::NO_TEAM.into(),
            target: number.to_string(),
            detail: String::new(),
        };
        Ok(self.0.store.audit(entry).await?)
    }
}
