//! Identifiers. Each kind has its own type, so that a request's ID never stands where a run's belongs.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// The text is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct NotAnId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                // Only the hyphenated spelling: one thing, one address.
                if text.len() != 36 {
                    return Err(NotAnId);
                }
                Uuid::try_parse(text).map($name).map_err(|_| NotAnId)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )*};
}

ids! {
    /// One accepted intention.
    RequestId
    /// One life of a provisioned thing; a name made again after a delete has another.
    ResourceId
    /// One arrival at the guard.
    SubmissionId
    /// Who asks: a person or a service account.
    PrincipalId
    /// What one attempt of a request began elsewhere; also the ID of the callback that reports on it.
    ErrandId
    /// Where a team is told of what happens to its requests.
    NotificationId
    /// One such telling on its way; the `webhook-id`.
    NotificationDeliveryId
    /// An API token (never the token itself).
    TokenId
    /// A saved view of a list.
    ViewId
    /// A hook, which is also the principal of what its events ask for.
    HookId
    /// One arrival of an event at a hook.
    DeliveryId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(id.parse::<RequestId>().unwrap().to_string(), id);
        assert!("01890a5dac96774bbcceb302099a8057".parse::<RequestId>().is_err());
        assert!("{01890a5d-ac96-774b-bcce-b302099a8057}".parse::<RequestId>().is_err());
        assert!("".parse::<RequestId>().is_err());
    }
}
