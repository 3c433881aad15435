//! One call: what is sent, and what its answer means.

use super::{
    Http,
    plan::{Answer, CallPlan},
};
use crate::{
    outbound::{Call, Failure, HeaderMap, HeaderName, HeaderValue, Method, Reply, Url, Why},
    provisioner::{Context, Job, named_secrets::Known},
};
use domain::view::Object;
use minijinja::{Value as Template, value::Serde};
use serde_json::{Map, Value, json};

/// The longest reason that is taken out of an answer.
const LONGEST_REASON: usize = 500;

/// The header by which the other side can tell what belongs together.
const CORRELATION: &str = "keyturn-correlation-id";

/// What an answer, or its absence, means.
#[derive(Debug)]
pub(super) enum Mapped {
    /// It is done.
    Done(Object),
    /// It goes on; the address to ask at.
    InProgress(Option<String>),
    /// It came to nothing, and trying again will not help.
    Failed(String),
    /// It was never sent, and trying again will not help.
    NeverSent(String),
    /// It was not carried out; trying again may help.
    Retryable(String),
    /// It was taken in, so that it is never sent again; but the answer does not tell how one follows it, for this reason.
    Accepted(String),
    /// It may have been carried out.
    Doubt(String),
    /// It was stopped before it was sent, or while it was.
    Stopped,
}

impl Mapped {
    /// Why it is not done.
    pub(super) fn why(self) -> String {
        match self {
            Self::Failed(why)
            | Self::NeverSent(why)
            | Self::Retryable(why)
            | Self::Accepted(why)
            | Self::Doubt(why) => why,
            Self::Stopped => "it was stopped".into(),
            Self::Done(_) => "it is done".into(),
            Self::InProgress(_) => "it is in progress".into(),
        }
    }
}

/// How a call ended.
pub(super) enum Ended {
    /// With an answer, which is known now.
    Answered,
    /// Without one, which means this.
    Mapped(Mapped),
}

/// What templates and expressions know.
pub(super) struct Values {
    known: Map<String, Value>,
    secrets: Known,
    headers: HeaderMap,
    status: u16,
    called: Option<Url>,
}

impl Values {
    /// For the engine.
    pub(super) fn values(&self) -> Template {
        Template::from(Serde(&self.known))
    }

    /// The status of the answer.
    pub(super) fn status(&self) -> u16 {
        self.status
    }
}

impl Http {
    /// What a call for a job knows; an error where a secret is missing.
    pub(super) fn known(&self, job: &Job, context: &Context, operation: &str) -> Result<Values, String> {
        let mut secrets = self.plan.secrets.read()?;
        let mut values = Map::new();
        for (name, value) in [
            ("request_id", json!(job.request_id)),
            ("made_by", json!(job.made_by)),
            ("correlation_id", json!(job.correlation_id)),
            ("attempt", json!(job.attempt)),
            ("team", json!(job.team)),
            ("action", json!(job.action)),
            ("offering", json!(job.offering)),
            ("resource_type", json!(job.resource_type)),
            ("name", json!(job.name)),
            ("parameters", json!(job.parameters)),
            ("previous", json!(job.previous)),
            ("input", json!(job.input)),
            ("undo", json!(job.undo)),
            ("outputs", json!(job.outputs)),
            ("secrets", json!(secrets.all())),
        ] {
            values.insert(name.to_owned(), value);
        }
        if let Some(begun) = &context.begun {
            let callback = json!({ "url": begun.callback, "secret": begun.secret.reveal() });
            values.insert("callback".to_owned(), callback);
            secrets.and("callback", begun.secret.reveal());
        }
        let key = format!("{}-{}-{operation}", job.request_id, job.attempt);
        let mut headers = HeaderMap::new();
        for (name, value) in [("idempotency-key", &key), (CORRELATION, &job.correlation_id)] {
            let value =
                HeaderValue::from_bytes(value.as_bytes()).map_err(|_| format!("{name} is no header"))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Values { known: values, secrets, headers, status: 0, called: None })
    }

    /// Makes a planned call.
    pub(super) async fn send(
        &self,
        plan: &CallPlan,
        step: &str,
        known: &mut Values,
        context: &Context,
    ) -> Ended {
        let values = known.values();
        let body = match plan.body.as_ref().map(|body| body.filled(&self.texts, &values)).transpose() {
            Ok(body) => body,
            Err(why) => return wrong(step, "body", &why),
        };
        self.exchange((&plan.method, &plan.url, &plan.headers, body), step, known, context).await
    }

