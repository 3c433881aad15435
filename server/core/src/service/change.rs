//! Changes of a resource that is there: updates, deletes, and what its offering defines.
//!
//! What a change comes to is worked out in the transaction that accepts it, on what the resource is at that moment. The
//! order is the same as everywhere: replay, rights, parameters, precondition, name.

use super::{
    Arrival, Inner, Portal,
    hidden::{Secrets, met_another},
    labels, schema_digest,
};
use crate::{
    Answered, Caller, Error, Result,
    catalog::{Action, Catalog, Offering, ParameterSchema},
    guard,
    hidden::Hidden,
    store::{
        Arrived, Claim, Delta, Effect, Meaning, NewChange, Plan, Planned, StoredRequest, StoredResource,
        Submission, Submitted, Turn,
    },
};
use bytes::Bytes;
use domain::{
    action, change,
    command::{Command, Operation},
    correlation::CorrelationId,
    etag::IfMatch,
    id::{RequestId, ResourceId},
    json,
    label::Labels,
    merge,
    name::Name,
    problem::{FieldError, ProblemKind, Versions},
    role::TeamAct,
    time::Moment,
    view::{Object, ResourceView},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Which resource is meant, as the address spells it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The team.
    pub team: String,
    /// The resource's type.
    pub kind: String,
    /// The resource's name.
    pub name: String,
}

/// A change as it was sent: parsed, but not yet understood by any schema.
pub(super) struct Sent {
    pub(super) operation: Operation,
    /// The action's ID, where it is one.
    action: Option<String>,
    /// `team/type/name`.
    target: String,
    pub(super) team: Name,
    kind: Result<Name>,
    name: Result<Name>,
    /// The patch of an update, the parameters of an action; a delete has none.
    body: Object,
    /// Labels of the address, as they were sent.
    labels: Vec<String>,
    if_match: IfMatch,
}

/// A change that was understood, as far as it can be before the resource is locked.
pub(super) struct Meant {
    pub(super) kind: Name,
    pub(super) name: Name,
    /// With marks in the place of secrets.
    pub(super) command: Command,
    meaning: Meaning,
    /// The secrets that it brings.
    brought: Hidden,
    /// The digest of the schema of an action's parameters.
    schema_digest: Option<String>,
    pub(super) plan: Plan,
}

impl Sent {
    pub(super) fn of(
        team: Name,
        target: &Target,
        (operation, action): (Operation, Option<&str>),
        body: Object,
        labels: Vec<String>,
        arrival: &Arrival,
    ) -> Self {
        Self {
            operation,
            action: action.map(str::to_owned),
            target: format!("{team}/{}/{}", target.kind, target.name),
            kind: Name::parse(&target.kind).map_err(|_| Error::not_found()),
            name: Name::parse(&target.name).map_err(|_| Error::not_found()),
            if_match: IfMatch::read(arrival.if_match.iter().map(Vec::as_slice)),
            team,
            body,
            labels,
        }
    }

    /// What is hashed of it: everything that can carry meaning. In a patch that includes its nulls.
    fn hashed(&self) -> Value {
        let body = Value::Object(self.body.clone());
        let body = if self.operation == Operation::Update { body } else { json::without_nulls(body) };
        serde_json::json!({
            "operation": self.operation.as_str(), "action": self.action, "target": self.target, "body": body,
            "labels": self.labels,
        })
    }

    /// The command that it means, with these parameters.
    fn command(&self, parameters: Object, labels: Labels, correlation: Option<&CorrelationId>) -> Command {
        Command {
            action: self.action.clone(),
            labels,
            correlation_id: correlation.map(ToString::to_string),
            ..Command::on(self.operation, self.target.clone(), parameters)
        }
    }

    /// The command that it means under the schema of an action's parameters, where it is one; or all that does not fit.
    fn understood(&self, schema: Option<&ParameterSchema>) -> Result<Command, Vec<FieldError>> {
        let mut wrong = Vec::new();
        let sent_labels = labels::read(labels::split(&self.labels, &mut wrong), &mut wrong);
        let (labels, correlation) = sent_labels.into_parts();
        let parameters = match schema {
            None => self.body.clone(),
            Some(schema) => schema.normalise(self.body.clone()).unwrap_or_else(|errors| {
                wrong.extend(errors.into_iter().map(in_body));
                Object::new()
            }),
        };
        if wrong.is_empty() { Ok(self.command(parameters, labels, correlation.as_ref())) } else { Err(wrong) }
    }
}

