//! A disk that takes nothing: new work is refused, nothing runs unguarded, and all is well once there is room again.

use crate::support::{ALPHA, Home, World, eventually, vm};
use serde_json::json;
use std::process::Command;

/// Decides how long a file of the server may become, which for a database is a disk that is full or is not.
fn files_up_to(pid: u32, bytes: &str) {
    // The soft limit only: anybody may raise it again up to the hard one.
    let done =
        Command::new("prlimit").args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:")]).status();
    assert!(done.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_new_work_loses_nothing_and_recovers() {
    let world = World::at(Home::on_sqlite(&[]).surviving_full_files());
    let first = world.ann.post(ALPHA, "before", &vm("before", json!({}))).await.is(202);
    world.ann.ended(&first.id()).await;
    let ready = async || world.nobody().root("/readyz").await.status;
    assert_eq!(ready().await, 200);

    files_up_to(world.server.pid(), "1");
    for number in 0..5 {
        let key = format!("full-{number}");
        let refused =
            world.ann.post(ALPHA, &key, &vm(&key, json!({}))).await.refused(503, "store-unavailable");
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(ready().await, 503);
    assert_eq!(world.nobody().root("/healthz").await.status, 200);
    // What stands is still told, and repeats get their first answer.
    world.ann.post(ALPHA, "before", &vm("before", json!({}))).await.repeats(&first);
    assert_eq!(world.count().await, 1);

    files_up_to(world.server.pid(), "unlimited");
    eventually("the server is ready again", async || (ready().await == 200).then_some(())).await;
    assert_eq!(world.count().await, 1, "a refused submission left something");
    for number in 0..5 {
        let key = format!("full-{number}");
        let taken = world.ann.post(ALPHA, &key, &vm(&key, json!({}))).await.is(202);
        assert_eq!(taken.header("idempotency-replayed"), None);
        assert_eq!(world.ann.ended(&taken.id()).await["state"], "succeeded");
    }
    let ledger = std::fs::read_to_string(world.server.home.path().join("data/offerings/vm/ledger")).unwrap();
    assert_eq!(ledger.lines().count(), 6, "{ledger}");
}
