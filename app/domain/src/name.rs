//! Names of resources and teams, and identifiers of offerings: one rule, RFC 1123 labels in lower case.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name, in characters.
pub const MAX_NAME_LENGTH: usize = 63;

/// A name as `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`; anything else is refused, never silently changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The rule that a name broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("a name is needed")]
    Empty,
    /// More than [`MAX_NAME_LENGTH`] characters.
    #[error("a name has at most 63 characters")]
    TooLong,
    /// A character outside `a` to `z`, `0` to `9` and `-`.
    #[error("a name is made of the lower-case letters a to z, the digits 0 to 9 and hyphens")]
    BadCharacter,
    /// A hyphen first or last.
    #[error("a name begins and ends with a letter or a digit")]
    HyphenAtEdge,
}

impl Name {
    /// Checks a name; the text is taken as it is.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(NameError::BadCharacter);
        }
        if text.starts_with('-') || text.ends_with('-') {
            return Err(NameError::HyphenAtEdge);
        }
        if text.len() > MAX_NAME_LENGTH {
            return Err(NameError::TooLong);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_rfc_1123_label_and_never_mended() {
        for good in ["a", "0", "vm-one", "a--b", &"x".repeat(63)] {
            assert_eq!(Name::parse(good).unwrap().as_str(), good);
        }
        let cases = [
            ("", NameError::Empty),
            ("CHEESE", NameError::BadCharacter),
            (" vm-one", NameError::BadCharacter),
            ("vm-one ", NameError::BadCharacter),
            ("vm-one\u{a0}", NameError::BadCharacter),
            ("vm  one", NameError::BadCharacter),
            ("vm.one", NameError::BadCharacter),
            ("vm_one", NameError::BadCharacter),
            ("ｖm", NameError::BadCharacter),
            ("a\u{202e}b", NameError::BadCharacter),
            ("-a", NameError::HyphenAtEdge),
            ("a-", NameError::HyphenAtEdge),
            ("-", NameError::HyphenAtEdge),
        ];
        for (bad, rule) in cases {
            assert_eq!(Name::parse(bad), Err(rule), "{bad:?}");
        }
        assert_eq!(Name::parse(&"x".repeat(64)), Err(NameError::TooLong));
    }
}
