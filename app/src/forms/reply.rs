//! What came back from one try to submit.

use domain::{
    backoff::retry_after,
    problem::{Problem, ProblemKind},
    time::Moment,
};
use serde::Deserialize;
use std::time::Duration;

/// What came back from one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It was taken in, now or before.
    Taken {
        /// The request's ID.
        request: String,
        /// Whether this is the first result of an earlier submission.
        repeat: bool,
        /// Whether what was asked for was there already.
        existing: bool,
    },
    /// The portal said no.
    Refused(Problem),
    /// The portal asks to try again.
    Later {
        /// What it said.
        detail: String,
        /// The time it asked to wait.
        after: Option<Duration>,
        /// Whether it is known that nothing was taken in by this try.
        untouched: bool,
    },
    /// No answer, or one that is not the portal's: nobody can tell whether the submission arrived.
    Lost,
}

/// An HTTP answer as far as it matters here.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// `Date`: when it was answered, by the clock of who answered.
    pub date: Option<&'a str>,
    /// When it arrived, by the clock here.
    pub arrived: Option<Moment>,
    /// `Idempotency-Replayed`.
    pub replayed: Option<&'a str>,
    /// `Keyturn-Outcome`.
    pub outcome: Option<&'a str>,
    /// The body.
    pub body: &'a str,
}

#[derive(Deserialize)]
struct Made {
    id: String,
}

impl Reply {
    /// Reads an answer. A success that names no request is not the portal's (a proxy's login page, say).
    #[must_use]
    pub fn read(answer: HttpAnswer<'_>) -> Self {
        // A time to come again is one of the other side's clock, so it is that clock it is counted by where it is told.
        let now = answer.date.and_then(Moment::read_http).or(answer.arrived);
        let after = answer.retry_after.and_then(|text| retry_after(text, now));
        if (200..300).contains(&answer.status) {
            return serde_json::from_str::<Made>(answer.body).map_or(Self::Lost, |made| Self::Taken {
                request: made.id,
                repeat: answer.replayed == Some("true"),
                existing: answer.outcome == Some("existing"),
            });
        }
        let Ok(problem) = serde_json::from_str::<Problem>(answer.body) else {
            return Self::unreadable(answer.status, after);
        };
        let kind = ProblemKind::from_slug(problem.slug());
        let in_use = kind == Some(ProblemKind::KeyInUse);
        if in_use || matches!(answer.status, 408 | 429) || answer.status >= 500 {
            let untouched = kind.is_some_and(leaves_nothing);
            return Self::Later { detail: problem.detail, after, untouched };
        }
        Self::Refused(problem)
    }

    fn unreadable(status: u16, after: Option<Duration>) -> Self {
        match status {
            401 => Self::Refused(plain(ProblemKind::NotAuthenticated, status)),
            408 | 425 | 429 | 500.. => {
                Self::Later { detail: format!("The answer was {status}."), after, untouched: false }
            }
            413 => Self::Refused(plain(ProblemKind::BodyTooLarge, status)),
            400..500 => Self::Refused(plain(ProblemKind::Internal, status)),
            _ => Self::Lost,
        }
    }
}

/// Whether the portal says by this that it took nothing in and will not. While a key is in use it cannot say so, nor where
/// it met a fault of its own, nor can anybody who stands in between.
fn leaves_nothing(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::TooManyAttempts
            | ProblemKind::RequestTimeout
            | ProblemKind::Busy
            | ProblemKind::Contended
            | ProblemKind::StoreUnavailable
            | ProblemKind::ServerBehind
    )
}

