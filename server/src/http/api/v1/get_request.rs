//! `GET /requests/{id}`: one request, at once or when it has come to its end.

use super::shown;
use crate::http::{auth::Known, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Uri},
    response::Response,
};
use domain::{problem::Problem, view::RequestView};
use std::time::Duration;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const LONGEST_WAIT: u64 = 60;

/// One request. With `Prefer: wait=N` (1 to 60, RFC 7240) the answer waits for a final state, at most N seconds.
#[utoipa::path(get, path = "/requests/{id}", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        ("Prefer" = Option<String>, Header, description = "wait=N: answer when it ends, or after N seconds"),
    ),
    responses(
        (status = 200, body = RequestView),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get_request(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let Some(seconds) = preferred_wait(&headers) else {
        return Ok(shown(&state.portal.request(&caller, &id).await?));
    };
    let waited = tokio::select! {
        view = state.portal.wait_for_end(&caller, &id, Duration::from_secs(seconds)) => view?,
        // A server that is about to stop answers with what it knows.
        () = state.stopping.cancelled() => state.portal.request(&caller, &id).await?,
    };
    let mut response = shown(&waited);
    if let Ok(applied) = HeaderValue::from_str(&format!("wait={seconds}")) {
        response.headers_mut().insert(APPLIED, applied);
    }
    Ok(response)
}

/// The wait that the caller prefers, in seconds. A preference that makes no sense is none (RFC 7240, 2).
fn preferred_wait(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let waits = values.flat_map(|value| value.split([',', ';'])).filter_map(|preference| {
        let (name, value) = preference.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim().trim_matches('"').parse::<u64>().ok())
    });
    waits.flatten().next().filter(|seconds| *seconds > 0).map(|seconds| seconds.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_among_other_preferences_and_bounded() {
        let wait = |value: &'static str| {
            preferred_wait(&HeaderMap::from_iter([(PREFER, HeaderValue::from_static(value))]))
        };
        assert_eq!(wait("wait=10"), Some(10));
        assert_eq!(wait("respond-async, Wait = \"5\""), Some(5));
        assert_eq!(wait("wait=3600"), Some(60));
        for none in ["", "wait", "wait=", "wait=0", "wait=-1", "wait=soon", "return=minimal"] {
            assert_eq!(wait(none), None, "{none}");
        }
    }
}
