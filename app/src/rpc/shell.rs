//! What every page needs to know about who is looking.

use super::Answer;
use crate::context::EntryState;
use domain::view::MeView;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Who is looking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looking {
    /// The person, if logged in.
    pub me: Option<MeView>,
    /// Whether the portal waits for its first administrator.
    pub set_up_pending: bool,
}

/// Who is looking at the page.
#[server(prefix = "/rpc", endpoint = "looking")]
pub async fn who_looks() -> Answer<Looking> {
    use super::asked;
    let asking = asked::asking();
    let Some(caller) = asking.caller else {
        let set_up_pending = asking.portal.set_up_pending().await.map_err(asked::refusal)?;
        return Ok(Looking { me: None, set_up_pending });
    };
    Ok(Looking { me: Some(asking.portal.me(&caller)), set_up_pending: false })
}

/// What the login and set-up forms show: after a refusal what was typed, and always the form's own ID.
#[server(prefix = "/rpc", endpoint = "entry")]
pub async fn entry() -> Answer<EntryState> {
    let asking = super::asked::asking();
    let mut state = use_context::<EntryState>().unwrap_or_default();
    state.values.entry("request_id".into()).or_insert_with(|| asking.portal.new_submission_key());
    Ok(state)
}
