//! Problems: every way in which the portal says no, each with a stable name of its own.
//!
//! What a problem means in HTTP is decided in one file of the server; this room only names and explains.

use crate::{
    id::RequestId,
    quota::QuotaShort,
    view::{EarlierRequest, Object},
};
use serde::{Deserialize, Serialize};

macro_rules! problems {
    ($($kind:ident $slug:literal $title:literal $help:literal)*) => {
        /// The kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $(#[doc = $title] $kind,)*
        }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The stable name: the last part of the problem's `type`, `/problems/<slug>`.
            #[must_use]
            pub fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)* }
            }

            /// A short title, the same at every occurrence.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }

            /// What it means and what to do about it, for the problem's page.
            #[must_use]
            pub fn help(self) -> &'static str {
                match self { $(Self::$kind => $help,)* }
            }

            /// The kind with this slug.
            #[must_use]
            pub fn from_slug(slug: &str) -> Option<Self> {
                match slug { $($slug => Some(Self::$kind),)* _ => None }
            }
        }
    };
}

problems! {
    KeyMissing "idempotency-key-missing" "An Idempotency-Key is needed"
        "This call changes something, so it needs a key that you make: 1 to 255 visible ASCII characters in the header Idempotency-Key, new for each new intention and the same for each repeat. The portal never makes one for you, since a retry would then not be recognised. Nothing was changed."
    KeyInvalid "idempotency-key-invalid" "The Idempotency-Key is not well-formed"
        "A key is 1 to 255 visible ASCII characters, sent once, bare or as a quoted string. Nothing was changed and no key was used up."
    KeyReused "idempotency-key-reused" "This key was used for something else"
        "A key stands for one intention. The first submission with this key asked for something else; what differs is listed by name. Open the first request, or send this one with a new key. Nothing was changed."
    KeyInUse "idempotency-key-in-use" "The first submission with this key is still being taken in"
        "Another submission with this key, or this one itself, is being written at this moment, so its outcome is not known yet. Send the same submission with the same key again after the time in Retry-After: it gets the first answer, or runs if the first came to nothing. Nothing is carried out twice."
    KeyExpired "idempotency-key-expired" "This key's retention is over"
        "The request that this key made ended longer ago than keys are kept. Nothing was run. Look at the first request; if you mean something new, send it with a new key."
    SuspectedDuplicate "suspected-duplicate" "This looks like something that was just requested"
        "The same team requested the same thing a short while ago under another key. Open the earlier request, or confirm with a reason that you want another."
    NameTaken "name-taken" "The name is not available"
        "A resource of this type and name exists in the team with other parameters, or the name is reserved. Choose another name. Nothing was changed."
    QuotaExceeded "quota-exceeded" "The team's quota is used up"
        "Everything that a team has, is being made for it or may have been made costs something, and together that may not exceed the team's limit; how much is used, how high the limit is and how much was asked for is told. Delete what the team does not need any more, or ask an administrator to raise the limit (keyturn team quota). Nothing was changed and no key was used up: once there is room, the same submission with the same key runs."
    DeletionInProgress "deletion-in-progress" "The name is still being given up"
        "A resource of this name is being deleted. Send the same submission again after the time in Retry-After."
    PreconditionRequired "precondition-required" "Say which version you mean"
        "A change of a resource's parameters needs the header If-Match with the ETag that the resource had when you looked at it, so that nobody's change is lost unseen. GET the resource, look, and send the change with its ETag; * is not enough. Nothing was changed and no key was used up."
    PreconditionFailed "precondition-failed" "The resource has changed since you looked"
        "If-Match names another version than the resource has now: somebody changed it meanwhile, or a change was taken back, or what was sent is no entity tag. Both versions are shown. GET the resource, look again, and send your change with the new ETag; the same key may be used. Nothing was changed."
    NotOffered "not-offered" "The offering does not do this"
        "What made this resource cannot change it. Make another one with the parameters that you want and delete this one. Nothing was changed."
    AlreadyDecided "already-decided" "This was decided otherwise"
        "The request is in a state in which this decision cannot be taken, or somebody decided differently before. Nothing was changed."
    NotAuthenticated "unauthenticated" "Who is asking?"
        "Send a valid token as Authorization: Bearer, or log in. A token may be expired or revoked. Tokens in the address are never accepted."
    TokenInQuery "token-in-query" "A token was sent in the address"
        "Addresses end up in logs and histories. Send the token in the Authorization header, and revoke this one."
    Forbidden "forbidden" "You may not do this"
        "You can see this, but your role in the team does not allow the change. Ask an owner of the team."
    OwnRequest "own-request" "Somebody else has to decide"
        "You asked for this yourself, and whoever asks never decides: approval takes a second person. Ask another one of those who may decide, or cancel the request. Nothing was changed."
    NotFound "not-found" "Not found"
        "There is nothing here, or nothing that you may see."
    MethodNotAllowed "method-not-allowed" "This address does not do that"
        "The address exists, but not for this method. The answer's Allow header and /openapi.json list what it does."
    TooManyAttempts "too-many-attempts" "Too many attempts"
        "Too many wrong passwords or tokens came from this address or for this account. Wait for the time in Retry-After. No key was used up."
    InvalidJson "invalid-json" "The body is not acceptable JSON"
        "The body must be one JSON object without repeated or unknown members, and with numbers that JSON carries exactly. The place is named. Nothing was changed."
    InvalidQuery "invalid-query" "The address has a parameter that is not understood"
        "A query parameter is unknown or its value does not fit. The parameter is named."
    InvalidParameters "invalid-parameters" "Some values do not fit"
        "Each value that does not fit is named with the rule that it broke. Correct them and send again; the same key may be used. Nothing was changed."
    InvalidCredentials "invalid-credentials" "Name or password is wrong"
        "The name is unknown or the password does not belong to it."
    UnknownOffering "unknown-offering" "There is no such offering"
        "The catalog has no offering of this ID. The catalog page and GET /api/v1/offerings list what there is."
    OfferingUnavailable "offering-unavailable" "The offering cannot be used at present"
        "The offering's folder in the catalog has a mistake, which administrators see. Nothing was changed; the same key may be used again."
    HookMapping "hook-mapping-failed" "The event does not say what the hook needs"
        "The event is genuine, but the hook could not read a request out of its payload; each place of the mapping that failed is named. Nothing was changed and the event does not count as seen: mend the hook or the event and deliver it again under the same identity."
    HookRemoved "hook-removed" "This hook was removed"
        "The hook at this address was removed by its team, so events are no longer taken in here. Stop sending them."
    SignatureWrong "signature-wrong" "The event is not signed as agreed"
        "The signature is missing, wrong or too old, or was made with a secret that has ended. Sign the exact bytes of the body with the current secret, at the time of sending. Nothing was recorded as seen."
    UnsupportedMediaType "unsupported-media-type" "The body must be JSON"
        "Send Content-Type: application/json; for a PATCH, application/merge-patch+json or application/json."
    BodyTooLarge "body-too-large" "The body is too large"
        "A body has at most 1 MiB."
    RequestTimeout "request-timeout" "The body did not arrive in time"
        "The connection was too slow, and the body was not read to its end. Nothing was changed."
    CrossSite "cross-site" "This came from another site"
        "A browser sent this on behalf of another site, so it was not carried out."
    SetupDone "setup-done" "The portal is set up"
        "The one-time set-up link was used. Log in instead."
    SetupLinkWrong "setup-link-wrong" "This is not the current set-up link"
        "Every start of the server prints a new set-up link until there is an administrator. Open the one that the last start printed."
    Busy "busy" "Too much at once"
        "The portal's queue is full. Nothing was taken in; send the same again, with the same key, after the time in Retry-After."
    Contended "contended" "Others were in the way"
        "Something that this needs was held by others, so it could not be decided in time. Nothing was changed, and nothing of it will be carried out later. Send the same again, with the same key, after the time in Retry-After."
    StoreUnavailable "store-unavailable" "The portal cannot write at present"
        "The portal's database did not take the change, so nothing was run. Send the same again, with the same key, after the time in Retry-After."
    ServerBehind "server-behind" "This server cannot tell yet whether this is a repeat"
        "The key by which the portal recognises repeats was renewed, and this server has not been given the new one. Nothing was changed; send the same again, with the same Idempotency-Key, after the time in Retry-After."
    Internal "internal" "Something went wrong here"
        "The portal met a fault of its own. Send the same again with the same key: if the first one was taken in, you get its answer."
}

