//! Callbacks: what work that goes on elsewhere reports of itself, and which of several reports counts.
//!
//! The rule, in this order: a report of an earlier attempt changes nothing; nor does one with a lower sequence number than
//! one that counted; nor one after the end that was reported. Of two with the same number the first to arrive counts,
//! unless only the second brings the end. Nothing changes a request that has ended. Where it ended otherwise than as a
//! success, a success of any of its attempts is an orphan, which administrators look at, however old its number is and
//! whatever was reported before it; once for each attempt, and not where that attempt's success counted before.
//!
//! A success of an earlier attempt leaves a request alone that goes on or succeeded since, and may be a second effect beside
//! that of the later one: it is an orphan too, for as long as the later one has not come to the same outputs.
//!
//! So is a success that comes once taking back what it tells of has begun: from then on the request's end is that of the
//! taking back alone. Where nobody can tell what a request came to, a later success counts even after a failure.

use crate::{
    id::ErrandId,
    time::Moment,
    view::{Object, RequestView},
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How far the work has come, by a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It goes on.
    Running,
    /// It is done.
    Succeeded,
    /// It came to nothing.
    Failed,
}

impl Progress {
    /// The word by which it is kept.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing comes after it.
    #[must_use]
    pub fn is_final(self) -> bool {
        self != Self::Running
    }
}

/// The word names no such thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be running, progress, succeeded or failed")]
pub struct NoProgress;

impl FromStr for Progress {
    type Err = NoProgress;

    fn from_str(word: &str) -> Result<Self, NoProgress> {
        match word {
            "running" | "progress" => Ok(Self::Running),
            "succeeded" => Ok(Self::Succeeded),
            "failed" => Ok(Self::Failed),
            _ => Err(NoProgress),
        }
    }
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Heard {
    /// It counts.
    #[serde(rename = "applied")]
    Applied,
    /// A later report, or one with the same number, had counted before.
    #[serde(rename = "ignored: older")]
    Older,
    /// It belongs to an earlier attempt.
    #[serde(rename = "ignored: earlier attempt")]
    EarlierAttempt,
    /// The end was reported before, or the request has ended.
    #[serde(rename = "ignored: ended")]
    Ended,
    /// A success after the request had come to another end; administrators are told.
    #[serde(rename = "orphaned")]
    Orphaned,
}

impl Heard {
    /// The words for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Older => "ignored: older",
            Self::EarlierAttempt => "ignored: earlier attempt",
            Self::Ended => "ignored: ended",
            Self::Orphaned => "orphaned",
        }
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// These are no words for what became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such outcome of a report")]
pub struct NotHeard;

impl FromStr for Heard {
    type Err = NotHeard;

    fn from_str(words: &str) -> Result<Self, NotHeard> {
        [Self::Applied, Self::Older, Self::EarlierAttempt, Self::Ended, Self::Orphaned]
            .into_iter()
            .find(|heard| heard.as_str() == words)
            .ok_or(NotHeard)
    }
}

/// What the sender of a report is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeardView {
    /// The report's ID, as its sender made it.
    pub event: String,
    /// What became of it the first time it came.
    pub outcome: Heard,
    /// When it came the first time.
    pub received_at: Moment,
}

/// Something that succeeded elsewhere after its request had come to another end, or to another attempt: it may stand, and
/// nobody answers for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrphanView {
    /// The callback that told of it.
    pub callback: ErrandId,
    /// The attempt that began it.
    pub attempt: u32,
    /// When it told.
    pub at: Moment,
    /// The request, as it stands now.
    pub request: RequestView,
}

/// What was reported before and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// Its sequence number.
    pub sequence: i64,
    /// How far it said that the work had come.
    pub progress: Progress,
}

/// Where the request stands that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A later attempt is under way, or was.
    LaterAttempt,
    /// It has not ended.
    Open,
    /// What the report is about is being taken back.
    TakenBack,
    /// Nobody can tell what it came to.
    Unknown,
    /// It succeeded.
    Succeeded,
    /// It ended otherwise.
    EndedOtherwise,
    /// A later attempt ended otherwise.
    LaterEndedOtherwise,
}

