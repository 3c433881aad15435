//! `POST /callbacks/{id}`: work that goes on elsewhere reports on itself.

use crate::http::{arrive::Signed, path::PathOf, problem::Result, query::Parameters, state::AppState};
use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use domain::{callback::HeardView, problem::Problem};
use serde::Deserialize;
use utoipa::ToSchema;

/// A report of work that goes on elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(dead_code, reason = "describes the body, which the portal reads from its signed bytes itself")]
pub(super) struct WorkReport {
    /// `running` or `progress` while it goes on; `succeeded` or `failed` at its end, which is final.
    state: String,
    /// Higher with each report; what is lower than a report that counted is ignored. Of two with the same number the first
    /// counts, unless only the second brings the end.
    sequence: u64,
    /// The attempt, if the sender wants to be sure; a report of an earlier one is ignored.
    attempt: Option<u32>,
    /// How far it has come, in words.
    progress: Option<String>,
    /// Log lines, which are added to the request's.
    log: Option<Vec<String>>,
    /// With `succeeded`: the outputs, secret ones included.
    #[schema(value_type = Option<Object>)]
    outputs: Option<serde_json::Value>,
    /// With `failed`: why.
    error: Option<String>,
}

/// Reports on work that goes on elsewhere. Needs no login: the report is signed by Standard Webhooks with the callback's
/// secret. Each is taken in once by its webhook-id; a repeat gets what became of the first.
#[utoipa::path(post, path = "/callbacks/{id}", tag = "callbacks", security(("signature" = [])),
    params(
        ("id" = String, Path, description = "The callback's ID"),
        ("webhook-id" = String, Header, description = "The report's own ID, 1 to 255 visible ASCII characters"),
        ("webhook-timestamp" = String, Header, description = "Seconds since 1970, at most five minutes off"),
        ("webhook-signature" = String, Header, description = "`v1,` and the signature; several with blanks between"),
    ),
    request_body = WorkReport,
    responses(
        (status = 200, description = "Taken in, now or before", body = HeardView),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 410, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
        (status = 429, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn report_work(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    uri: axum::http::Uri,
    Signed(delivery): Signed,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let (heard, again) = Box::pin(state.portal.callback(&id, delivery)).await?;
    let mut response: Response =
        ([(header::CACHE_CONTROL, "no-store")], Json::<HeardView>(heard)).into_response();
    if again {
        let replayed = HeaderName::from_static("idempotency-replayed");
        response.headers_mut().insert(replayed, HeaderValue::from_static("true"));
    }
    Ok(response)
}
