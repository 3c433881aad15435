//! Kestra's public API, as far as it is used: start, look, search and kill executions.

use super::{Flow, Kestra};
use crate::{
    outbound::{Call, Failure, HeaderMap, HeaderValue, Method, Reply, StatusCode, Why, header},
    provisioner::{Context, Job, Work, http::texts::encoded, named_secrets::Known},
};
use domain::{id::RequestId, view::Object};
use minijinja::{Value as Template, value::Serde};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write};

/// The labels that an execution bears: whose it is, and for what.
const CORRELATION: &str = "system.correlationId";
const REQUEST: &str = "keyturn.requestId";
const ATTEMPT: &str = "keyturn.attempt";
const WORK: &str = "keyturn.work";
/// How many executions of one request are looked at.
const PAGE: usize = 100;

/// An execution, as far as it matters.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Execution {
    /// Its ID.
    pub(super) id: String,
    state: State,
    #[serde(default)]
    labels: Labels,
    /// Its outputs.
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) outputs: Object,
}

#[derive(Debug, Clone, Deserialize)]
struct State {
    current: String,
}

/// Labels, which are written as a list of keys and values or as one object.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Labels {
    List(Vec<Label>),
    Object(BTreeMap<String, Value>),
    Nothing(()),
}

impl Default for Labels {
    fn default() -> Self {
        Self::Nothing(())
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Label {
    key: String,
    value: Value,
}

#[derive(Debug, Deserialize)]
struct Page {
    results: Vec<Execution>,
    #[serde(default)]
    total: usize,
}

fn or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
    Ok(Option::<Object>::deserialize(deserializer)?.unwrap_or_default())
}

/// How far an execution has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It came to its end and did what it is for.
    Done,
    /// It goes on, or waits to.
    Going,
    /// It came to another end.
    Over,
}

impl Execution {
    /// How far it has come. A state that is not known here is one that goes on.
    pub(super) fn stage(&self) -> Stage {
        match self.state.current.as_str() {
            "SUCCESS" | "WARNING" => Stage::Done,
            "FAILED" | "KILLED" | "CANCELLED" | "SKIPPED" | "RETRIED" => Stage::Over,
            _ => Stage::Going,
        }
    }

    /// How it ended, in words.
    pub(super) fn ended(&self) -> String {
        format!("execution {} of Kestra ended as {}", self.id, self.state.current)
    }

    fn label(&self, key: &str) -> Option<String> {
        let value = match &self.labels {
            Labels::List(labels) => labels.iter().find(|label| label.key == key).map(|label| &label.value),
            Labels::Object(labels) => labels.get(key),
            Labels::Nothing(()) => None,
        }?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }
}

/// Why something could not be done.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is asked by itself, and most trouble is none of them"
)]
pub(super) struct Trouble {
    /// In words.
    pub(super) why: String,
    /// Whether it may have been done all the same.
    pub(super) doubt: bool,
    /// Whether trying again may help.
    pub(super) passing: bool,
    /// Whether it was stopped.
    pub(super) stopped: bool,
    /// Whether Kestra said no; otherwise, without a doubt, nobody was asked.
    pub(super) refused: bool,
}

