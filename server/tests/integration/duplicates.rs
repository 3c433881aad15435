//! How many duplicates the guard stopped, as administrators are told over HTTP.

use super::support::{ALPHA, World, eventually, fast};
use serde_json::json;

#[tokio::test]
async fn one_call_says_how_many_duplicates_were_stopped_and_where_they_came_from() {
    let world = World::start();
    for size in ["small", "small", "small", "large"] {
        let body = fast("one", json!({ "size": size }));
        world.ann.post(ALPHA, "k", &body).await;
    }
    world.ben.post("/teams/beta/requests", "k", &fast("one", json!({}))).await.is(202);
    let existing = world.abe.post(ALPHA, "another", &fast("one", json!({ "size": "small" }))).await.is(200);
    assert_eq!(existing.header("keyturn-outcome"), Some("existing"));
    let told = eventually("repeats are counted", async || {
        let told = world.ada.get("/duplicates").await.is(200).json();
        (told["stopped"] == 4).then_some(told)
    })
    .await;
    assert_eq!(told["rules"], json!({ "replayed": 2, "mismatched": 1, "existing": 1 }));
    assert_eq!((&told["channels"], &told["let_through"]), (&json!({ "api": 4 }), &json!(0)));
    let sources = told["sources"].as_array().unwrap();
    assert_eq!((&sources[0]["sent_by"], &sources[0]["token"]), (&json!("ann"), &json!("test")));
    assert_eq!((&sources[0]["stopped"], sources.len()), (&json!(3), 2));
    let periods = told["periods"].as_array().unwrap();
    let stopped: i64 = periods.iter().map(|period| period["stopped"].as_i64().unwrap()).sum();
    assert_eq!(stopped, 4);
    assert_eq!((&periods[0]["from"], &periods.last().unwrap()["to"]), (&told["from"], &told["to"]));
    let by_hour = world.ada.get("/duplicates?by=hour&zone=Asia/Kathmandu").await.is(200).json();
    assert_eq!((&by_hour["stopped"], &by_hour["zone"]), (&json!(4), &json!("Asia/Kathmandu")));
    for wrong in [
        "by=week",
        "from=yesterday",
        "zone=Nowhere",
        "since=x",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
    ] {
        world.ada.get(&format!("/duplicates?{wrong}")).await.refused(400, "invalid-query");
    }
}

#[tokio::test]
async fn a_window_is_rehearsed_over_what_was_requested() {
    let world = World::start();
    let one = world.ann.made(&fast("one", json!({}))).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let two = world.ann.made(&fast("two", json!({}))).await;
    let path = "/offerings/fast/rehearsal";
    let told = world.ada.get(&format!("{path}?duplicate_window=1h&days=7")).await.is(200).json();
    assert_eq!((&told["asked"], &told["judged"], &told["complete"]), (&json!(1), &json!(2), &json!(true)));
    let pair = &told["pairs"][0];
    assert_eq!((&pair["later"]["id"], &pair["earlier"]["id"]), (&json!(two), &json!(one)));
    assert_eq!(world.ada.get(path).await.is(200).json()["window_seconds"], 24 * 3600);
    for wrong in ["duplicate_window=soon", "duplicate_window=0s", "days=0", "days=x", "window=1h"] {
        world.ada.get(&format!("{path}?{wrong}")).await.refused(400, "invalid-query");
    }
    world.ada.get("/offerings/none/rehearsal").await.refused(404, "not-found");
}
