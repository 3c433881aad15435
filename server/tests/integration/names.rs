//! Names: who holds one, and what another submission for it is told.

use super::support::{ALPHA, World, fast, fresh, vm};
use serde_json::json;

#[tokio::test]
async fn what_is_there_as_asked_counts_as_success() {
    let world = World::start();
    let body = fast("vm-one", json!({ "count": 2 }));
    let first = world.ann.post(ALPHA, "one", &body).await.is(202);
    world.ann.ended(&first.id()).await;
    let again = json!({ "offering": "fast", "name": "vm-one", "parameters": { "count": 2.0 }, "correlation_id": "later" });
    let existing = world.abe.post(ALPHA, "two", &again).await.is(200);
    assert_eq!(existing.header("keyturn-outcome"), Some("existing"));
    assert_eq!(existing.id(), first.id());
    // The key is bound to that request: its repeat is a repeat, and for another body it is used up.
    let repeat = world.abe.post(ALPHA, "two", &again).await;
    repeat.repeats(&existing);
    world.abe.post(ALPHA, "two", &fast("vm-two", json!({}))).await.refused(422, "idempotency-key-reused");
    assert_eq!(world.abe.get("/teams/alpha/submissions?key=two").await.is(200).id(), first.id());
    assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
}

#[tokio::test]
async fn what_is_there_otherwise_is_named_by_what_differs() {
    let world = World::start();
    let first = world.ann.made(&fast("vm-one", json!({ "size": "small" }))).await;
    let other = world.abe.post(ALPHA, "other", &fast("vm-one", json!({ "size": "large" }))).await;
    let problem = other.refused(409, "name-taken").json();
    assert_eq!(problem["differs"], json!(["parameters.size"]));
    assert_eq!(problem["request"]["id"], json!(first));
    // The refusal left the key free.
    world.abe.post(ALPHA, "other", &fast("vm-two", json!({}))).await.is(202);
    // Another team's names and another type's are unrelated.
    world.ben.post("/teams/beta/requests", "k", &fast("vm-one", json!({ "size": "large" }))).await.is(202);
    world.ann.post(ALPHA, "vm", &vm("vm-one", json!({}))).await.is(202);
}

#[tokio::test]
async fn a_failed_create_gives_its_name_back() {
    let world = World::start();
    let first = world.ann.made(&vm("vm-one", json!({ "behaviour": "fail" }))).await;
    assert_eq!(world.ann.ended(&first).await["state"], "failed");
    assert_eq!(world.resources("alpha").await, 0);
    let second = world.ann.made(&vm("vm-one", json!({}))).await;
    assert_ne!(first, second);
    assert_eq!(world.ann.ended(&second).await["state"], "succeeded");
    // Trying the first again meets the name in other hands.
    let retry = world.ann.act(&format!("/requests/{first}/retry"), "again").await;
    assert_eq!(retry.status, 409, "{}", retry.text());
}

#[tokio::test]
async fn a_canceled_create_gives_its_name_back() {
    let world = World::start();
    let first = world.ann.made(&vm("vm-one", json!({ "seconds": 30 }))).await;
    let canceled = world.ann.act(&format!("/requests/{first}/cancel"), "stop").await;
    assert!(canceled.status == 200 || canceled.status == 202, "{}", canceled.text());
    assert_eq!(world.ann.ended(&first).await["state"], "canceled");
    world.ann.made(&vm("vm-one", json!({}))).await;
}

#[tokio::test]
async fn a_name_is_refused_and_never_mended() {
    let world = World::start();
    world.ann.made(&fast("vm-one", json!({}))).await;
    let long = "x".repeat(64);
    for bad in [
        "CHEESE",
        " vm-one",
        "vm-one ",
        "vm-one\u{a0}",
        "vm  one",
        "vm one",
        "vm_one",
        "vm.one",
        "-a",
        "a-",
        "",
        "é",
        "a\u{202e}b",
        "<b>",
        "'; DROP TABLE requests; --",
        "a/b",
        "..",
        &long,
    ] {
        let answer = world.ann.post(ALPHA, "k", &fast(bad, json!({}))).await;
        let problem = answer.refused(422, "invalid-parameters").json();
        assert_eq!(problem["errors"][0]["pointer"], "/name", "{bad:?}");
    }
    assert_eq!(world.count().await, 1);
    world.ann.post(ALPHA, "k", &fast(&"x".repeat(63), json!({}))).await.is(202);
}

#[tokio::test]
async fn at_the_same_moment_one_takes_the_name() {
    let world = World::start();
    for round in 0..10 {
        let name = format!("race-{round}");
        let sends = (0..20).map(|number| {
            let size = if number % 2 == 0 { "small" } else { "large" };
            let (api, body) = (world.ann.clone(), fast(&name, json!({ "size": size })));
            async move { api.post(ALPHA, &fresh("race"), &body).await }
        });
        let answers = futures_util::future::join_all(sends).await;
        let count = |status| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(202), count(200), count(409)), (1, 9, 10), "round {round}");
    }
    assert_eq!((world.count().await, world.resources("alpha").await), (10, 10));
}
