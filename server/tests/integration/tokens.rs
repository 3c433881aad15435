//! API tokens: shown once, kept as a digest, and over when they are revoked.

use super::support::{Answer, Home, World};
use serde_json::json;

#[tokio::test]
async fn a_token_is_shown_once_and_found_nowhere_after() {
    let world = World::at(Home::on_sqlite(&[]));
    let body = json!({ "label": "deploy", "expires": "30d" });
    let first = world.ann.post("/tokens", "k", &body).await.is(201);
    let token = first.json()["token"].as_str().unwrap().to_owned();
    let repeat = world.ann.post("/tokens", "k", &body).await.is(201);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeat.id(), first.id());
    assert!(repeat.json().get("token").is_none(), "{}", repeat.text());
    world.ann.post("/tokens", "k", &json!({ "label": "other" })).await.refused(422, "idempotency-key-reused");

    let api = world.server.api(&token);
    assert_eq!(api.get("/me").await.is(200).json()["name"], "ann");
    assert!(!world.ann.get("/tokens").await.is(200).text().contains(&token));
    for file in ["keyturn.db", "keyturn.db-wal"] {
        let bytes = std::fs::read(world.server.home.path().join("data").join(file)).unwrap();
        assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()), "{file}");
    }
    assert!(!world.server.log().contains(&token));
}

#[tokio::test]
async fn a_revoked_token_is_over_at_the_next_call() {
    let world = World::start();
    let made = world.ann.post("/tokens", "make", &json!({ "label": "deploy" })).await.is(201);
    let api = world.server.api(made.json()["token"].as_str().unwrap());
    api.get("/me").await.is(200);
    let path = format!("/tokens/{}", made.id());
    let revoke = |api: &super::support::Api, key: &str| {
        Answer::of(api.call("DELETE", &path).header("Idempotency-Key", key))
    };
    // Another's token is not there.
    revoke(&world.ben, "end").await.refused(404, "not-found");
    let keyless = Answer::of(world.ann.call("DELETE", &path)).await;
    keyless.refused(400, "idempotency-key-missing");
    let first = revoke(&world.ann, "end").await;
    assert!(matches!(first.status, 200 | 204), "{}", first.text());
    revoke(&world.ann, "end").await.repeats_without_state(&first);
    api.get("/me").await.refused(401, "unauthenticated");
    // Under another key it has ended already.
    let gone = revoke(&world.ann, "other").await.is(200);
    assert_eq!(gone.header("keyturn-outcome"), Some("existing"));
    assert_eq!(gone.json()["id"], made.json()["id"]);
    assert!(gone.json()["revoked_at"].is_string() && gone.json().get("token").is_none());
    revoke(&world.ann, "other").await.repeats_without_state(&gone);
}

#[tokio::test]
async fn a_token_ends_when_it_was_to_end() {
    let world = World::start();
    let body = json!({ "label": "short", "expires": "1s" });
    let token =
        world.ann.post("/tokens", "k", &body).await.is(201).json()["token"].as_str().unwrap().to_owned();
    let api = world.server.api(&token);
    super::support::eventually("the token ends", async || (api.get("/me").await.status == 401).then_some(()))
        .await;
    for bad in
        [json!({}), json!({ "label": "" }), json!({ "label": "x", "expires": "soon" }), json!({ "label": 1 })]
    {
        world.ann.post("/tokens", "bad", &bad).await.refused(422, "invalid-parameters");
    }
    world
        .ann
        .post("/tokens", "bad", &json!({ "label": "x", "role": "admin" }))
        .await
        .refused(400, "invalid-json");
}
