//! A server that is gone leaves no program behind.

use super::programs_of;
use crate::support::{World, eventually, vm};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_leaves_no_program_running_and_the_work_is_taken_up_by_the_next() {
    let mut world = World::with(&[("KEYTURN_LEASE", "4s")]);
    let id = world.ann.made(&vm("slow", json!({ "seconds": 3 }))).await;
    let home = world.server.home.path().to_owned();
    eventually("the program runs", async || (!programs_of(&home).is_empty()).then_some(())).await;
    world.kill();
    eventually("the program ends", async || programs_of(&home).is_empty().then_some(())).await;

    world.restart();
    let request = world.ann.ended(&id).await;
    assert_eq!(request["state"], "succeeded", "{request}");
    let ledger = std::fs::read_to_string(home.join("data/offerings/vm/ledger")).unwrap();
    assert!(ledger.starts_with(&format!("apply {id} alpha/slow 1 ")), "{ledger}");
    assert_eq!(ledger.lines().count(), 1, "{ledger}");
    eventually("nothing runs any more", async || programs_of(&home).is_empty().then_some(())).await;
}
