//! Where the files that come with the program are, wherever it was started from.

use std::path::{Path, PathBuf};

/// The folder of the browser's half: script, wasm and style.
///
/// cargo-leptos names it while it serves; a program started by hand finds it near itself.
pub(crate) fn site_root() -> PathBuf {
    first_folder([
        std::env::var_os("LEPTOS_SITE_ROOT").map(PathBuf::from),
        beside_program("site"),
        beside_program("../site"),
        Some(PathBuf::from("target/site")),
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site")),
    ])
    .unwrap_or_else(|| PathBuf::from("target/site"))
}

fn beside_program(relative: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    program.parent().map(|folder| folder.join(relative))
}

fn first_folder<const N: usize>(places: [Option<PathBuf>; N]) -> Option<PathBuf> {
    places.into_iter().flatten().find(|place| place.is_dir())
}
