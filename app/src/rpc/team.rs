//! What the pages about a team's resources, one's tokens and the guard's policy show.

use super::Answer;
use crate::context::Flash;
use domain::{
    quota::QuotaUse,
    view::{GuardView, OfferingView, Page, ResourceDetail, ResourceView, TokenView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// A team's resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcesPage {
    /// The resources.
    pub page: Page<ResourceView>,
    /// Whether secret outputs may be seen.
    pub reveal: bool,
    /// Whether the person manages who is told of what happens.
    pub tells: bool,
    /// How much of its quota the team uses, where it has a limit.
    pub quota: Option<QuotaUse>,
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
    use domain::{name::Name, role::TeamAct};

    let (asking, caller) = asked::caller()?;
    let page = asking.portal.resources(&caller, &team, 25, cursor).await.map_err(asked::refusal)?;
    let quota = asking.portal.limit_of(&caller, &team).await.map_err(asked::refusal)?;
    let team = Name::parse(&team);
    let may = |act| team.as_ref().is_ok_and(|team| caller.may(act, team));
    Ok(ResourcesPage { page, reveal: may(TeamAct::Reveal), tells: may(TeamAct::ManageNotifications), quota })
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
) -> Answer<ResourcePage> {
    use super::asked;
    use domain::role::TeamAct;

    let (asking, caller) = asked::caller()?;
    let detail = asking.portal.resource(&caller, &team, &kind, &name).await.map_err(asked::refusal)?;
    let offering = asking.portal.offering(&caller, detail.resource.offering.as_str()).ok();
    let team = detail.resource.team.clone();
    Ok(ResourcePage {
        offering: offering.filter(|offering| offering.available),
        change: caller.may(TeamAct::Request, &team),
        reveal: caller.may(TeamAct::Reveal, &team),
        detail,
    })
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
