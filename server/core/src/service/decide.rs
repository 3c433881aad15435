//! Decisions about a request: stop it, try it again, say what became of it.

use super::{Arrival, Inner, Portal};
use crate::{
    Answered, Caller, Error, Result, guard,
    store::{Effect, Submission},
};
use bytes::Bytes;
use domain::{
    command::{Command, Operation},
    id::{RequestId, ResourceId},
    json,
    problem::ProblemKind,
    role::TeamAct,
    state::Resolution,
    view::Object,
};
use serde_json::Value;

impl Portal {
    /// Stops a request; stopping it again is no error.
    pub async fn cancel(&self, caller: &Caller, id: &str, arrival: Arrival, body: Bytes) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &[])?;
        let answered = self
            .0
            .decide(caller, id, arrival, body, Operation::Cancel, |request, _| Ok(Effect::Cancel(request)))
            .await?;
        if let Some(request) = answered.request_id {
            self.0.cancel_steps(request).await;
        }
        Ok(answered)
    }

    /// Opens the next attempt of a request that failed.
    pub async fn retry(&self, caller: &Caller, id: &str, arrival: Arrival, body: Bytes) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &[])?;
        let resource = ResourceId(self.0.ids.uuid(self.0.clock.now()));
        let effect = |request, _: &Object| Ok(Effect::Retry(request, resource));
        self.0.decide(caller, id, arrival, body, Operation::Retry, effect).await
    }

    /// Decides about a request whose outcome nobody can tell: `{"resolution": "adopt" | "retry" | "abandon"}`.
    ///
    /// An administrator may add `"force": true` and a `"reason"` to close it without asking the provisioner again.
    pub async fn resolve(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &["resolution", "force", "reason"])?;
        let effect = |request, body: &Object| {
            let resolution: Resolution = body
                .get("resolution")
                .and_then(Value::as_str)
                .and_then(|word| word.parse().ok())
                .ok_or_else(|| Error::field("/resolution", "must be adopt, retry or abandon"))?;
            Ok(Effect::Resolve { request, resolution, forced: forced(caller, resolution, body)? })
        };
        self.0.decide(caller, id, arrival, body, Operation::Resolve, effect).await
    }
}

/// The reason to close a request without asking its provisioner.
fn forced(caller: &Caller, resolution: Resolution, body: &Object) -> Result<Option<String>> {
    let reason = match body.get("reason") {
        None => None,
        Some(Value::String(text)) if text.chars().count() <= 1000 => {
            Some(text.trim()).filter(|text| !text.is_empty())
        }
        Some(_) => {
            return Err(Error::field("/reason", "must be a text of at most 1000 characters"));
        }
    };
    match (body.get("force"), reason) {
        (None | Some(Value::Bool(false)), _) => Ok(None),
        (Some(Value::Bool(true)), _) if !caller.is_admin() => {
            Err(Error::new(ProblemKind::Forbidden, "Only an administrator may close a request by force."))
        }
        (Some(Value::Bool(true)), _) if resolution != Resolution::Abandon => {
            Err(Error::field("/force", "only abandon can be forced"))
        }
        (Some(Value::Bool(true)), Some(reason)) => Ok(Some(reason.to_owned())),
        (Some(Value::Bool(true)), None) => Err(Error::field("/reason", "say why it is closed by force")),
        (Some(_), _) => Err(Error::field("/force", "must be true or false")),
    }
}

/// A body that may be absent, with these members only.
pub(super) fn object(body: &[u8], members: &[&str]) -> Result<Object> {
    if body.trim_ascii().is_empty() {
        return Ok(Object::new());
    }
    let Value::Object(body) = json::without_nulls(json::read(body)?) else {
        return Err(Error::new(ProblemKind::InvalidJson, "The body must be one JSON object."));
    };
    match body.keys().find(|member| !members.contains(&member.as_str())) {
        None => Ok(body),
        Some(unknown) => Err(Error::new(
            ProblemKind::InvalidJson,
            format!("The member {unknown:?} is not known. Known members: {}.", members.join(", ")),
        )),
    }
}

impl Inner {
    async fn decide(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        body: Object,
        operation: Operation,
        effect: impl FnOnce(RequestId, &Object) -> Result<Effect>,
    ) -> Result<Answered> {
        let key = arrival.key()?;
        let request = self.visible_request(caller, id).await?.view;
        let now = self.clock.now();
        let arrived = self.arrived(caller, request.team.as_str(), key, operation, now);
        let command = Command::on(operation, request.id.to_string(), body.clone());
        let hashed =
            serde_json::json!({ "operation": operation.as_str(), "target": request.id, "body": body });
        // Whether the body fits is checked only for a first: a repeat was understood before.
        let effect = effect(request.id, &body);
        let act = if operation == Operation::Resolve { TeamAct::Resolve } else { TeamAct::Request };
        let may = || caller.must(act, &request.team);
        let effect = match effect {
            Ok(effect) => effect,
            Err(error) => {
                let error = may().err().unwrap_or(error);
                return self.refused(arrived, &command, &hashed, error).await;
            }
        };
        let meaning = guard::meaning(&self.keys, &command, &hashed);
        let submission = Submission { arrived, meaning, command: Some(command.clone()), effect };
        self.guarded(submission, &command, &hashed, may).await
    }
}
