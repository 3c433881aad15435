//! Keeps the page of a request up to date: by the event stream, or by asking again where that does not work.

use crate::rpc::requests::{RequestPage, see_chain, see_request};
use domain::view::{EventEntry, EventView};
use leptos::{prelude::*, task::spawn_local};
use std::time::Duration;
use wasm_bindgen::{JsCast, closure::Closure};
use web_sys::{Event, EventSource, MessageEvent};

/// How often the page asks where the event stream does not work.
const ASK_EVERY: Duration = Duration::from_secs(3);

type Listener<E> = Closure<dyn FnMut(E)>;

/// An open event stream; closed when the page is left.
struct Stream {
    source: EventSource,
    _heard: Listener<MessageEvent>,
    _failed: Listener<Event>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.source.close();
    }
}

/// Follows the request until it has come to its end, and its relatives until they have.
pub(super) fn follow(page: RwSignal<RequestPage>) {
    let relatives_under_way = Memo::new(move |_| {
        page.with(|page| {
            page.chain.results.len() > 1 && page.chain.results.iter().any(|one| !one.state.is_final())
        })
    });
    Effect::new(move |_| {
        if relatives_under_way.get() {
            ask_for_relatives_later(page);
        }
    });
    let under_way = Memo::new(move |_| !page.read().request.state.is_final());
    Effect::new(move |_| -> Option<Stream> {
        if !under_way.get() {
            return None;
        }
        let stream = open(page);
        if stream.is_none() {
            ask_later(page);
        }
        stream
    });
}

fn open(page: RwSignal<RequestPage>) -> Option<Stream> {
    let address = format!("/api/v1/requests/{}/events", page.read_untracked().request.id);
    let source = EventSource::new(&address).ok()?;
    let heard = Listener::new(move |message: MessageEvent| {
        let event = message.data().as_string().and_then(|text| serde_json::from_str::<EventView>(&text).ok());
        if let Some(event) = event {
            take(page, event);
        }
    });
    let watched = source.clone();
    let failed = Listener::new(move |_: Event| {
        // The browser opens a broken stream again by itself; a closed one was refused.
        if watched.ready_state() == EventSource::CLOSED {
            ask_later(page);
        }
    });
    for name in ["state", "step", "log"] {
        source.add_event_listener_with_callback(name, heard.as_ref().unchecked_ref()).ok()?;
    }
    source.set_onerror(Some(failed.as_ref().unchecked_ref()));
    Some(Stream { source, _heard: heard, _failed: failed })
}

/// Puts an event in its place; one that is there already came twice. A new state brings the whole page anew.
fn take(page: RwSignal<RequestPage>, event: EventView) {
    let is_state = matches!(event.entry, EventEntry::State { .. });
    let is_step = matches!(event.entry, EventEntry::Step { .. });
    let is_new =
        page.try_with_untracked(|page| page.events.binary_search_by_key(&event.seq, |event| event.seq));
    let Some(Err(place)) = is_new else { return };
    page.update(|page| page.events.insert(place, event));
    if is_state {
        spawn_local(ask(page));
    } else if is_step {
        // It may have asked for something that belongs to it.
        spawn_local(ask_for_relatives(page));
    }
}

/// Looks at the relatives alone, so that nothing that somebody is about to use changes under their hands.
async fn ask_for_relatives(page: RwSignal<RequestPage>) {
    let Some(id) = page.try_with_untracked(|page| page.request.id.to_string()) else {
        return;
    };
    if let Ok(fresh) = see_chain(id).await
        && page.try_with_untracked(|page| page.chain != fresh) == Some(true)
    {
        page.try_update(|page| page.chain = fresh);
    }
}

fn ask_for_relatives_later(page: RwSignal<RequestPage>) {
    set_timeout(
        move || {
            spawn_local(async move {
                ask_for_relatives(page).await;
                let under_way =
                    |page: &RequestPage| page.chain.results.iter().any(|one| !one.state.is_final());
                if page.try_with_untracked(under_way) == Some(true) {
                    ask_for_relatives_later(page);
                }
            });
        },
        ASK_EVERY,
    );
}

async fn ask(page: RwSignal<RequestPage>) {
    let Some(id) = page.try_with_untracked(|page| page.request.id.to_string()) else {
        return;
    };
    if let Ok(mut fresh) = see_request(id).await {
        page.try_update(|page| {
            let known = std::mem::take(&mut page.events);
            fresh.events = merged(known, fresh.events);
            fresh.flash = std::mem::take(&mut page.flash);
            fresh.next = fresh.next.keeping(std::mem::take(&mut page.next));
            *page = fresh;
        });
    }
}

fn ask_later(page: RwSignal<RequestPage>) {
    set_timeout(
        move || {
            spawn_local(async move {
                ask(page).await;
                if page.try_with_untracked(|page| !page.request.state.is_final()) == Some(true) {
                    ask_later(page);
                }
            });
        },
        ASK_EVERY,
    );
}

/// Both histories in one, each event once, in order.
fn merged(mut known: Vec<EventView>, fresh: Vec<EventView>) -> Vec<EventView> {
    for event in fresh {
        if let Err(place) = known.binary_search_by_key(&event.seq, |event| event.seq) {
            known.insert(place, event);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::time::Moment;

    fn events(numbers: &[i64]) -> Vec<EventView> {
        let event = |seq: &i64| EventView {
            seq: *seq,
            at: Moment::from_millis(0),
            attempt: 1,
            entry: EventEntry::Log { line: String::new() },
        };
        numbers.iter().map(event).collect()
    }

    #[test]
    fn two_histories_become_one() {
        let numbers: Vec<_> =
            merged(events(&[1, 2, 5]), events(&[2, 3, 4])).iter().map(|event| event.seq).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}
