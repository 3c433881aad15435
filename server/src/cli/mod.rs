//! The command line. Each command is a file; what they share is how they report.

mod catalog;
mod key;
mod migrate;
mod report;
mod serve;
mod team;
mod token;
mod user;

use crate::{
    config::Config,
    logging,
    open::{self, For},
};
use clap::{Args, Parser, Subcommand};
use portal::Portal;
use report::{Failure, Said};
use std::{ffi::OsString, path::PathBuf, process::ExitCode};

/// A portal that carries each request out once, however often it is sent.
#[derive(Debug, Parser)]
#[command(name = "keyturn", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
struct Common {
    /// Reads settings from this TOML file; KEYTURN_* variables win over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answers as JSON, and reports mistakes as JSON on standard error.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the portal.
    Serve,
    /// People who may log in or send tokens.
    #[command(subcommand)]
    User(UserCommand),
    /// Teams, which own what is provisioned.
    #[command(subcommand)]
    Team(TeamCommand),
    /// Tokens for scripts.
    #[command(subcommand)]
    Token(TokenCommand),
    /// The key that repeats are recognised and secrets are encrypted with.
    #[command(subcommand)]
    Key(key::Key),
    /// The catalog of offerings.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Makes or updates the database, and ends.
    Migrate,
    /// Runs a program and ends it when standard input closes; the portal's own tool.
    #[command(hide = true)]
    ExecGuard {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// Adds a user. Without a password it can only use tokens.
    Add(user::Add),
}

#[derive(Debug, Subcommand)]
enum TeamCommand {
    /// Adds a team.
    Add(team::Add),
    /// Tells how much of its quota a team uses, or sets the limit.
    Quota(team::Quota),
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Makes a token and prints it, this once.
    Create(token::Create),
}

#[derive(Debug, Subcommand)]
enum CatalogCommand {
    /// Explains every mistake in a catalog, with file and line.
    Check(catalog::Check),
}

/// Runs the command that was typed.
pub(crate) fn run() -> ExitCode {
    let Cli { command, common } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    if let Command::ExecGuard { program } = command {
        return portal::provisioner::guard_process::main(program);
    }
    let json = common.json;
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::plain(format!("no runtime: {error}")))
        .and_then(|runtime| runtime.block_on(perform(command, &common)));
    match done {
        Ok(said) => said.print(json),
        Err(failure) => failure.print(json),
    }
}

/// What is said of a command line that is not understood, and of one that asks for help.
fn not_understood(error: &clap::Error) -> ExitCode {
    // What follows a program's name belongs to the program.
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    if error.use_stderr() && words.any(|word| word == "--json") {
        Failure::usage(error.to_string().trim_end()).print(true);
    } else {
        // Nobody is there to be told that nobody reads it.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

async fn perform(command: Command, common: &Common) -> Result<Said, Failure> {
    match command {
        Command::Serve => serve::run(&common.configured()?, common.json).await,
        Command::User(UserCommand::Add(add)) => add.run(common).await,
        Command::Team(TeamCommand::Add(add)) => add.run(common).await,
        Command::Team(TeamCommand::Quota(quota)) => quota.run(common).await,
        Command::Token(TokenCommand::Create(create)) => create.run(common).await,
        Command::Key(key) => key.run(common).await,
        Command::Catalog(CatalogCommand::Check(check)) => check.run(),
        Command::Migrate => migrate::run(&common.configured()?).await,
        Command::ExecGuard { .. } => Ok(Said::nothing()),
    }
}

impl Common {
    fn configured(&self) -> Result<Config, Failure> {
        let config = Config::load(self.config.as_deref())?;
        logging::begin(&config);
        Ok(config)
    }

    async fn open(&self) -> Result<Portal, Failure> {
        Ok(open::open(&self.configured()?, For::ACommand).await?)
    }
}
