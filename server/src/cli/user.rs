//! `keyturn user add`.

use super::{
    Common,
    report::{Failure, Said},
};
use clap::Args;
use domain::{
    name::Name,
    role::{PortalRole, TeamRole, UnknownRole},
};
use serde_json::json;
use std::io::Read;

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The user's name.
    name: String,
    /// What the user may do in the whole portal: admin or member.
    #[arg(long)]
    role: PortalRole,
    /// A team the user belongs to, with its role there (owner, member or viewer; member without one).
    #[arg(long, value_name = "TEAM[:ROLE]", value_parser = membership)]
    team: Option<(Name, TeamRole)>,
    /// Reads the password from standard input; without it the user can only use tokens.
    #[arg(long)]
    password_stdin: bool,
}

fn membership(text: &str) -> Result<(Name, TeamRole), String> {
    let (team, role) = match text.split_once(':') {
        None => (text, TeamRole::Member),
        Some((team, role)) => (team, role.parse().map_err(|error: UnknownRole| error.to_string())?),
    };
    Ok((Name::parse(team).map_err(|error| error.to_string())?, role))
}

impl Add {
    pub(super) async fn run(&self, common: &Common) -> Result<Said, Failure> {
        let password = self.password_stdin.then(read_password).transpose()?;
        let portal = common.open().await?;
        portal.add_user(&self.name, self.role, password.as_deref(), self.team.clone()).await?;
        let how = if password.is_some() { "can log in" } else { "has no password and can only use tokens" };
        Ok(Said::new(
            format!("User {} ({}) is there and {how}.", self.name, self.role),
            json!({ "user": self.name, "role": self.role, "password": password.is_some() }),
        ))
    }
}

/// The first line of standard input.
fn read_password() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().take(4096).read_to_string(&mut text).map_err(|error| {
        Failure::plain(format!("the password cannot be read from standard input: {error}"))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_membership_names_a_role_or_means_member() {
        let team = Name::parse("a").unwrap();
        assert_eq!(membership("a").unwrap(), (team.clone(), TeamRole::Member));
        assert_eq!(membership("a:owner").unwrap(), (team, TeamRole::Owner));
        for bad in ["a:boss", "a:", "A", ":owner", ""] {
            assert!(membership(bad).is_err(), "{bad}");
        }
    }
}
