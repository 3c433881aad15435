//! Decisions about a request: stop it, try it again, say what became of it.

use super::{
    Arrival, Inner, Portal,
    keyed::{Wish, object, trim},
};
use crate::{
    Answered, Caller, Error, Result,
    store::{Effect, StoredRequest},
};
use bytes::Bytes;
use domain::{
    command::Operation,
    id::{RequestId, ResourceId},
    problem::ProblemKind,
    role::TeamAct,
    state::{RequestState, Resolution},
    view::Object,
};
use serde_json::Value;

impl Portal {
    /// Stops a request; stopping it again is no error.
    pub async fn cancel(&self, caller: &Caller, id: &str, arrival: Arrival, body: Bytes) -> Result<Answered> {
        arrival.key()?;
        let read = object(&body, &[]);
        let body = self.0.readable_about(read, (caller, id), &arrival, Operation::Cancel).await?;
        let answered = self
            .0
            .decide(caller, id, arrival, (Operation::Cancel, body), must(TeamAct::Request), |request, _| {
                Ok(Effect::Cancel(request))
            })
            .await?;
        if let Some(request) = answered.request_id {
            self.0.cancel_steps(request).await;
        }
        Ok(answered)
    }

    /// Opens the next attempt of a request that failed.
    pub async fn retry(&self, caller: &Caller, id: &str, arrival: Arrival, body: Bytes) -> Result<Answered> {
        arrival.key()?;
        let read = object(&body, &[]);
        let body = self.0.readable_about(read, (caller, id), &arrival, Operation::Retry).await?;
        let now = self.0.clock.now();
        if let Ok(request) = self.0.visible_request(caller, id).await
            && request.view.state == RequestState::Failed
        {
            self.0.store.retire_request(request.view.id, now, self.0.settings.guard.retention).await?;
        }
        let resource = ResourceId(self.0.ids.uuid(now));
        let effect = |request, _: &Object| Ok(Effect::Retry(request, resource));
        self.0.decide(caller, id, arrival, (Operation::Retry, body), must(TeamAct::Request), effect).await
    }

    /// Decides about a request whose outcome nobody can tell: `{"resolution": "adopt" | "retry" | "abandon"}`.
    ///
    /// An administrator may add `"force": true` and a `"reason"` to close it without asking the provisioner again. The
    /// history names who decided, and the reason if there is one.
    pub async fn resolve(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let read = object(&body, &["resolution", "force", "reason"]);
        let body = self.0.readable_about(read, (caller, id), &arrival, Operation::Resolve).await?;
        let effect = |request, body: &Object| {
            let resolution: Resolution = body
                .get("resolution")
                .and_then(Value::as_str)
                .and_then(|word| word.parse().ok())
                .ok_or_else(|| Error::field("/resolution", "must be adopt, retry or abandon"))?;
            let (forced, reason) = forced(caller, resolution, body)?;
            Ok(Effect::Resolve { request, resolution, forced, reason })
        };
        self.0.decide(caller, id, arrival, (Operation::Resolve, body), must(TeamAct::Resolve), effect).await
    }
}

/// What a decision means, in one spelling: not to force it, and to say nothing of why, go without saying.
fn spelled(body: &Object) -> Object {
    let mut spelled = body.clone();
    trim(&mut spelled, &["reason"]);
    spelled.retain(|member, value| match member.as_str() {
        "force" => *value != Value::Bool(false),
        "reason" => value.as_str() != Some(""),
        _ => true,
    });
    spelled
}

/// Refuses who may not do this in the request's team.
fn must(act: TeamAct) -> impl Fn(&Caller, &StoredRequest) -> Result<()> {
    move |caller, request| caller.must(act, &request.view.team)
}

/// The reason to close a request without asking its provisioner, or that of another decision.
fn forced(
    caller: &Caller,
    resolution: Resolution,
    body: &Object,
) -> Result<(Option<String>, Option<String>)> {
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
        (None | Some(Value::Bool(false)), reason) => Ok((None, reason.map(str::to_owned))),
        (Some(Value::Bool(true)), _) if !caller.is_admin() => {
            Err(Error::new(ProblemKind::Forbidden, "Only an administrator may close a request by force."))
        }
        (Some(Value::Bool(true)), _) if resolution != Resolution::Abandon => {
            Err(Error::field("/force", "only abandon can be forced"))
        }
        (Some(Value::Bool(true)), Some(reason)) => Ok((Some(reason.to_owned()), None)),
        (Some(Value::Bool(true)), None) => Err(Error::field("/reason", "say why it is closed by force")),
        (Some(_), _) => Err(Error::field("/force", "must be true or false")),
    }
}

impl Inner {
    /// What was read of a body about a request; see [`Inner::readable`].
    pub(super) async fn readable_about(
        &self,
        read: Result<Object>,
        (caller, id): (&Caller, &str),
        arrival: &Arrival,
        operation: Operation,
    ) -> Result<Object> {
        let Err(error) = read else { return read };
        match self.visible_request(caller, id).await {
            Ok(request) => {
                let team = request.view.team;
                self.readable(Err(error), (caller, team.as_str()), arrival, operation).await
            }
            Err(_) => Err(error),
        }
    }

    /// Passes a decision about a request through the guard: for who may see that, and then for who `may` decide.
    pub(super) async fn decide(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        (operation, body): (Operation, Object),
        may: impl Fn(&Caller, &StoredRequest) -> Result<()>,
        effect: impl FnOnce(RequestId, &Object) -> Result<Effect>,
    ) -> Result<Answered> {
        let key = arrival.key()?;
        let request = match self.visible_request(caller, id).await {
            Ok(request) => request,
            Err(error) => {
                if let Some(request) = self.any_request(id).await? {
                    self.record_unseen(caller, request.view.team.as_str(), key, operation, &error).await;
                }
                return Err(error);
            }
        };
        let view = &request.view;
        let effect = effect(view.id, &body);
        let meant = spelled(&body);
        let wish = Wish::new(operation, view.id.to_string(), body).meaning(meant);
        self.keyed(caller, view.team.as_str(), &arrival, wish, || may(caller, &request), effect).await
    }
}
