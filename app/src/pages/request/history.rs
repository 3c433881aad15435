//! The history of a request: states, steps and the lines that its program wrote.

use crate::{
    components::{
        linked::Linked,
        moment::When,
        state::{State, word},
    },
    rpc::requests::RequestPage,
};
use domain::view::{EventEntry, EventView};
use leptos::prelude::*;

/// Of a history with more entries than these a part is seen at once, first the newest.
const WHOLE: usize = 40;

/// Everything that happened to a request, oldest first.
#[component]
pub fn History(
    /// The page.
    page: RwSignal<RequestPage>,
) -> impl IntoView {
    let none = Memo::new(move |_| page.read().events.is_empty());
    let long = Memo::new(move |_| page.read().events.len() > WHOLE);
    view! {
        {move || none.get().then(|| view! { <p class="quiet">"Nothing yet."</p> })}
        <div class="events" class:long=long role="group" tabindex="0" aria-label="What happened">
            <ol id="events">
                <For each=move || page.read().events.clone() key=|event| event.seq let:event>
                    <Entry event/>
                </For>
            </ol>
        </div>
    }
}

#[component]
fn Entry(event: EventView) -> impl IntoView {
    let class = format!("event event-{}", event.entry.name());
    let attempt = (event.attempt > 1).then(|| format!(" (attempt {})", event.attempt));
    let what = match event.entry {
        EventEntry::State { state, reason } => view! {
            <span><State state/> <span class="visually-hidden">{format!("State: {}.", word(state))}</span></span>
            {reason.map(|reason| view! { <span>" " <Linked text=reason/></span> })}
        }
        .into_any(),
        EventEntry::Step { step, detail } => view! { <strong>{step}</strong> <span>" " <Linked text=detail/></span> }.into_any(),
        EventEntry::Log { line } => view! { <code>{line}</code> }.into_any(),
    };
    view! { <li class=class><When at=event.at/> <span class="what">{what} <span class="quiet">{attempt}</span></span></li> }
}
