//! A stand-in for a service that makes machines.

use super::TOKEN;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// What it knows and did.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// What stands, by team and name.
    pub(super) things: BTreeMap<String, Value>,
    /// What it did, in order.
    pub(super) effects: Vec<String>,
    /// The headers of each call that changes something.
    pub(super) calls: Vec<BTreeMap<String, String>>,
    /// The headers of each look, and of each question about a job.
    pub(super) looks: Vec<BTreeMap<String, String>>,
    /// Where it reports, and the secret to sign with, by name.
    pub(super) callbacks: BTreeMap<String, (String, String)>,
    /// Where looks are sent instead of being answered, if anywhere.
    pub(super) looks_elsewhere: Option<String>,
    /// How often one asked about a job.
    asked: BTreeMap<String, u32>,
}

/// The service; its clones share one book.
#[derive(Debug, Clone, Default)]
pub(super) struct Machines(Arc<Mutex<Book>>);

impl Machines {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap()
    }

    /// How often something was made of this name.
    pub(super) fn made(&self, name: &str) -> usize {
        self.did(&format!("make {name}"))
    }

    /// How often it did this.
    pub(super) fn did(&self, entry: &str) -> usize {
        self.book().effects.iter().filter(|effect| *effect == entry).count()
    }

    /// Begins to serve; where.
    pub(super) async fn serve(&self) -> String {
        let routes = Router::new()
            .route("/machines", post(make))
            .route("/machines/{team}/{name}", get(show).delete(remove).patch(change))
            .route("/machines/{team}/{name}/restart", post(change))
            .route("/jobs/{name}", get(job))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        base
    }

    /// The offering that uses it.
    pub(super) fn offering(base: &str) -> String {
        "updates: true
actions:
  restart: { title: Restart, parameters: { type: object } }
provisioner:
  http:
    secrets: { token: { file: TOKEN_FILE } }
    callback: true
    call_timeout: 6s
    look_again: 200ms
    settled_after: 200ms
    apply:
      url: BASE/machines
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
      body:
        name: '{{ name }}'
        team: '{{ team }}'
        owner: '{{ made_by }}'
        size: '{{ parameters.size }}'
        behaviour: '{{ parameters.behaviour }}'
        callback: '{{ callback }}'
      answer: { poll: headers.location, error: body.message, outputs: { address: body.address } }
    update:
      method: PATCH
      url: 'BASE/machines/{{ team }}/{{ name }}'
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
      body: { size: '{{ parameters.size }}', behaviour: '{{ parameters.behaviour }}', change: '{{ request_id }}' }
    actions:
      restart:
        url: 'BASE/machines/{{ team }}/{{ name }}/restart'
        headers: { Authorization: 'Bearer {{ secrets.token }}' }
        body: { change: '{{ request_id }}' }
    poll:
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
      answer:
        done: body.state == 'done'
        in_progress: body.state == 'working'
        failed: body.state == 'failed'
        error: body.message
        outputs: { address: body.address, password: body.password }
    observe:
      url: 'BASE/machines/{{ team }}/{{ name }}'
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
      ours: body.owner == made_by
      done: request_id in body.done
      outputs: { address: body.address }
    destroy:
      method: DELETE
      url: 'BASE/machines/{{ team }}/{{ name }}'
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
"
        .replace("BASE", base)
    }
}

fn is_known(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value == format!("Bearer {TOKEN}").as_str())
}

fn read(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
}

async fn make(State(machines): State<Machines>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let text = |member: &str| body[member].as_str().unwrap().to_owned();
    let (name, behaviour) = (text("name"), text("behaviour"));
    let is_first = machines.book().calls.is_empty();
    {
        let mut book = machines.book();
        book.calls.push(read(&headers));
        let callback = &body["callback"];
        if let (Some(url), Some(secret)) = (callback["url"].as_str(), callback["secret"].as_str()) {
            book.callbacks.insert(name.clone(), (url.to_owned(), secret.to_owned()));
        }
        if behaviour == "refuse" {
            let message = json!({ "message": format!("no room, says {TOKEN}") });
            return (StatusCode::UNPROCESSABLE_ENTITY, Json(message)).into_response();
        }
        if matches!(behaviour.as_str(), "busy-once") && book.calls.len() == 1 {
            return StatusCode::TOO_MANY_REQUESTS.into_response();
        }
        if behaviour == "nothing" {
            return StatusCode::BAD_GATEWAY.into_response();
        }
        let thing = json!({ "owner": body["owner"], "done": [], "address": format!("{name}.test"), "size": body["size"] });
        let place = format!("{}/{name}", text("team"));
        if !matches!(behaviour.as_str(), "poll" | "callback" | "astray") {
            book.things.insert(place, thing);
        }
        book.effects.push(format!("make {name}"));
    }
    match behaviour.as_str() {
        "poll" | "poll-fail" | "poll-never" => {
            (StatusCode::ACCEPTED, [(header::LOCATION, format!("/jobs/{name}~{behaviour}"))]).into_response()
        }
        // Where no credentials of this service's are to be sent.
        "astray" => (StatusCode::ACCEPTED, [(header::LOCATION, "http://127.0.0.2:9/jobs/1")]).into_response(),
        "break-once" if is_first => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "callback" => StatusCode::ACCEPTED.into_response(),
        // The work is done; its answer never comes.
        "lose" => {
            tokio::time::sleep(Duration::from_mins(1)).await;
            StatusCode::OK.into_response()
        }
        "break" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        // More than anybody reads.
        "huge" => Json(json!({ "address": "x".repeat(2 << 20) })).into_response(),
        _ => Json(json!({ "address": format!("{name}.test") })).into_response(),
    }
}

async fn show(
    State(machines): State<Machines>,
    headers: HeaderMap,
    Path((team, name)): Path<(String, String)>,
) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut book = machines.book();
    book.looks.push(read(&headers));
    if let Some(elsewhere) = &book.looks_elsewhere {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, elsewhere.clone())]).into_response();
    }
    match book.things.get(&format!("{team}/{name}")) {
        Some(thing) => Json(thing.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Changes a machine or restarts it; notes for which request, and may lose its answer after that.
async fn change(
    State(machines): State<Machines>,
    headers: HeaderMap,
    Path((team, name)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> StatusCode {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED;
    }
    let mut book = machines.book();
    let word = if body["size"].is_string() { "change" } else { "restart" };
    book.effects.push(format!("{word} {name}"));
    let Some(thing) = book.things.get_mut(&format!("{team}/{name}")) else { return StatusCode::NOT_FOUND };
    thing["done"].as_array_mut().unwrap().push(body["change"].clone());
    if word == "change" {
        thing["size"] = body["size"].clone();
    }
    if body["behaviour"] == "break" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
}

async fn remove(State(machines): State<Machines>, Path((team, name)): Path<(String, String)>) -> StatusCode {
    let mut book = machines.book();
    book.effects.push(format!("remove {name}"));
    match book.things.remove(&format!("{team}/{name}")) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}

async fn job(State(machines): State<Machines>, headers: HeaderMap, Path(job): Path<String>) -> Response {
    if !is_known(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (name, behaviour) = job.split_once('~').unwrap();
    let mut book = machines.book();
    book.looks.push(read(&headers));
    let asked = book.asked.entry(job.clone()).or_default();
    *asked += 1;
    let state = match (*asked, behaviour) {
        (1..3, _) | (_, "poll-never") => "working",
        (_, "poll-fail") => "failed",
        _ => "done",
    };
    let answer = json!({
        "state": state, "address": format!("{name}.test"), "message": "the disk is full", "password": "hunter2!",
    });
    Json(answer).into_response()
}
