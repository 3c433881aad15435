//! Duplicates: which rule of the guard met one, and how many there were over time and by source.

use crate::{submission::SubmissionOutcome, time::Moment, view::EarlierRequest};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, str::FromStr};

/// What answered a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The same key and meaning: the first answer again.
    Replayed,
    /// The same at the same moment: it waited and got the first answer.
    Waited,
    /// Another key for what is there already: the request that made it.
    Existing,
    /// The same key with another meaning: refused.
    Mismatched,
    /// A key whose retention is over: refused.
    Expired,
    /// The same intention under another key: asked whether another is meant.
    Asked,
    /// Asked, and requested all the same with a reason: it went through.
    Confirmed,
    /// It looked like a duplicate and its sender cannot be asked: it went through.
    Recorded,
}

impl Rule {
    /// Every rule, those that stop a duplicate first.
    pub const ALL: [Self; 8] = [
        Self::Replayed,
        Self::Waited,
        Self::Existing,
        Self::Mismatched,
        Self::Expired,
        Self::Asked,
        Self::Confirmed,
        Self::Recorded,
    ];

    /// The rule's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replayed => "replayed",
            Self::Waited => "waited",
            Self::Existing => "existing",
            Self::Mismatched => "mismatched",
            Self::Expired => "expired",
            Self::Asked => "asked",
            Self::Confirmed => "confirmed",
            Self::Recorded => "recorded",
        }
    }

    /// Whether the duplicate changed nothing.
    #[must_use]
    pub fn stops(self) -> bool {
        !matches!(self, Self::Confirmed | Self::Recorded)
    }

    /// The rule that met an arrival which changed nothing, if it was a duplicate; `problem` is the refusal's name.
    #[must_use]
    pub fn of(outcome: SubmissionOutcome, problem: Option<&str>) -> Option<Self> {
        use crate::problem::ProblemKind::{KeyExpired, SuspectedDuplicate};
        match outcome {
            SubmissionOutcome::Replayed => Some(Self::Replayed),
            SubmissionOutcome::Waited => Some(Self::Waited),
            SubmissionOutcome::Existing => Some(Self::Existing),
            SubmissionOutcome::Mismatched => Some(Self::Mismatched),
            SubmissionOutcome::Refused if problem == Some(KeyExpired.slug()) => Some(Self::Expired),
            SubmissionOutcome::Refused if problem == Some(SuspectedDuplicate.slug()) => Some(Self::Asked),
            SubmissionOutcome::First | SubmissionOutcome::Refused => None,
        }
    }
}

impl FromStr for Rule {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|rule| rule.as_str() == word)
            .ok_or_else(|| format!("unknown rule: {word}"))
    }
}

/// How long the periods of a count are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Interval {
    /// An hour.
    Hour,
    /// A day of the zone, which has 23 or 25 hours where the clock changes.
    #[default]
    Day,
}

/// How many duplicates there were, over time and by source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DuplicatesView {
    /// From when on they are counted: as asked, at the quarter of an hour before.
    pub from: Moment,
    /// Until when: as asked, at the quarter of an hour after.
    pub to: Moment,
    /// The length of the periods.
    pub by: Interval,
    /// The zone whose days they are, by its name in the IANA database.
    pub zone: String,
    /// How many the guard stopped.
    pub stopped: i64,
    /// How many looked like one and went through, confirmed by a person or recorded.
    pub let_through: i64,
    /// How many of each rule, by its word.
    pub rules: BTreeMap<String, i64>,
    /// How many were stopped by door: `form` (clicks, reloads and the form's own retries), `api` (retries and scripts),
    /// `hook` and so on.
    pub channels: BTreeMap<String, i64>,
    /// The same in each period, oldest first.
    pub periods: Vec<Period>,
    /// Where they came from, the most first.
    pub sources: Vec<Source>,
    /// How many further sources there are at least.
    pub more_sources: u64,
}

/// One period of a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Period {
    /// Its beginning.
    pub from: Moment,
    /// Its end, which is the next one's beginning.
    pub to: Moment,
    /// How many the guard stopped.
    pub stopped: i64,
    /// How many of each rule.
    pub rules: BTreeMap<String, i64>,
    /// How many were stopped by door.
    pub channels: BTreeMap<String, i64>,
}

/// Where duplicates come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Source {
    /// The door.
    pub channel: String,
    /// Who sent them.
    pub sent_by: String,
    /// The label of the token they were sent with; nothing where there was none.
    pub token: Option<String>,
    /// How many the guard stopped.
    pub stopped: i64,
    /// How many of each rule.
    pub rules: BTreeMap<String, i64>,
}

/// What a proposed `duplicate_window` would have asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsalView {
    /// The offering.
    pub offering: String,
    /// The window that is proposed, in seconds.
    pub window_seconds: u64,
    /// The window that the offering has, in seconds; null where it has none.
    pub current_window_seconds: Option<u64>,
    /// The days that were asked for.
    pub days: u32,
    /// From when on creates were judged.
    pub from: Moment,
    /// Until when.
    pub to: Moment,
    /// Whether all of that time was looked at; not where there are more requests than one rehearsal reads.
    pub complete: bool,
    /// How many creates were judged.
    pub judged: u64,
    /// How many would have been asked about.
    pub asked: u64,
    /// How many would only have been recorded, since their sender cannot be asked.
    pub recorded: u64,
    /// What would have been asked about or recorded, newest first.
    pub pairs: Vec<RehearsedPair>,
    /// How many further pairs are not listed.
    pub more_pairs: u64,
}

/// A create that a window would have asked about, and the one that it looks like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsedPair {
    /// The team of both.
    pub team: String,
    /// The later one.
    pub later: EarlierRequest,
    /// The earlier one.
    pub earlier: EarlierRequest,
    /// How far apart they are, in milliseconds.
    pub apart_millis: i64,
    /// Whether both have the same name: the first had ended when the second was made.
    pub same_name: bool,
    /// Whether the same one asked for both.
    pub same_requester: bool,
    /// Whether it would have been asked; otherwise it would have gone through and been recorded.
    pub asked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        for rule in Rule::ALL {
            assert_eq!(rule.as_str().parse(), Ok(rule));
        }
        assert!("first".parse::<Rule>().is_err());
    }

    #[test]
    fn a_refusal_is_a_duplicate_only_where_the_guard_said_so() {
        let of = |problem| Rule::of(SubmissionOutcome::Refused, problem);
        assert_eq!(of(Some("idempotency-key-expired")), Some(Rule::Expired));
        assert_eq!(of(Some("suspected-duplicate")), Some(Rule::Asked));
        assert_eq!((of(Some("invalid-parameters")), of(None)), (None, None));
        assert_eq!(Rule::of(SubmissionOutcome::First, None), None);
    }
}
