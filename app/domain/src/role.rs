//! Roles, and what each may do. The service asks here; nobody else decides.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A word that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown role: {given} (known: {known})")]
pub struct UnknownRole {
    given: String,
    known: &'static str,
}

/// What a principal may do in the whole portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PortalRole {
    /// Sees and may do everything.
    Admin,
    /// Has only the rights of its teams.
    Member,
}

/// What a principal may do in one team, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TeamRole {
    /// Sees the team's requests and resources.
    Viewer,
    /// Also requests, cancels, retries and reveals secrets.
    Member,
    /// Also decides and manages the team's hooks and members.
    Owner,
}

/// Something a principal wants to do in a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeamAct {
    /// See requests, resources and their history.
    See,
    /// Request, cancel or retry something.
    Request,
    /// Choose what becomes of a request whose outcome nobody can tell.
    Resolve,
    /// Approve or reject what others of the team ask for.
    Decide,
    /// See a secret output.
    Reveal,
    /// Make, change and test hooks, and see what was delivered to them.
    ManageHooks,
    /// Make, change and remove notifications, and see what was sent.
    ManageNotifications,
}

impl TeamRole {
    /// Whether this role may do `act`.
    #[must_use]
    pub fn may(self, act: TeamAct) -> bool {
        let least = match act {
            TeamAct::See => Self::Viewer,
            TeamAct::Request | TeamAct::Resolve | TeamAct::Reveal => Self::Member,
            TeamAct::Decide | TeamAct::ManageHooks | TeamAct::ManageNotifications => Self::Owner,
        };
        self >= least
    }
}

impl PortalRole {
    /// The role's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl TeamRole {
    /// The role's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }
}

impl FromStr for PortalRole {
    type Err = UnknownRole;
    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        match word {
            "admin" => Ok(Self::Admin),
            "member" => Ok(Self::Member),
            given => Err(UnknownRole { given: given.into(), known: "admin, member" }),
        }
    }
}

impl FromStr for TeamRole {
    type Err = UnknownRole;
    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        match word {
            "viewer" => Ok(Self::Viewer),
            "member" => Ok(Self::Member),
            "owner" => Ok(Self::Owner),
            given => Err(UnknownRole { given: given.into(), known: "owner, member, viewer" }),
        }
    }
}

impl fmt::Display for PortalRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for TeamRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_sees_and_does_nothing_else() {
        assert!(TeamRole::Viewer.may(TeamAct::See));
        for act in [TeamAct::Request, TeamAct::Resolve, TeamAct::Reveal] {
            assert!(!TeamRole::Viewer.may(act));
            assert!(TeamRole::Member.may(act) && TeamRole::Owner.may(act));
        }
    }

    #[test]
    fn only_an_owner_decides() {
        assert!(TeamRole::Owner.may(TeamAct::Decide));
        assert!(!TeamRole::Member.may(TeamAct::Decide) && !TeamRole::Viewer.may(TeamAct::Decide));
    }

    #[test]
    fn only_an_owner_manages_hooks() {
        assert!(TeamRole::Owner.may(TeamAct::ManageHooks));
        assert!(!TeamRole::Member.may(TeamAct::ManageHooks) && !TeamRole::Viewer.may(TeamAct::ManageHooks));
    }
}
