//! One exchange of request and response: its ID, its line in the log, its count, and the headers that every response
//! has. The log gets method, path and status; never a query, a header or a body, where secrets travel.

use super::state::AppState;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use std::time::Instant;
use tracing::Instrument;

const EXCHANGE_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a response that is no page may do in a browser: nothing.
const INERT: &str = "default-src 'none'; frame-ancestors 'none'";

/// Follows one exchange from its beginning to its end.
pub(crate) async fn follow(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let id = state.portal.new_submission_key();
    let span = tracing::info_span!("exchange", id);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let began = Instant::now();
    let _in_progress = state.counters.began();
    let mut response = next.run(request).instrument(span.clone()).await;
    state.counters.responded(&response);
    let (status, millis) = (response.status().as_u16(), began.elapsed().as_millis());
    span.in_scope(|| {
        if status >= 500 {
            tracing::warn!(%method, path, status, millis, "answered");
        } else {
            tracing::debug!(%method, path, status, millis, "answered");
        }
    });
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(EXCHANGE_ID, value);
    }
    protect(headers);
    response
}

fn protect(headers: &mut HeaderMap) {
    let mut unless_set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    unless_set(header::CONTENT_SECURITY_POLICY, INERT);
    unless_set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Other sites learn nothing. Not `no-referrer`, under which a plain form post would come with `Origin: null` and
    // could not be told from another site's.
    unless_set(header::REFERRER_POLICY, "same-origin");
    unless_set(header::X_FRAME_OPTIONS, "DENY");
    unless_set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
}
