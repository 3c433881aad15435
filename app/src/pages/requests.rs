//! `/requests`: what one has requested oneself.

use super::list::{Kind, List};
use crate::components::listing::Requests;
use leptos::prelude::*;
use leptos_meta::Title;

/// The person's own requests.
#[component]
pub fn MyRequests() -> impl IntoView {
    let kind = Kind {
        head: |_| view! { <Title text="My requests"/> <h1>"My requests"</h1> }.into_any(),
        empty: || {
            view! {
                <p class="note">"You have requested nothing yet. " <a href="/">"Choose something from the catalog."</a></p>
            }
            .into_any()
        },
        rows: |rows| {
            let requests = rows.into_iter().map(|row| row.request).collect();
            view! { <Requests requests/> }.into_any()
        },
    };
    view! { <List kind path=Signal::stored("/requests".to_owned()) team=None/> }
}