    /// Asks for something.
    pub(super) async fn get(
        &self,
        url: &str,
        headers: &[(String, String)],
        step: &str,
        known: &mut Values,
        context: &Context,
    ) -> Ended {
        self.exchange((&Method::GET, url, headers, None), step, known, context).await
    }

    async fn exchange(
        &self,
        (method, url, headers, body): (&Method, &str, &[(String, String)], Option<Value>),
        step: &str,
        known: &mut Values,
        context: &Context,
    ) -> Ended {
        let values = known.values();
        let address = match self.texts.address(url, &values) {
            Ok(address) => address,
            Err(why) => return wrong(step, "url", &why),
        };
        let filled = match self.headers(headers, known) {
            Ok(headers) => headers,
            Err(why) => return wrong(step, "headers", &why),
        };
        self.go(method.clone(), address, filled, body, step, known, context).await
    }

    #[expect(clippy::too_many_arguments, reason = "one call has as many parts")]
    async fn go(
        &self,
        method: Method,
        address: String,
        mut headers: HeaderMap,
        body: Option<Value>,
        step: &str,
        known: &mut Values,
        context: &Context,
    ) -> Ended {
        let Some(outbound) = &context.outbound else {
            return Ended::Mapped(Mapped::NeverSent("there is no way to the outside".into()));
        };
        let is_look = method == Method::GET;
        let mut call = Call::new(method, address.clone()).within(self.plan.call_within);
        if is_look {
            call = call.following(3);
            headers.extend(
                known.headers.get(CORRELATION).map(|id| (HeaderName::from_static(CORRELATION), id.clone())),
            );
        } else {
            headers.extend(known.headers.clone());
        }
        if let Some(body) = body {
            headers
                .entry(HeaderName::from_static("content-type"))
                .or_insert(HeaderValue::from_static("application/json"));
            call = call.body(body.to_string());
        }
        let sent = outbound.send(call.headers(headers));
        let ended = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Ended::Mapped(Mapped::Stopped),
            ended = sent => ended,
        };
        known.called = Url::parse(&address).ok();
        match ended {
            Ok(reply) => {
                if !is_look {
                    let line = format!("{step}: the service answered {}", reply.status.as_u16());
                    // A log that is not read any more is no reason to stop.
                    let _ = context.log.send(line).await;
                }
                known.answered(&reply);
                Ended::Answered
            }
            Err(failure) => {
                let why = known.secrets.masked(format!("{step}: {failure}"));
                Ended::Mapped(match failure {
                    Failure::NeverSent(Why::Connect { .. }) => Mapped::Retryable(why),
                    Failure::NeverSent(_) => Mapped::NeverSent(why),
                    Failure::InDoubt { .. } => Mapped::Doubt(why),
                })
            }
        }
    }

    fn headers(&self, templates: &[(String, String)], known: &Values) -> Result<HeaderMap, String> {
        let values = known.values();
        let mut headers = HeaderMap::new();
        for (name, template) in templates {
            let text = self.texts.text(template, &values).map_err(|why| format!("{name}: {why}"))?;
            let header: HeaderName = name.parse().map_err(|_| format!("{name} is no header"))?;
            let mut value = HeaderValue::from_bytes(text.as_bytes())
                .map_err(|_| format!("{name}: the value holds what a header cannot"))?;
            value.set_sensitive(true);
            headers.append(header, value);
        }
        Ok(headers)
    }

    /// Asks at an address that an answer gave.
    pub(super) async fn ask(&self, address: &str, known: &mut Values, context: &Context) -> Mapped {
        let Some(poll) = &self.plan.poll else { return Mapped::InProgress(None) };
        let headers = match self.headers(&poll.headers, known) {
            Ok(headers) => headers,
            Err(why) => return Mapped::Doubt(format!("poll: headers: {why}")),
        };
        match self.go(Method::GET, address.to_owned(), headers, None, "poll", known, context).await {
            Ended::Answered => self.judge(&poll.answer, known, false),
            Ended::Mapped(Mapped::NeverSent(why)) => Mapped::Doubt(why),
            Ended::Mapped(mapped) => mapped,
        }
    }

    /// What an answer means: first what the offering says of it, then what its status does.
    pub(super) fn judge(&self, answer: &Answer, known: &Values, removes: bool) -> Mapped {
        let judged = || -> Result<Mapped, String> {
            let values = known.values();
            let says = |expression: &Option<String>| match expression {
                Some(expression) => self.texts.is_so(expression, &values),
                None => Ok(false),
            };
            if says(&answer.failed)? {
                return Ok(Mapped::Failed(self.reason(answer, known)?));
            }
            if says(&answer.in_progress)? {
                return self.goes_on(answer, known);
            }
            if says(&answer.done)? {
                return Ok(Mapped::Done(self.outputs(&answer.outputs, known)?));
            }
            let waits = self.plan.poll.is_some() || self.plan.by_callback;
            let status = known.status();
            Ok(match status {
                202 if answer.in_progress.is_none() && answer.done.is_none() && waits => {
                    return self.goes_on(answer, known);
                }
                200..=299 if answer.done.is_none() => Mapped::Done(self.outputs(&answer.outputs, known)?),
                404 | 410 if removes => Mapped::Done(Object::new()),
                408 | 425 | 429 => Mapped::Retryable(format!("the service answered {status}")),
                400..=499 if answer.failed.is_none() => Mapped::Failed(self.reason(answer, known)?),
                _ => Mapped::Doubt(format!(
                    "the service answered {status}, which the offering does not explain"
                )),
            })
        };
        // Something was sent, so what its answer means is in doubt where the offering's own words fail.
        match judged().unwrap_or_else(|why| Mapped::Doubt(format!("the answer: {why}"))) {
            // That it was taken in is told by the status alone.
            Mapped::Doubt(why) if (200..300).contains(&known.status()) && !self.plan.idempotent => {
                Mapped::Accepted(why)
            }
            mapped => mapped,
        }
    }

    fn goes_on(&self, answer: &Answer, known: &Values) -> Result<Mapped, String> {
        let Some(expression) = &answer.poll else { return Ok(Mapped::InProgress(None)) };
        let found = self.texts.found(expression, &known.values())?;
        let Some(address) = found.as_ref().and_then(Value::as_str) else {
            if self.plan.by_callback || self.plan.observe.is_some() {
                return Ok(Mapped::InProgress(None));
            }
            return Err("it says that the work goes on, but not where one asks".into());
        };
        let called = known.called.as_ref().ok_or("nothing was called")?;
        let address = called.join(address).map_err(|_| "where one asks is no address")?;
        if address.origin() != called.origin() {
            // The headers of the question may hold credentials, which are for this service only.
            return Err("where one asks is another service".into());
        }
        Ok(Mapped::InProgress(Some(address.into())))
    }

    fn reason(&self, answer: &Answer, known: &Values) -> Result<String, String> {
        let found = match &answer.error {
            Some(expression) => self.texts.found(expression, &known.values())?,
            None => None,
        };
        let text = match found {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => return Ok(format!("the service refused it with {}", known.status())),
        };
        // Cut last, so that no secret is cut before it is looked for.
        Ok(cut(known.secrets.masked(text)))
    }

    /// Outputs out of an answer; what it does not hold is left out.
    pub(super) fn outputs(&self, plan: &[(String, String)], known: &Values) -> Result<Object, String> {
        let values = known.values();
        let mut outputs = Object::new();
        for (name, expression) in plan {
            if let Some(value) = self.texts.found(expression, &values)? {
                outputs.insert(name.clone(), value);
            }
        }
        Ok(outputs)
    }
}

impl Values {
    /// Takes an answer in.
    fn answered(&mut self, reply: &Reply) {
        self.status = reply.status.as_u16();
        let headers: Map<String, Value> = reply
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.into())))
            .collect();
        let body = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
        for (name, value) in
            [("status", self.status.into()), ("headers", Value::Object(headers)), ("body", body)]
        {
            self.known.insert(name.to_owned(), value);
        }
    }
}

/// A text that is no longer than a reason, with a sign where it was.
fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A text of the offering's that does not work; nothing was sent.
fn wrong(step: &str, what: &str, why: &str) -> Ended {
    Ended::Mapped(Mapped::NeverSent(format!("{step}: {what}: {why}")))
}
