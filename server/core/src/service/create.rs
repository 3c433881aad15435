//! A new request for a new resource.

use super::{Arrival, Inner, Portal, labels, lineage::Lineage, schema_digest};
use crate::{
    Answer, AnswerKind, Answered, Caller, Error, Result,
    catalog::{Offering, ParameterSchema},
    guard,
    settled::Told,
    store::{
        Arrived, Claim, Confirmation, Effect, Hold, Scope, SecondLook, StoredRequest, Submission, Submitted,
        Turn,
    },
};
use bytes::Bytes;
use domain::{
    action,
    command::{Command, Operation},
    correlation::CorrelationId,
    id::{RequestId, ResourceId},
    json,
    label::SentLabels,
    name::Name,
    problem::{FieldError, ProblemKind},
    role::TeamAct,
    state::RequestState,
    submission::Channel,
    time::Moment,
    view::{Object, RequestView},
};
use serde_json::Value;
use std::sync::Arc;

/// The members that the body of a create may have.
const MEMBERS: [&str; 7] =
    ["offering", "name", "parameters", "labels", "correlation_id", "parent_id", "confirm_duplicate"];

/// The members of a confirmation.
const CONFIRMED: [&str; 2] = ["of", "reason"];

/// The longest reason for which another of the same is wanted, in characters.
const LONGEST_REASON: usize = 500;

/// A create as it was sent: parsed, but not yet understood by any schema.
pub(super) struct Sent {
    body: Object,
    labels: Vec<String>,
    told: Told,
}

impl Sent {
    pub(super) fn read(body: &[u8], labels: Vec<String>) -> Result<Self> {
        let told = Told::of(body, &labels);
        let Value::Object(body) = json::read(body)? else {
            return Err(Error::new(ProblemKind::InvalidJson, "The body must be one JSON object."));
        };
        if let Some(unknown) = body.keys().find(|member| !MEMBERS.contains(&member.as_str())) {
            let known = MEMBERS.join(", ");
            return Err(Error::new(
                ProblemKind::InvalidJson,
                format!("The member {unknown:?} is not known. Known members: {known}."),
            ));
        }
        let known = |told: &Object| told.keys().all(|member| CONFIRMED.contains(&member.as_str()));
        let confirmation = body.get("confirm_duplicate").filter(|told| !told.is_null());
        if confirmation.is_some_and(|told| told.as_object().is_none_or(|told| !known(told))) {
            return Err(Error::new(
                ProblemKind::InvalidJson,
                format!("confirm_duplicate: must be an object with the members {}.", CONFIRMED.join(" and ")),
            ));
        }
        Ok(Self { body, labels, told })
    }

    /// What is hashed of it: everything that can carry meaning, but not a confirmation.
    fn hashed(&self) -> Value {
        let mut body = self.body.clone();
        body.remove("confirm_duplicate");
        serde_json::json!({ "operation": "create", "body": json::without_nulls(Value::Object(body)), "labels": self.labels })
    }

    /// What the sender says about an earlier request that looks the same.
    pub(super) fn confirmation(&self) -> Result<Option<Confirmation>> {
        let Some(Value::Object(told)) = self.body.get("confirm_duplicate") else { return Ok(None) };
        let text = |member| told.get(member).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let of = text("of").parse().map_err(|_| {
            Error::field(
                "/confirm_duplicate/of",
                "must be the ID of the earlier request, as the question named it",
            )
        })?;
        let reason = text("reason");
        if !(1..=LONGEST_REASON).contains(&reason.chars().count()) || reason.chars().any(char::is_control) {
            let rule = "must say why another is wanted, in 1 to 500 characters of one line";
            return Err(Error::field("/confirm_duplicate/reason", rule));
        }
        Ok(Some(Confirmation { of, reason: reason.to_owned() }))
    }

    fn offering(&self) -> Result<Name, FieldError> {
        match self.text("/offering", "offering")? {
            Some(id) => Name::parse(id).map_err(|error| field("/offering", error)),
            None => Err(field("/offering", "name the offering")),
        }
    }

