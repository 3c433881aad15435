//! A call that changes something, read to its end before anything is decided: size and type of the body first, then who
//! sends it. From there on it runs as a task of its own, so that a caller who hangs up changes nothing. The key is handed
//! on as it came; what it may be is the guard's business.

use super::{
    auth,
    problem::{Refusal, Result},
    query::Parameters,
    state::AppState,
};
use axum::{
    body::Body,
    extract::{FromRequest, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::problem::ProblemKind;
use futures_util::StreamExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use portal::{
    Caller,
    service::{Arrival, Delivery, Event},
};
use std::time::Duration;
use tracing::Instrument;

/// The longest body, in bytes.
pub(crate) const LONGEST_BODY: usize = 1 << 20;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How much of a body that is too long is read and thrown away, so that its sender gets to hear the answer.
const MOST_DRAINED: usize = 16 << 20;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A call with a JSON body.
#[derive(Debug)]
pub(crate) struct WithBody {
    /// Who sends it.
    pub(crate) caller: Caller,
    /// Its key, as it came.
    pub(crate) arrival: Arrival,
    /// The body's bytes, not yet read as JSON.
    pub(crate) body: Bytes,
    /// The query parameters.
    pub(crate) query: Parameters,
}

impl FromRequest<AppState> for WithBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        must_be_json(&parts.headers, JSON)?;
        Self::known(&parts, body, state).await
    }
}

impl WithBody {
    async fn known(parts: &Parts, body: Bytes, state: &AppState) -> Result<Self> {
        let caller = auth::caller(state, parts).await?;
        let keys =
            parts.headers.get_all("idempotency-key").iter().map(|value| value.as_bytes().to_vec()).collect();
        let if_match =
            parts.headers.get_all(header::IF_MATCH).iter().map(|value| value.as_bytes().to_vec()).collect();
        Ok(Self { caller, arrival: Arrival { keys, if_match }, body, query: Parameters::of(&parts.uri) })
    }
}

/// A call whose address and key say everything, so that it may come without a body.
#[derive(Debug)]
pub(crate) struct MaybeBody(pub(crate) WithBody);

impl FromRequest<AppState> for MaybeBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        if !body.is_empty() {
            must_be_json(&parts.headers, JSON)?;
        }
        WithBody::known(&parts, body, state).await.map(Self)
    }
}

/// A call with a patch of what is there as its body.
#[derive(Debug)]
pub(crate) struct WithPatch(pub(crate) WithBody);

impl FromRequest<AppState> for WithPatch {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        must_be_json(&parts.headers, PATCH)?;
        WithBody::known(&parts, body, state).await.map(Self)
    }
}

/// An event of an outside system, which its signature speaks for and no token.
#[derive(Debug)]
pub(crate) struct Delivered(pub(crate) Event);

impl FromRequest<AppState> for Delivered {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        must_be_json(&parts.headers, JSON)?;
        Parameters::none(&parts.uri)?;
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
        Ok(Self(Event { headers: headers.collect(), body, address: auth::peer(&parts) }))
    }
}

/// A call that its signature speaks for: nobody needs to have logged in. Its bytes are kept as they came.
#[derive(Debug)]
pub(crate) struct Signed(pub(crate) Delivery);

impl FromRequest<AppState> for Signed {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        must_be_json(&parts.headers, JSON)?;
        let all = |name: &str| {
            parts.headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        Ok(Self(Delivery {
            ids: all("webhook-id"),
            timestamps: all("webhook-timestamp"),
            signatures: all("webhook-signature"),
            body,
            from: auth::peer(&parts),
        }))
    }
}