fn plain(kind: ProblemKind, status: u16) -> Problem {
    Problem {
        kind: format!("/problems/{}", kind.slug()),
        title: kind.title().to_owned(),
        status,
        detail: format!("The answer was {status}, without a reason that can be read."),
        errors: Vec::new(),
        differs: Vec::new(),
        request: None,
        versions: None,
        earlier: None,
        quota: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Reply {
        Reply::read(HttpAnswer { status, body, ..HttpAnswer::default() })
    }

    fn problem(kind: ProblemKind, status: u16) -> String {
        serde_json::to_string(&plain(kind, status)).unwrap()
    }

    #[test]
    fn a_success_names_its_request_and_says_whether_it_is_a_repeat() {
        let taken = |repeat, existing| Reply::Taken { request: "r1".into(), repeat, existing };
        let body = r#"{"id":"r1","state":"queued"}"#;
        assert_eq!(read(202, body), taken(false, false));
        let replayed = HttpAnswer { status: 202, replayed: Some("true"), body, ..HttpAnswer::default() };
        assert_eq!(Reply::read(replayed), taken(true, false));
        let existing = HttpAnswer { status: 200, outcome: Some("existing"), body, ..HttpAnswer::default() };
        assert_eq!(Reply::read(existing), taken(false, true));
    }

    #[test]
    fn a_success_that_is_not_the_portals_proves_nothing() {
        assert_eq!(read(200, "<html>Log in to the guest network</html>"), Reply::Lost);
        assert_eq!(read(304, ""), Reply::Lost);
    }

    #[test]
    fn what_passes_by_itself_is_tried_again_later() {
        for (kind, status) in [
            (ProblemKind::KeyInUse, 409),
            (ProblemKind::TooManyAttempts, 429),
            (ProblemKind::StoreUnavailable, 503),
            (ProblemKind::Internal, 500),
            (ProblemKind::RequestTimeout, 408),
        ] {
            let body = problem(kind, status);
            let answer = HttpAnswer { status, retry_after: Some("7"), body: &body, ..HttpAnswer::default() };
            let Reply::Later { after, .. } = Reply::read(answer) else { panic!("{status}") };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        assert!(matches!(read(502, "<html>Bad gateway</html>"), Reply::Later { after: None, .. }));
    }

    #[test]
    fn only_the_portal_itself_can_say_that_nothing_was_taken_in() {
        for (kind, status, known) in [
            (ProblemKind::Busy, 503, true),
            (ProblemKind::Contended, 503, true),
            (ProblemKind::StoreUnavailable, 503, true),
            (ProblemKind::ServerBehind, 503, true),
            (ProblemKind::TooManyAttempts, 429, true),
            (ProblemKind::RequestTimeout, 408, true),
            (ProblemKind::KeyInUse, 409, false),
            (ProblemKind::Internal, 500, false),
        ] {
            let Reply::Later { untouched, .. } = read(status, &problem(kind, status)) else {
                panic!("{kind:?}")
            };
            assert_eq!(untouched, known, "{kind:?}");
        }
        for status in [429, 500, 502, 503] {
            let Reply::Later { untouched, .. } = read(status, "<html>") else { panic!("{status}") };
            assert!(!untouched, "{status}");
        }
    }

    #[test]
    fn the_time_to_come_again_may_be_a_date_by_the_clock_of_who_answered() {
        let arrived = Moment::read_http("Sun, 06 Nov 1994 09:00:00 GMT");
        let at = |date| HttpAnswer {
            status: 503,
            retry_after: Some("Sun, 06 Nov 1994 09:00:20 GMT"),
            date,
            arrived,
            body: "",
            ..HttpAnswer::default()
        };
        let after = |date| match Reply::read(at(date)) {
            Reply::Later { after, .. } => after.map(|after| after.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(after(None), Some(20));
        assert_eq!(after(Some("Sun, 06 Nov 1994 09:00:13 GMT")), Some(7));
        assert_eq!(after(Some("no date")), Some(20));
    }

    #[test]
    fn everything_else_is_a_refusal() {
        for (kind, status) in [
            (ProblemKind::KeyReused, 422),
            (ProblemKind::NameTaken, 409),
            (ProblemKind::DeletionInProgress, 409),
            (ProblemKind::NotAuthenticated, 401),
        ] {
            assert!(matches!(read(status, &problem(kind, status)), Reply::Refused(_)), "{status}");
        }
        assert!(matches!(read(403, "no"), Reply::Refused(_)));
        let Reply::Refused(who) = read(401, "") else { panic!("refused") };
        assert_eq!(who.slug(), "unauthenticated");
    }
}
