//! What only SQLite has to promise, where times are the servers' own: a clock that was set back keeps nobody waiting.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_takes_up_within_a_lease_what_was_held_by_a_clock_that_was_ahead() {
    let bench = Bench::sqlite().await;
    let now = at(10_000_000);
    let ahead = now.plus(Duration::from_mins(20));
    let (held, waiting) = (bench.created("held", "one").await, bench.created("waits", "two").await);
    let change = bench.change("patch", "one", "update", patch(&json!({ "note": "n" })));
    assert!(matches!(bench.store.submit(change).await.unwrap(), Submitted::Accepted(..)));
    let first = bench.taken("w1", ahead).await;
    let second = bench.taken("w1", ahead).await;
    assert_eq!((first.request.view.id, second.request.view.id), (held, waiting));
    bench.store.give_back(second.hold(), Intent::Apply, LEASE, true, None, ahead).await.unwrap();
    assert!(bench.store.take_run("w2", now, LEASE).await.unwrap().is_none());
    bench.store.bound_waits(now, LEASE).await.unwrap();
    assert!(bench.store.take_run("w2", now, LEASE).await.unwrap().is_none(), "its program may run yet");
    let now = now.plus(LEASE);
    let taken = [bench.taken("w2", now).await, bench.taken("w2", now).await].map(|run| run.request.view.id);
    assert!(taken.contains(&held) && taken.contains(&waiting), "{taken:?}");
    // The change waits for its create still, and the one that held it before writes nothing more.
    assert!(bench.store.take_run("w2", now, LEASE).await.unwrap().is_none());
    assert_eq!(bench.store.note(first.hold(), Vec::new(), true, now).await.unwrap(), Held::Lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_leaves_a_wait_as_it_is_where_no_clock_was_ahead() {
    let bench = Bench::sqlite().await;
    bench.created("k", "one").await;
    let now = at(10_000_000);
    let run = bench.taken("w1", now).await;
    bench.store.give_back(run.hold(), Intent::Apply, LEASE, true, None, now).await.unwrap();
    bench.store.bound_waits(now.plus(Duration::from_secs(1)), LEASE).await.unwrap();
    assert!(bench.store.take_run("w2", now.plus(Duration::from_secs(2)), LEASE).await.unwrap().is_none());
    bench.taken("w2", now.plus(LEASE)).await;
}
