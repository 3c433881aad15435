//! Errors of the portal: what the caller is told, beside what only the log may hold. Nothing here knows of HTTP.

use domain::{
    id::RequestId,
    json::JsonError,
    key::KeyError,
    problem::{FieldError, ProblemKind, Versions},
    quota::QuotaShort,
    search::SearchError,
    view::EarlierRequest,
};
use std::{fmt, time::Duration};

/// Why the portal did not do what it was asked.
#[derive(Debug, Clone)]
pub struct Error {
    /// The kind, with its stable name.
    pub kind: ProblemKind,
    /// What happened this time and what to do, for the caller. Holds no secret, path or SQL.
    pub detail: String,
    /// Values that do not fit, each at its place.
    pub fields: Vec<FieldError>,
    /// Names of what differs from what stands already.
    pub differs: Vec<String>,
    /// The request that it is about, if the caller may see it.
    pub request: Option<RequestId>,
    /// The version that was named and the one that there is.
    pub versions: Option<Box<Versions>>,
    /// The earlier request that this one looks like.
    pub earlier: Option<Box<EarlierRequest>>,
    /// What of the team's quota is used, how high it is, and what was asked for on top.
    pub quota: Option<QuotaShort>,
    /// After what time the same submission may be sent again.
    pub retry_after: Option<Duration>,
    /// What the log may know and the caller may not.
    pub context: Option<String>,
}

impl Error {
    /// A problem of this kind.
    #[must_use]
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            fields: Vec::new(),
            differs: Vec::new(),
            request: None,
            versions: None,
            earlier: None,
            quota: None,
            retry_after: None,
            context: None,
        }
    }

    /// There is nothing, or nothing that this caller may see; the two are never told apart.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(ProblemKind::NotFound, "There is nothing here that you may see.")
    }

    /// Values that do not fit.
    #[must_use]
    pub fn fields(fields: Vec<FieldError>) -> Self {
        let detail = match fields.as_slice() {
            [one] => format!("{}: {}", one.pointer, one.detail),
            many => format!("{} values do not fit; each is listed.", many.len()),
        };
        Self { fields, ..Self::new(ProblemKind::InvalidParameters, detail) }
    }

    /// One value that does not fit.
    #[must_use]
    pub fn field(pointer: &str, detail: impl fmt::Display) -> Self {
        Self::fields(vec![FieldError { pointer: pointer.to_owned(), detail: detail.to_string() }])
    }

    /// A fault of the portal's own; `context` goes to the log.
    #[must_use]
    pub fn internal(context: impl fmt::Display) -> Self {
        Self {
            context: Some(context.to_string()),
            ..Self::new(
                ProblemKind::Internal,
                "The portal met a fault of its own. Send the same again with the same key.",
            )
        }
    }

    /// The same, pointing to a request.
    #[must_use]
    pub fn about(self, request: RequestId) -> Self {
        Self { request: Some(request), ..self }
    }

    /// The same, to be tried again after a time.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.slug(), self.detail)
    }
}

impl std::error::Error for Error {}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        let kind = if error == KeyError::Missing { ProblemKind::KeyMissing } else { ProblemKind::KeyInvalid };
        Self::new(kind, error.to_string())
    }
}

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Self {
        Self::new(ProblemKind::InvalidQuery, error.to_string())
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Self::new(ProblemKind::InvalidJson, error.to_string())
    }
}

/// What a result of the portal is.
pub type Result<T, E = Error> = std::result::Result<T, E>;
