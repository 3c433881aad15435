//! Hooks: a team's own doors for the events of outside systems.

mod definition;
mod deliver;
mod manage;
mod seals;
mod trial;

pub use deliver::Event;
pub use trial::Tested;

use super::{Inner, read};
use crate::{
    Caller, Credential, Error, Result,
    store::{Delivery, StoredHook},
};
use domain::{
    hook::HookView,
    id::{HookId, PrincipalId},
    name::Name,
    role::{PortalRole, TeamAct, TeamRole},
    submission::Channel,
};
use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc;

/// How long deliveries are kept at the longest.
pub(crate) const DELIVERIES_KEPT: Duration = Duration::from_hours(30 * 24);
/// How many deliveries may wait to be written down; each may hold 64 KiB.
const WAITING: usize = 500;

/// Deliveries that wait to be written down.
#[derive(Debug)]
pub(crate) struct Waiting {
    sender: mpsc::Sender<Delivery>,
    receiver: Mutex<Option<mpsc::Receiver<Delivery>>>,
}

impl Default for Waiting {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl Waiting {
    /// Leaves a delivery to be written down; never makes an answer wait.
    fn put(&self, delivery: Delivery) {
        if self.sender.try_send(delivery).is_err() {
            tracing::warn!("the list of deliveries is behind; one was not written down");
        }
    }

    /// Takes what waits; only the first caller gets it.
    pub(crate) fn take(&self) -> Option<mpsc::Receiver<Delivery>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Who asks for what a hook's events mean: a member of its team, and nobody's account.
fn principal(hook: &HookView, address: Option<IpAddr>) -> Caller {
    Caller {
        id: PrincipalId(hook.id.0),
        name: format!("hook {}", hook.definition.title),
        role: PortalRole::Member,
        teams: vec![(hook.team.clone(), TeamRole::Member)],
        via: Credential::Hook(hook.id),
        channel: Channel::Hook,
        address,
    }
}

impl Inner {
    /// A living hook of a team that the caller may see.
    async fn visible_hook(&self, caller: &Caller, team: &str, id: &str) -> Result<StoredHook> {
        let team = self.visible_team(caller, team).await?;
        let id: HookId = id.parse().map_err(|_| Error::not_found())?;
        self.living_hook(&team, id).await?.ok_or_else(Error::not_found)
    }

    /// A hook of this team, unless it was removed.
    async fn living_hook(&self, team: &Name, id: HookId) -> Result<Option<StoredHook>> {
        let found = self.store.hook(id).await?;
        Ok(found.filter(|hook| hook.view.team == *team && hook.removed_at.is_none()))
    }

    /// The same for who looks after it.
    async fn managed_hook(&self, caller: &Caller, team: &str, id: &str) -> Result<StoredHook> {
        let hook = self.visible_hook(caller, team, id).await?;
        caller.must(TeamAct::ManageHooks, &hook.view.team)?;
        Ok(hook)
    }
}

use read::{page_size, place};
