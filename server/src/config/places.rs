//! Where the files that come with the program are, wherever it was started from.

use std::path::{Path, PathBuf};

/// The folder of the browser's half: script, wasm and style.
///
/// cargo-leptos names it while it serves; a program started by hand finds it near itself. A page fits only the half that
/// was built with it, so the tests' build has a folder of its own and leaves the other's alone.
pub(crate) fn site_root() -> PathBuf {
    first_folder([
        std::env::var_os("LEPTOS_SITE_ROOT").map(PathBuf::from),
        beside_program(TESTS_SITE).filter(|_| cfg!(debug_assertions)),
        beside_program("site"),
        beside_program("../site"),
        Some(PathBuf::from("target/site")),
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site")),
    ])
    .unwrap_or_else(|| PathBuf::from("target/site"))
}

/// Where the build for the tests puts it, seen from the program.
const TESTS_SITE: &str = "../site-dev";

fn beside_program(relative: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    program.parent().map(|folder| folder.join(relative))
}

fn first_folder<const N: usize>(places: [Option<PathBuf>; N]) -> Option<PathBuf> {
    places.into_iter().flatten().find(|place| place.is_dir())
}
