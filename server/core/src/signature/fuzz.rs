//! Fuzzing of signature headers: whatever comes, only what was signed is genuine, and nothing makes the reader fall over.

use super::*;
use proptest::{collection::vec, prelude::*, sample::Index};

const NOW: i64 = 1_780_000_000;

fn now() -> Moment {
    Moment::from_millis(NOW * 1000)
}

fn any_secret() -> impl Strategy<Value = SharedSecret> {
    let generated =
        any::<[u8; 32]>().prop_map(|random| format!("{PREFIX}{}", BASE64_STANDARD.encode(random)));
    prop_oneof![generated, "[!-~]{1,80}", "whsec_\\PC{0,8}"].prop_map(SharedSecret)
}

/// What may be done to a header on its way.
fn any_edits() -> impl Strategy<Value = Vec<(Index, u8, bool)>> {
    vec((any::<Index>(), any::<u8>(), any::<bool>()), 0..4)
}

fn edited(text: &[u8], edits: &[(Index, u8, bool)]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for (place, byte, insert) in edits {
        let at = place.index(bytes.len() + 1);
        if *insert || at == bytes.len() {
            bytes.insert(at, *byte);
        } else {
            bytes[at] = *byte;
        }
    }
    bytes
}

/// Header and whether it is genuine, for each way of signing a body.
type Way = (fn(&SharedSecret, &[u8]) -> String, fn(&[SharedSecret], &[u8], &[u8]) -> bool);
const WAYS: [Way; 3] = [
    (
        |secret, body| sign_standard(secret, "msg_1", now(), body),
        |secrets, header, body| {
            let timestamp = NOW.to_string();
            let (id, timestamp) = (Some(b"msg_1".as_slice()), Some(timestamp.as_bytes()));
            let headers = StandardHeaders { id, timestamp, signature: Some(header) };
            standard_is_genuine(secrets, headers, body, now())
        },
    ),
    (sign_github, |secrets, header, body| github_is_genuine(secrets, Some(header), body)),
    (
        |secret, _| format!("Bearer {}", secret.reveal()),
        |secrets, header, _| bearer_is_genuine(secrets, Some(header)),
    ),
];

/// What of a header counts: of Standard Webhooks each signature by itself, of GitHub's digits and of the scheme any case.
fn counts(way: usize, header: &[u8]) -> Vec<Vec<u8>> {
    match way {
        0 => header.split(|byte| *byte == b' ').take(MOST_SIGNATURES).map(<[u8]>::to_vec).collect(),
        1 => {
            let digits = header.get(7..).unwrap_or_default().to_ascii_lowercase();
            vec![[header.get(..7).unwrap_or(header), &digits].concat()]
        }
        _ => {
            let scheme = header.get(..7).unwrap_or(header).to_ascii_lowercase();
            vec![[scheme.as_slice(), header.get(7..).unwrap_or_default()].concat()]
        }
    }
}

proptest! {
    #[test]
    fn only_what_was_signed_is_genuine(
        secret in any_secret(), other in any_secret(), body in vec(any::<u8>(), 0..60), edits in any_edits(), edits_of_body in any_edits(),
    ) {
        for (way, (sign, is_genuine)) in WAYS.into_iter().enumerate() {
            let good = sign(&secret, &body);
            // During a rotation either secret counts.
            prop_assert!(is_genuine(&[other.clone(), secret.clone()], good.as_bytes(), &body), "{}", good);
            let sent = edited(good.as_bytes(), &edits);
            let kept = counts(way, good.as_bytes())[0].clone();
            prop_assert_eq!(is_genuine(std::slice::from_ref(&secret), &sent, &body), counts(way, &sent).contains(&kept));
            if other.standard_key() != secret.standard_key() && other != secret {
                prop_assert!(!is_genuine(std::slice::from_ref(&other), good.as_bytes(), &body));
            }
            let changed = edited(&body, &edits_of_body);
            prop_assert_eq!(is_genuine(std::slice::from_ref(&secret), good.as_bytes(), &changed), way == 2 || changed == body);
        }
    }

    #[test]
    fn any_header_is_answered(
        secret in any_secret(), signature in vec(any::<u8>(), 0..200), id in vec(any::<u8>(), 0..300), timestamp in "\\PC{0,24}|[0-9]{0,24}", body in vec(any::<u8>(), 0..20),
    ) {
        let secrets = [secret];
        for prefix in [b"".as_slice(), b"v1,", b"sha256=", b"Bearer "] {
            let header = [prefix, &signature].concat();
            for (_, is_genuine) in WAYS {
                prop_assert!(!is_genuine(&secrets, &header, &body) || header.ends_with(secrets[0].reveal().as_bytes()));
            }
            let headers =
                StandardHeaders { id: Some(&id), timestamp: Some(timestamp.as_bytes()), signature: Some(&header) };
            prop_assert!(!standard_is_genuine(&secrets, headers, &body, now()));
        }
    }

    #[test]
    fn the_time_counts_and_is_signed(secret in any_secret(), away in -400_i64..400, said in -2_i64..3) {
        let at = NOW + away;
        let signature = sign_standard(&secret, "ev", Moment::from_millis(at * 1000), b"{}");
        let timestamp = (at + said).to_string();
        let headers = StandardHeaders {
            id: Some(b"ev"),
            timestamp: Some(timestamp.as_bytes()),
            signature: Some(signature.as_bytes()),
        };
        let counts = standard_is_genuine(&[secret], headers, b"{}", now());
        prop_assert_eq!(counts, said == 0 && away.abs() <= 300);
    }
}