/// The body is the parameters themselves, so a place in it has no step more.
fn in_body(error: FieldError) -> FieldError {
    match error.pointer.strip_prefix("/parameters") {
        Some(inner) => FieldError { pointer: inner.to_owned(), ..error },
        None => error,
    }
}

/// The merge patch of an update.
pub(super) fn patch(body: &[u8]) -> Result<Object> {
    whole(body, ": the parameters to change, with null for one to remove.")
}

/// An action's parameters, which may be left out altogether.
pub(super) fn input(body: &[u8]) -> Result<Object> {
    if body.trim_ascii().is_empty() || body.trim_ascii() == b"null" {
        Ok(Object::new())
    } else {
        whole(body, ".")
    }
}

fn whole(body: &[u8], which: &str) -> Result<Object> {
    let wrong = || Error::new(ProblemKind::InvalidJson, format!("The body must be one JSON object{which}"));
    if let Value::Object(object) = json::read(body)? { Ok(object) } else { Err(wrong()) }
}

impl Portal {
    /// Changes what a resource is meant to be, by a merge patch (RFC 7396) of its parameters; or answers as the first
    /// submission with this key was answered. `labels` are those of the address, as `key:value`.
    pub async fn update(
        &self,
        caller: &Caller,
        target: Target,
        arrival: Arrival,
        body: Bytes,
        labels: Vec<String>,
    ) -> Result<Answered> {
        arrival.key()?;
        let place = (caller, target.team.as_str());
        let patch = self.0.readable(patch(&body), place, &arrival, Operation::Update).await?;
        self.change(caller, target, arrival, (Operation::Update, None), patch, labels).await
    }

    /// Removes a resource; removing it again is no error.
    pub async fn delete(
        &self,
        caller: &Caller,
        target: Target,
        arrival: Arrival,
        body: Bytes,
        labels: Vec<String>,
    ) -> Result<Answered> {
        arrival.key()?;
        let read = super::keyed::object(&body, &[]);
        let place = (caller, target.team.as_str());
        let body = self.0.readable(read, place, &arrival, Operation::Delete).await?;
        let answered = self.change(caller, target, arrival, (Operation::Delete, None), body, labels).await?;
        if let Some(delete) = answered.request_id.filter(|_| !answered.replayed) {
            self.0.stop_for(delete).await?;
        }
        Ok(answered)
    }

    /// Does with a resource what its offering defines under this ID; the body is the action's parameters.
    pub async fn act(
        &self,
        caller: &Caller,
        target: Target,
        action: &str,
        arrival: Arrival,
        body: Bytes,
        labels: Vec<String>,
    ) -> Result<Answered> {
        arrival.key()?;
        let place = (caller, target.team.as_str());
        let input = self.0.readable(input(&body), place, &arrival, Operation::Act).await?;
        self.change(caller, target, arrival, (Operation::Act, Some(action)), input, labels).await
    }

    async fn change(
        &self,
        caller: &Caller,
        target: Target,
        arrival: Arrival,
        (operation, action): (Operation, Option<&str>),
        body: Object,
        labels: Vec<String>,
    ) -> Result<Answered> {
        let (key, now) = (arrival.key()?, self.0.clock.now());
        let found = self.0.visible_team(caller, &target.team).await;
        let team = self.0.seen(found, (caller, &target.team), &arrival, operation).await?;
        let sent = Sent::of(team, &target, (operation, action), body, labels, &arrival);
        let arrived = self.0.arrived(caller, sent.team.as_str(), key, operation, now);
        let mut waited = false;
        let result = self.0.changed(caller, arrived.clone(), &sent, now, &mut waited).await;
        self.0.record(arrived, &result, waited);
        result
    }
}

