//! What the pages about requests show.

use super::Answer;
use crate::context::Flash;
use domain::{
    approval::Standing,
    chain::ChainView,
    view::{EventView, RequestSummary, RequestView, SubmissionsView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many entries of its history a request's page shows, at least, before it stops reading on.
#[cfg(feature = "ssr")]
const MOST_EVENTS: usize = 2_000;

/// One request with all that its page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPage {
    /// The request.
    pub request: RequestView,
    /// Its history, oldest first.
    pub events: Vec<EventView>,
    /// Every arrival of it.
    pub submissions: SubmissionsView,
    /// The requests that it belongs together with.
    pub chain: ChainView,
    /// What the person may do about it now, each with the key that its form sends.
    pub next: NextSteps,
    /// Whether the person asked for it.
    pub own: bool,
    /// What its parameters are called, by their names.
    pub titles: BTreeMap<String, String>,
    /// What became of what a create made.
    pub since: Since,
    /// What the last form post has to say.
    pub flash: Flash,
}

/// What became of what a create made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Since {
    /// It stands; also of every request that made nothing.
    Stands,
    /// It was deleted: by this request.
    Deleted(RequestSummary),
    /// It was deleted, and another has its name by now.
    Followed,
}

#[cfg(feature = "ssr")]
async fn since(portal: &portal::Portal, caller: &portal::Caller, request: &RequestView) -> Since {
    use domain::{action::CREATE, state::RequestState};

    if request.action != CREATE || request.state != RequestState::Succeeded {
        return Since::Stands;
    }
    let (team, kind) = (request.team.as_str(), request.resource_type.as_str());
    match portal.resource(caller, team, kind, request.name.as_str()).await {
        Ok(there) if there.resource.created_by.id == request.id => Since::Stands,
        Ok(_) => Since::Followed,
        Err(_) => {
            let deleted = portal.deleted_by(caller, team, kind, request.name.as_str()).await;
            deleted.ok().flatten().map_or(Since::Stands, Since::Deleted)
        }
    }
}

/// What the catalog calls the parameters of a request by now; nothing of an offering that is gone.
#[cfg(feature = "ssr")]
fn titles(
    portal: &portal::Portal,
    caller: &portal::Caller,
    request: &RequestView,
) -> BTreeMap<String, String> {
    let Ok(offering) = portal.offering(caller, request.offering.as_str()) else { return BTreeMap::new() };
    let action = offering.actions.iter().find(|action| action.id.as_str() == request.action);
    let schema = action.map_or(&offering.parameters, |action| &action.parameters);
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let title = |(name, property): (&String, &serde_json::Value)| {
        Some((name.clone(), property.get("title")?.as_str()?.to_owned()))
    };
    properties.into_iter().flatten().filter_map(title).collect()
}

/// What a person may do about a request. Each step holds the key of the form that takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextSteps {
    /// Stop it.
    pub cancel: Option<String>,
    /// Open its next attempt.
    pub retry: Option<String>,
    /// Say what became of it.
    pub resolve: Option<String>,
    /// Close it without asking its provisioner again.
    pub force: Option<String>,
    /// Let it be carried out.
    pub approve: Option<String>,
    /// Refuse to let it be carried out.
    pub reject: Option<String>,
    /// Where the person stands towards its approval, where it takes one.
    pub standing: Option<Standing>,
    /// Whether secret outputs may be seen.
    pub reveal: bool,
}

impl NextSteps {
    /// The same steps under the keys that the page holds already, so that a form that somebody fills in stays as it is while
    /// the page is kept up to date.
    #[must_use]
    pub fn keeping(self, known: Self) -> Self {
        let keep = |fresh: Option<String>, known: Option<String>| fresh.map(|fresh| known.unwrap_or(fresh));
        Self {
            cancel: keep(self.cancel, known.cancel),
            retry: keep(self.retry, known.retry),
            resolve: keep(self.resolve, known.resolve),
            force: keep(self.force, known.force),
            approve: keep(self.approve, known.approve),
            reject: keep(self.reject, known.reject),
            ..self
        }
    }
}

/// One request.
#[server(prefix = "/rpc", endpoint = "request")]
pub async fn see_request(
    /// The request's ID.
    id: String,
) -> Answer<RequestPage> {
    use super::asked;
    use domain::{role::TeamAct, state::RequestState};

    let (asking, caller) = asked::caller()?;
    let portal = &asking.portal;
    let request = portal.request(&caller, &id).await.map_err(asked::refusal)?;
    let mut events: Vec<EventView> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let more = portal.events(&caller, &id, after).await.map_err(asked::refusal)?;
        let done = more.is_empty() || events.len() >= MOST_EVENTS;
        events.extend(more);
        if done {
            break;
        }
    }
    let submissions = portal.submissions(&caller, &id).await.map_err(asked::refusal)?;
    let chain = portal.chain(&caller, &id).await.map_err(asked::refusal)?;
    let step = |act, states: &[RequestState]| {
        (caller.may(act, &request.team) && states.contains(&request.state))
            .then(|| portal.new_submission_key())
    };
    let standing = match request.approval {
        Some(_) => portal.standing_towards(&caller, &id).await.map_err(asked::refusal)?,
        None => None,
    };
    let decides = request.state == RequestState::PendingApproval && standing == Some(Standing::Decides);
    let unfinished = [RequestState::PendingApproval, RequestState::Queued, RequestState::Running];
    let next = NextSteps {
        cancel: step(TeamAct::Request, &unfinished),
        retry: step(TeamAct::Request, &[RequestState::Failed]),
        resolve: step(TeamAct::Resolve, &[RequestState::Unknown]),
        force: step(TeamAct::Resolve, &[RequestState::Unknown]).filter(|_| caller.is_admin()),
        approve: decides.then(|| portal.new_submission_key()),
        reject: decides.then(|| portal.new_submission_key()),
        standing,
        reveal: caller.may(TeamAct::Reveal, &request.team),
    };
    let flash = use_context::<Flash>().unwrap_or_default();
    let own = request.requested_by == caller.name;
    let since = since(portal, &caller, &request).await;
    let titles = titles(portal, &caller, &request);
    Ok(RequestPage { request, events, submissions, chain, next, own, titles, since, flash })
}

/// The requests that one belongs together with, as they stand now.
#[server(prefix = "/rpc", endpoint = "request-chain")]
pub async fn see_chain(
    /// The request's ID.
    id: String,
) -> Answer<ChainView> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    asking.portal.chain(&caller, &id).await.map_err(asked::refusal)
}

/// Requests that wait for the decision of who looks, newest first.
#[server(prefix = "/rpc", endpoint = "waiting")]
pub async fn waiting() -> Answer<Vec<RequestView>> {
    use super::asked;

    let asking = asked::asking();
    match &asking.caller {
        Some(caller) => asking.portal.waiting_for(caller).await.map_err(asked::refusal),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_kept_up_to_date_keeps_its_forms() {
        let key = |text: &str| Some(text.to_owned());
        let known = NextSteps { cancel: key("a"), approve: key("b"), ..NextSteps::default() };
        let fresh = NextSteps { cancel: key("c"), retry: key("d"), ..NextSteps::default() };
        let kept = fresh.keeping(known);
        assert_eq!((kept.cancel, kept.retry, kept.approve), (key("a"), key("d"), None));
    }
}
