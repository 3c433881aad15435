//! The states of a request and the ways between them.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waits for a person's decision.
    PendingApproval,
    /// Accepted; waits for a worker.
    Queued,
    /// A worker carries it out.
    Running,
    /// Carried out.
    Succeeded,
    /// Not carried out, and nothing of it is left behind but what its steps made, if it has any.
    Failed,
    /// Stopped before it was carried out.
    Canceled,
    /// Decided against.
    Rejected,
    /// Nobody can tell what became of it; a person chooses: adopt, retry or abandon.
    Unknown,
}

/// A word that names no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown state: {0}")]
pub struct UnknownState(String);

impl RequestState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::PendingApproval,
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::Unknown,
    ];

    /// Whether the request has come to its end. Retention of its key counts from here.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// The state's word, the same in JSON, in the database and on pages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PendingApproval => "pending_approval",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
        }
    }
}

impl RequestState {
    /// The words by which others know the state: Kestra's, and another spelling.
    const OTHER_WORDS: [(&'static str, Self); 5] = [
        ("paused", Self::PendingApproval),
        ("created", Self::Queued),
        ("success", Self::Succeeded),
        ("cancelled", Self::Canceled),
        ("killed", Self::Canceled),
    ];

    /// Every word that names the state, in lower case; ours first.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let others = Self::OTHER_WORDS.into_iter().filter(move |(_, state)| *state == self);
        std::iter::once(self.as_str()).chain(others.map(|(word, _)| word))
    }
}

impl fmt::Display for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RequestState {
    type Err = UnknownState;

    /// Reads our words and Kestra's, in any case.
    fn from_str(word: &str) -> Result<Self, UnknownState> {
        let lower = word.to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|state| state.words().any(|known| known == lower));
        found.ok_or_else(|| UnknownState(word.to_owned()))
    }
}

/// What a person decides about a request whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The thing is there and ours: take it as done.
    Adopt,
    /// Look again and carry it out if it is not there.
    Retry,
    /// Nothing of it is wanted or left: close it as failed and free its name.
    Abandon,
}

impl Resolution {
    /// The resolution's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adopt => "adopt",
            Self::Retry => "retry",
            Self::Abandon => "abandon",
        }
    }

    /// How a history says that this was decided, by whom, and why if that was said.
    #[must_use]
    pub fn line(self, forced: bool, by: &str, reason: Option<&str>) -> String {
        let force = if forced { " by force" } else { "" };
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{}{force}, by {by}{reason}", self.as_str())
    }

    /// Whether such a line of a history says that it was done by force.
    #[must_use]
    pub fn is_forced(line: &str) -> bool {
        line.split(',').next().is_some_and(|decided| decided.ends_with(" by force"))
    }

    /// What such a line of a history says was decided; older ones hold the word alone.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        line.split([' ', ',']).next()?.parse().ok()
    }
}

impl FromStr for Resolution {
    type Err = UnknownState;
    fn from_str(word: &str) -> Result<Self, UnknownState> {
        match word {
            "adopt" => Ok(Self::Adopt),
            "retry" => Ok(Self::Retry),
            "abandon" => Ok(Self::Abandon),
            _ => Err(UnknownState(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_reads_back_and_kestras_words_are_understood() {
        for state in RequestState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for (word, state) in [
            ("SUCCESS", RequestState::Succeeded),
            ("Created", RequestState::Queued),
            ("PAUSED", RequestState::PendingApproval),
            ("KILLED", RequestState::Canceled),
            ("CANCELLED", RequestState::Canceled),
        ] {
            assert_eq!(word.parse(), Ok(state));
        }
        assert!("done".parse::<RequestState>().is_err());
    }

    #[test]
    fn a_line_about_a_decision_says_who_and_why_and_reads_back() {
        let (adopt, abandon) = (Resolution::Adopt, Resolution::Abandon);
        assert_eq!(adopt.line(false, "ann", None), "adopt, by ann");
        assert_eq!(abandon.line(true, "root", Some("gone")), "abandon by force, by root: gone");
        for resolution in [adopt, Resolution::Retry, abandon] {
            for line in [
                resolution.as_str().to_owned(),
                resolution.line(true, "a", None),
                resolution.line(false, "a", Some("b")),
            ] {
                assert_eq!(Resolution::of_line(&line), Some(resolution), "{line}");
            }
        }
        assert_eq!(
            Resolution::of_line("nobody can tell, so it is carried out once more, as was decided"),
            None
        );
    }

    #[test]
    fn unknown_is_not_an_end() {
        assert!(!RequestState::Unknown.is_final());
        assert_eq!(RequestState::ALL.iter().filter(|s| s.is_final()).count(), 4);
    }
}