/// One value that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// Where it stands in the body (RFC 6901), as `/parameters/size`.
    pub pointer: String,
    /// What is wrong and which rule says so.
    pub detail: String,
}

/// A request that a problem points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestLink {
    /// Its ID.
    pub id: RequestId,
    /// Its address in the API.
    pub href: String,
}

impl RequestLink {
    /// The link to a request.
    #[must_use]
    pub fn to(id: RequestId) -> Self {
        Self { id, href: format!("/api/v1/requests/{id}") }
    }
}

/// A problem as it travels (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// `/problems/<slug>`, which is also a page.
    #[serde(rename = "type")]
    pub kind: String,
    /// A short title, the same at every occurrence.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time and what to do.
    pub detail: String,
    /// Values that do not fit, each at its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Names of what differs from what stands already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// The request that it is about, if the caller may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<RequestLink>>,
    /// The version that was named and the one that there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Box<Versions>>,
    /// The earlier request that this one looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<EarlierRequest>>,
    /// What of the team's quota is used, how high it is, and what was asked for on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaShort>,
}

/// Two versions of a resource that should have been one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Versions {
    /// What `If-Match` named.
    pub yours: String,
    /// The resource's `ETag` now.
    pub current: String,
    /// What the resource is meant to be now.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Object,
}

impl Versions {
    /// Whether both are versions of one life of the resource, and not of another that has its name by now.
    #[must_use]
    pub fn one_life(&self) -> bool {
        let life = |tag: &str| tag.trim_matches('"').split_once('.').map(|(life, _)| life.to_owned());
        life(&self.yours).is_some() && life(&self.yours) == life(&self.current)
    }
}

impl Problem {
    /// The problem's slug: the last part of its type.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn versions_of_another_life_are_told_apart() {
        let one_life = |yours: &str, current: &str| {
            let (yours, current) = (yours.to_owned(), current.to_owned());
            Versions { yours, current, parameters: Object::new() }.one_life()
        };
        assert!(one_life("\"a.1\"", "\"a.2\""));
        assert!(!one_life("\"a.1\"", "\"b.1\"") && !one_life("none", "none") && !one_life("", ""));
    }

    #[test]
    fn every_problem_has_a_slug_of_its_own() {
        let slugs: HashSet<_> = ProblemKind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!(slugs.len(), ProblemKind::ALL.len());
        for kind in ProblemKind::ALL {
            assert_eq!(ProblemKind::from_slug(kind.slug()), Some(*kind));
        }
    }
}
