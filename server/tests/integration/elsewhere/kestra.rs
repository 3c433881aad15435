//! A stand-in for Kestra, written from its public API: executions are started, shown, searched by label and killed. On bad
//! days its search lags behind, an answer is lost after the work was begun, or a flow runs twice.

use super::TOKEN;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

/// How long an execution runs that comes to an end by itself.
const RUNS: Duration = Duration::from_millis(500);

/// What a day is like.
#[derive(Debug, Clone, Default)]
pub(super) struct Day {
    /// How long after its start an execution is found by a search.
    pub(super) lag: Duration,
    /// Whether starting one is not answered any more.
    pub(super) silent: bool,
    /// Whether starting one is answered with a fault, after it was done.
    pub(super) faulty: bool,
    /// Whether a flow is started twice.
    pub(super) twice: bool,
    /// How many calls are to be answered with a fault before anything is done.
    pub(super) refusing: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Execution {
    pub(super) id: String,
    pub(super) flow: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) inputs: BTreeMap<String, String>,
    started: Instant,
    killed: bool,
}

impl Execution {
    fn state(&self) -> &'static str {
        let over = self.started.elapsed() > RUNS;
        match self.inputs.get("behaviour").map(String::as_str) {
            _ if self.killed => "KILLED",
            Some("slow") => "RUNNING",
            Some("fail") if over => "FAILED",
            Some("fail-once") if over && self.labels["keyturn.attempt"] == "1" => "FAILED",
            Some("warn") if over => "WARNING",
            _ if over => "SUCCESS",
            _ => "RUNNING",
        }
    }

    fn shown(&self) -> Value {
        let labels: Vec<Value> =
            self.labels.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let outputs = match self.state() {
            "SUCCESS" | "WARNING" => json!({ "address": format!("{}.test", self.inputs["name"]) }),
            _ => Value::Null,
        };
        json!({
            "id": self.id, "namespace": "company.team", "flowId": self.flow, "labels": labels,
            "state": { "current": self.state(), "histories": [] }, "outputs": outputs,
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) executions: Vec<Execution>,
    pub(super) day: Day,
    pub(super) searches: usize,
    /// How often one had searched by the time of each call that starts a flow.
    pub(super) searched_before: Vec<usize>,
}

/// The stand-in; its clones share one book.
#[derive(Debug, Clone, Default)]
pub(super) struct Kestra(Arc<Mutex<Book>>);

impl Kestra {
    pub(super) fn on(day: Day) -> Self {
        Self(Arc::new(Mutex::new(Book { day, ..Book::default() })))
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap()
    }

    /// The executions of a flow for a request.
    pub(super) fn of(&self, flow: &str, request: &str) -> Vec<Execution> {
        let is_meant = |execution: &&Execution| {
            execution.flow == flow
                && execution.labels.get("keyturn.requestId").is_some_and(|id| id == request)
        };
        self.book().executions.iter().filter(is_meant).cloned().collect()
    }

    /// Begins to serve; where.
    pub(super) async fn serve(&self) -> String {
        let routes = Router::new()
            .route("/api/v1/main/executions/search", get(search))
            .route("/api/v1/main/executions/{id}", get(show))
            .route("/api/v1/main/executions/{id}/kill", delete(kill))
            .route("/api/v1/main/executions/{namespace}/{flow}", post(start))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        base
    }

    /// The offering that uses it.
    pub(super) fn offering(base: &str) -> String {
        "provisioner:
  kestra:
    url: BASE
    namespace: company.team
    token: { file: TOKEN_FILE }
    call_timeout: 6s
    look_again: 200ms
    search_again: 1s
    apply:
      flow: make
      inputs: { name: '{{ name }}', size: '{{ parameters.size }}', behaviour: '{{ parameters.behaviour }}' }
    destroy:
      flow: remove
      inputs: { name: '{{ name }}' }
"
        .replace("BASE", base)
    }
}

fn is_known(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value == format!("Bearer {TOKEN}").as_str())
}

fn pairs(query: Option<String>) -> Vec<(String, String)> {
    let address = format!("http://x/?{}", query.unwrap_or_default());
    let address: reqwest::Url = address.parse().unwrap();
    address.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// The parts of a form.
fn inputs(headers: &HeaderMap, body: &Bytes) -> BTreeMap<String, String> {
    let kind = headers[header::CONTENT_TYPE].to_str().unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.ends_with(&format!("--{boundary}--\r\n")), "{text:?}");
    text.split(&format!("--{boundary}\r\n"))
        .skip(1)
        .map(|part| {
            let (head, value) = part.split_once("\r\n\r\n").unwrap();
            let name = head.split_once("name=\"").unwrap().1.strip_suffix('"').unwrap();
            let value = value.split_once(&format!("--{boundary}--")).map_or(value, |(value, _)| value);
            (name.to_owned(), value.strip_suffix("\r\n").unwrap().to_owned())
        })
        .collect()
}

async fn start(
    State(kestra): State<Kestra>,
    Path((_, flow)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let labels: BTreeMap<String, String> = pairs(query)
        .into_iter()
        .filter(|(name, _)| name == "labels")
        .map(|(_, label)| label.split_once(':').map(|(key, value)| (key.into(), value.into())).unwrap())
        .collect();
    let (day, shown) = {
        let mut book = kestra.book();
        let searches = book.searches;
        book.searched_before.push(searches);
        if book.day.refusing > 0 {
            book.day.refusing -= 1;
            return StatusCode::BAD_GATEWAY.into_response();
        }
        let day = book.day.clone();
        let mut shown = Value::Null;
        for _ in 0..=u8::from(day.twice) {
            let execution = Execution {
                id: format!("execution{}", book.executions.len()),
                flow: flow.clone(),
                labels: labels.clone(),
                inputs: inputs(&headers, &body),
                started: Instant::now(),
                killed: false,
            };
            shown = execution.shown();
            book.executions.push(execution);
        }
        (day, shown)
    };
    if day.silent {
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    if day.faulty {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    Json(shown).into_response()
}

async fn search(State(kestra): State<Kestra>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut book = kestra.book();
    book.searches += 1;
    let mut wanted = Vec::new();
    for (name, value) in pairs(query) {
        if let Some(label) = name.strip_prefix("filters[labels][EQUALS][") {
            wanted.push((label.strip_suffix(']').unwrap().to_owned(), value));
        }
    }
    let found: Vec<Value> = book
        .executions
        .iter()
        .filter(|execution| execution.started.elapsed() >= book.day.lag)
        .filter(|execution| wanted.iter().all(|(key, value)| execution.labels.get(key) == Some(value)))
        .map(Execution::shown)
        .collect();
    Json(json!({ "total": found.len(), "results": found })).into_response()
}

async fn show(State(kestra): State<Kestra>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match kestra.book().executions.iter().find(|execution| execution.id == id) {
        Some(execution) => Json(execution.shown()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn kill(State(kestra): State<Kestra>, headers: HeaderMap, Path(id): Path<String>) -> StatusCode {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED;
    }
    match kestra.book().executions.iter_mut().find(|execution| execution.id == id) {
        Some(execution) => {
            execution.killed = true;
            StatusCode::ACCEPTED
        }
        None => StatusCode::NOT_FOUND,
    }
}
