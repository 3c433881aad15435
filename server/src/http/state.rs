//! What every handler can reach.

use super::metrics::Counters;
use axum::extract::FromRef;
use leptos::config::LeptosOptions;
use portal::Portal;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many event streams may be open at a time; each holds a connection for minutes.
const MOST_STREAMS: usize = 512;

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
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
    pub(crate) counters: Arc<Counters>,
    /// The OpenAPI document.
    pub(crate) openapi: Arc<str>,
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
        Self {
            portal,
            leptos,
            guarded_work: TaskTracker::new(),
            stopping,
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            counters: Arc::default(),
            openapi: super::api::document().into(),
            https,
        }
    }
}

impl FromRef<AppState> for LeptosOptions {
    fn from_ref(state: &AppState) -> Self {
        state.leptos.clone()
    }
}