/// Takes a call over as a task of its own, which reads it to its end and then carries it out.
///
/// The task begins before the body is read: a caller who sends all of it and hangs up at once would otherwise be gone
/// before the last byte was taken up.
pub(crate) async fn detached(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let work = async move {
        let (parts, body) = request.into_parts();
        match read(&parts.headers, body).await {
            Ok(body) => next.run(Request::from_parts(parts, Body::from(body))).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    match state.guarded_work.spawn(work.in_current_span()).await {
        Ok(response) => response,
        Err(error) => Refusal(portal::Error::internal(error)).into_response(),
    }
}

/// The body of a call that was read to its end.
pub(crate) async fn whole(body: Body) -> Result<Bytes> {
    axum::body::to_bytes(body, LONGEST_BODY).await.map_err(|_| too_large())
}

/// Reads a body to its end, within its limits.
async fn read(headers: &HeaderMap, mut body: Body) -> Result<Bytes> {
    let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|length| length > LONGEST_BODY as u64) {
        drain(body).await;
        return Err(too_large());
    }
    let whole = Limited::new(&mut body, LONGEST_BODY).collect();
    match tokio::time::timeout(BODY_TIME, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            drain(body).await;
            Err(too_large())
        }
        Ok(Err(_)) => Err(Refusal::new(ProblemKind::RequestTimeout, "The body broke off before its end.")),
        Err(_) => Err(Refusal::new(
            ProblemKind::RequestTimeout,
            format!("The body did not arrive within {} s.", BODY_TIME.as_secs()),
        )),
    }
}

fn too_large() -> Refusal {
    Refusal::new(ProblemKind::BodyTooLarge, "A body has at most 1 MiB (1048576 bytes).")
}

async fn drain(body: Body) {
    let away = async {
        let mut chunks = body.into_data_stream();
        let mut left = MOST_DRAINED;
        while let Some(Ok(chunk)) = chunks.next().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                return;
            }
        }
    };
    // However it ends, the answer is the same.
    let _ = tokio::time::timeout(DRAIN_TIME, away).await;
}

/// What a body may be said to be.
const JSON: &[&str] = &["application/json"];
/// What a merge patch may be said to be (RFC 7396); plain JSON means the same here.
const PATCH: &[&str] = &["application/merge-patch+json", "application/json"];

/// Refuses a body that is not said to be JSON, or is said to be compressed.
fn must_be_json(headers: &HeaderMap, known: &[&str]) -> Result<()> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let sent = types.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = sent.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    // JSON is UTF-8 (RFC 8259), whatever else a sender may say.
    let other_charset = parts.filter_map(|parameter| parameter.split_once('=')).any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset")
            && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if !known.iter().any(|kind| essence.eq_ignore_ascii_case(kind)) || types.next().is_some() || other_charset
    {
        return Err(Refusal::new(
            ProblemKind::UnsupportedMediaType,
            format!("Send the body as UTF-8 with Content-Type: {}.", known.join(" or ")),
        ));
    }
    let plain = |value: &axum::http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        return Err(Refusal::new(
            ProblemKind::UnsupportedMediaType,
            "Send the body without Content-Encoding.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn json_is_known_by_its_type_and_is_utf_8_whatever_the_other_parameters() {
        let typed = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            must_be_json(&headers, JSON)
        };
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/json;x=y"] {
            assert!(typed(good).is_ok(), "{good}");
        }
        assert!(typed("application/json; Charset=\"UTF-8\"").is_ok());
        for other in ["application/json; charset=utf-16", "application/json;x=y;CHARSET=\"latin1\""] {
            assert_eq!(typed(other).unwrap_err().0.kind, ProblemKind::UnsupportedMediaType, "{other}");
        }
        for bad in ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded", "text/json"] {
            assert_eq!(typed(bad).unwrap_err().0.kind, ProblemKind::UnsupportedMediaType, "{bad}");
        }
        assert!(must_be_json(&HeaderMap::new(), JSON).is_err());
        let mut patch = HeaderMap::new();
        patch.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
        assert!(must_be_json(&patch, PATCH).is_ok() && must_be_json(&patch, JSON).is_err());
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit_whether_its_length_was_told_or_not() {
        let untold = HeaderMap::new();
        let whole = read(&untold, Body::from(vec![b'x'; LONGEST_BODY])).await.unwrap();
        assert_eq!(whole.len(), LONGEST_BODY);
        let error = read(&untold, Body::from(vec![b'x'; LONGEST_BODY + 1])).await.unwrap_err();
        assert_eq!(error.0.kind, ProblemKind::BodyTooLarge);
        let mut told = HeaderMap::new();
        told.insert(header::CONTENT_LENGTH, HeaderValue::from_static("1048577"));
        assert_eq!(read(&told, Body::empty()).await.unwrap_err().0.kind, ProblemKind::BodyTooLarge);
    }
}
