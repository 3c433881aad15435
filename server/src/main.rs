//! The Keyturn server: its settings, its command line, its HTTP. Everything that is true without these lives in `portal`.

// The type of a page is as deep as its markup.
#![recursion_limit = "512"]

mod cli;
mod config;
mod http;
mod logging;
mod open;

fn main() -> std::process::ExitCode {
    cli::run()
}