impl Inner {
    async fn changed(
        &self,
        caller: &Caller,
        mut arrived: Arrived,
        sent: &Sent,
        now: Moment,
        waited: &mut bool,
    ) -> Result<Answered> {
        if let Some((claim, request)) = self.looked_up(&arrived.scope).await? {
            return self.repeat_change(claim, request, sent, now).await;
        }
        let Meant { kind, name, command, meaning, brought, schema_digest, plan } =
            self.meant(caller, sent).await?;
        let id = RequestId(self.ids.uuid(now));
        arrived.correlation_id = Some(command.correlation_id.clone().unwrap_or_else(|| id.to_string()));
        arrived.labels = serde_json::to_string(&command.labels).map_err(Error::internal)?;
        let change = NewChange {
            id,
            team: sent.team.clone(),
            kind,
            name,
            action: match sent.operation {
                Operation::Update => action::UPDATE.to_owned(),
                Operation::Delete => action::DELETE.to_owned(),
                _ => sent.action.clone().unwrap_or_default(),
            },
            labels: command.labels.clone(),
            correlation_id: command.correlation_id.clone(),
            parent_id: None,
            schema_digest,
            hidden: self.seal_hidden(id, &brought)?,
            plan,
        };
        let scope = arrived.scope.clone();
        let submission = Submission {
            meaning,
            arrived,
            command: Some(command),
            effect: Effect::Change(Box::new(change)),
            turn: Turn::default(),
        };
        match guard::submit(self.store.as_ref(), submission, self.settings.guard.wait).await? {
            Submitted::Repeat(_) => {
                *waited = true;
                let (claim, request) = self.looked_up(&scope).await?.ok_or_else(Error::not_found)?;
                self.repeat_change(claim, request, sent, now).await
            }
            other => self.first(other, now),
        }
    }

    /// What a change means that is the first with its key, or is only tried; or why it is refused before its resource is
    /// locked.
    pub(super) async fn meant(&self, caller: &Caller, sent: &Sent) -> Result<Meant> {
        caller.must(TeamAct::Request, &sent.team)?;
        let (kind, name) = (sent.kind.clone()?, sent.name.clone()?);
        let action = match &sent.action {
            None => None,
            Some(id) => Some(self.action(sent, &kind, &name, id).await?),
        };
        let schema = action.as_ref().map(|found| found.action.schema.as_ref());
        let mut command = sent.understood(schema).map_err(Error::fields)?;
        let schema_digest = schema.map(|schema| schema_digest(schema.value()));
        // By its true values; what is kept of it holds none.
        let meaning = guard::meaning(&self.keys, &command, &sent.hashed());
        let parameters = &mut command.parameters;
        let (secrets, brought) = match (sent.operation, &action) {
            (Operation::Update, _) => self.hide_patch(&sent.team, (&kind, &name), parameters).await?,
            (_, Some(Found { life, offering, action, .. })) => {
                self.hide_input(&sent.team, (offering, *life), &action.schema, parameters).await?
            }
            _ => (None, Hidden::default()),
        };
        let plan = self.plan(sent, &command, action, secrets);
        Ok(Meant { kind, name, command, meaning, brought, schema_digest, plan })
    }

    /// A repeat is understood as its first was: an action's parameters under the schema that they had then.
    async fn repeat_change(
        &self,
        claim: Claim,
        request: Option<StoredRequest>,
        sent: &Sent,
        at: Moment,
    ) -> Result<Answered> {
        let replay = |claim| Ok(guard::replay(claim, request.as_ref(), &self.settings.guard, at));
        let key = self.key_of(claim.meaning.key_version).await?;
        if claim.meaning.body_hash == guard::body_hash(&key, &sent.hashed()) {
            return replay(claim);
        }
        let schema = match (&claim.schema_digest, sent.operation) {
            (Some(digest), Operation::Act) => self.kept_schema(digest).await?,
            _ => None,
        };
        let first = guard::first_command(&claim, request.as_ref());
        let command = match sent.understood(schema.as_ref()) {
            Ok(command) if claim.meaning.fingerprint == key.fingerprint(&command.canonical()) => {
                return replay(claim);
            }
            Ok(command) => command,
            // What does not fit is not what was accepted first.
            Err(mut wrong) => {
                let sent_labels = labels::read(labels::split(&sent.labels, &mut wrong), &mut wrong);
                let (labels, correlation) = sent_labels.into_parts();
                sent.command(sent.body.clone(), labels, correlation.as_ref())
            }
        };
        let command = self.marked_as_first(request.as_ref(), sent, schema.as_ref(), command).await?;
        let differs = first.map(|first| first.differences(&command));
        Err(guard::reused(&claim, differs.unwrap_or_default()))
    }

    /// A command as it would be kept, to be compared with what is kept of the first.
    async fn marked_as_first(
        &self,
        request: Option<&StoredRequest>,
        sent: &Sent,
        schema: Option<&ParameterSchema>,
        mut command: Command,
    ) -> Result<Command> {
        let Some(StoredRequest { view, .. }) = request else { return Ok(command) };
        let offering = self.catalog.get(&view.offering);
        let schema = match sent.operation {
            Operation::Act => schema,
            _ => offering.map(|offering| offering.schema.as_ref()),
        };
        if let Some(schema) = schema {
            self.marked_like(&view.team, &view.offering, schema, &mut command.parameters).await?;
        }
        Ok(command)
    }

