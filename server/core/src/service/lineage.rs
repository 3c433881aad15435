//! What a request inherits from the one that it descends from: the root's correlation ID and the parent's labels.

use super::{Inner, Portal};
use crate::{Caller, Error, Result, store::StoredRequest};
use domain::{
    chain::{self, ChainView},
    command::Command,
    label::Labels,
    name::Name,
    role::TeamAct,
};

/// The longest line of descent, so that nobody has to follow one without end.
pub(super) const MOST_GENERATIONS: u32 = 16;

/// What a request carries once its parent, if it has one, has handed down its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lineage {
    /// Groups it with its relatives; without one it is the request's own ID.
    pub(super) correlation_id: Option<String>,
    /// All of its labels.
    pub(super) labels: Labels,
}

impl Lineage {
    /// What a command carries that descends from this request, or from none.
    pub(super) fn of(command: &Command, parent: Option<&StoredRequest>) -> Result<Self> {
        let Some(StoredRequest { view: parent, .. }) = parent else {
            let (correlation_id, labels) = (command.correlation_id.clone(), command.labels.clone());
            return Ok(Self { correlation_id, labels });
        };
        if command.correlation_id.as_ref().is_some_and(|sent| *sent != parent.correlation_id) {
            return Err(Error::field(
                "/correlation_id",
                "differs from that of the request named by parent_id, which every descendant shares; leave it out",
            ));
        }
        let labels = command.labels.inheriting(&parent.labels).map_err(|error| {
            Error::field("/labels", format!("together with those that the parent hands down: {error}"))
        })?;
        Ok(Self { correlation_id: Some(parent.correlation_id.clone()), labels })
    }
}

impl Portal {
    /// The chain that a request belongs to: its root and all that descends from that, as far as the caller sees it.
    pub async fn chain(&self, caller: &Caller, id: &str) -> Result<ChainView> {
        let request = self.0.visible_request(caller, id).await?;
        let chain = self.0.store.chain(request.view.id, chain::MOST_SHOWN).await?;
        let mut chain = chain.ok_or_else(Error::not_found)?;
        chain.results.retain(|one| caller.may(TeamAct::See, &one.team));
        // Of those that are left out nobody could say whether they have begun.
        if !chain.more {
            for place in 0..chain.results.len() {
                let one = &chain.results[place];
                let children = chain.results.iter().filter(|child| child.parent_id == Some(one.id));
                let begun: Vec<&str> = children.filter_map(|child| child.step.as_deref()).collect();
                chain.results[place].not_begun = self.0.not_begun(one, &begun).await?;
            }
        }
        Ok(chain)
    }
}

impl Inner {
    /// What the command carries, and that the caller may name its parent: one that it sees, of the same team, since who
    /// sees the descendant sees what it inherits.
    pub(super) async fn lineage(&self, caller: &Caller, team: &Name, command: &Command) -> Result<Lineage> {
        let Some(id) = command.parent_id else { return Lineage::of(command, None) };
        let wrong = |rule: String| Error::field("/parent_id", rule);
        let parent = match self.store.request(id).await? {
            Some(parent) if caller.may(TeamAct::See, &parent.view.team) => parent,
            _ => return Err(wrong("there is no such request that you may see".into())),
        };
        if parent.view.team != *team {
            return Err(wrong("a request descends from one of its own team only".into()));
        }
        let (mut above, mut generations) = (parent.view.parent_id, 1);
        while let Some(next) = above {
            generations += 1;
            if generations >= MOST_GENERATIONS {
                return Err(wrong(format!(
                    "at most {MOST_GENERATIONS} requests descend from each other in a line"
                )));
            }
            above = self.store.request(next).await?.and_then(|request| request.view.parent_id);
        }
        Lineage::of(command, Some(&parent))
    }
}
