//! The chain of a request: its root and every request that descends from that, as a tree.

use crate::{id::RequestId, name::Name, state::RequestState};
use serde::{Deserialize, Serialize};

/// The most requests of a chain that are shown.
pub const MOST_SHOWN: u32 = 200;

/// A chain, root first, each request after its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainView {
    /// The requests.
    pub results: Vec<ChainEntry>,
    /// Whether there are more, which are not shown.
    pub more: bool,
}

/// One request of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainEntry {
    /// Its ID.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: RequestId,
    /// The request that it descends from.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub parent_id: Option<RequestId>,
    /// Which step of its parent it is.
    pub step: Option<String>,
    /// How far below the root it stands.
    pub depth: u32,
    /// The team.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub team: Name,
    /// The offering.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub offering: Name,
    /// The resource's type.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub resource_type: Name,
    /// The resource's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// `create`, or another action.
    pub action: String,
    /// Where it stands.
    pub state: RequestState,
    /// The steps of its offering that have not begun, or never will.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_begun: Vec<String>,
}

impl ChainView {
    /// The same with each request right after its parent and that one's earlier descendants, as a tree is read.
    #[must_use]
    pub fn as_a_tree(mut self) -> Self {
        let mut rest = std::mem::take(&mut self.results);
        let mut open: Vec<ChainEntry> = Vec::new();
        let roots: Vec<RequestId> = rest.iter().filter(|one| one.depth == 0).map(|one| one.id).collect();
        open.extend(rest.extract_if(.., |one| roots.contains(&one.id)));
        open.reverse();
        while let Some(next) = open.pop() {
            let mut children: Vec<ChainEntry> =
                rest.extract_if(.., |one| one.parent_id == Some(next.id)).collect();
            children.reverse();
            self.results.push(next);
            open.extend(children);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn entry(id: u128, parent: Option<u128>, depth: u32) -> ChainEntry {
        let name = |text| Name::parse(text).unwrap();
        ChainEntry {
            id: RequestId(Uuid::from_u128(id)),
            parent_id: parent.map(|id| RequestId(Uuid::from_u128(id))),
            step: None,
            depth,
            team: name("alpha"),
            offering: name("vm"),
            resource_type: name("vm"),
            name: name("one"),
            action: "create".into(),
            state: RequestState::Queued,
            not_begun: Vec::new(),
        }
    }

    #[test]
    fn a_chain_is_read_as_a_tree_each_request_after_its_parent() {
        let results = vec![
            entry(1, Some(99), 0),
            entry(2, Some(1), 1),
            entry(3, Some(1), 1),
            entry(4, Some(2), 2),
            entry(5, Some(3), 2),
        ];
        let tree = ChainView { results, more: false }.as_a_tree();
        let order: Vec<u128> = tree.results.iter().map(|one| one.id.0.as_u128()).collect();
        assert_eq!(order, [1, 2, 4, 3, 5]);
    }
}
