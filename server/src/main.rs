//! The Keyturn server: its settings, its command line, its HTTP. Everything that is true without these lives in `portal`.

mod cli;
mod config;
mod http;
mod logging;
mod open;

fn main() -> std::process::ExitCode {
    cli::run()
}
