//! Signatures of events: by Standard Webhooks (<https://www.standardwebhooks.com>) in both directions, and as GitHub or
//! a plain bearer secret send them. Whatever is wrong with one is the same answer, found in the same time.

use crate::clock::Ids;
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::time::Moment;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::{fmt::Write, time::Duration};
use subtle::ConstantTimeEq;

/// How far a Standard Webhooks timestamp may lie from now, either way.
pub const TOLERANCE: Duration = Duration::from_mins(5);

/// How the secrets of Standard Webhooks begin.
const PREFIX: &str = "whsec_";
/// How many signatures of one header are looked at. Two are honest: one for each secret during a rotation.
const MOST_SIGNATURES: usize = 8;

/// A secret that the portal shares with an outside system.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedSecret(String);

impl std::fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedSecret(…)")
    }
}

impl SharedSecret {
    /// A fresh secret of 32 random bytes, written as Standard Webhooks writes them; it serves every way of signing.
    #[must_use]
    pub fn generate(ids: &dyn Ids) -> Self {
        let mut random = [0; 32];
        ids.fill(&mut random);
        Self(format!("{PREFIX}{}", BASE64_STANDARD.encode(random)))
    }

    /// A secret that was kept; nothing if it is empty.
    #[must_use]
    pub fn kept(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    /// The secret in the clear, to be sealed or to be shown this once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The bytes that key a Standard Webhooks signature: what follows the prefix, decoded; of another form of secret its
    /// own bytes.
    fn standard_key(&self) -> Vec<u8> {
        let decoded = self.0.strip_prefix(PREFIX).and_then(|rest| BASE64_STANDARD.decode(rest).ok());
        decoded.unwrap_or_else(|| self.0.as_bytes().to_vec())
    }
}

/// The three headers of a Standard Webhooks delivery, as they came; nothing of them is believed yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardHeaders<'a> {
    /// `webhook-id`
    pub id: Option<&'a [u8]>,
    /// `webhook-timestamp`, in seconds since 1970.
    pub timestamp: Option<&'a [u8]>,
    /// `webhook-signature`: signatures with their version, with blanks between.
    pub signature: Option<&'a [u8]>,
}

impl StandardHeaders<'_> {
    /// Whether there is a signature of this time to be checked, whatever it may be worth.
    #[must_use]
    pub fn hold_a_signature(&self, now: Moment) -> bool {
        self.signature.is_some_and(|signature| !signature.trim_ascii().is_empty())
            && self.timestamp.is_some_and(|timestamp| is_recent(timestamp, now))
    }
}

