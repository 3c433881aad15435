//! The browser's half as files: script, wasm and style. They keep their names from build to build, so a browser asks
//! each time whether they changed, and gets an empty answer when they did not. A release build lays them down compressed
//! as well; to compress the wasm anew for every browser would cost more than it saves.

use super::state::AppState;
use axum::{Router, http::header};
use std::path::Path;
use tower_http::{
    services::{ServeDir, ServeFile},
    set_header::SetResponseHeaderLayer,
};

/// The files below `/pkg`.
pub(super) fn routes(site: &Path) -> Router<AppState> {
    let always_ask = axum::http::HeaderValue::from_static("no-cache");
    let folder = site.join("pkg");
    // Pages name the wasm in wasm-bindgen's way or in cargo-leptos', by which of the two built them; the file is one.
    let wasm = ServeFile::new(folder.join("keyturn.wasm")).precompressed_br().precompressed_gzip();
    let files =
        ServeDir::new(folder).append_index_html_on_directories(false).precompressed_br().precompressed_gzip();
    Router::new()
        .route_service("/pkg/keyturn_bg.wasm", wasm)
        .nest_service("/pkg", files)
        .layer(SetResponseHeaderLayer::overriding(header::CACHE_CONTROL, always_ask))
}
