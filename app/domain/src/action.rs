//! What a request does to its resource. The word stands in the request's `action`; any word that is not the portal's own
//! is the ID of an action that an offering defines.

/// What a request does to its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Makes it.
    Create,
    /// Changes what it is meant to be.
    Update,
    /// Removes it.
    Delete,
    /// Does something that its offering defines.
    Action,
}

/// The action of a request that makes a resource.
pub const CREATE: &str = "create";
/// The action of a request that changes what a resource is meant to be.
pub const UPDATE: &str = "update";
/// The action of a request that removes a resource.
pub const DELETE: &str = "delete";

impl Kind {
    /// What a request with this action does.
    #[must_use]
    pub fn of(action: &str) -> Self {
        match action {
            CREATE => Self::Create,
            UPDATE => Self::Update,
            DELETE => Self::Delete,
            _ => Self::Action,
        }
    }
}
