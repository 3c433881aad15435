//! What the catalog and the request form show.

use super::Answer;
use crate::context::FormState;
use domain::{name::Name, view::OfferingView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// The catalog's entries.
#[server(prefix = "/rpc", endpoint = "catalog")]
pub async fn catalog() -> Answer<Vec<OfferingView>> {
    let (asking, caller) = super::asked::caller()?;
    Ok(asking.portal.offerings(&caller))
}

/// One opened form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// What is requested.
    pub offering: OfferingView,
    /// The teams for which the person may request it.
    pub teams: Vec<Name>,
    /// Who fills it in: kept values are shown to nobody else.
    pub user: String,
    /// Who fills it in, sealed, so that the form outlives a session without script.
    pub sealed: String,
    /// A second ID, for sending the form as something new without script.
    pub fresh_id: String,
    /// The form after a refusal without script; its `request_id` is always set.
    pub state: FormState,
}

/// Opens the form of an offering.
#[server(prefix = "/rpc", endpoint = "open-form")]
pub async fn open_form(
    /// The offering's ID.
    offering: String,
) -> Answer<Opening> {
    use super::asked;
    use crate::context::FORM_OWNER;
    use domain::role::TeamAct;

    let (asking, caller) = asked::caller()?;
    let offering = asking.portal.offering(&caller, &offering).map_err(asked::refusal)?;
    let teams = asking.portal.me(&caller).teams.into_iter().map(|membership| membership.team);
    let mut state = use_context::<FormState>().unwrap_or_default();
    if state.request_id.is_empty() {
        state.request_id = asking.portal.new_submission_key();
    }
    let owner = asking.portal.seal(FORM_OWNER, caller.id.0.as_bytes()).map_err(asked::refusal)?;
    Ok(Opening {
        offering,
        teams: teams.filter(|team| caller.may(TeamAct::Request, team)).collect(),
        user: caller.name,
        sealed: owner.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
        fresh_id: asking.portal.new_submission_key(),
        state,
    })
}
