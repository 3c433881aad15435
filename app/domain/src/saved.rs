//! Saved views: a filter of a list of requests, under a name.

use crate::id::ViewId;
use serde::{Deserialize, Serialize};

/// How many views one person keeps.
pub const MOST_VIEWS: u32 = 50;
/// The longest name of a view, in characters.
pub const MAX_VIEW_NAME_LENGTH: usize = 80;
/// The longest filter of a view, in bytes as an address spells it.
pub const MAX_VIEW_FILTER_LENGTH: usize = 8_000;

/// A saved view, as the person who looks sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedView {
    /// Its ID.
    pub id: ViewId,
    /// What it is called.
    pub name: String,
    /// The filter, as the page's address spells it.
    pub filter: String,
    /// Whether the team that the page is about sees it too.
    pub shared: bool,
    /// Who saved it, where that is somebody else.
    pub by: Option<String>,
}
