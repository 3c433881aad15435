//! Hearing of changes: who waits for a request or for work is woken after a commit. Waiting is always bounded and
//! followed by a look at the store, so a wake-up that gets lost costs time, never truth.

use domain::id::RequestId;
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// How many changes a slow listener may be behind before it only learns that it missed some.
const KEPT: usize = 4096;

/// Tells of committed changes within this process.
#[derive(Debug)]
pub struct Changes {
    /// Nothing stands for any request.
    requests: broadcast::Sender<Option<RequestId>>,
    work: Notify,
}

impl Default for Changes {
    fn default() -> Self {
        Self { requests: broadcast::channel(KEPT).0, work: Notify::new() }
    }
}

impl Changes {
    /// Tells that a request changed.
    pub fn changed(&self, request: RequestId) {
        // Nobody listening is no error.
        let _ = self.requests.send(Some(request));
    }

    /// Tells that any request may have changed.
    pub fn anything_changed(&self) {
        let _ = self.requests.send(None);
    }

    /// Tells that there is work to take.
    pub fn work_waits(&self) {
        self.work.notify_one();
    }

    /// Begins to listen; what changes from here on is heard.
    #[must_use]
    pub fn listen(&self) -> Listener {
        Listener(self.requests.subscribe())
    }

    /// Waits until there may be work, at most `up_to`.
    pub async fn work(&self, up_to: Duration) {
        let _ = tokio::time::timeout(up_to, self.work.notified()).await;
    }
}

/// Listens for changes.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<Option<RequestId>>);

impl Listener {
    /// Waits until `request` may have changed, at most `up_to`.
    pub async fn change_of(&mut self, request: RequestId, up_to: Duration) {
        let heard = async {
            loop {
                match self.0.recv().await {
                    Ok(changed) if changed.is_none_or(|changed| changed == request) => return,
                    Ok(_) => {}
                    // Too far behind, or the store is gone: look again.
                    Err(_) => return,
                }
            }
        };
        let _ = tokio::time::timeout(up_to, heard).await;
    }
}
