//! Changes carried out by a real program: killed in the middle, canceled, failing, and met by a delete.

use super::support::{ALPHA, Answer, World, eventually, fresh, vm};
use serde_json::{Value, json};
use std::time::Duration;

const ONE: &str = "/teams/alpha/resources/vm/one";

/// A world in which `vm/one` is there.
async fn with_one() -> World {
    let world = World::start();
    let id = world.ann.made(&vm("one", json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    world
}

/// How often the program had this effect for a request.
fn effects(world: &World, effect: &str, id: &str) -> usize {
    let ledger = world.server.home.path().join("data/offerings/vm/ledger");
    let begins = format!("{effect} {id} ");
    std::fs::read_to_string(ledger).unwrap().lines().filter(|line| line.starts_with(&begins)).count()
}

async fn patched(world: &World, patch: &Value) -> String {
    let etag = world.ann.etag(ONE).await;
    world.ann.patch(ONE, &fresh("patch"), &etag, patch).await.is(202).id()
}

/// Waits until a request is at work.
async fn begun(world: &World, id: &str) {
    eventually("it is at work", async || {
        (world.ann.get(&format!("/requests/{id}")).await.json()["state"] == "running").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_update_whose_server_is_killed_is_taken_up_and_done_once() {
    let mut world = World::with(&[("KEYTURN_LEASE", "2s")]);
    let create = world.ann.made(&vm("one", json!({}))).await;
    world.ann.ended(&create).await;
    let id = patched(&world, &json!({ "size": "large", "seconds": 1 })).await;
    let later = patched(&world, &json!({ "note": "later", "seconds": 0 })).await;
    begun(&world, &id).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.kill();
    world.restart();
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(world.ann.ended(&later).await["state"], "succeeded");
    assert_eq!((effects(&world, "change", &id), effects(&world, "change", &later)), (1, 1));
    let now = world.ann.get(ONE).await.json();
    assert_eq!((&now["parameters"]["size"], &now["parameters"]["note"]), (&json!("large"), &json!("later")));
    assert!(now["applied"].is_null(), "what is meant to be is what is");
    assert_eq!(now["outputs"]["size"], "large");
}

#[tokio::test]
async fn a_delete_stops_an_update_in_flight_which_never_brings_anything_back() {
    let world = with_one().await;
    let update = patched(&world, &json!({ "size": "large", "seconds": 60 })).await;
    let waits = patched(&world, &json!({ "note": "x" })).await;
    begun(&world, &update).await;
    let delete = world.ann.delete(ONE, "delete").await.is(202);
    assert_eq!(world.ann.ended(&delete.id()).await["state"], "succeeded");
    for lost in [&update, &waits] {
        let request = world.ann.ended(lost).await;
        assert_eq!(request["state"], "canceled");
        assert!(request["reason"].as_str().unwrap().contains("being deleted"), "{request}");
        assert_eq!(effects(&world, "change", lost) + effects(&world, "undo", lost), 0);
    }
    assert_eq!(effects(&world, "destroy", &delete.id()), 1);
    let again = world.ann.made(&vm("one", json!({}))).await;
    assert_eq!(world.ann.ended(&again).await["state"], "succeeded");
    let now = world.ann.get(ONE).await.json();
    assert_eq!((&now["version"], &now["created_by"]["id"]), (&json!(1), &json!(again)));
    assert_eq!(world.ann.delete(ONE, "delete").await.id(), delete.id());
    assert_eq!(world.ann.get(ONE).await.json()["state"], "active");
}

#[tokio::test]
async fn an_action_whose_answers_are_lost_is_done_once() {
    let world = with_one().await;
    let path = format!("{ONE}/actions/add-disks");
    let call = || {
        let call = world.ann.call("POST", &path).header("Idempotency-Key", "disks");
        call.json(&json!({ "count": 2, "behaviour": "lose-answer" }))
    };
    // The first answer never arrives.
    let hasty = call().timeout(Duration::from_millis(1)).send().await;
    drop(hasty);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(Answer::of(call()).await.is(202).id());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(world.ann.ended(&ids[0]).await["state"], "succeeded");
    assert_eq!(effects(&world, "change", &ids[0]), 1);
    assert_eq!(world.ann.get(ONE).await.json()["parameters"]["count"], 3);
}

#[tokio::test]
async fn an_update_that_fails_or_is_canceled_is_taken_back() {
    let world = with_one().await;
    let before = world.ann.get(ONE).await.json();
    let failing = patched(&world, &json!({ "size": "large", "behaviour": "fail" })).await;
    assert_eq!(world.ann.ended(&failing).await["state"], "failed");
    let slow = patched(&world, &json!({ "size": "large", "seconds": 60 })).await;
    begun(&world, &slow).await;
    let cancel = world.ann.act(&format!("/requests/{slow}/cancel"), "cancel").await.is(202);
    assert_eq!(cancel.id(), slow);
    assert_eq!(world.ann.ended(&slow).await["state"], "canceled");
    let after = world.ann.get(ONE).await.json();
    assert_eq!((&after["parameters"], &after["version"]), (&before["parameters"], &json!(5)));
    assert_eq!(effects(&world, "change", &slow) + effects(&world, "change", &failing), 0);
    // The failed one may be tried again only while nothing else was accepted.
    let retry = world.ann.act(&format!("/requests/{failing}/retry"), "retry").await;
    retry.refused(409, "already-decided");
    world.ann.post(ALPHA, &fresh("k"), &vm("one", json!({}))).await.is(200);
}
