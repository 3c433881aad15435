//! What is sealed of hooks with the portal's key.

use super::super::{Inner, keys::RESEAL_AT_ONCE};
use crate::{
    Error, Result,
    signature::SharedSecret,
    store::{HookSeal, SealedSecret, StoredHook},
};
use domain::{id::DeliveryId, time::Moment};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// What is kept of an event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) headers: BTreeMap<String, String>,
    pub(super) payload: String,
}

fn purpose(seal: HookSeal) -> String {
    match seal {
        HookSeal::Secret(id) => format!("hook-secret:{id}"),
        HookSeal::Delivery(id) => format!("delivery:{id}"),
    }
}

impl Inner {
    /// A new secret, in the clear and as it is kept.
    pub(super) fn new_hook_secret(&self, now: Moment) -> Result<(SharedSecret, SealedSecret)> {
        let secret = SharedSecret::generate(self.ids.as_ref());
        let id: Uuid = self.ids.uuid(now);
        let purpose = purpose(HookSeal::Secret(id));
        let sealed = self.keys.seal(&purpose, secret.reveal().as_bytes(), self.ids.as_ref())?;
        Ok((secret, SealedSecret { id, sealed, ends_at: None }))
    }

    /// The secrets that count now, the current one first.
    pub(super) fn hook_secrets(&self, hook: &StoredHook, now: Moment) -> Result<Vec<SharedSecret>> {
        let counting = hook.secrets.iter().filter(|secret| secret.ends_at.is_none_or(|ends| ends > now));
        counting
            .map(|secret| {
                let plain = self.keys.unseal(&purpose(HookSeal::Secret(secret.id)), &secret.sealed)?;
                let text = plain.and_then(|plain| String::from_utf8(plain).ok());
                text.and_then(SharedSecret::kept).ok_or_else(|| {
                    Error::internal(format!("a secret of hook {} does not open", hook.view.id))
                })
            })
            .collect()
    }

    pub(super) fn seal_event(&self, id: DeliveryId, kept: &Kept) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(kept).map_err(Error::internal)?;
        self.keys.seal(&purpose(HookSeal::Delivery(id)), &plain, self.ids.as_ref())
    }

    pub(super) fn open_event(&self, id: DeliveryId, sealed: &[u8]) -> Result<Option<Kept>> {
        let plain = self.keys.unseal(&purpose(HookSeal::Delivery(id)), sealed)?;
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }

    /// Seals what is kept of hooks with the current version, a few at a time.
    pub(crate) async fn reseal_hooks(&self) -> Result<()> {
        self.reseal(
            async |head| self.store.hooks_sealed_otherwise(head, RESEAL_AT_ONCE).await,
            |seal| purpose(*seal),
            async |seal, before, after| self.store.reseal_hook(seal, before, after).await,
        )
        .await
    }
}
