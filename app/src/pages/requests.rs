//! `/requests`: what one has requested oneself.

use super::{cursor, load};
use crate::{
    components::listing::{Pager, Requests},
    rpc::requests::my_requests,
};
use leptos::prelude::*;
use leptos_meta::Title;

/// The person's own requests.
#[component]
pub fn MyRequests() -> impl IntoView {
    let page = Resource::new_blocking(cursor(), my_requests);
    load(page, |page| {
        let empty = page.results.is_empty();
        let at_least = page.total_is.is_some();
        view! {
            <Title text="My requests"/>
            <h1>"My requests"</h1>
            {if empty {
                view! {
                    <p class="note">"You have requested nothing yet. " <a href="/">"Choose something from the catalog."</a></p>
                }
                .into_any()
            } else {
                view! {
                    <Requests requests=page.results/>
                    <Pager total=page.total at_least what="requests" path="/requests".to_owned() next=page.next/>
                }
                .into_any()
            }}
        }
    })
}