    /// The offering and the action of the resource as it stands; looked at once more when the change is accepted.
    async fn action(&self, sent: &Sent, kind: &Name, name: &Name, id: &str) -> Result<Found> {
        let resource = self.store.resource(&sent.team, kind.as_str(), name.as_str()).await?;
        let resource = resource.ok_or_else(Error::not_found)?.view;
        let offering = offering_of(&self.catalog, &resource)?;
        let action = Name::parse(id).ok().and_then(|id| offering.actions.get_key_value(&id));
        match action.map(|(id, action)| (id.clone(), action.clone())) {
            Some((id, action)) => Ok(Found { life: resource.id, offering, id, action }),
            None => Err(Error::new(
                ProblemKind::NotFound,
                format!("The offering {} has no such action.", offering.id),
            )),
        }
    }

    fn plan(&self, sent: &Sent, command: &Command, action: Option<Found>, secrets: Option<Secrets>) -> Plan {
        let (catalog, if_match) = (Arc::clone(&self.catalog), sent.if_match.clone());
        let parameters = command.parameters.clone();
        match (sent.operation, action) {
            (Operation::Delete, _) => Plan::new(move |resource| delete(&catalog, resource, &if_match)),
            (_, Some(Found { offering, id, action, .. })) => Plan::new(move |resource| {
                let by = By { if_match: &if_match, secrets: secrets.as_ref() };
                act(&offering, (&id, &action), resource, &parameters, by)
            }),
            _ => Plan::new(move |resource| {
                let by = By { if_match: &if_match, secrets: secrets.as_ref() };
                update(&catalog, resource, &parameters, by)
            }),
        }
    }
}

/// An action of a resource as it stands.
struct Found {
    life: ResourceId,
    offering: Arc<Offering>,
    id: Name,
    action: Action,
}

/// By what a change is worked out besides what it asks for.
#[derive(Clone, Copy)]
struct By<'a> {
    if_match: &'a IfMatch,
    /// What its resource's secrets are, where its offering has any.
    secrets: Option<&'a Secrets>,
}

impl By<'_> {
    /// What the resource was and is to be, after defaults and checked by the true values; with marks in the place of
    /// secrets.
    fn checked(
        self,
        offering: &Offering,
        before: &Object,
        after: Object,
        told: impl Fn(Vec<FieldError>) -> Error,
    ) -> Result<Option<(Object, Object)>> {
        let names = offering.schema.secrets();
        let (before, after) = match self.secrets {
            _ if names.is_empty() => (before.clone(), Some(offering.schema.normalise(after))),
            Some(secrets) => (secrets.marked(names, before.clone()), secrets.normalised(offering, after)),
            None => return Ok(None),
        };
        let Some(after) = after else { return Ok(None) };
        let after = after.map_err(told)?;
        unchanged(offering, &before, &after)?;
        Ok(Some((before, after)))
    }
}

fn update(catalog: &Catalog, resource: &StoredResource, patch: &Object, by: By<'_>) -> Result<Planned> {
    let if_match = by.if_match;
    let offering = offering_of(catalog, &resource.view)?;
    if !offering.updatable() {
        return Err(Error::new(
            ProblemKind::NotOffered,
            format!(
                "The offering {} cannot change what it made. Nothing was changed; make another and delete this one.",
                offering.id
            ),
        ));
    }
    let before = &resource.view.parameters;
    let told = |errors: Vec<FieldError>| Error::fields(errors.into_iter().map(in_body).collect());
    let checked = by.checked(&offering, before, merge::merged(before, patch), told)?;
    precondition(&resource.view, if_match, true)?;
    not_deleting(resource)?;
    let (_, after) = checked.ok_or_else(met_another)?;
    Ok(Planned {
        parameters: after.clone(),
        patch: Some(patch.clone()),
        delta: Some(Delta::Merge(merge::between(before, &after))),
        desired: Some(after),
        offering_version: offering.version.clone(),
        approval: offering.approval_of(action::UPDATE),
    })
}

