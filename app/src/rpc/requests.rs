//! What the pages about requests show.

use super::Answer;
use crate::context::Flash;
use domain::{
    chain::ChainView,
    view::{EventView, RequestView, SubmissionsView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

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
    /// What the last form post has to say.
    pub flash: Flash,
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
    /// Whether secret outputs may be seen.
    pub reveal: bool,
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
    let unfinished = [RequestState::PendingApproval, RequestState::Queued, RequestState::Running];
    let next = NextSteps {
        cancel: step(TeamAct::Request, &unfinished),
        retry: step(TeamAct::Request, &[RequestState::Failed]),
        resolve: step(TeamAct::Resolve, &[RequestState::Unknown]),
        reveal: caller.may(TeamAct::Reveal, &request.team),
    };
    let flash = use_context::<Flash>().unwrap_or_default();
    Ok(RequestPage { request, events, submissions, chain, next, flash })
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
