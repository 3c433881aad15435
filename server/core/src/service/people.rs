//! Who is asking: tokens, passwords, sessions, and the first administrator.

use super::{Inner, Portal, quotas};
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
use uuid::Uuid;

/// The fewest characters of a password.
const SHORTEST_PASSWORD: usize = 10;
/// The most bytes of a password; hashing longer ones would be a way to keep the server busy.
const LONGEST_PASSWORD: usize = 1024;

/// The set-up form as it was sent.
#[derive(Clone, Copy)]
pub struct SetUp<'a> {
    /// The form's own identifier, which becomes the administrator's ID; none where the sender made none.
    pub form: Option<Uuid>,
    /// The secret of the printed link.
    pub link: &'a str,
    /// The administrator's name.
    pub name: &'a str,
    /// Its password.
    pub password: &'a str,
    /// The first team.
    pub team: &'a str,
}

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

    /// Makes the first administrator and a first team, by the printed link; once. The same form sent again is the first
    /// time's success; whoever comes with another form is told that the portal is set up.
    pub async fn set_up(&self, sent: SetUp<'_>, from: Option<IpAddr>) -> Result<Caller> {
        let now = self.0.clock.now();
        if !bool::from(sent.link.as_bytes().ct_eq(self.0.set_up_link.as_bytes())) {
            self.0.throttle.wrong_guess(from, now)?;
            let kind = if self.set_up_pending().await? {
                ProblemKind::SetupLinkWrong
            } else {
                ProblemKind::SetupDone
            };
            return Err(Error::new(kind, kind.help()));
        }
        let team = Name::parse(sent.team).map_err(|error| Error::field("/team", error))?;
        let mut new = self
            .0
            .new_principal(sent.name, PortalRole::Admin, Some(sent.password), Some((team, TeamRole::Owner)))
            .await?;
        if let Some(form) = sent.form {
            new.id = PrincipalId(form);
        }
        let id = new.id;
        match self.0.store.set_up(new, now).await? {
            Made::New => self.caller(id, from).await,
            // The second of two clicks finds the administrator that the first one made; a login checks the rest.
            Made::Exists if self.made_by(sent).await? => self.log_in(sent.name, sent.password, from).await,
            // Somebody of that name is no administrator; the link is as good as before.
            Made::Exists if self.set_up_pending().await? => Err(Error::field(
                "/name",
                format!("there is a user {} already; choose another name", sent.name),
            )),
            Made::Exists | Made::NoSuchTeam => {
                Err(Error::new(ProblemKind::SetupDone, ProblemKind::SetupDone.help()))
            }
        }
    }

    /// Whether this very form made the administrator of that name.
    async fn made_by(&self, sent: SetUp<'_>) -> Result<bool> {
        let Some(form) = sent.form else { return Ok(false) };
        let made = self.0.store.principal(PrincipalId(form)).await?;
        Ok(made.is_some_and(|made| made.role == PortalRole::Admin && made.name == sent.name))
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

    /// Makes a team, from the machine's own command line; with a limit of what its resources may cost together.
    pub async fn add_team(&self, name: &str, limit: Option<u64>) -> Result<()> {
        let team = Name::parse(name).map_err(|error| Error::field("/team", error))?;
        quotas::within_reason(limit)?;
        match self.0.store.add_team(&team, limit, self.0.clock.now()).await? {
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
