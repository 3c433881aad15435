//! `GET /requests/{id}/events`: what happens to a request, as it happens.

use crate::http::{
    auth::Known,
    path::PathOf,
    problem::{Refusal, Result},
    query::Parameters,
    state::AppState,
};
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{
    id::RequestId,
    problem::{Problem, ProblemKind},
    view::EventView,
};
use futures_util::stream;
use portal::Caller;
use std::{collections::VecDeque, convert::Infallible, time::Duration};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

/// How long one stream lasts. A reader resumes where it stopped, and is then asked anew who it is.
const LONGEST_STREAM: Duration = Duration::from_mins(10);
/// How often the store is looked at when nobody tells of a change.
const LOOK: Duration = Duration::from_secs(1);
/// How often a silent stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Server-sent events: states, steps and log lines. `id` is the entry's number; `Last-Event-ID` resumes after it. The
/// stream ends after the entry of a final state; asked for more than that, it answers 204.
#[utoipa::path(get, path = "/requests/{id}/events", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("id" = String, Path, description = "The request's ID"),
        ("Last-Event-ID" = Option<i64>, Header, description = "The last entry that was received"),
    ),
    responses(
        (status = 200, description = "A stream of events", body = EventView, content_type = "text/event-stream"),
        (status = 204, description = "The request has ended and there is nothing after the given entry"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn stream_events(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(id): PathOf<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    Parameters::none(&uri)?;
    let after = last_seen(&headers)?;
    // The state first and the entries after it: a final state then means that all entries are there.
    let request = state.portal.request(&caller, &id).await?;
    let first = state.portal.events(&caller, &id, after).await?;
    if request.state.is_final() && first.is_empty() && after > 0 {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let Ok(place) = state.streams.clone().try_acquire_owned() else {
        return Err(Refusal::new(
            ProblemKind::Busy,
            "Too many event streams are open; ask again in a moment.",
        ));
    };
    let reader = Reader {
        state,
        caller,
        id,
        request: request.id,
        after,
        waiting: first.into(),
        ends: Instant::now() + LONGEST_STREAM,
        _place: place,
    };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([(header::CACHE_CONTROL, "no-store")], stream).into_response())
}

fn last_seen(headers: &HeaderMap) -> Result<i64> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(0);
    };
    match value.to_str().ok().and_then(|text| text.trim().parse().ok()) {
        Some(seen @ 0..) => Ok(seen),
        _ => Err(Refusal::new(ProblemKind::InvalidQuery, "Last-Event-ID is the number of an entry.")),
    }
}

/// One open stream.
struct Reader {
    state: AppState,
    caller: Caller,
    id: String,
    request: RequestId,
    after: i64,
    waiting: VecDeque<EventView>,
    ends: Instant,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// The next event; nothing when the stream is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(entry) = self.waiting.pop_front() {
                self.after = entry.seq;
                return event(&entry);
            }
            if Instant::now() >= self.ends || self.state.stopping.is_cancelled() {
                return None;
            }
            let portal = &self.state.portal;
            // Listening begins before the look, so that nothing falls between the two.
            let mut changes = portal.listen();
            let ended = portal.request(&self.caller, &self.id).await.ok()?.state.is_final();
            self.waiting = portal.events(&self.caller, &self.id, self.after).await.ok()?.into();
            if !self.waiting.is_empty() {
                continue;
            }
            if ended {
                return None;
            }
            tokio::select! {
                () = changes.change_of(self.request, LOOK) => {}
                () = self.state.stopping.cancelled() => return None,
            }
        }
    }
}

fn event(entry: &EventView) -> Option<Event> {
    // Compact JSON holds no line break, which would end the event's data.
    let data = serde_json::to_string(entry).ok()?;
    Some(Event::default().id(entry.seq.to_string()).event(entry.entry.name()).data(data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_stream_resumes_after_a_number_and_nothing_else() {
        let seen = |value: &'static str| {
            last_seen(&HeaderMap::from_iter([(
                axum::http::HeaderName::from_static("last-event-id"),
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(seen("7").unwrap(), 7);
        assert_eq!(last_seen(&HeaderMap::new()).unwrap(), 0);
        for bad in ["-1", "x", "", "9223372036854775808"] {
            assert!(seen(bad).is_err(), "{bad}");
        }
    }
}
