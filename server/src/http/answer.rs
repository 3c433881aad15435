//! What a guarded call answers: the stored answer as it was given first, and beside it what belongs to this exchange.

use super::{problem::Refusal, state::AppState};
use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portal::{AnswerKind, Answered};
use std::future::Future;

/// Tells that an answer is the first one, given again.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Tells until when a repeat is answered like this.
pub(crate) const EXPIRES: HeaderName = HeaderName::from_static("idempotency-key-expires");
/// Tells that what was asked for was there already.
pub(crate) const OUTCOME: HeaderName = HeaderName::from_static("keyturn-outcome");
/// Tells where the request of a repeated answer stands now.
pub(crate) const STATE: HeaderName = HeaderName::from_static("keyturn-request-state");

/// Guarded work, counted.
pub(crate) async fn counted(
    state: &AppState,
    work: impl Future<Output = portal::Result<Answered>>,
) -> Result<Answered, Refusal> {
    let answered = work.await?;
    state.counters.answered(&answered);
    Ok(answered)
}

/// Guarded work, and its answer as a response.
pub(crate) async fn guarded(
    state: &AppState,
    work: impl Future<Output = portal::Result<Answered>>,
) -> Result<Response, Refusal> {
    counted(state, work).await.map(response)
}

fn response(answered: Answered) -> Response {
    let Answered { answer, replayed, existing, state, expires, request_id: _ } = answered;
    let status = match answer.kind {
        AnswerKind::Accepted => StatusCode::ACCEPTED,
        AnswerKind::Created => StatusCode::CREATED,
        AnswerKind::Done => StatusCode::OK,
        AnswerKind::NoContent => StatusCode::NO_CONTENT,
    };
    let empty = answer.body.is_empty();
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    if !empty {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut put = |name: HeaderName, value: Option<String>| {
        if let Some(value) = value.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(name, value);
        }
    };
    put(header::LOCATION, answer.location);
    put(header::ETAG, answer.etag);
    put(EXPIRES, expires.map(|moment| moment.to_string()));
    put(OUTCOME, existing.then(|| "existing".to_owned()));
    put(REPLAYED, replayed.then(|| "true".to_owned()));
    put(STATE, state.filter(|_| replayed).map(|state| state.to_string()));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{state::RequestState, time::Moment};
    use portal::Answer;

    #[test]
    fn a_repeat_differs_from_the_first_answer_in_its_own_headers_only() {
        let answer = Answer {
            kind: AnswerKind::Accepted,
            location: Some("/api/v1/requests/x".into()),
            etag: None,
            body: "{}".into(),
        };
        let answered = |replayed| Answered {
            answer: answer.clone(),
            replayed,
            existing: false,
            state: Some(RequestState::Running),
            expires: Some(Moment::from_millis(0)),
            request_id: None,
        };
        let (first, repeat) = (response(answered(false)), response(answered(true)));
        assert_eq!((first.status(), repeat.status()), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
        assert_eq!(repeat.headers()[REPLAYED], "true");
        assert_eq!(repeat.headers()[STATE], "running");
        assert!(!first.headers().contains_key(REPLAYED) && !first.headers().contains_key(STATE));
        for name in [header::CONTENT_TYPE, header::LOCATION, EXPIRES] {
            assert_eq!(first.headers()[&name], repeat.headers()[&name]);
        }
    }
}