impl Kestra {
    /// Starts a flow.
    pub(super) async fn post(
        &self,
        flow: &Flow,
        job: &Job,
        work: Work,
        context: &Context,
    ) -> Result<Execution, Trouble> {
        let secrets = self.secrets()?;
        let body = self.form(flow, job, context, &secrets)?;
        let labels = labels(job, work);
        let query: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("labels={}", encoded(&format!("{key}:{value}"))))
            .collect();
        let path = format!("/{}/{}?{}", encoded(&flow.namespace), encoded(&flow.id), query.join("&"));
        let mut call = self.call(Method::POST, &path, &secrets)?;
        let boundary = format!("multipart/form-data; boundary={}", boundary(job.request_id));
        call.1.insert(header::CONTENT_TYPE, value(&boundary)?);
        let key = format!("{}-{}-{}", job.request_id, job.attempt, work.as_str());
        call.1.insert("idempotency-key", value(&key)?);
        call.1.insert("keyturn-correlation-id", value(&job.correlation_id)?);
        let reply = self.exchange(call.0.headers(call.1).body(body), &secrets, context).await?;
        if reply.status.is_success() {
            return serde_json::from_slice(&reply.body).map_err(|_| Trouble {
                why: "Kestra started something, but did not say what".into(),
                doubt: true,
                ..Trouble::default()
            });
        }
        Err(refused(reply.status, "start the flow"))
    }

    /// One execution; nothing if there is none of this ID.
    pub(super) async fn execution(&self, id: &str, context: &Context) -> Result<Option<Execution>, Trouble> {
        let secrets = self.secrets()?;
        let (call, headers) = self.call(Method::GET, &format!("/{}", encoded(id)), &secrets)?;
        let reply = self.exchange(call.headers(headers), &secrets, context).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                serde_json::from_slice(&reply.body).map(Some).map_err(|_| unreadable())
            }
            status => Err(refused(status, "show an execution")),
        }
    }

    /// The execution of a request's work, in whatever state. Of several the one that has come furthest.
    pub(super) async fn search(
        &self,
        job: &Job,
        work: Work,
        context: &Context,
    ) -> Result<Option<Execution>, Trouble> {
        let secrets = self.secrets()?;
        let filter = encoded(&format!("filters[labels][EQUALS][{REQUEST}]"));
        let path = format!("/search?{filter}={}&page=1&size={PAGE}", job.request_id);
        let (call, headers) = self.call(Method::GET, &path, &secrets)?;
        let reply = self.exchange(call.headers(headers), &secrets, context).await?;
        if !reply.status.is_success() {
            return Err(refused(reply.status, "search executions"));
        }
        let page: Page = serde_json::from_slice(&reply.body).map_err(|_| unreadable())?;
        let whole = page.total <= page.results.len();
        // What the search answers is not taken at its word: a filter that it does not know, it may pass over.
        let wanted = &labels(job, work)[1..];
        let is_wanted = |execution: &Execution| {
            wanted.iter().all(|(key, value)| execution.label(key).as_ref() == Some(value))
        };
        let mut found: Vec<Execution> = page.results.into_iter().filter(is_wanted).collect();
        if found.is_empty() && !whole {
            return Err(Trouble {
                why: "Kestra's search found more than it shows, and nothing of this request among it".into(),
                ..Trouble::default()
            });
        }
        found.sort_by_key(Execution::stage);
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(|execution| execution.id.as_str()).collect();
            let line = format!(
                "{} executions bear this request's labels, of which the first counts: {}",
                ids.len(),
                ids.join(", ")
            );
            // A log that is not read any more is no reason to stop.
            let _ = context.log.send(line).await;
        }
        Ok(found.into_iter().next())
    }

    /// Ends an execution that goes on.
    pub(super) async fn kill(&self, id: &str, context: &Context) -> Result<(), Trouble> {
        let secrets = self.secrets()?;
        let (call, headers) = self.call(Method::DELETE, &format!("/{}/kill", encoded(id)), &secrets)?;
        let reply = self.exchange(call.headers(headers), &secrets, context).await?;
        match reply.status {
            // It ended meanwhile.
            StatusCode::NOT_FOUND | StatusCode::CONFLICT => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(refused(status, "kill an execution")),
        }
    }

    fn secrets(&self) -> Result<Known, Trouble> {
        self.plan.secrets.read().map_err(|why| Trouble { why, passing: true, ..Trouble::default() })
    }

    fn call(&self, method: Method, path: &str, secrets: &Known) -> Result<(Call, HeaderMap), Trouble> {
        let (base, tenant) = (self.plan.url.trim_end_matches('/'), encoded(&self.plan.tenant));
        let address = format!("{base}/api/v1/{tenant}/executions{path}");
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = secrets.all().get("token") {
            let mut bearer = value(&format!("Bearer {token}"))?;
            bearer.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, bearer);
        }
        Ok((Call::new(method, address).within(self.plan.call_within), headers))
    }

    async fn exchange(&self, call: Call, secrets: &Known, context: &Context) -> Result<Reply, Trouble> {
        let Some(outbound) = &context.outbound else {
            return Err(Trouble { why: "there is no way to the outside".into(), ..Trouble::default() });
        };
        tokio::select! {
            biased;
            () = context.stop.cancelled() => {
                Err(Trouble { why: "it was stopped".into(), stopped: true, ..Trouble::default() })
            }
            ended = outbound.send(call) => ended.map_err(|failure| Trouble {
                why: secrets.masked(format!("Kestra: {failure}")),
                doubt: matches!(failure, Failure::InDoubt { .. }),
                passing: matches!(failure, Failure::NeverSent(Why::Connect { .. })),
                ..Trouble::default()
            }),
        }
    }

    /// The inputs as a form of several parts (RFC 7578).
    fn form(&self, flow: &Flow, job: &Job, context: &Context, secrets: &Known) -> Result<String, Trouble> {
        let callback = context.begun.as_ref();
        let known = Template::from(Serde(json!({
            "request_id": job.request_id,
            "made_by": job.made_by,
            "correlation_id": job.correlation_id,
            "attempt": job.attempt,
            "team": job.team,
            "action": job.action,
            "offering": job.offering,
            "resource_type": job.resource_type,
            "name": job.name,
            "parameters": job.parameters,
            "previous": job.previous,
            "input": job.input,
            "undo": job.undo,
            "outputs": job.outputs,
            "secrets": secrets.all(),
            "callback": callback.map(|begun| json!({ "url": begun.callback, "secret": begun.secret.reveal() })),
        })));
        let boundary = boundary(job.request_id);
        let mut form = String::new();
        for (name, shape) in &flow.inputs {
            let value = shape
                .filled(&self.texts, &known)
                .map_err(|why| Trouble { why: format!("the input {name:?}: {why}"), ..Trouble::default() })?;
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            if text.contains(&boundary) {
                let why = format!("the input {name:?} holds what separates inputs");
                return Err(Trouble { why, ..Trouble::default() });
            }
            // Writing into a String does not fail.
            let _ = write!(
                form,
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
            );
        }
        let _ = write!(form, "--{boundary}--\r\n");
        Ok(form)
    }
}