    fn text(&self, pointer: &str, member: &str) -> Result<Option<&str>, FieldError> {
        match self.body.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(field(pointer, "must be a string")),
        }
    }

    /// The command that it means under a schema; or every value that does not fit.
    pub(super) fn command(&self, schema: &ParameterSchema) -> Result<Command, Vec<FieldError>> {
        let mut wrong = Vec::new();
        let offering = keep(self.offering(), &mut wrong);
        let name = keep(
            self.text("/name", "name").and_then(|name| {
                Name::parse(name.unwrap_or_default()).map_err(|error| field("/name", error))
            }),
            &mut wrong,
        );
        let mut labels = self.read_labels(&mut wrong);
        let correlated = match self.text("/correlation_id", "correlation_id") {
            Ok(Some(id)) => labels.correlate(id).map_err(|error| field("/correlation_id", error)),
            other => other.map(|_| ()),
        };
        wrong.extend(correlated.err());
        let (labels, correlation) = labels.into_parts();
        let parent_id = match self.text("/parent_id", "parent_id") {
            Ok(id) => id.and_then(|id| {
                keep(id.parse::<RequestId>().map_err(|error| field("/parent_id", error)), &mut wrong)
            }),
            Err(error) => {
                wrong.push(error);
                None
            }
        };
        let parameters = match self.body.get("parameters") {
            None | Some(Value::Null) => Some(Object::new()),
            Some(Value::Object(parameters)) => Some(parameters.clone()),
            Some(_) => {
                wrong.push(field("/parameters", "must be an object"));
                None
            }
        };
        let parameters = parameters.and_then(|sent| match schema.normalise(sent) {
            Ok(parameters) => Some(parameters),
            Err(errors) => {
                wrong.extend(errors);
                None
            }
        });
        match parameters {
            Some(parameters) if wrong.is_empty() => Ok(Command {
                operation: Operation::Create,
                target: None,
                action: None,
                offering,
                name,
                parameters,
                labels,
                correlation_id: correlation.map(|id| id.to_string()),
                parent_id,
            }),
            _ => Err(wrong),
        }
    }

    /// The parameters as they were sent.
    fn parameters(&self) -> Object {
        self.body.get("parameters").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// The names of what differs from a first command, where the schema cannot say it because something does not fit.
    fn misfits(
        &self,
        first: &Command,
        mut parameters: Object,
        schema: Option<&ParameterSchema>,
    ) -> Vec<String> {
        // What cannot be read is not what was accepted first.
        let mut differs = Vec::new();
        let mut wrong = Vec::new();
        let (labels, labelled) = self.read_labels(&mut wrong).into_parts();
        if !wrong.is_empty() {
            differs.push("labels".to_owned());
        }
        let mut unless_read = |member: &str, wrong: bool| {
            if wrong {
                differs.push(member.to_owned());
            }
        };
        let correlation = self
            .text("", "correlation_id")
            .and_then(|text| text.map(CorrelationId::parse).transpose().map_err(|error| field("", error)));
        unless_read("correlation_id", correlation.is_err());
        let parent = self
            .text("", "parent_id")
            .and_then(|text| text.map(str::parse::<RequestId>).transpose().map_err(|error| field("", error)));
        unless_read("parent_id", parent.is_err());
        let sent = self.body.get("parameters");
        unless_read("parameters", sent.is_some_and(|sent| !sent.is_object() && !sent.is_null()));
        parameters.retain(|_, value| !value.is_null());
        for (name, value) in &first.parameters {
            let default = schema.and_then(|schema| schema.value()["properties"][name].get("default"));
            if !parameters.contains_key(name) && default == Some(value) {
                parameters.insert(name.clone(), value.clone());
            }
        }
        let name = |member| self.text("", member).ok().flatten().and_then(|text| Name::parse(text).ok());
        differs.extend(first.differences(&Command {
            operation: Operation::Create,
            target: None,
            action: None,
            offering: name("offering"),
            name: name("name"),
            parameters,
            labels,
            correlation_id: correlation.ok().flatten().or(labelled).map(|id| id.to_string()),
            parent_id: parent.ok().flatten(),
        }));
        differs.sort();
        differs.dedup();
        differs
    }

    /// The correlation ID that it carries, wherever it is well-formed and clear.
    fn correlation(&self) -> Option<CorrelationId> {
        let (_, labelled) = self.read_labels(&mut Vec::new()).into_parts();
        match self.text("", "correlation_id") {
            Ok(Some(id)) => CorrelationId::parse(id).ok(),
            _ => labelled,
        }
    }

    /// Labels of the body, as an object or as `key:value` texts, and those of the address.
    fn read_labels(&self, wrong: &mut Vec<FieldError>) -> SentLabels {
        let mut pairs: Vec<(String, String)> = Vec::new();
        match self.body.get("labels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (key, value) in labels {
                    match value {
                        Value::Null => {}
                        Value::String(value) => pairs.push((key.clone(), value.clone())),
                        _ => wrong.push(field("/labels", "a label's value must be a string")),
                    }
                }
            }
            Some(Value::Array(labels)) => {
                for text in labels {
                    match text {
                        Value::String(text) => pairs.extend(labels::split(std::slice::from_ref(text), wrong)),
                        _ => wrong.push(field("/labels", "a label is a string, key:value")),
                    }
                }
            }
            Some(_) => wrong.push(field("/labels", "must be an object of strings")),
        }
        pairs.extend(labels::split(&self.labels, wrong));
        labels::read(pairs, wrong)
    }
}

