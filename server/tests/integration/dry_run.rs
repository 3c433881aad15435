//! Dry runs over HTTP.

use super::support::{ALPHA, Answer, Api, World, fast};
use serde_json::{Value, json};

async fn dry(api: &Api, value: &str, body: &Value) -> Answer {
    let call = api.call("POST", &format!("{ALPHA}?dry_run={value}&labels=env:test"));
    Answer::of(call.header("Content-Type", "application/json").body(body.to_string())).await
}

#[tokio::test]
async fn a_dry_run_needs_no_key_answers_with_the_plan_and_makes_nothing() {
    let world = World::start();
    let planned = dry(&world.ann, "true", &fast("planned", json!({}))).await.is(200).json();
    assert_eq!(planned["dry_run"], true);
    assert_eq!(planned["command"]["labels"], json!({ "env": "test" }));
    assert_eq!(planned["plan"]["outcome"], "create");
    assert_eq!((&planned["quota"]["cost"], &planned["quota"]["limit"]), (&json!(1), &Value::Null));
    assert_eq!(planned["likely_duplicates"], json!([]));
    assert_eq!((world.count().await, world.resources("alpha").await), (0, 0));
    let made = world.ann.made(&fast("planned", json!({}))).await;
    let there = dry(&world.ann, "true", &fast("planned", json!({}))).await.is(200).json();
    assert_eq!(
        (&there["plan"]["outcome"], &there["plan"]["request"]["id"]),
        (&json!("existing"), &json!(made))
    );
    dry(&world.ann, "true", &fast("NO", json!({}))).await.refused(422, "invalid-parameters");
    dry(&world.vic, "true", &fast("planned", json!({}))).await.refused(403, "forbidden");
    dry(&world.ben, "true", &fast("planned", json!({}))).await.refused(404, "not-found");
    dry(&world.nobody(), "true", &fast("planned", json!({}))).await.refused(401, "unauthenticated");
    dry(&world.ann, "perhaps", &fast("planned", json!({}))).await.refused(400, "invalid-query");
    // Without the wish for a dry run it is a submission like any other.
    dry(&world.ann, "false", &fast("planned", json!({}))).await.refused(400, "idempotency-key-missing");
    assert_eq!(world.count().await, 1);
}
