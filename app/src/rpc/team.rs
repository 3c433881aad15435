//! What the pages about a team's resources, one's tokens and the guard's policy show.

use super::Answer;
use crate::context::Flash;
use domain::{
    action::Kind,
    expiry::Nearness,
    name::Name,
    quota::QuotaUse,
    state::RequestState,
    view::{
        ActionView, GuardView, OfferingView, Page, RequestSummary, ResourceDetail, ResourceView, TokenView,
    },
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// A team's resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcesPage {
    /// The resources.
    pub page: Page<Card>,
    /// Whether secret outputs may be seen.
    pub reveal: bool,
    /// Whether the person manages who is told of what happens.
    pub tells: bool,
    /// How much of its quota the team uses, where it has a limit.
    pub quota: Option<QuotaUse>,
}

/// One resource of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// It.
    pub resource: ResourceView,
    /// How near its end is, where it has one.
    pub near: Option<Nearness>,
    /// The request that has to come to its end first, where it is not simply there.
    pub pending: Option<RequestSummary>,
}

/// The end of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How near it is.
    pub near: Nearness,
    /// The actions that put it off.
    pub actions: Vec<ActionView>,
}

#[cfg(feature = "ssr")]
pub(super) fn end_of(
    asking: &crate::context::Asking,
    resource: &ResourceView,
    offering: Option<&OfferingView>,
) -> Option<End> {
    let (near, ids) = asking.portal.end_of(resource)?;
    let actions = offering.map(|offering| offering.actions.clone()).unwrap_or_default();
    Some(End { near, actions: actions.into_iter().filter(|action| ids.contains(&action.id)).collect() })
}

/// A part of a resource that is made of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its team.
    pub team: Name,
    /// Its type.
    pub kind: Name,
    /// Its name.
    pub name: Name,
}

/// The parts of a resource that stand, and theirs: what goes when it is deleted.
#[cfg(feature = "ssr")]
pub(super) async fn parts_of(
    asking: &crate::context::Asking,
    caller: &portal::Caller,
    resource: &ResourceView,
    offering: Option<&OfferingView>,
) -> Answer<Vec<Part>> {
    use domain::action::CREATE;

    if offering.is_none_or(|offering| offering.made_of.is_empty()) {
        return Ok(Vec::new());
    }
    let portal = &asking.portal;
    let root = resource.created_by.id;
    let chain = portal.chain(caller, &root.to_string()).await.map_err(super::asked::refusal)?;
    let (mut within, mut parts) = (vec![root], Vec::new());
    for one in chain.results {
        let belongs = one.parent_id.is_some_and(|parent| within.contains(&parent)) && one.step.is_some();
        if !belongs || one.action != CREATE {
            continue;
        }
        within.push(one.id);
        let there = portal.resource(caller, one.team.as_str(), one.resource_type.as_str(), one.name.as_str());
        if there.await.is_ok_and(|there| there.resource.created_by.id == one.id) {
            parts.push(Part { team: one.team, kind: one.resource_type, name: one.name });
        }
    }
    Ok(parts)
}

/// The resources of a team, newest first.
#[server(prefix = "/rpc", endpoint = "resources")]
pub async fn resources(
    /// The team.
    team: String,
    /// Where the page begins.
    cursor: Option<String>,
) -> Answer<ResourcesPage> {
    use super::asked;
    use domain::role::TeamAct;

    let (asking, caller) = asked::caller()?;
    let portal = &asking.portal;
    let Page { results, total, total_is, next } =
        portal.resources(&caller, &team, 25, cursor).await.map_err(asked::refusal)?;
    let mut cards = Vec::new();
    for resource in results {
        let mut pending = None;
        if resource.state != "active" {
            let (kind, name) = (resource.resource_type.as_str(), resource.name.as_str());
            let found = portal.resource(&caller, &team, kind, name).await.ok();
            pending = found.and_then(|found| foremost_of(&found.pending));
        }
        let near = portal.end_of(&resource).map(|(near, _)| near);
        cards.push(Card { resource, near, pending });
    }
    let page = Page { results: cards, total, total_is, next };
    let quota = asking.portal.limit_of(&caller, &team).await.map_err(asked::refusal)?;
    let team = Name::parse(&team);
    let may = |act| team.as_ref().is_ok_and(|team| caller.may(act, team));
    Ok(ResourcesPage { page, reveal: may(TeamAct::Reveal), tells: may(TeamAct::ManageNotifications), quota })
}