fn field(pointer: &str, detail: impl std::fmt::Display) -> FieldError {
    FieldError { pointer: pointer.to_owned(), detail: detail.to_string() }
}

fn keep<T>(result: Result<T, FieldError>, wrong: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|error| wrong.push(error)).ok()
}

/// The hash by which parameters after defaults are compared.
pub(super) fn parameter_hash(parameters: &Object) -> [u8; 32] {
    *blake3::hash(&json::canonical(&Value::Object(parameters.clone()))).as_bytes()
}

/// How a create is told from an earlier one that may mean the same; nothing where its offering does not ask.
pub(super) fn second_look(
    offering: &Offering,
    command: &Command,
    confirmed: Option<Confirmation>,
    channel: Channel,
    now: Moment,
) -> Option<SecondLook> {
    let window = offering.duplicate_window?;
    let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    Some(SecondLook {
        parameters: parameter_hash(&command.parameters),
        since: Moment::from_millis(now.millis().saturating_sub(window)),
        askable: channel.can_answer(),
        confirmed,
    })
}

impl Portal {
    /// Requests a new resource; or answers as the first submission with this key was answered.
    ///
    /// `labels` are those of the address, as `key:value`.
    pub async fn create_request(
        &self,
        caller: &Caller,
        team: &str,
        arrival: Arrival,
        body: Bytes,
        labels: Vec<String>,
    ) -> Result<Answered> {
        let (key, now) = (arrival.key()?, self.0.clock.now());
        let read = Sent::read(&body, labels);
        let sent = self.0.readable(read, (caller, team), &arrival, Operation::Create).await?;
        let found = self.0.visible_team(caller, team).await;
        let team = self.0.seen(found, (caller, team), &arrival, Operation::Create).await?;
        let mut arrived = self.0.arrived(caller, team.as_str(), key, Operation::Create, now);
        arrived.correlation_id = sent.correlation().map(|id| id.to_string());
        let mut waited = false;
        let result = self.0.create(caller, &team, &arrived, &sent, (now, None), &mut waited).await;
        self.0.record(arrived, &result, waited);
        result
    }
}

