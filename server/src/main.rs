//! The Keyturn server: its settings, its command line, its HTTP. Everything that is true without these lives in `portal`.

// The type of a page is as deep as its markup.
#![recursion_limit = "512"]

mod cli;
mod config;
mod http;
mod logging;
mod open;

/// A submission makes and drops thousands of small pieces on whichever thread is free, which costs the C library's allocator
/// a fifth of the processor's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
