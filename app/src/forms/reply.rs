//! What came back from one try to submit.

use domain::problem::{Problem, ProblemKind};
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
        let after = answer.retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
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
        let in_use = problem.slug() == ProblemKind::KeyInUse.slug();
        if in_use || matches!(answer.status, 408 | 429) || answer.status >= 500 {
            return Self::Later { detail: problem.detail, after };
        }
        Self::Refused(problem)
    }

    fn unreadable(status: u16, after: Option<Duration>) -> Self {
        match status {
            401 => Self::Refused(plain(ProblemKind::NotAuthenticated, status)),
            408 | 425 | 429 | 500.. => Self::Later { detail: format!("The answer was {status}."), after },
            413 => Self::Refused(plain(ProblemKind::BodyTooLarge, status)),
            400..500 => Self::Refused(plain(ProblemKind::Internal, status)),
            _ => Self::Lost,
        }
    }
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
