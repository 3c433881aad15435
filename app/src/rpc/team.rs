//! What the pages about a team's resources, one's tokens and the guard's policy show.

use super::Answer;
use crate::context::Flash;
use domain::view::{GuardView, Page, ResourceView, TokenView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// A team's resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcesPage {
    /// The resources.
    pub page: Page<ResourceView>,
    /// Whether secret outputs may be seen.
    pub reveal: bool,
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
    let reveal = Name::parse(&team).is_ok_and(|team| caller.may(TeamAct::Reveal, &team));
    Ok(ResourcesPage { page, reveal })
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
