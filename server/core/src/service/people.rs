//! Who is asking: tokens, passwords, sessions, and the first administrator.

use super::{Inner, Portal};
use crate::{
    Caller, Credential, Error, Result, secret,
    store::{Made, NewPrincipal, Principal},
};
use domain::{
    id::PrincipalId,
    name::Name,
    problem::ProblemKind,
    role::{PortalRole, TeamRole},
    submission::Channel,
};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// The fewest characters of a password.
const SHORTEST_PASSWORD: usize = 10;
/// The most bytes of a password; hashing longer ones would be a way to keep the server busy.
const LONGEST_PASSWORD: usize = 1024;

fn not_authenticated() -> Error {
    Error::new(ProblemKind::NotAuthenticated, "Send a valid token as Authorization: Bearer, or log in.")
}

/// Checks a password that somebody chooses.
fn check_password(password: &str) -> Result<()> {
    if password.chars().count() < SHORTEST_PASSWORD || password.len() > LONGEST_PASSWORD {
        return Err(Error::field("/password", "at least 10 characters, at most 1024 bytes"));
    }
    Ok(())
}

impl Portal {
    /// The caller of a bearer token.
    pub async fn authenticate(&self, token: &str, from: Option<IpAddr>) -> Result<Caller> {
        let now = self.0.clock.now();
        let Some(bearer) = self.0.store.bearer(secret::token_digest(token), now).await? else {
            // Braked only once known to be wrong: a good token gets in whatever its neighbours try.
            self.0.throttle.wrong_guess(from, now)?;
            return Err(not_authenticated());
        };
        // The last use is a convenience; when many wait it is left out.
        let _ = self.0.tokens_used.try_send(bearer.token);
        let credential = Credential::Token { id: bearer.token, label: bearer.label };
        Ok(caller(bearer.principal, credential, Channel::Api, from))
    }

    /// The caller of a session.
    pub async fn caller(&self, id: PrincipalId, from: Option<IpAddr>) -> Result<Caller> {
        let principal = self.0.store.principal(id).await?.ok_or_else(not_authenticated)?;
        Ok(caller(principal, Credential::Session, Channel::Form, from))
    }

    /// Checks a name and password.
    pub async fn log_in(&self, name: &str, password: &str, from: Option<IpAddr>) -> Result<Caller> {
        self.0.throttle.log_in(name, from, self.0.clock.now())?;
        let principal = if password.len() <= LONGEST_PASSWORD {
            self.0.store.principal_by_name(name).await?
        } else {
            None
        };
        let (hash, password) =
            (principal.as_ref().and_then(|p| p.password_hash.clone()), password.to_owned());
        let fits = tokio::task::spawn_blocking(move || secret::password_fits(&password, hash.as_deref()))
            .await
            .map_err(Error::internal)?;
        match principal {
            Some(principal) if fits => {
                self.0.throttle.logged_in(name, from);
                Ok(caller(principal, Credential::Session, Channel::Form, from))
            }
            _ => Err(Error::new(ProblemKind::InvalidCredentials, "Name or password is wrong.")),
        }
    }

    /// The one-time link of the set-up page, while there is no administrator.
    pub async fn set_up_link(&self) -> Result<Option<String>> {
        Ok((!self.0.store.has_admin().await?).then(|| self.0.set_up_link.clone()))
    }

    /// Whether there is no administrator yet.
    pub async fn set_up_pending(&self) -> Result<bool> {
        Ok(self.set_up_link().await?.is_some())
    }

    /// Makes the first administrator and a first team, by the printed link; once.
    pub async fn set_up(
        &self,
        link: &str,
        name: &str,
        password: &str,
        team: &str,
        from: Option<IpAddr>,
    ) -> Result<Caller> {
        let now = self.0.clock.now();
        if !bool::from(link.as_bytes().ct_eq(self.0.set_up_link.as_bytes())) {
            self.0.throttle.wrong_guess(from, now)?;
            let kind = if self.set_up_pending().await? {
                ProblemKind::SetupLinkWrong
            } else {
                ProblemKind::SetupDone
            };
            return Err(Error::new(kind, kind.help()));
        }
        let team = Name::parse(team).map_err(|error| Error::field("/team", error))?;
        let new = self
            .0
            .new_principal(name, PortalRole::Admin, Some(password), Some((team, TeamRole::Owner)))
            .await?;
        let id = new.id;
        match self.0.store.set_up(new, now).await? {
            Made::New => self.caller(id, from).await,
            Made::Exists | Made::NoSuchTeam => {
                Err(Error::new(ProblemKind::SetupDone, ProblemKind::SetupDone.help()))
            }
        }
    }

    /// Makes a user, from the machine's own command line.
    pub async fn add_user(
        &self,
        name: &str,
        role: PortalRole,
        password: Option<&str>,
        team: Option<(Name, TeamRole)>,
    ) -> Result<()> {
        let wanted = team.as_ref().map(|(team, _)| team.to_string()).unwrap_or_default();
        let new = self.0.new_principal(name, role, password, team).await?;
        match self.0.store.add_principal(new, self.0.clock.now()).await? {
            Made::New => Ok(()),
            Made::Exists => Err(Error::field("/name", format!("there is a user {name} already"))),
            Made::NoSuchTeam => Err(Error::field(
                "/team",
                format!("there is no team {wanted}; make it first: keyturn team add {wanted}"),
            )),
        }
    }

    /// Makes a team, from the machine's own command line.
    pub async fn add_team(&self, name: &str) -> Result<()> {
        let team = Name::parse(name).map_err(|error| Error::field("/team", error))?;
        match self.0.store.add_team(&team, self.0.clock.now()).await? {
            Made::New => Ok(()),
            Made::Exists | Made::NoSuchTeam => {
                Err(Error::field("/team", format!("there is a team {team} already")))
            }
        }
    }
}

impl Inner {
    async fn new_principal(
        &self,
        name: &str,
        role: PortalRole,
        password: Option<&str>,
        team: Option<(Name, TeamRole)>,
    ) -> Result<NewPrincipal> {
        let name = Name::parse(name).map_err(|error| Error::field("/name", error))?;
        let password_hash = match password {
            None => None,
            Some(password) => {
                check_password(password)?;
                let (password, ids) = (password.to_owned(), std::sync::Arc::clone(&self.ids));
                let hash =
                    tokio::task::spawn_blocking(move || secret::hash_password(&password, ids.as_ref()));
                Some(hash.await.map_err(Error::internal)??)
            }
        };
        let id = PrincipalId(self.ids.uuid(self.clock.now()));
        Ok(NewPrincipal { id, name: name.to_string(), role, password_hash, team })
    }
}

fn caller(principal: Principal, via: Credential, channel: Channel, address: Option<IpAddr>) -> Caller {
    Caller {
        id: principal.id,
        name: principal.name,
        role: principal.role,
        teams: principal.teams,
        via,
        channel,
        address,
    }
}