impl Inner {
    pub(super) async fn create(
        &self,
        caller: &Caller,
        team: &Name,
        arrived: &Arrived,
        sent: &Sent,
        (now, by): (Moment, Option<Hold>),
        waited: &mut bool,
    ) -> Result<Answered> {
        if let Some(answered) = self.settled.answer(&arrived.scope, sent.told, now) {
            return Ok(answered);
        }
        if let Some(found) = self.looked_up(&arrived.scope).await? {
            return self.repeat_create(&arrived.scope, found, sent, now).await;
        }
        caller.must(TeamAct::Request, team)?;
        if let Some(answered) =
            self.accept(caller, team, arrived.clone(), sent, &sent.hashed(), (now, by)).await?
        {
            return Ok(answered);
        }
        *waited = true;
        let found = self.looked_up(&arrived.scope).await?.ok_or_else(Error::not_found)?;
        self.repeat_create(&arrived.scope, found, sent, now).await
    }

    /// Takes in what may be the first with its key; nothing where another came first meanwhile.
    ///
    /// `hashed` is what makes a repeat the same before any schema is asked.
    pub(super) async fn accept(
        &self,
        caller: &Caller,
        team: &Name,
        mut arrived: Arrived,
        sent: &Sent,
        hashed: &Value,
        (now, by): (Moment, Option<Hold>),
    ) -> Result<Option<Answered>> {
        let offering = self.offering(sent)?;
        let mut command = sent.command(&offering.schema).map_err(Error::fields)?;
        let confirmed = sent.confirmation()?;
        let lineage = self.lineage(caller, team, &command).await?;
        // By its true values; what is kept of it holds none.
        let meaning = guard::meaning(&self.keys, &command, hashed);
        let hidden = self.hide_created(team, &offering, caller.channel, &mut command.parameters).await?;

        let second_look = second_look(&offering, &command, confirmed, caller.channel, now);
        let request = self.new_request(caller, team, &offering, &command, &lineage, now);
        let answer = Answer::of_request(AnswerKind::Accepted, &request.view)?;
        arrived.request = Some(request.view.id);
        arrived.correlation_id = Some(request.view.correlation_id.clone());
        arrived.labels = serde_json::to_string(&lineage.labels).map_err(Error::internal)?;
        let schema_digest = schema_digest(offering.schema.value());
        let asked_for = request.view.clone();
        let cost = offering.quota_cost;
        let hidden = match &hidden {
            Some(hidden) => self.seal_hidden(request.view.id, hidden)?,
            None => None,
        };
        let effect =
            Effect::Create { request: Box::new(request), schema_digest, answer, second_look, hidden, cost };
        let submission = Submission {
            meaning,
            arrived,
            command: Some(command),
            effect: match by {
                Some(hold) => Effect::Step(hold, Box::new(effect)),
                None => effect,
            },
            turn: Turn::default(),
        };
        match guard::submit(self.store.as_ref(), submission, self.settings.guard.wait).await? {
            Submitted::Repeat(_) => Ok(None),
            Submitted::NameTaken(holder) => Err(guard::name_taken(&holder, &asked_for)),
            Submitted::QuotaExceeded(short) => Err(guard::quota_exceeded(team.as_str(), short)),
            Submitted::Suspected(earlier) => Err(guard::suspected(&earlier, &asked_for)),
            other => self.first(other, now).map(Some),
        }
    }

