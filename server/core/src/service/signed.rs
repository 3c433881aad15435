//! Calls that a signature speaks for and no login: events at hooks, and reports at callbacks. What proves them is judged in
//! one order at every such door.
//!
//! 1. A door that never was is 404; one that is over is 410.
//! 2. No signature, or one of another time than now, is 401.
//! 3. Where the ID of the delivery is signed too (Standard Webhooks), one that is missing or can be none leaves nothing to
//!    check: 400.
//! 4. A wrong signature is 401.
//! 5. An identity that stands elsewhere, and is missing or can be none, is 400: nothing else stands in for it.
//!
//! Until then nothing is recorded, and nothing counts as seen.

use crate::signature::{SharedSecret, StandardHeaders, standard_is_genuine};
use domain::{
    key::{KeyError, SubmissionKey},
    time::Moment,
};

/// The header that holds a delivery's ID in Standard Webhooks.
pub(super) const STANDARD_ID: &str = "webhook-id";

/// Why a call is not taken for what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unproven {
    /// Its signature is absent, of another time or wrong.
    Signature,
    /// The ID that would be signed is none.
    Id(KeyError),
}

/// The headers of a Standard Webhooks delivery, each with every value that was sent.
pub(super) struct Headers<'a> {
    pub(super) ids: Vec<&'a [u8]>,
    pub(super) timestamps: Vec<&'a [u8]>,
    pub(super) signatures: Vec<&'a [u8]>,
}

/// The ID of a delivery that one of the secrets signed over exactly these bytes, not long ago.
pub(super) fn standard(
    secrets: &[SharedSecret],
    headers: &Headers<'_>,
    body: &[u8],
    now: Moment,
) -> Result<SubmissionKey, Unproven> {
    let headers_sent = StandardHeaders {
        id: only(&headers.ids),
        timestamp: only(&headers.timestamps),
        signature: only(&headers.signatures),
    };
    if !headers_sent.hold_a_signature(now) {
        return Err(Unproven::Signature);
    }
    let id = SubmissionKey::verbatim_only(headers.ids.iter().copied()).map_err(Unproven::Id)?;
    if standard_is_genuine(secrets, headers_sent, body, now) { Ok(id) } else { Err(Unproven::Signature) }
}

/// The one value of a header; none where there are several.
fn only<'a>(values: &[&'a [u8]]) -> Option<&'a [u8]> {
    match values {
        [one] => Some(one),
        _ => None,
    }
}
