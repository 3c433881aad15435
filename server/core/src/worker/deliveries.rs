//! Writes down what was delivered to hooks, in batches.

use super::WRITE_EVERY;
use crate::{service::Inner, store::Delivery};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many one write takes.
const AT_ONCE: usize = 200;
/// How often a write is tried before it is given up, so that what waits stays bounded.
const MOST_FAILURES: u32 = 20;

/// Writes until `shutdown`, and then what is left.
pub(super) async fn write(
    portal: Arc<Inner>,
    mut waiting: mpsc::Receiver<Delivery>,
    shutdown: CancellationToken,
) {
    let (mut batch, mut failures) = (Vec::new(), 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(WRITE_EVERY) => {}
            () = shutdown.cancelled() => waiting.close(),
        }
        while batch.len() < AT_ONCE
            && let Ok(delivery) = waiting.try_recv()
        {
            batch.push(delivery);
        }
        if !batch.is_empty() {
            match portal.store.record_deliveries(batch.clone()).await {
                Ok(()) => {
                    batch.clear();
                    failures = 0;
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, count = batch.len(), failures, "deliveries are not yet written down");
                }
            }
            if failures == MOST_FAILURES {
                tracing::error!(count = batch.len(), "deliveries were left out of the lists");
                batch.clear();
                failures = 0;
            }
        }
        if waiting.is_closed() && waiting.is_empty() && batch.is_empty() {
            return;
        }
    }
}
