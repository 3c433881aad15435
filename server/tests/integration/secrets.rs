//! Secrets: shown once or to who may see them, and in nothing that is listed, exported or kept.

use super::support::{Answer, Home, World, eventually, vm};
use serde_json::json;

#[tokio::test]
async fn no_list_export_or_history_holds_a_secret() {
    let world = World::at(Home::on_sqlite(&[]));
    let token = world.ann.post("/tokens", "make", &json!({ "label": "deploy" })).await.is(201);
    let token = token.json()["token"].as_str().unwrap().to_owned();
    let id = world.ann.made(&vm("vm-one", json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let reveal = "/teams/alpha/resources/vm/vm-one/secrets/password/reveal";
    let secret = Answer::of(world.ann.call("POST", reveal)).await.is(200).json();
    let secret = secret["value"].as_str().unwrap();
    // The repeat of what showed a secret once is written down as well.
    world.ann.post("/tokens", "make", &json!({ "label": "deploy" })).await.is(201);
    let seen = format!("/requests/{id}/submissions");
    eventually("the arrival is written down", async || {
        (world.ann.get(&seen).await.json()["total"] == 1).then_some(())
    })
    .await;
    for api in [&world.ann, &world.ada] {
        for path in [
            "/requests",
            "/teams/alpha/requests",
            "/teams/alpha/resources",
            "/tokens",
            &seen,
            &format!("/requests/{id}/events"),
        ] {
            for accept in ["application/json", "text/csv", "application/x-ndjson", "text/event-stream"] {
                let shown = Answer::of(api.call("GET", path).header("Accept", accept)).await;
                for hidden in [secret, token.as_str()] {
                    assert!(!shown.text().contains(hidden), "{path} as {accept}: {}", shown.text());
                }
            }
        }
        let csv = Answer::of(api.call("GET", "/requests").header("Accept", "text/csv")).await.is(200);
        assert!(csv.text().contains("vm-one"), "{}", csv.text());
    }
    let kept: Vec<u8> = ["data/keyturn.db", "data/keyturn.db-wal", "log"]
        .iter()
        .flat_map(|file| std::fs::read(world.server.home.path().join(file)).unwrap_or_default())
        .collect();
    for hidden in [secret, token.as_str()] {
        assert!(!kept.windows(hidden.len()).any(|window| window == hidden.as_bytes()), "{hidden} is kept");
    }
}