    /// A repeat is understood under the offering as it stood when the first was accepted.
    async fn repeat_create(
        &self,
        scope: &Scope,
        (claim, request): (Claim, Option<StoredRequest>),
        sent: &Sent,
        at: Moment,
    ) -> Result<Answered> {
        let again = |claim: Claim| {
            let answered = guard::replay(claim, request.as_ref(), &self.settings.guard, at);
            self.settled.remember(scope, sent.told, &answered);
            Ok(answered)
        };
        let key = self.key_of(claim.meaning.key_version).await?;
        if claim.meaning.body_hash == guard::body_hash(&key, &sent.hashed()) {
            return again(claim);
        }
        if claim.schema_digest.is_none() {
            return Err(guard::reused(&claim, vec!["operation".into()]));
        }
        let schema = match &claim.schema_digest {
            Some(digest) => self.kept_schema(digest).await?,
            None => None,
        };
        let command = schema.as_ref().and_then(|schema| sent.command(schema).ok());
        if let Some(command) = &command
            && claim.meaning.fingerprint == key.fingerprint(&command.canonical())
        {
            return again(claim);
        }
        let Some(first) = guard::first_command(&claim, request.as_ref()) else {
            return Err(guard::reused(&claim, Vec::new()));
        };
        // What is kept of the first holds marks, so they are compared.
        let mut parameters = command.as_ref().map_or_else(|| sent.parameters(), |one| one.parameters.clone());
        if let (Some(schema), Some(request)) = (&schema, &request) {
            let view = &request.view;
            self.marked_like(&view.team, &view.offering, schema, &mut parameters).await?;
        }
        let differs = match command {
            Some(command) => first.differences(&Command { parameters, ..command }),
            None => sent.misfits(&first, parameters, schema.as_ref()),
        };
        Err(guard::reused(&claim, differs))
    }

    /// A schema as it stood when it was kept.
    pub(super) async fn kept_schema(&self, digest: &str) -> Result<Option<ParameterSchema>> {
        let Some(schema) = self.store.schema(digest).await? else {
            return Ok(None);
        };
        let schema: Value = serde_json::from_str(&schema).map_err(Error::internal)?;
        ParameterSchema::compile(&schema).map(Some).map_err(Error::internal)
    }

    pub(super) fn offering(&self, sent: &Sent) -> Result<Arc<Offering>> {
        let id = sent.offering().map_err(|error| Error::fields(vec![error]))?;
        if let Some(offering) = self.catalog.get(&id) {
            return Ok(Arc::clone(offering));
        }
        if self.catalog.broken().iter().any(|broken| broken.id == id.as_str()) {
            return Err(Error::new(
                ProblemKind::OfferingUnavailable,
                format!(
                    "The offering {id} has a mistake in the catalog. Nothing was changed; try again later."
                ),
            )
            .after(std::time::Duration::from_mins(1)));
        }
        Err(Error {
            fields: vec![field("/offering", format!("there is no offering {id}"))],
            ..Error::new(ProblemKind::UnknownOffering, format!("There is no offering {id} in the catalog."))
        })
    }

    pub(super) fn new_request(
        &self,
        caller: &Caller,
        team: &Name,
        offering: &Offering,
        command: &Command,
        lineage: &Lineage,
        now: Moment,
    ) -> StoredRequest {
        let id = RequestId(self.ids.uuid(now));
        let correlation_id = lineage.correlation_id.clone().unwrap_or_else(|| id.to_string());
        let approval = offering.approval_of(action::CREATE);
        let view = RequestView {
            id,
            team: team.clone(),
            offering: offering.id.clone(),
            offering_version: offering.version.clone(),
            resource_type: offering.resource_type.clone(),
            name: command.name.clone().unwrap_or_else(|| offering.id.clone()),
            action: Operation::Create.as_str().to_owned(),
            state: if approval.is_some() { RequestState::PendingApproval } else { RequestState::Queued },
            reason: None,
            attempt: 1,
            parameters: command.parameters.clone(),
            patch: None,
            desired: None,
            labels: lineage.labels.shown_with(&correlation_id),
            correlation_id,
            parent_id: command.parent_id,
            requested_by: caller.name.clone(),
            channel: caller.channel,
            outputs: Object::new(),
            secret_outputs: Vec::new(),
            created_at: now,
            updated_at: now,
            finished_at: None,
            duplicate: None,
            approval: approval.map(|needed| needed.asked_at(now)),
        };
        StoredRequest { view, principal: caller.id, resource: ResourceId(self.ids.uuid(now)) }
    }
}
