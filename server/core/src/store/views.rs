//! Saved views of lists of requests.

use super::StoreResult;
use async_trait::async_trait;
use domain::{
    id::{PrincipalId, ViewId},
    name::Name,
    saved::SavedView,
    time::Moment,
};

/// A view that is to be saved.
#[derive(Debug, Clone)]
pub struct NewView {
    /// Its ID, unless it takes the place of another.
    pub id: ViewId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// The page that it is a view of.
    pub page: String,
    /// What it is called.
    pub name: String,
    /// The filter, as the page's address spells it.
    pub filter: String,
    /// The team that sees it too.
    pub team: Option<Name>,
    /// Whether it may take the place of another one of its name.
    pub replace: bool,
    /// When.
    pub at: Moment,
}

/// What came of saving a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It is there now.
    New,
    /// It took the place of the one of the same name, or is that very one.
    Replaced,
    /// There is another one of the same name, which it may not replace; nothing was changed.
    Exists,
    /// The person has as many as one may have; nothing was changed.
    TooMany,
}

/// Saved views.
#[async_trait]
pub trait Views {
    /// Saves a view, where it may in the place of one of the same person, page and name; a person has at most `most`.
    async fn save_view(&self, view: NewView, most: u32) -> StoreResult<Saved>;
    /// A person's views of a page and those that others share with the team that it is about, by name.
    async fn views(
        &self,
        principal: PrincipalId,
        page: &str,
        team: Option<&Name>,
    ) -> StoreResult<Vec<SavedView>>;
    /// Removes a person's own view; whether there was one.
    async fn remove_view(&self, principal: PrincipalId, id: ViewId) -> StoreResult<bool>;
}
