//! Decisions of a second person: whether a request that waits for approval is carried out.

use super::{Arrival, Inner, Portal, keyed::object};
use crate::{
    Answered, Caller, Error, Result,
    store::{Effect, StoredRequest},
};
use bytes::Bytes;
use domain::{
    approval::{self, Decider, REASON_RULE, Standing, Verdict},
    command::Operation,
    id::PrincipalId,
    problem::ProblemKind,
    role::TeamAct,
    submission::Channel,
    view::{Object, RequestView},
};
use serde_json::Value;

impl Portal {
    /// Lets a request be carried out that waits for that; doing so again is no error. The body may say why: `{"reason": "…"}`.
    pub async fn approve(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        let answered =
            self.0.judge(caller, id, arrival, body, (Operation::Approve, Verdict::Approved)).await?;
        if let Some(request) = answered.request_id.filter(|_| !answered.replayed && !answered.existing) {
            self.0.stop_for(request).await?;
        }
        Ok(answered)
    }

    /// Refuses to let a request be carried out that waits for that, and says why: `{"reason": "…"}`. Doing so again is no
    /// error.
    pub async fn reject(&self, caller: &Caller, id: &str, arrival: Arrival, body: Bytes) -> Result<Answered> {
        self.0.judge(caller, id, arrival, body, (Operation::Reject, Verdict::Rejected)).await
    }

    /// Where the caller stands towards the approval of a request; nothing where it takes none.
    pub async fn standing_towards(&self, caller: &Caller, id: &str) -> Result<Option<Standing>> {
        let request = self.0.visible_request(caller, id).await?;
        let Some(by) = request.view.approval.as_ref().map(|approval| approval.by) else { return Ok(None) };
        let asked = self.0.asker(&request).await? == caller.id;
        Ok(Some(Standing::of(is_decider(caller, by, &request.view), asked)))
    }

    /// Requests that wait for this caller's decision, those first whose time ends first: at most so many as fit on a page that
    /// is about something else.
    pub async fn waiting_for(&self, caller: &Caller) -> Result<Vec<RequestView>> {
        let store = &self.0.store;
        let mut waiting = Vec::new();
        if caller.is_admin() {
            waiting = store.waiting(None, LOOKED_AT).await?;
        } else {
            for (team, _) in caller.teams.iter().filter(|(team, _)| caller.may(TeamAct::Decide, team)) {
                waiting.extend(store.waiting(Some(team), LOOKED_AT).await?);
            }
        }
        waiting.retain(|request| {
            let by = request.approval.as_ref().map(|approval| approval.by);
            // Names of people are their own, so the name tells who asked.
            by.is_some_and(|by| is_decider(caller, by, request)) && request.requested_by != caller.name
        });
        waiting.sort_by_key(|request| request.approval.as_ref().map(|approval| approval.expires_at));
        waiting.truncate(MOST_SHOWN);
        Ok(waiting)
    }
}

/// How many that wait in a team are looked at, to find those that the caller decides about.
const LOOKED_AT: u32 = 100;
/// How many of those are shown.
const MOST_SHOWN: usize = 20;

fn is_decider(caller: &Caller, by: Decider, request: &RequestView) -> bool {
    match by {
        Decider::Owner => caller.may(TeamAct::Decide, &request.team),
        Decider::Administrator => caller.is_admin(),
    }
}

/// Refuses who may not decide about this request, and who `asked` for it.
fn must_decide(caller: &Caller, request: &StoredRequest, asked: bool) -> Result<()> {
    // Where it takes no approval there is nothing to decide; who might decide elsewhere is told so.
    let by = request.view.approval.as_ref().map_or(Decider::Owner, |approval| approval.by);
    match Standing::of(is_decider(caller, by, &request.view), asked) {
        Standing::Decides => Ok(()),
        Standing::Asked => Err(Error::new(
            ProblemKind::OwnRequest,
            format!("You asked for this yourself, so {} other than you has to decide about it.", by.title()),
        )
        .about(request.view.id)),
        Standing::Looks => Err(Error::new(
            ProblemKind::Forbidden,
            format!("Whether this is carried out is decided by {}.", by.title()),
        )),
    }
}

/// Why it is decided so; to reject takes a reason.
fn reason(verdict: Verdict, body: &Object) -> Result<Option<String>> {
    let told = match body.get("reason") {
        None => None,
        Some(Value::String(text)) => {
            approval::reason(text).map_err(|rule| Error::field("/reason", rule))?.map(str::to_owned)
        }
        Some(_) => return Err(Error::field("/reason", REASON_RULE)),
    };
    if verdict == Verdict::Rejected && told.is_none() {
        return Err(Error::field("/reason", "say why it is rejected"));
    }
    Ok(told)
}

impl Inner {
    /// Who asked for a request. What is asked for by a step belongs to the request that it is a step of, and whoever asked for
    /// that asked for both.
    async fn asker(&self, request: &StoredRequest) -> Result<PrincipalId> {
        let (mut principal, mut view) = (request.principal, request.view.clone());
        while view.channel == Channel::Composite
            && let Some(parent) = view.parent_id
            && let Some(above) = self.store.request(parent).await?
        {
            (principal, view) = (above.principal, above.view);
        }
        Ok(principal)
    }

    async fn judge(
        &self,
        caller: &Caller,
        id: &str,
        arrival: Arrival,
        body: Bytes,
        (operation, verdict): (Operation, Verdict),
    ) -> Result<Answered> {
        arrival.key()?;
        let read = object(&body, &["reason"]);
        let body = self.readable_about(read, (caller, id), &arrival, operation).await?;
        let effect =
            |request, body: &Object| Ok(Effect::Decide { request, verdict, reason: reason(verdict, body)? });
        let asked = match self.any_request(id).await? {
            Some(request) => self.asker(&request).await? == caller.id,
            None => false,
        };
        let may = |caller: &Caller, request: &StoredRequest| must_decide(caller, request, asked);
        self.decide(caller, id, arrival, (operation, body), may, effect).await
    }
}