/// The value of `webhook-signature` for a delivery: `v1,` and the signature of `id.timestamp.body`.
#[must_use]
pub fn sign_standard(secret: &SharedSecret, id: &str, at: Moment, body: &[u8]) -> String {
    let timestamp = at.millis().div_euclid(1000).to_string();
    let mac = standard_mac(secret, id.as_bytes(), timestamp.as_bytes(), body);
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

/// Whether any of the secrets made any of the signatures over exactly these bytes, not long ago.
#[must_use]
pub fn standard_is_genuine(
    secrets: &[SharedSecret],
    headers: StandardHeaders<'_>,
    body: &[u8],
    now: Moment,
) -> bool {
    let (Some(id), Some(timestamp), Some(signature)) = (headers.id, headers.timestamp, headers.signature)
    else {
        return false;
    };
    if id.is_empty() || !is_recent(timestamp, now) {
        return false;
    }
    signature.split(|byte| *byte == b' ').take(MOST_SIGNATURES).any(|one| {
        let Some(signature) = one.strip_prefix(b"v1,").and_then(|one| BASE64_STANDARD.decode(one).ok())
        else {
            return false;
        };
        secrets
            .iter()
            .any(|secret| standard_mac(secret, id, timestamp, body).verify_slice(&signature).is_ok())
    })
}

/// The value of `X-Hub-Signature-256` for a body.
#[must_use]
pub fn sign_github(secret: &SharedSecret, body: &[u8]) -> String {
    let mut mac = keyed(secret.0.as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().iter().fold("sha256=".to_owned(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether any of the secrets made this `X-Hub-Signature-256` (`sha256=` and 64 hexadecimal digits) over these bytes.
#[must_use]
pub fn github_is_genuine(secrets: &[SharedSecret], header: Option<&[u8]>, body: &[u8]) -> bool {
    let digits = header.and_then(|header| header.strip_prefix(b"sha256="));
    let Some(signature) = digits.and_then(unhex) else { return false };
    secrets.iter().any(|secret| {
        let mut mac = keyed(secret.0.as_bytes());
        mac.update(body);
        mac.verify_slice(&signature).is_ok()
    })
}

/// Whether this `Authorization` header bears one of the secrets.
#[must_use]
pub fn bearer_is_genuine(secrets: &[SharedSecret], header: Option<&[u8]>) -> bool {
    let borne = header.and_then(|header| {
        let (scheme, rest) = header.split_at_checked(b"bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    let Some(borne) = borne else { return false };
    // Digests are of one length, so that the comparison tells nothing of the secret's.
    let borne = Sha256::digest(borne);
    secrets.iter().any(|secret| bool::from(Sha256::digest(secret.0.as_bytes()).ct_eq(&borne)))
}

/// A hash of bytes that only who knows the secret can make.
pub(crate) fn mac(secret: &SharedSecret, bytes: &[u8]) -> [u8; 32] {
    let mut mac = keyed(&secret.standard_key());
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

fn is_recent(timestamp: &[u8], now: Moment) -> bool {
    let seconds = std::str::from_utf8(timestamp).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let Some(millis) =
        seconds.and_then(|text| text.parse::<i64>().ok()).and_then(|seconds| seconds.checked_mul(1000))
    else {
        return false;
    };
    u128::from(now.millis().abs_diff(millis)) <= TOLERANCE.as_millis()
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length (RFC 2104, 2): what is longer than a block is hashed first.
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    Hmac::new(&block.into())
}

fn standard_mac(secret: &SharedSecret, id: &[u8], timestamp: &[u8], body: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(&secret.standard_key());
    for part in [id, b".", timestamp, b".", body] {
        mac.update(part);
    }
    mac
}

fn unhex(digits: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|p| !p.contains('+'))?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn secret(text: &str) -> SharedSecret {
        SharedSecret::kept(text.into()).unwrap()
    }

    fn at(seconds: i64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn genuine(signature: &[u8], now: i64) -> bool {
        let timestamp = AT.to_string();
        let headers = StandardHeaders {
            id: Some(ID.as_bytes()),
            timestamp: Some(timestamp.as_bytes()),
            signature: Some(signature),
        };
        standard_is_genuine(&[secret("whsec_b3RoZXI="), secret(SECRET)], headers, BODY, at(now))
    }

    #[test]
    fn a_signature_is_what_other_libraries_make_and_take() {
        assert_eq!(sign_standard(&secret(SECRET), ID, at(AT), BODY), SIGNATURE);
        assert!(genuine(SIGNATURE.as_bytes(), AT));
        assert!(genuine(format!("v1a,xyz v1,AAAA {SIGNATURE}").as_bytes(), AT));
    }

    #[test]
    fn a_wrong_signature_of_any_shape_is_refused() {
        let shapes: [&[u8]; 12] = [
            b"",
            b" ",
            b"v",
            b"v1",
            b"v1,",
            b"v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            b"g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=",
            b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1O",
            b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=AAAA",
            "v1,\u{e9}\u{e9}".as_bytes(),
            b"v1,\xff\xfe",
        ];
        for shape in shapes {
            assert!(!genuine(shape, AT), "{}", String::from_utf8_lossy(shape));
        }
        // The ninth signature of a header is not looked at.
        assert!(!genuine(format!("{}{SIGNATURE}", "v1,AAAA ".repeat(8)).as_bytes(), AT));
    }

    #[test]
    fn a_signature_counts_five_minutes_either_way() {
        for (now, counts) in [(AT - 301, false), (AT - 300, true), (AT + 300, true), (AT + 301, false)] {
            assert_eq!(genuine(SIGNATURE.as_bytes(), now), counts, "{now}");
        }
        for timestamp in
            ["", "-1", "+1614265330", "1614265330.0", "99999999999999999999", "9223372036854775807"]
        {
            let headers = StandardHeaders {
                id: Some(ID.as_bytes()),
                timestamp: Some(timestamp.as_bytes()),
                signature: Some(SIGNATURE.as_bytes()),
            };
            assert!(!standard_is_genuine(&[secret(SECRET)], headers, BODY, at(AT)), "{timestamp}");
        }
    }

    #[test]
    fn what_was_signed_is_exactly_the_id_the_time_and_the_bytes() {
        let timestamp = AT.to_string();
        let headers = StandardHeaders {
            id: Some(ID.as_bytes()),
            timestamp: Some(timestamp.as_bytes()),
            signature: Some(SIGNATURE.as_bytes()),
        };
        let secrets = [secret(SECRET)];
        assert!(!standard_is_genuine(&secrets, headers, br#"{"test":2432232314}"#, at(AT)));
        let other = StandardHeaders { id: Some(b"msg_other"), ..headers };
        assert!(!standard_is_genuine(&secrets, other, BODY, at(AT)));
        assert!(!standard_is_genuine(&secrets, StandardHeaders { id: None, ..headers }, BODY, at(AT)));
        assert!(!standard_is_genuine(&[], headers, BODY, at(AT)));
    }

    #[test]
    fn github_signatures_are_read_as_github_documents_them() {
        // The example of GitHub's documentation on validating deliveries.
        let secrets = [secret("It's a Secret to Everybody")];
        let good = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(sign_github(&secrets[0], b"Hello, World!").as_bytes(), good);
        assert!(github_is_genuine(&secrets, Some(good), b"Hello, World!"));
        assert!(!github_is_genuine(&secrets, Some(good), b"Hello, World"));
        assert!(!github_is_genuine(&secrets, Some(&good[..good.len() - 1]), b"Hello, World!"));
        assert!(!github_is_genuine(&secrets, Some(&[good.as_slice(), b"0"].concat()), b"Hello, World!"));
        for shape in [b"".as_slice(), b"sha256=", b"sha1=00", "sha256=é".as_bytes(), &[0xff; 71]] {
            assert!(!github_is_genuine(&secrets, Some(shape), b"Hello, World!"));
        }
        assert!(!github_is_genuine(&secrets, None, b"Hello, World!"));
    }

    #[test]
    fn a_bearer_secret_is_the_whole_secret() {
        let secrets = [secret("one-secret"), secret("another")];
        assert!(bearer_is_genuine(&secrets, Some(b"Bearer another")));
        assert!(bearer_is_genuine(&secrets, Some(b"bearer one-secret")));
        for shape in
            [b"".as_slice(), b"Bearer", b"Bearer ", b"Bearer one", b"Basic one-secret", b"Bearer \xff"]
        {
            assert!(!bearer_is_genuine(&secrets, Some(shape)));
        }
        assert!(!bearer_is_genuine(&secrets, None));
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", secret("top")), "SharedSecret(…)");
        let made = SharedSecret::generate(&crate::clock::SystemIds);
        assert_eq!(made.standard_key().len(), 32);
    }
}
