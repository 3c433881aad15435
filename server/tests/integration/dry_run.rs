//! Dry runs over HTTP.

use super::support::{ALPHA, Answer, Api, Home, World, fast, fresh};
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

const ONE: &str = "/teams/alpha/resources/fast/one";

/// How many rows every table of a world's database has; but for the index of words, which is made a little later.
async fn rows(world: &World) -> Vec<(String, i64)> {
    use sqlx::{AssertSqlSafe, ConnectOptions};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.server.home.database());
    let mut database = options.connect().await.unwrap();
    let names =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sought%' ORDER BY name";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut database).await.unwrap();
    let mut rows = Vec::new();
    for name in names {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {name}"));
        rows.push((name, sqlx::query_scalar(count).fetch_one(&mut database).await.unwrap()));
    }
    rows
}

async fn dry_change(api: &Api, method: &str, path: &str, tag: Option<&str>, body: Option<&Value>) -> Answer {
    let call = api.call(method, path);
    let call = if let Some(tag) = tag { call.header("If-Match", tag) } else { call };
    Answer::of(if let Some(body) = body { call.json(body) } else { call }).await
}

#[tokio::test]
async fn dry_runs_of_changes_need_no_key_come_in_the_same_order_of_checks_and_change_nothing() {
    let world = World::at(Home::on_sqlite(&[]));
    let made = world.ann.made(&fast("one", json!({}))).await;
    world.ann.ended(&made).await;
    let etag = world.ann.etag(ONE).await;
    let (patch, grow) = (format!("{ONE}?dry_run=true"), format!("{ONE}/actions/add-disks?dry_run=true"));
    let before = rows(&world).await;
    let large = json!({ "size": "large" });

    let planned = dry_change(&world.ann, "PATCH", &patch, Some(&etag), Some(&large)).await.is(200).json();
    assert_eq!((&planned["dry_run"], &planned["plan"]["outcome"]), (&json!(true), &json!("update")));
    assert_eq!(planned["plan"]["changes"][0]["name"], "size");
    assert_eq!(planned["plan"]["changes"][0]["after"], "large");
    assert_eq!(planned["command"]["parameters"], large);
    let planned =
        dry_change(&world.ann, "POST", &grow, None, Some(&json!({ "count": 2 }))).await.is(200).json();
    assert_eq!(planned["plan"]["outcome"], "action");
    let planned = dry_change(&world.ann, "DELETE", &patch, None, None).await.is(200).json();
    assert_eq!((&planned["plan"]["outcome"], &planned["quota"]["cost"]), (&json!("delete"), &json!(-1)));

    let wrong = json!({ "size": "huge" });
    dry_change(&world.nobody(), "PATCH", &patch, None, Some(&json!([])))
        .await
        .refused(401, "unauthenticated");
    dry_change(&world.ben, "PATCH", &patch, None, Some(&json!([]))).await.refused(400, "invalid-json");
    dry_change(&world.ben, "PATCH", &patch, None, Some(&wrong)).await.refused(404, "not-found");
    dry_change(&world.vic, "PATCH", &patch, None, Some(&wrong)).await.refused(403, "forbidden");
    dry_change(&world.ann, "PATCH", &patch, None, Some(&wrong)).await.refused(422, "invalid-parameters");
    dry_change(&world.ann, "PATCH", &patch, None, Some(&large)).await.refused(428, "precondition-required");
    dry_change(&world.ann, "PATCH", &patch, Some("\"x\""), Some(&large))
        .await
        .refused(412, "precondition-failed");
    dry_change(&world.ann, "DELETE", &patch, Some("\"x\""), None).await.refused(412, "precondition-failed");
    let two = patch.replace("one", "two");
    dry_change(&world.ann, "DELETE", &two, None, None).await.refused(404, "not-found");
    dry_change(&world.ben, "DELETE", &patch, None, None).await.refused(404, "not-found");
    dry_change(&world.vic, "POST", &grow, None, None).await.refused(403, "forbidden");
    let odd = patch.replace("true", "perhaps");
    dry_change(&world.ann, "DELETE", &odd, None, None).await.refused(400, "invalid-query");

    // A key that comes along is not claimed by it: the same key works for real, once.
    let key = fresh("dry");
    let with_key = world.ann.call("DELETE", &patch).header("Idempotency-Key", &key);
    Answer::of(with_key).await.is(200);
    assert_eq!(rows(&world).await, before);
    assert_eq!(world.ann.etag(ONE).await, etag);
    let deleted = world.ann.delete(ONE, &key).await.is(202);
    assert_eq!(deleted.header("idempotency-replayed"), None);
    world.ann.ended(&deleted.id()).await;
    let gone = dry_change(&world.ann, "DELETE", &patch, None, None).await.is(200).json();
    assert_eq!(
        (&gone["plan"]["outcome"], &gone["plan"]["request"]["id"]),
        (&json!("existing"), &json!(deleted.id()))
    );
}

#[tokio::test]
async fn the_catalog_says_what_an_offering_is_made_of_and_its_plan_lists_the_steps() {
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog");
    let world = World::with(&[("KEYTURN_CATALOG", samples.to_str().unwrap())]);
    let offering = world.ann.get("/offerings/service-starter").await.is(200).json();
    let parts = offering["made_of"].as_array().unwrap();
    assert_eq!(parts[0], json!({ "step": "repository", "offering": "git-repository" }));
    assert_eq!(parts.len(), 2);
    assert!(world.ann.get("/offerings/git-repository").await.json().get("made_of").is_none());
    let parameters = json!({ "domain": "example.org", "description": "Takes orders", "days": 30 });
    let body = json!({ "offering": "service-starter", "name": "orders", "parameters": parameters });
    let planned = dry(&world.ann, "true", &body).await.is(200).json();
    let steps = planned["plan"]["steps"].as_array().unwrap();
    assert_eq!(
        (&steps[0]["offering"], &steps[1]["offering"]),
        (&json!("git-repository"), &json!("tls-certificate"))
    );
    assert_eq!(steps[1]["parameters"]["days"], 30);
    assert_eq!(planned["quota"]["cost"], 2, "the whole costs nothing beside its parts");
    assert_eq!(world.count().await, 0);
}
