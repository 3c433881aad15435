//! Answers: what a submission is told, and what every repeat of it is told again, byte for byte.

use bytes::Bytes;
use domain::{id::RequestId, state::RequestState, time::Moment, view::RequestView};
use serde::Serialize;

/// What kind of success an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// Taken in; to be carried out.
    Accepted,
    /// Made at once.
    Created,
    /// Done, or already so.
    Done,
    /// Done, and there is nothing to show.
    NoContent,
}

impl AnswerKind {
    /// The kind's word in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Created => "created",
            Self::Done => "done",
            Self::NoContent => "no_content",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Accepted, Self::Created, Self::Done, Self::NoContent]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What kind of success it is.
    pub kind: AnswerKind,
    /// The address of what it is about.
    pub location: Option<String>,
    /// The version of what it is about, quoted.
    pub etag: Option<String>,
    /// The body: compact JSON, or nothing.
    pub body: Bytes,
}

impl Answer {
    /// An answer that shows `shown`.
    pub fn showing(
        kind: AnswerKind,
        location: Option<String>,
        shown: &impl Serialize,
    ) -> crate::Result<Self> {
        let body = serde_json::to_vec(shown).map_err(crate::Error::internal)?;
        Ok(Self { kind, location, etag: None, body: body.into() })
    }

    /// An answer that shows a request.
    pub fn of_request(kind: AnswerKind, request: &RequestView) -> crate::Result<Self> {
        Self::showing(kind, Some(format!("/api/v1/requests/{}", request.id)), request)
    }

    /// An answer with nothing to show.
    #[must_use]
    pub fn empty() -> Self {
        Self { kind: AnswerKind::NoContent, location: None, etag: None, body: Bytes::new() }
    }
}

/// An answer together with what belongs to this exchange only.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The answer: the first one, also for a repeat.
    pub answer: Answer,
    /// Whether this submission was a repeat.
    pub replayed: bool,
    /// Whether what was asked for was already there.
    pub existing: bool,
    /// Where the request stands now.
    pub state: Option<RequestState>,
    /// Until when a repeat is answered like this.
    pub expires: Option<Moment>,
    /// The request that it is about.
    pub request_id: Option<RequestId>,
}
