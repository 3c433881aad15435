//! What people see of the portal: pages that the server renders and the browser takes over. Nothing here decides what
//! may be done; every answer comes from the portal.

// Views are types nested as deep as the page; an optimised build lays out all of them at once.
#![recursion_limit = "512"]
#![expect(
    clippy::must_use_candidate,
    reason = "components are called by the view macro, which uses what they return"
)]
#![expect(clippy::needless_pass_by_value, reason = "components own their properties")]

pub mod address;
pub mod app;
pub mod components;
pub mod context;
pub mod filter;
pub mod forms;
pub mod pages;
pub mod rpc;

pub use app::App;
#[cfg(feature = "ssr")]
pub use app::shell;

/// Takes over the page that the server rendered.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(App);
}
