//! What every handler can reach.

use super::metrics::Counters;
use axum::extract::FromRef;
use leptos::config::LeptosOptions;
use portal::Portal;
use std::{ops::Deref, sync::Arc};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many event streams may be open at a time; each holds a connection for minutes.
const MOST_STREAMS: usize = 512;

/// What every handler can reach. Cheap to clone: each layer that an exchange passes takes a copy.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Reach>);

/// What is reached by [`AppState`].
pub(crate) struct Reach {
    /// The portal.
    pub(crate) portal: Portal,
    /// How pages find the browser's half.
    pub(crate) leptos: LeptosOptions,
    /// Guarded work in progress, which outlives the connection it came by.
    pub(crate) guarded_work: TaskTracker,
    /// Says that the server is about to stop.
    pub(crate) stopping: CancellationToken,
    /// Places for event streams.
    pub(crate) streams: Arc<Semaphore>,
    /// What `/metrics` tells.
    pub(crate) counters: Counters,
    /// The OpenAPI document.
    pub(crate) openapi: String,
    /// Whether people reach the portal by https, so that cookies may be kept to it.
    pub(crate) https: bool,
}

impl AppState {
    /// The state of a server over this portal.
    pub(crate) fn new(
        portal: Portal,
        leptos: LeptosOptions,
        stopping: CancellationToken,
        https: bool,
    ) -> Self {
        Self(Arc::new(Reach {
            portal,
            leptos,
            guarded_work: TaskTracker::new(),
            stopping,
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            counters: Counters::default(),
            openapi: super::api::document(),
            https,
        }))
    }
}

impl Deref for AppState {
    type Target = Reach;

    fn deref(&self) -> &Reach {
        &self.0
    }
}

impl FromRef<AppState> for LeptosOptions {
    fn from_ref(state: &AppState) -> Self {
        state.leptos.clone()
    }
}