/// Which of the rules meets a report.
#[must_use]
pub fn judge(standing: Standing, before: Option<Before>, sequence: i64, progress: Progress) -> Heard {
    let unwanted =
        matches!(standing, Standing::EndedOtherwise | Standing::LaterEndedOtherwise | Standing::TakenBack);
    let is_new = before.is_none_or(|before| before.progress != Progress::Succeeded);
    if unwanted && progress == Progress::Succeeded && is_new {
        return Heard::Orphaned;
    }
    if matches!(standing, Standing::LaterAttempt | Standing::LaterEndedOtherwise) {
        return Heard::EarlierAttempt;
    }
    if let Some(before) = before {
        if sequence < before.sequence {
            return Heard::Older;
        }
        if before.progress.is_final() {
            let is_news = before.progress == Progress::Failed && progress == Progress::Succeeded;
            return if standing == Standing::Unknown && is_news { Heard::Applied } else { Heard::Ended };
        }
        if sequence == before.sequence && !progress.is_final() {
            return Heard::Older;
        }
    }
    match standing {
        Standing::Open | Standing::Unknown => Heard::Applied,
        _ => Heard::Ended,
    }
}

/// Whether a report of an earlier attempt tells of what may stand beside that which the later attempt makes.
#[must_use]
pub fn is_second(standing: Standing, before: Option<Before>, progress: Progress) -> bool {
    let is_new = before.is_none_or(|before| before.progress != Progress::Succeeded);
    standing == Standing::LaterAttempt && progress == Progress::Succeeded && is_new
}

/// Whether what was reported as made is what the request came to. What has no outputs could be anything.
#[must_use]
pub fn is_the_same(reported: &Object, came_to: &Object) -> bool {
    !reported.is_empty() && reported.iter().all(|(name, value)| came_to.get(name) == Some(value))
}

/// How a line of a history ends that says that what was an orphan is what its request came to.
pub const TAKEN_OVER: &str = "no orphan";

#[cfg(test)]
mod tests {
    use super::*;
    use Progress::{Failed, Running, Succeeded};

    fn heard(sequence: i64, progress: Progress) -> Before {
        Before { sequence, progress }
    }

    #[test]
    fn older_numbers_never_count_and_of_equals_the_first_does_unless_the_second_ends_it() {
        let open = Standing::Open;
        let cases = [
            (None, 1, Running, Heard::Applied),
            (None, 0, Succeeded, Heard::Applied),
            (Some(heard(3, Running)), 1, Running, Heard::Older),
            (Some(heard(3, Running)), 2, Succeeded, Heard::Older),
            (Some(heard(3, Running)), 3, Running, Heard::Older),
            (Some(heard(3, Running)), 3, Succeeded, Heard::Applied),
            (Some(heard(3, Running)), 4, Failed, Heard::Applied),
            (Some(heard(3, Succeeded)), 3, Failed, Heard::Ended),
            (Some(heard(3, Failed)), 3, Succeeded, Heard::Ended),
            (Some(heard(3, Succeeded)), 2, Running, Heard::Older),
            (Some(heard(3, Succeeded)), 9, Running, Heard::Ended),
        ];
        for (before, sequence, progress, heard) in cases {
            assert_eq!(judge(open, before, sequence, progress), heard, "{before:?} {sequence} {progress:?}");
        }
    }

    #[test]
    fn what_has_ended_stays_as_it_is_and_a_late_success_is_an_orphan() {
        for progress in [Running, Succeeded, Failed] {
            assert_eq!(judge(Standing::Succeeded, None, 1, progress), Heard::Ended);
            assert_eq!(judge(Standing::LaterAttempt, None, 1, progress), Heard::EarlierAttempt);
            let orphaned = if progress == Succeeded { Heard::Orphaned } else { Heard::Ended };
            assert_eq!(judge(Standing::EndedOtherwise, Some(heard(0, Running)), 1, progress), orphaned);
        }
    }