fn act(
    offering: &Offering,
    (id, action): (&Name, &Action),
    resource: &StoredResource,
    input: &Object,
    by: By<'_>,
) -> Result<Planned> {
    if resource.view.offering != offering.id {
        // Another life began at this name since the action's parameters were understood.
        return Err(replaced());
    }
    let before = &resource.view.parameters;
    let told = |errors: Vec<FieldError>| {
        let told = errors.into_iter().map(|error| in_body(change::at_input(&action.changes, error)));
        Error::fields(told.collect())
    };
    let mut desired = before.clone();
    if !action.changes.is_empty() {
        let after = change::changed(before, &action.changes, input).map_err(told)?;
        let checked = by.checked(offering, before, after, told)?;
        (_, desired) = checked.ok_or_else(met_another)?;
    }
    precondition(&resource.view, by.if_match, false)?;
    not_deleting(resource)?;
    Ok(Planned {
        parameters: input.clone(),
        patch: None,
        desired: Some(desired),
        delta: Some(Delta::Action { changes: action.changes.clone(), input: input.clone() }),
        offering_version: offering.version.clone(),
        approval: offering.approval_of(id.as_str()),
    })
}

pub(super) fn delete(catalog: &Catalog, resource: &StoredResource, if_match: &IfMatch) -> Result<Planned> {
    let view = &resource.view;
    let (mut offering_version, mut approval) = (String::new(), None);
    if resource.ended_by.is_none() {
        precondition(view, if_match, false)?;
        let offering = offering_of(catalog, view)?;
        offering_version.clone_from(&offering.version);
        approval = offering.approval_of(action::DELETE);
    } else if !if_match.is_about(view.id) {
        // It is gone as was asked, whatever its last version; but not if another life was meant.
        return Err(stale(view, if_match));
    }
    let parameters = Object::new();
    Ok(Planned { parameters, patch: None, desired: None, delta: None, offering_version, approval })
}

/// The offering of a resource, by which its changes are understood.
pub(super) fn offering_of(catalog: &Catalog, resource: &ResourceView) -> Result<Arc<Offering>> {
    catalog.get(&resource.offering).cloned().ok_or_else(|| {
        Error::new(
            ProblemKind::OfferingUnavailable,
            format!(
                "The offering {} that made this is missing from the catalog or has a mistake there. Nothing was \
                 changed; try again later.",
                resource.offering
            ),
        )
        .after(Duration::from_mins(1))
    })
}

/// Refuses what would change a parameter that stays as it was made.
fn unchanged(offering: &Offering, before: &Object, after: &Object) -> Result<()> {
    let fixed = offering.schema.changed_immutables(before, after);
    if fixed.is_empty() {
        return Ok(());
    }
    let error = |name: String| FieldError {
        pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        detail: "stays as it was when the resource was made (x-immutable)".into(),
    };
    Err(Error::fields(fixed.into_iter().map(error).collect()))
}

/// Whether the version that was looked at is the one that there is.
fn precondition(resource: &ResourceView, if_match: &IfMatch, needed: bool) -> Result<()> {
    match if_match {
        IfMatch::Absent | IfMatch::Any if needed => Err(Error::new(
            ProblemKind::PreconditionRequired,
            "Send If-Match with the ETag that the resource had when you looked at it; without it, or with *, a change of \
             somebody else could be overwritten unseen.",
        )),
        asked if asked.matches(resource.etag()) => Ok(()),
        asked => Err(stale(resource, asked)),
    }
}

fn stale(resource: &ResourceView, if_match: &IfMatch) -> Error {
    let (yours, current) = (if_match.to_string(), resource.etag().to_string());
    let detail = if *if_match == IfMatch::Malformed {
        format!("If-Match holds no entity tag such as {current}, so it names no version.")
    } else {
        format!(
            "You looked at version {yours}, and the resource has version {current} now. Look at it again, then send your \
             change with its new ETag."
        )
    };
    Error {
        versions: Some(Box::new(Versions { yours, current, parameters: resource.parameters.clone() })),
        ..Error::new(ProblemKind::PreconditionFailed, detail)
    }
}

fn not_deleting(resource: &StoredResource) -> Result<()> {
    match resource.ended_by {
        None => Ok(()),
        Some(delete) => Err(Error::new(
            ProblemKind::DeletionInProgress,
            "The resource is being deleted, so it cannot be changed. Nothing was changed.",
        )
        .about(delete)
        .after(Duration::from_secs(2))),
    }
}

fn replaced() -> Error {
    Error::new(
        ProblemKind::DeletionInProgress,
        "The resource was replaced by another at this moment. Nothing was changed; look at it and send the same again.",
    )
    .after(Duration::from_secs(1))
}
