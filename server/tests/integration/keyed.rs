//! Tokens, hooks and notifications under keys: what means the same is a repeat however it is spelled, and a key is looked up
//! before what it is sent about.

use super::{
    hooks::{definition, made, owner},
    support::{ALPHA, Api, World, fast, fresh},
};
use serde_json::{Value, json};

const HOOKS: &str = "/teams/alpha/hooks";
const TOLD: &str = "/teams/alpha/notifications";
/// No hook has this ID.
const UNKNOWN: &str = "/teams/alpha/hooks/01890a5d-ac96-774b-bcce-b302099a8057";

/// Demands that each spelling, sent after the other under one key, gets the answer to the other.
async fn are_one(api: &Api, path: &str, one: &Value, two: &Value) {
    for (first, second) in [(one, two), (two, one)] {
        let key = fresh("one");
        let answer = api.post(path, &key, first).await.is(201);
        let again = api.post(path, &key, second).await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (201, Some("true")),
            "{first} {second}"
        );
        assert_eq!(again.id(), answer.id(), "{first} {second}");
    }
}

/// Demands that the second, sent under the first one's key, is told to mean something else.
async fn are_two(api: &Api, path: &str, one: &Value, two: &Value) {
    let key = fresh("two");
    api.post(path, &key, one).await.is(201);
    api.post(path, &key, two).await.refused(422, "idempotency-key-reused");
}

#[tokio::test]
async fn what_goes_without_saying_may_be_said_in_a_repeat() {
    let world = World::start();
    let plain = json!({ "label": "q" });
    for same in [json!({ "label": "q", "expires": "90d" }), json!({ "label": " q ", "expires": "2160h" })] {
        are_one(&world.ann, "/tokens", &plain, &same).await;
    }
    are_two(&world.ann, "/tokens", &plain, &json!({ "label": "q", "expires": "91d" })).await;

    let owner = owner(&world);
    let hook = |more: Value| {
        let mut hook = json!({
            "title": "x", "offering": "fast", "signature": "standard", "name": "{{ payload.n }}",
            "sample": { "payload": { "n": "a" } },
        });
        more.as_object().unwrap().iter().for_each(|(member, value)| hook[member] = value.clone());
        hook
    };
    for more in [
        json!({ "identity": "webhook-id" }),
        json!({ "identity": "Webhook-ID", "title": "x " }),
        json!({ "parameters": {} }),
        json!({ "labels": {}, "parameters": null, "when": " ", "correlation_id": "" }),
        json!({ "sample": { "payload": { "n": "a" }, "headers": {} } }),
    ] {
        are_one(&owner, HOOKS, &hook(json!({})), &hook(more)).await;
    }
    for more in [json!({ "identity": "idempotency-key" }), json!({ "labels": { "a": "b" } })] {
        are_two(&owner, HOOKS, &hook(json!({})), &hook(more)).await;
    }

    let told = json!({ "label": "ops", "url": "https://example.org/", "events": ["request.failed"] });
    let padded = json!({ "label": "ops ", "url": " https://example.org/", "events": ["request.failed"] });
    are_one(&owner, TOLD, &told, &padded).await;
}

#[tokio::test]
async fn changes_of_a_hook_repeat_however_they_are_spelled_and_when_the_hook_is_gone() {
    let world = World::start();
    let owner = owner(&world);
    let path = format!("{HOOKS}/{}", made(&owner, &definition("standard")).await.id);
    let (rotate, end) = (format!("{path}/rotate"), format!("{path}/end-old-secret"));
    let spans =
        [json!({}), json!({ "old_secret_ends_after": "24h" }), json!({ "old_secret_ends_after": "1d" })];
    let turned = owner.act(&rotate, "turn").await.is(200);
    let changed = owner.patch(&path, "change", "\"1\"", &json!({ "title": "y", "when": null })).await.is(200);
    let ended = owner.act(&end, "end").await.is(200);
    // The secret is in the first answer only.
    let turned_again = owner.act(&rotate, "turn").await.is(200);
    let repeats = async || {
        for span in &spans {
            owner.post(&rotate, "turn", span).await.repeats_without_state(&turned_again);
        }
        for patch in [
            json!({ "title": "y", "when": null }),
            json!({ "title": " y ", "when": "", "labels": {}, "parameters": {} }),
        ] {
            owner.patch(&path, "change", "\"1\"", &patch).await.repeats_without_state(&changed);
        }
        owner.act(&end, "end").await.repeats_without_state(&ended);
    };
    assert_eq!(turned_again.id(), turned.id());
    repeats().await;
    owner.delete(&path, "remove").await.is(204);
    repeats().await;
    owner
        .post(&rotate, "turn", &json!({ "old_secret_ends_after": "25h" }))
        .await
        .refused(422, "idempotency-key-reused");
    owner
        .patch(&path, "change", "\"1\"", &json!({ "title": "y" }))
        .await
        .refused(422, "idempotency-key-reused");
    // Under another key there is nothing to change.
    owner.act(&rotate, "late").await.refused(404, "not-found");
    owner.patch(&path, "late", "\"2\"", &json!({ "title": "z" })).await.refused(404, "not-found");
    owner.act(&end, "late").await.refused(404, "not-found");
}

#[tokio::test]
async fn a_key_is_looked_up_before_the_hook_that_it_is_sent_about() {
    let world = World::start();
    let owner = owner(&world);
    owner.post(HOOKS, "used", &definition("standard")).await.is(201);
    world.ann.post(ALPHA, "used", &fast("used", json!({}))).await.is(202);
    let patch = json!({ "title": "x" });
    for (api, else_is) in [(&owner, (404, "not-found")), (&world.ann, (403, "forbidden"))] {
        for (key, (status, slug)) in [("used", (422, "idempotency-key-reused")), ("fresh", else_is)] {
            for answer in [
                api.delete(UNKNOWN, key).await,
                api.patch(UNKNOWN, key, "\"1\"", &patch).await,
                api.act(&format!("{UNKNOWN}/rotate"), key).await,
                api.act(&format!("{UNKNOWN}/end-old-secret"), key).await,
            ] {
                answer.refused(status, slug);
            }
        }
    }
    // Who does not see the team learns nothing of its keys.
    world.ben.delete(UNKNOWN, "used").await.refused(404, "not-found");
}
