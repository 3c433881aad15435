//! Versions of the portal's keys: that they are the database's own, and which one judges what.

use super::{Inner, OpenError, Portal};
use crate::{
    Error, Result,
    keys::{self, Keys, Use},
    secret::SecretKey,
    store::{AuditEntry, Store, StoreResult},
};
use domain::{id::ResourceId, view::Object};
use std::sync::Arc;

/// How many secrets are sealed anew between two looks.
pub(super) const RESEAL_AT_ONCE: u32 = 100;

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
        if let Some(key) = keys.get(number) {
            if !is_right(store, number, &key).await? {
                return Err(OpenError::OtherKey(number));
            }
        } else if store.setting(&check_name(number)).await?.is_some()
            && store.setting(&gone_name(number)).await?.is_none()
        {
            return Err(OpenError::LackingKey(number));
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

impl Inner {
    /// Seals anew, with the current version, what each look finds, a few at a time.
    pub(super) async fn reseal<Id>(
        &self,
        look: impl AsyncFn(&[u8]) -> StoreResult<Vec<(Id, Vec<u8>)>>,
        purpose: impl Fn(&Id) -> String,
        put: impl AsyncFn(Id, Vec<u8>, Vec<u8>) -> StoreResult<bool>,
    ) -> Result<()> {
        let head = self.keys.seal_head()?;
        loop {
            let batch = look(&head).await?;
            if batch.is_empty() {
                return Ok(());
            }
            for (id, before) in batch {
                let purpose = purpose(&id);
                let plain = self.keys.unseal(&purpose, &before)?;
                let plain = plain
                    .ok_or_else(|| Error::internal(format!("{purpose} does not open; nothing was pruned")))?;
                let after = self.keys.seal(&purpose, &plain, self.ids.as_ref())?;
                // Where it was changed meanwhile, the next look finds it if it still has to be done.
                put(id, before, after).await?;
            }
        }
    }

    async fn reseal_resources(&self) -> Result<()> {
        self.reseal(
            async |head| self.store.sealed_otherwise(head, RESEAL_AT_ONCE).await,
            |resource| purpose(*resource),
            async |resource, before, after| self.store.reseal(resource, before, after).await,
        )
        .await
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

    /// The key's versions, oldest first, and what each is still needed for.
    pub async fn key_versions(&self) -> Result<Vec<(i64, Use)>> {
        let mut needed = self.0.store.key_use().await?;
        let versions = self.0.keys.versions().into_iter();
        Ok(versions.map(|number| (number, needed.remove(&number).unwrap_or_default())).collect())
    }

    /// Seals secrets anew with the current version, and takes the versions out of the file that nothing needs any more;
    /// their numbers.
    ///
    /// For when every server runs with the current version. Claims cannot be hashed anew: their versions stay for as long
    /// as they do.
    pub async fn prune_keys(&self) -> Result<Vec<i64>> {
        let portal = &self.0;
        portal.reseal_resources().await?;
        portal.reseal_hooks().await?;
        portal.reseal_errands().await?;
        portal.reseal_notifications().await?;
        portal.reseal_hidden().await?;
        let mut gone = Vec::new();
        for (number, needed) in self.key_versions().await? {
            if number != self.current_key() && needed == Use::default() {
                // The database first: from here on no file needs to hold it.
                portal.store.set_once(&gone_name(number), b"gone".to_vec()).await?;
                gone.push(number);
            }
        }
        if !gone.is_empty() {
            portal.keys.drop_versions(&gone).map_err(Error::internal)?;
        }
        for number in &gone {
            self.audit_key("key_prune", *number).await?;
        }
        Ok(gone)
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
