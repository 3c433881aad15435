//! Submissions: how an arrival came in and what the guard made of it.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The door by which a submission came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A call of the HTTP API by a program.
    Api,
    /// The form in a browser, with or without script.
    Form,
    /// An outside system's event.
    Hook,
    /// A step of another request.
    Composite,
}

/// What became of one arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubmissionOutcome {
    /// The first with its key: it made the request.
    First,
    /// A repeat: it got the first answer.
    Replayed,
    /// A repeat that arrived while the first was still being written; it waited and got the first answer.
    Waited,
    /// The same key with another meaning: refused.
    Mismatched,
    /// Another key, but the thing is already there as asked: the request that made it was shown.
    Existing,
    /// Refused; nothing was changed and the key stays usable.
    Refused,
}

/// A word that names no channel or outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word: {0}")]
pub struct UnknownWord(String);

impl Channel {
    /// Whether what arrives by it can answer a question. An event cannot, nor can a step of another request.
    #[must_use]
    pub fn can_answer(self) -> bool {
        match self {
            Self::Api | Self::Form => true,
            Self::Hook | Self::Composite => false,
        }
    }

    /// The channel's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Form => "form",
            Self::Hook => "hook",
            Self::Composite => "composite",
        }
    }
}

impl FromStr for Channel {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "api" => Ok(Self::Api),
            "form" => Ok(Self::Form),
            "hook" => Ok(Self::Hook),
            "composite" => Ok(Self::Composite),
            other => Err(UnknownWord(other.to_owned())),
        }
    }
}

impl SubmissionOutcome {
    /// The outcome's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Replayed => "replayed",
            Self::Waited => "waited",
            Self::Mismatched => "mismatched",
            Self::Existing => "existing",
            Self::Refused => "refused",
        }
    }
}

impl FromStr for SubmissionOutcome {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "first" => Ok(Self::First),
            "replayed" => Ok(Self::Replayed),
            "waited" => Ok(Self::Waited),
            "mismatched" => Ok(Self::Mismatched),
            "existing" => Ok(Self::Existing),
            "refused" => Ok(Self::Refused),
            other => Err(UnknownWord(other.to_owned())),
        }
    }
}