/// What tells the execution of a request's work from every other; the first is for people.
fn labels(job: &Job, work: Work) -> [(&'static str, String); 4] {
    [
        (CORRELATION, job.correlation_id.clone()),
        (REQUEST, job.request_id.to_string()),
        (ATTEMPT, job.attempt.to_string()),
        (WORK, work.as_str().to_owned()),
    ]
}

fn boundary(request: RequestId) -> String {
    format!("keyturn-{}", request.0.simple())
}

fn value(text: &str) -> Result<HeaderValue, Trouble> {
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| Trouble { why: "a header would hold what it cannot".into(), ..Trouble::default() })
}

fn unreadable() -> Trouble {
    Trouble { why: "Kestra's answer is none of its API".into(), ..Trouble::default() }
}

fn refused(status: StatusCode, what: &str) -> Trouble {
    let passing = matches!(status.as_u16(), 408 | 425 | 429);
    Trouble {
        why: format!("Kestra answered {} when asked to {what}", status.as_u16()),
        doubt: !status.is_client_error(),
        passing,
        stopped: false,
        refused: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(body: &Value) -> Execution {
        serde_json::from_value(body.clone()).unwrap()
    }

    #[test]
    fn every_state_of_kestra_means_one_thing() {
        let stage = |state: &str| execution(&json!({ "id": "e", "state": { "current": state } })).stage();
        for done in ["SUCCESS", "WARNING"] {
            assert_eq!(stage(done), Stage::Done, "{done}");
        }
        for over in ["FAILED", "KILLED", "CANCELLED", "SKIPPED", "RETRIED"] {
            assert_eq!(stage(over), Stage::Over, "{over}");
        }
        // What is not known here may be new: its end is awaited, not guessed.
        for going in [
            "CREATED",
            "QUEUED",
            "RUNNING",
            "PAUSED",
            "RESTARTED",
            "RETRYING",
            "KILLING",
            "BREAKPOINT",
            "SUBMITTED",
            "SOMETHING_NEW",
        ] {
            assert_eq!(stage(going), Stage::Going, "{going}");
        }
    }

    #[test]
    fn labels_are_read_however_they_are_written() {
        let state = json!({ "current": "RUNNING" });
        for labels in [
            json!([{ "key": REQUEST, "value": "r" }, { "key": "n", "value": 1 }]),
            json!({ REQUEST: "r", "n": 1 }),
        ] {
            let found = execution(&json!({ "id": "e", "state": state, "labels": labels, "outputs": null }));
            assert_eq!(
                (found.label(REQUEST).as_deref(), found.label("n").as_deref()),
                (Some("r"), Some("1"))
            );
            assert_eq!(found.label("other"), None);
        }
        for without in
            [json!({ "id": "e", "state": state }), json!({ "id": "e", "state": state, "labels": null })]
        {
            assert_eq!(execution(&without).label(REQUEST), None);
        }
    }
}
