//! What waits for the decision of who looks.

use super::listing::Requests;
use domain::view::RequestView;
use leptos::prelude::*;

/// Requests that wait for this person's decision; nothing where there are none.
#[component]
pub fn Waiting(
    /// They.
    requests: Vec<RequestView>,
) -> impl IntoView {
    (!requests.is_empty()).then(|| {
        view! {
            <section class="note caution" id="waiting" aria-labelledby="waiting-title">
                <h2 id="waiting-title">"Waiting for your decision"</h2>
                <p>"Nothing of these is carried out before somebody approves it. Open one to decide."</p>
                <Requests requests/>
            </section>
        }
    })
}
