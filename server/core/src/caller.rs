//! Who is asking.

use crate::{Error, Result};
use domain::{
    id::{HookId, PrincipalId, TokenId},
    name::Name,
    problem::ProblemKind,
    role::{PortalRole, TeamAct, TeamRole},
    submission::Channel,
};
use std::net::IpAddr;

/// How a caller proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A browser's session.
    Session,
    /// An API token.
    Token {
        /// The token's ID.
        id: TokenId,
        /// What its owner called it.
        label: String,
    },
    /// A signature by a hook's secret.
    Hook(HookId),
    /// None: the portal itself asks, for a step of a request of this principal's.
    Step,
}

/// A principal in the act of asking.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The principal: the same for a session and all of a user's tokens.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Its role in the whole portal.
    pub role: PortalRole,
    /// Its teams, with its role in each.
    pub teams: Vec<(Name, TeamRole)>,
    /// How it proved who it is.
    pub via: Credential,
    /// The door by which it came.
    pub channel: Channel,
    /// Where it came from.
    pub address: Option<IpAddr>,
}

impl Caller {
    /// Whether the caller is an administrator.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.role == PortalRole::Admin
    }

    /// Whether the caller may do `act` in the team.
    #[must_use]
    pub fn may(&self, act: TeamAct, team: &Name) -> bool {
        self.is_admin() || self.teams.iter().any(|(known, role)| known == team && role.may(act))
    }

    /// The same caller, coming by another door.
    #[must_use]
    pub fn by(mut self, channel: Channel) -> Self {
        self.channel = channel;
        self
    }

    /// Refuses unless the caller may do `act` in the team, which it is known to see.
    pub(crate) fn must(&self, act: TeamAct, team: &Name) -> Result<()> {
        if self.may(act, team) {
            return Ok(());
        }
        let why = if self.may(TeamAct::Request, team) {
            format!("Only owners of team {team} and administrators may do this. Ask one of them.")
        } else {
            format!("Your role in team {team} lets you look, not change. Ask an owner of the team.")
        };
        Err(Error::new(ProblemKind::Forbidden, why))
    }

    pub(crate) fn token_label(&self) -> Option<&str> {
        match &self.via {
            Credential::Session | Credential::Hook(_) | Credential::Step => None,
            Credential::Token { label, .. } => Some(label),
        }
    }
}