    #[test]
    fn a_success_on_what_ended_otherwise_is_an_orphan_however_late_it_is_and_once() {
        for (standing, otherwise) in
            [(Standing::EndedOtherwise, Heard::Older), (Standing::LaterEndedOtherwise, Heard::EarlierAttempt)]
        {
            for before in [None, Some(heard(5, Running)), Some(heard(5, Failed))] {
                for sequence in [1, 5, 9] {
                    assert_eq!(judge(standing, before, sequence, Succeeded), Heard::Orphaned, "{before:?}");
                }
            }
            // What was flagged already, and what counted and was taken back.
            assert_eq!(judge(standing, Some(heard(5, Succeeded)), 1, Succeeded), otherwise);
            assert_eq!(judge(standing, Some(heard(5, Running)), 1, Failed), otherwise);
        }
        assert_eq!(judge(Standing::LaterAttempt, None, 1, Succeeded), Heard::EarlierAttempt);
    }

    #[test]
    fn only_a_new_success_of_an_earlier_attempt_may_be_a_second_effect() {
        let later = Standing::LaterAttempt;
        for before in [None, Some(heard(5, Running)), Some(heard(5, Failed))] {
            assert!(is_second(later, before, Succeeded) && !is_second(later, before, Failed));
            assert!(!is_second(Standing::Open, before, Succeeded));
        }
        assert!(!is_second(later, Some(heard(5, Succeeded)), Succeeded));
    }

    #[test]
    fn outputs_are_the_same_where_each_that_was_reported_is_there_and_none_says_nothing() {
        let object = |text: &str| serde_json::from_str::<Object>(text).unwrap();
        let stands = object(r#"{"url":"x","size":2}"#);
        assert!(is_the_same(&object(r#"{"url":"x"}"#), &stands));
        for other in [r#"{"url":"y"}"#, r#"{"url":"x","host":"h"}"#, "{}"] {
            assert!(!is_the_same(&object(other), &stands), "{other}");
        }
    }

    #[test]
    fn a_success_of_what_is_being_taken_back_is_an_orphan_and_nothing_else_of_it_counts() {
        let taken_back = Standing::TakenBack;
        for before in [None, Some(heard(5, Running)), Some(heard(5, Failed))] {
            assert_eq!(judge(taken_back, before, 1, Succeeded), Heard::Orphaned, "{before:?}");
            for progress in [Running, Failed] {
                assert_eq!(judge(taken_back, before, 9, progress), Heard::Ended, "{before:?}");
            }
        }
        assert_eq!(judge(taken_back, Some(heard(5, Succeeded)), 9, Succeeded), Heard::Ended);
    }

    #[test]
    fn where_nobody_can_tell_a_later_success_counts_after_a_failure() {
        let unknown = Standing::Unknown;
        assert_eq!(judge(unknown, None, 1, Failed), Heard::Applied);
        assert_eq!(judge(unknown, Some(heard(5, Failed)), 6, Succeeded), Heard::Applied);
        assert_eq!(judge(unknown, Some(heard(5, Failed)), 4, Succeeded), Heard::Older);
        assert_eq!(judge(unknown, Some(heard(5, Failed)), 6, Failed), Heard::Ended);
        assert_eq!(judge(unknown, Some(heard(5, Succeeded)), 6, Failed), Heard::Ended);
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for heard in [Heard::Applied, Heard::Older, Heard::EarlierAttempt, Heard::Ended, Heard::Orphaned] {
            assert_eq!(heard.as_str().parse(), Ok(heard));
            assert_eq!(serde_json::to_value(heard).unwrap(), heard.as_str());
        }
        assert_eq!("progress".parse(), Ok(Running));
        assert!("done".parse::<Progress>().is_err());
    }
}
