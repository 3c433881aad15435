//! The one place where a problem gets its HTTP status and its shape on the wire (RFC 9457).

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::problem::{Problem, ProblemKind, RequestLink};
use std::time::Duration;

/// A portal's error on its way out.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) portal::Error);

/// What a handler gives.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Stands in a refusal's response, for whoever counts it or shows it to a person.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The problem's kind.
    pub(crate) kind: ProblemKind,
    /// What happened this time.
    pub(crate) detail: String,
}

impl Refusal {
    /// A problem of this kind.
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self(portal::Error::new(kind, detail))
    }

    /// The problem as it travels.
    pub(crate) fn problem(&self) -> Problem {
        let Self(error) = self;
        Problem {
            kind: format!("/problems/{}", error.kind.slug()),
            title: error.kind.title().to_owned(),
            status: status(error.kind).as_u16(),
            detail: error.detail.clone(),
            errors: error.fields.clone(),
            differs: error.differs.clone(),
            request: error.request.map(RequestLink::to).map(Box::new),
            earlier: error.earlier.clone(),
            versions: error.versions.clone(),
            quota: error.quota,
        }
    }
}

impl From<portal::Error> for Refusal {
    fn from(error: portal::Error) -> Self {
        Self(error)
    }
}

/// The HTTP status of a kind of problem.
pub(crate) fn status(kind: ProblemKind) -> StatusCode {
    use ProblemKind as P;
    match kind {
        P::KeyMissing | P::KeyInvalid | P::InvalidJson | P::InvalidQuery | P::TokenInQuery => {
            StatusCode::BAD_REQUEST
        }
        P::NotAuthenticated | P::InvalidCredentials | P::SignatureWrong => StatusCode::UNAUTHORIZED,
        P::Forbidden | P::OwnRequest | P::CrossSite | P::SetupDone | P::SetupLinkWrong => {
            StatusCode::FORBIDDEN
        }
        P::NotFound => StatusCode::NOT_FOUND,
        P::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        P::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        P::KeyInUse
        | P::SuspectedDuplicate
        | P::NameTaken
        | P::QuotaExceeded
        | P::DeletionInProgress
        | P::AlreadyDecided
        | P::NotOffered
        | P::OfferingUnavailable => StatusCode::CONFLICT,
        P::KeyExpired | P::HookRemoved => StatusCode::GONE,
        P::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        P::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
        P::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        P::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        P::KeyReused | P::InvalidParameters | P::UnknownOffering | P::HookMapping => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        P::TooManyAttempts => StatusCode::TOO_MANY_REQUESTS,
        P::Busy | P::Contended | P::StoreUnavailable | P::ServerBehind => StatusCode::SERVICE_UNAVAILABLE,
        P::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// After what time a problem may be gone, where the portal did not say so itself.
fn retry_after(error: &portal::Error) -> Option<Duration> {
    use ProblemKind as P;
    let by_kind = match error.kind {
        P::KeyInUse | P::Busy | P::Contended => Some(Duration::from_secs(1)),
        P::DeletionInProgress | P::StoreUnavailable | P::ServerBehind => Some(Duration::from_secs(5)),
        P::TooManyAttempts => Some(Duration::from_secs(30)),
        _ => None,
    };
    error.retry_after.or(by_kind)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(error) = &self;
        let status = status(error.kind);
        if status == StatusCode::INTERNAL_SERVER_ERROR || error.context.is_some() {
            let context = error.context.as_deref().unwrap_or_default();
            tracing::error!(problem = error.kind.slug(), context, "a call failed: {}", error.detail);
        }
        let body = serde_json::to_vec(&self.problem()).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = retry_after(error) {
            // Whole seconds, and never "at once".
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
                headers.insert(header::RETRY_AFTER, value);
            }
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"keyturn\""));
        }
        response.extensions_mut().insert(Refused { kind: error.kind, detail: error.detail.clone() });
        response
    }
}

/// There is nothing at this address.
pub(crate) fn nothing_here() -> Refusal {
    Refusal(portal::Error::not_found())
}

/// The address does something else. The router adds `Allow`.
pub(crate) fn wrong_method() -> Refusal {
    Refusal::new(
        ProblemKind::MethodNotAllowed,
        "The address exists, but not for this method; see the Allow header.",
    )
}

/// A handler panicked. What it said may hold anything, so it goes to the log only.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over")]
pub(crate) fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Refusal(portal::Error::internal(format!("panic: {}", said.unwrap_or("no message")))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_an_error_with_a_page_of_its_own() {
        for kind in ProblemKind::ALL {
            let problem = Refusal::new(*kind, "…").problem();
            assert!((400..600).contains(&problem.status), "{}", problem.kind);
            assert_eq!(ProblemKind::from_slug(problem.slug()), Some(*kind));
        }
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds_and_never_as_nothing() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (30_000, "30")] {
            let error = portal::Error::new(ProblemKind::KeyInUse, "…").after(Duration::from_millis(millis));
            let response = Refusal(error).into_response();
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds);
        }
    }

    #[test]
    fn what_the_log_may_know_stays_out_of_the_body() {
        let problem = Refusal(portal::Error::internal("UNIQUE constraint failed: claims.key")).problem();
        assert!(!serde_json::to_string(&problem).unwrap().contains("UNIQUE"));
    }
}
