//! News between servers: which requests changed, by NOTIFY after the commit. News that get lost cost time, never truth:
//! whoever waits looks again by itself.

use super::{PIECE, TURN, pause};
use crate::{
    clock::{Ids, SystemIds},
    store::changes::Changes,
};
use domain::id::RequestId;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::AbortHandle, time::timeout};
use uuid::Uuid;

/// The channel; PostgreSQL keeps those of each database apart.
const CHANNEL: &str = "keyturn";
/// How many changes may wait to be told.
const QUEUE: usize = 4096;
/// How many changes one notification names. PostgreSQL carries less than 8000 bytes in one.
const NAMED: usize = 200;
/// What stands for more changes than can be named.
const MANY: &str = "many";

/// Tells news, and hears those of other servers for as long as somebody has it.
#[derive(Clone)]
pub(super) struct News {
    telling: mpsc::Sender<RequestId>,
    _hearing: Arc<Hearing>,
}

struct Hearing(AbortHandle);

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl News {
    /// Begins to tell and to hear.
    pub(super) fn start(pool: PgPool, options: PgConnectOptions, changes: Arc<Changes>) -> Self {
        let mut me = [0; 8];
        SystemIds.fill(&mut me);
        let me = format!("{:016x}", u64::from_le_bytes(me));
        let (telling, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(tell(pool, me.clone(), waiting));
        let hearing = tokio::spawn(hear(options, me, changes));
        Self { telling, _hearing: Arc::new(Hearing(hearing.abort_handle())) }
    }

    /// Tells the other servers that a request changed.
    pub(super) fn tell(&self, request: RequestId) {
        // With that many waiting the next notification says no names anyway.
        let _ = self.telling.try_send(request);
    }
}

/// What a notification says: who tells, and what changed.
fn written(me: &str, changed: &[RequestId]) -> String {
    let mut text = me.to_owned();
    if changed.len() > NAMED {
        return text + " " + MANY;
    }
    for request in changed {
        text.push(' ');
        text.push_str(&request.0.simple().to_string());
    }
    text
}

async fn tell(pool: PgPool, me: String, mut waiting: mpsc::Receiver<RequestId>) {
    let mut changed = Vec::new();
    while waiting.recv_many(&mut changed, QUEUE).await > 0 {
        changed.sort_unstable_by_key(|request| request.0);
        changed.dedup();
        let told = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(written(&me, &changed));
        match timeout(PIECE, told.execute(&pool)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "other servers were not told of changes"),
            Err(_) => tracing::debug!("other servers were not told of changes in time"),
        }
        changed.clear();
    }
}

async fn hear(options: PgConnectOptions, me: String, changes: Arc<Changes>) {
    // A pool of one, since a listener makes its connection anew by itself.
    let one = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(TURN)
        .connect_lazy_with(options);
    let mut failures = 0;
    loop {
        if let Err(error) = listen(&one, &me, &changes, &mut failures).await {
            tracing::debug!(%error, "news of other servers are not heard");
        }
        failures += 1;
        pause(failures).await;
        tokio::time::sleep(Duration::from_millis(100) * failures.min(10)).await;
    }
}

/// Listens until the connection is lost.
async fn listen(one: &PgPool, me: &str, changes: &Changes, failures: &mut u32) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(one).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    *failures = 0;
    // What was told before is not heard any more.
    changes.anything_changed();
    while let Some(news) = listener.try_recv().await? {
        understand(news.payload(), me, changes);
    }
    Ok(())
}

fn understand(payload: &str, me: &str, changes: &Changes) {
    let mut words = payload.split(' ');
    if words.next() == Some(me) {
        return;
    }
    for word in words {
        match Uuid::try_parse(word) {
            Ok(id) => changes.changed(RequestId(id)),
            Err(_) => changes.anything_changed(),
        }
    }
    changes.work_waits();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_stays_within_what_postgresql_carries() {
        for count in [1, NAMED, NAMED + 1, QUEUE] {
            let changed: Vec<RequestId> = (0..count).map(|n| RequestId(Uuid::from_u128(n as u128))).collect();
            assert!(written("0123456789abcdef", &changed).len() < 8000, "{count}");
        }
    }

    #[tokio::test]
    async fn news_of_others_are_heard_and_own_ones_are_not_doubled() {
        let (changes, id) = (Changes::default(), RequestId(Uuid::from_u128(7)));
        let waits = Duration::from_millis(50);
        for (teller, expected) in [("other", true), ("me", false)] {
            for ids in [vec![id], vec![RequestId(Uuid::from_u128(8)); NAMED + 1]] {
                let mut listener = changes.listen();
                understand(&written(teller, &ids), "me", &changes);
                let heard = timeout(waits, listener.change_of(id, Duration::from_mins(1))).await.is_ok();
                assert_eq!(heard, expected, "{teller}");
            }
        }
    }
}