/// The request on which a resource waits, among those of it that are not at their end: one of which nobody can tell what
/// became of it, or else the one that is to take it away, or the first.
#[must_use]
pub fn foremost_of(pending: &[RequestSummary]) -> Option<RequestSummary> {
    let which = |which: fn(&&RequestSummary) -> bool| pending.iter().find(which);
    let unknown = which(|request| request.state == RequestState::Unknown);
    let removal = || which(|request| Kind::of(&request.action) == Kind::Delete);
    unknown.or_else(removal).or_else(|| pending.first()).cloned()
}

/// What the address of a resource leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Found {
    /// The resource.
    There(Box<ResourcePage>),
    /// Nothing is there any more: this request deleted it.
    Deleted(RequestSummary),
}

/// One resource with all that its page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcePage {
    /// The resource, what is under way and what came before.
    pub detail: ResourceDetail,
    /// What made it, if the catalog still has it.
    pub offering: Option<OfferingView>,
    /// Whether the person may change it.
    pub change: bool,
    /// Whether secret outputs may be seen.
    pub reveal: bool,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Its end, where it has one.
    pub end: Option<End>,
}

/// One resource.
#[server(prefix = "/rpc", endpoint = "resource")]
pub async fn see_resource(
    /// The team.
    team: String,
    /// The resource's type.
    kind: String,
    /// The resource's name.
    name: String,
) -> Answer<Found> {
    use super::asked;
    use domain::role::TeamAct;

    let (asking, caller) = asked::caller()?;
    let detail = match asking.portal.resource(&caller, &team, &kind, &name).await {
        Ok(detail) => detail,
        Err(error) => {
            let deleted = asking.portal.deleted_by(&caller, &team, &kind, &name).await;
            let deleted = deleted.ok().flatten().ok_or(error).map_err(asked::refusal)?;
            return Ok(Found::Deleted(deleted));
        }
    };
    let offering = asking.portal.offering(&caller, detail.resource.offering.as_str()).ok();
    let offering = offering.filter(|offering| offering.available);
    let team = detail.resource.team.clone();
    Ok(Found::There(Box::new(ResourcePage {
        parts: parts_of(&asking, &caller, &detail.resource, offering.as_ref()).await?,
        end: end_of(&asking, &detail.resource, offering.as_ref()),
        offering,
        change: caller.may(TeamAct::Request, &team),
        reveal: caller.may(TeamAct::Reveal, &team),
        detail,
    })))
}

/// One's own tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensPage {
    /// The tokens, each with the key of the form that revokes it.
    pub tokens: Vec<(TokenView, String)>,
    /// The key of the form that makes one.
    pub form_id: String,
    /// What the last form post has to say.
    pub flash: Flash,
}

/// The person's tokens.
#[server(prefix = "/rpc", endpoint = "tokens")]
pub async fn tokens() -> Answer<TokensPage> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    let tokens = asking.portal.tokens(&caller).await.map_err(asked::refusal)?;
    Ok(TokensPage {
        tokens: tokens.into_iter().map(|token| (token, asking.portal.new_submission_key())).collect(),
        form_id: asking.portal.new_submission_key(),
        flash: use_context::<Flash>().unwrap_or_default(),
    })
}

/// The guard's published policy.
#[server(prefix = "/rpc", endpoint = "guard")]
pub async fn guard() -> Answer<GuardView> {
    Ok(super::asked::asking().portal.guard_policy())
}
