//! Brings the words of requests into their index, a little behind the submissions: in small batches, so that it takes no
//! more than a tenth of the database's writer while much is to be done.

use crate::service::Inner;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many requests a batch has at the most. Submissions that come meanwhile wait for it: of 250 the slowest hundredth of
/// them waited twice as long.
const AT_ONCE: u32 = 50;
/// How long one waits when nothing is left to do.
const EVERY: Duration = Duration::from_secs(1);
/// A pause is so many times as long as the batch before it took, within bounds.
const SHARE: u32 = 9;
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(2);

/// Indexes until `shutdown`.
pub(super) async fn index(portal: Arc<Inner>, shutdown: CancellationToken) {
    loop {
        let begun = Instant::now();
        let more = match portal.store.index_words(AT_ONCE).await {
            Ok(rows) => rows >= u64::from(AT_ONCE),
            Err(error) => {
                tracing::warn!(%error, "words were not indexed");
                false
            }
        };
        let pause = if more { (begun.elapsed() * SHARE).clamp(SHORTEST, LONGEST) } else { EVERY };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
