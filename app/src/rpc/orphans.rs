//! What the page about orphans shows.

use super::Answer;
use domain::{callback::OrphanView, view::Page};
use leptos::prelude::*;

/// A page of what succeeded elsewhere after its request had come to another end; for administrators.
#[server(prefix = "/rpc", endpoint = "orphans")]
pub async fn orphans(
    /// Where the page begins.
    cursor: Option<String>,
) -> Answer<Page<OrphanView>> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    asking.portal.orphans(&caller, 25, cursor).await.map_err(asked::refusal)
}
