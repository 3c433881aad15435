//! Secrets: one version of the portal's key, what is hashed and sealed with it, passwords and tokens. All versions
//! together are the business of `keys`.

use crate::{Error, Result, clock::Ids};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

/// How a token begins, so that scanners recognise one that leaked.
pub const TOKEN_PREFIX: &str = "kt_";

const NONCE_LENGTH: usize = 24;

/// One version of the portal's key. Everything that is hashed with a key or sealed is bound to one.
#[derive(Clone)]
pub struct SecretKey {
    fingerprints: [u8; 32],
    sealing: [u8; 32],
    check: [u8; 32],
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

impl SecretKey {
    /// Derives the keys from 32 bytes of randomness.
    #[must_use]
    pub fn from_bytes(master: [u8; 32]) -> Self {
        Self {
            fingerprints: blake3::derive_key("keyturn 2026 fingerprints v1", &master),
            sealing: blake3::derive_key("keyturn 2026 sealing v1", &master),
            check: blake3::derive_key("keyturn 2026 check value v1", &master),
        }
    }

    /// A value by which the database recognises the key without holding it.
    #[must_use]
    pub fn check_value(&self) -> [u8; 32] {
        self.check
    }

    /// The keyed hash of canonical bytes.
    #[must_use]
    pub fn fingerprint(&self, canonical: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.fingerprints, canonical).as_bytes()
    }

    /// Encrypts; only the same `purpose` opens it again.
    pub fn seal(&self, purpose: &str, plain: &[u8], ids: &dyn Ids) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LENGTH];
        ids.fill(&mut nonce);
        let payload = Payload { msg: plain, aad: purpose.as_bytes() };
        let sealed = XChaCha20Poly1305::new(&self.sealing.into())
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| Error::internal("sealing failed"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`Self::seal`] made for the same purpose; nothing if it was made otherwise or changed.
    #[must_use]
    pub fn unseal(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LENGTH>()?;
        let payload = Payload { msg: sealed, aad: purpose.as_bytes() };
        XChaCha20Poly1305::new(&self.sealing.into()).decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

/// A fresh API token and the digest that is stored of it.
pub(crate) fn new_token(ids: &dyn Ids) -> (String, [u8; 32]) {
    let mut random = [0; 32];
    ids.fill(&mut random);
    let token = format!("{TOKEN_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let digest = token_digest(&token);
    (token, digest)
}

/// The digest by which a token, or a browser's session, is found without being kept.
#[must_use]
pub fn token_digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The argon2id hash of a password; takes a good part of a second, so off the async threads.
pub(crate) fn hash_password(password: &str, ids: &dyn Ids) -> Result<String> {
    let mut salt = [0; 16];
    ids.fill(&mut salt);
    Argon2::default()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .map_err(Error::internal)
}

/// Whether the password belongs to the hash. Without a hash the same time passes, so names cannot be probed.
pub(crate) fn password_fits(password: &str, hash: Option<&str>) -> bool {
    const NOBODYS: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let fits = PasswordHash::new(hash.unwrap_or(NOBODYS))
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
    fits && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemIds;

    #[test]
    fn a_password_fits_its_own_hash_only() {
        let hash = hash_password("correct horse", &SystemIds).unwrap();
        assert!(hash.starts_with("$argon2id$"));
        assert!(password_fits("correct horse", Some(&hash)));
        assert!(!password_fits("correct horsf", Some(&hash)));
        assert!(!password_fits("", None));
    }

    #[test]
    fn sealed_things_open_for_their_purpose_only() {
        let key = SecretKey::from_bytes([7; 32]);
        let mut sealed = key.seal("outputs", b"hunter2", &SystemIds).unwrap();
        assert!(!sealed.windows(7).any(|window| window == b"hunter2"));
        assert_eq!(key.unseal("outputs", &sealed).unwrap(), b"hunter2");
        assert!(key.unseal("form", &sealed).is_none());
        assert!(SecretKey::from_bytes([8; 32]).unseal("outputs", &sealed).is_none());
        sealed[30] ^= 1;
        assert!(key.unseal("outputs", &sealed).is_none());
        assert!(key.unseal("outputs", b"short").is_none());
    }

    #[test]
    fn tokens_are_recognisable_and_each_is_new() {
        let (one, digest) = new_token(&SystemIds);
        assert!(one.starts_with(TOKEN_PREFIX) && one.len() == 46);
        assert_eq!(token_digest(&one), digest);
        assert_ne!(new_token(&SystemIds).0, one);
    }
}
