//! The browser's half as files: script, wasm and style. They keep their names from build to build, so a browser asks
//! each time whether they changed, and gets an empty answer when they did not.

use super::state::AppState;
use axum::{Router, http::header};
use std::path::Path;
use tower_http::{services::ServeDir, set_header::SetResponseHeaderLayer};

/// The files below `/pkg`.
pub(super) fn routes(site: &Path) -> Router<AppState> {
    let always_ask = axum::http::HeaderValue::from_static("no-cache");
    let files = ServeDir::new(site.join("pkg")).append_index_html_on_directories(false);
    Router::new()
        .nest_service("/pkg", files)
        .layer(SetResponseHeaderLayer::overriding(header::CACHE_CONTROL, always_ask))
}
