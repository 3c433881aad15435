//! Every other address.

use leptos::prelude::*;
use leptos_meta::Title;

/// There is nothing here.
#[component]
pub fn NotFound() -> impl IntoView {
    #[cfg(feature = "ssr")]
    if let Some(response) = use_context::<leptos_axum::ResponseOptions>() {
        response.set_status(leptos::server_fn::axum_export::http::StatusCode::NOT_FOUND);
    }
    view! {
        <Title text="Not found"/>
        <h1>"Not found"</h1>
        <p>"There is no page at this address. " <a href="/">"To the catalog"</a></p>
    }
}
