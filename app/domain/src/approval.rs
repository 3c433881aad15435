//! Approval: who decides about a request before anything of it is carried out, and what was decided. Whoever asked never
//! decides, and nobody waits for ever.

use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

/// How long people have to decide where the offering does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_hours(7 * 24);
/// The shortest time to decide that an offering may give.
pub const SHORTEST_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest time to decide that an offering may give.
pub const LONGEST_TIMEOUT: Duration = Duration::from_hours(30 * 24);
/// The longest reason for a decision, in characters.
pub const LONGEST_REASON: usize = 1000;

/// A word that names nothing here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word: {0}")]
pub struct UnknownWord(String);

/// Who decides about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// An owner of the team, or an administrator.
    Owner,
    /// An administrator.
    Administrator,
}

impl Decider {
    /// The word, the same in JSON, in the database and in the catalog.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Administrator => "administrator",
        }
    }

    /// Who that is, in words for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Owner => "an owner of the team or an administrator",
            Self::Administrator => "an administrator",
        }
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Decider {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "owner" => Ok(Self::Owner),
            "administrator" => Ok(Self::Administrator),
            other => Err(UnknownWord(other.to_owned())),
        }
    }
}

/// What became of the question whether a request is to be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is to be carried out.
    Approved,
    /// It is not to be carried out.
    Rejected,
    /// Nobody decided in time, so it is not carried out.
    TimedOut,
}

impl Verdict {
    /// The word, the same in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
        }
    }

    /// Whether somebody who decides `other` now finds just that done already.
    #[must_use]
    pub fn is_as_good_as(self, other: Self) -> bool {
        (self == Self::Approved) == (other == Self::Approved)
    }
}

impl FromStr for Verdict {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "approved" => Ok(Self::Approved),
            "rejected" => Ok(Self::Rejected),
            "timed_out" => Ok(Self::TimedOut),
            other => Err(UnknownWord(other.to_owned())),
        }
    }
}

/// What an approval takes: who gives it, and how long they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalNeeded {
    /// Who decides.
    pub by: Decider,
    /// After how long the request is rejected if nobody decides, in seconds.
    pub timeout_seconds: u64,
}

impl ApprovalNeeded {
    /// How long there is to decide.
    #[must_use]
    pub fn timeout(self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// An approval of this kind that is asked for now.
    #[must_use]
    pub fn asked_at(self, now: Moment) -> ApprovalView {
        ApprovalView {
            by: self.by,
            expires_at: now.plus(self.timeout()),
            verdict: None,
            decided_by: None,
            decided_at: None,
            reason: None,
        }
    }
}

/// The approval of a request: who decides and until when, then who did and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalView {
    /// Who decides. Never the one who asked.
    pub by: Decider,
    /// When the request is rejected if nobody has decided by then.
    pub expires_at: Moment,
    /// What was decided; null while nobody did.
    pub verdict: Option<Verdict>,
    /// The name of who decided; null where nobody did.
    pub decided_by: Option<String>,
    /// When it was decided, or the time to decide was over.
    pub decided_at: Option<Moment>,
    /// Why it was decided so, in the words of who did.
    pub reason: Option<String>,
}

/// Why a text is no reason, as whoever wrote it is told.
pub const REASON_RULE: &str = "must be a text of at most 1000 characters without control characters";

/// A reason as it is kept: without blanks around it, and none where it is blank. An error where it does not fit.
pub fn reason(text: &str) -> Result<Option<&str>, &'static str> {
    let hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    if text.chars().count() > LONGEST_REASON || text.chars().any(hidden) {
        return Err(REASON_RULE);
    }
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}

/// Where a person stands towards a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// May decide.
    Decides,
    /// Would be one who decides, but asked for it: two people are needed.
    Asked,
    /// Others decide.
    Looks,
}

impl Standing {
    /// Where somebody stands who is one of the deciders or not, and asked for it or not.
    #[must_use]
    pub fn of(is_decider: bool, asked: bool) -> Self {
        match (is_decider, asked) {
            (false, _) => Self::Looks,
            (true, true) => Self::Asked,
            (true, false) => Self::Decides,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for decider in [Decider::Owner, Decider::Administrator] {
            assert_eq!(decider.as_str().parse(), Ok(decider));
            assert_eq!(serde_json::to_value(decider).unwrap(), decider.as_str());
        }
        for verdict in [Verdict::Approved, Verdict::Rejected, Verdict::TimedOut] {
            assert_eq!(verdict.as_str().parse(), Ok(verdict));
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
        assert!("admin".parse::<Decider>().is_err() && "maybe".parse::<Verdict>().is_err());
    }

    #[test]
    fn who_asked_never_decides() {
        assert_eq!(Standing::of(true, false), Standing::Decides);
        for (decider, asked) in [(true, true), (false, true), (false, false)] {
            assert_ne!(Standing::of(decider, asked), Standing::Decides);
        }
    }

    #[test]
    fn to_reject_what_timed_out_is_no_other_decision() {
        assert!(Verdict::TimedOut.is_as_good_as(Verdict::Rejected));
        assert!(!Verdict::Approved.is_as_good_as(Verdict::Rejected));
        assert!(!Verdict::TimedOut.is_as_good_as(Verdict::Approved));
    }

    #[test]
    fn a_reason_is_a_text_that_can_be_read() {
        assert_eq!(reason(" too big \n"), Ok(Some("too big")));
        assert_eq!(reason("  "), Ok(None));
        assert_eq!(reason("one\ntwo"), Ok(Some("one\ntwo")));
        assert!(reason("nul\0").is_err() && reason(&"x".repeat(LONGEST_REASON + 1)).is_err());
        assert!(reason(&"ä".repeat(LONGEST_REASON)).is_ok());
    }
}
