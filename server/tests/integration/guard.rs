//! The second layer, the end of keys and the published policy, over HTTP and across restarts.

use super::support::{ALPHA, Api, Cluster, Home, Server, World, eventually, fast};
use serde_json::{Value, json};

fn asked(name: &str) -> Value {
    json!({ "offering": "asked", "name": name, "parameters": {} })
}

/// Starts the world again with a clock that is so far ahead.
fn later(world: &mut World, offset: &str) {
    world.kill();
    world.server.home = world.server.home.beside(&[("KEYTURN_CLOCK_OFFSET", offset)]);
    world.restart();
}

#[tokio::test]
async fn a_likely_duplicate_is_asked_with_the_earlier_request_and_goes_through_when_confirmed() {
    let world = World::start();
    let guard = world.ann.get("/offerings/asked").await.is(200).json()["guard"].clone();
    assert_eq!(guard["duplicate_window_seconds"], 3600);
    let one = world.ann.post(ALPHA, "one", &asked("one")).await.is(202).id();
    let question =
        world.abe.post(ALPHA, "two", &asked("two")).await.refused(409, "suspected-duplicate").json();
    assert_eq!((&question["request"]["id"], &question["earlier"]["name"]), (&json!(one), &json!("one")));
    assert_eq!(question["earlier"]["requested_by"], "ann");
    assert_eq!(world.count().await, 1);
    let mut confirmed = asked("two");
    confirmed["confirm_duplicate"] = json!({ "of": one, "reason": "" });
    world.abe.post(ALPHA, "two", &confirmed).await.refused(422, "invalid-parameters");
    confirmed["confirm_duplicate"]["reason"] = "a second one for the test".into();
    let two = world.abe.post(ALPHA, "two", &confirmed).await.is(202);
    assert_eq!(
        two.json()["duplicate"],
        json!({
        "of": { "id": one, "href": format!("/api/v1/requests/{one}") }, "reason": "a second one for the test" })
    );
    world.abe.post(ALPHA, "two", &confirmed).await.repeats(&two);
    // Another team's is nobody's.
    world.ben.post("/teams/beta/requests", "one", &asked("one")).await.is(202);
    // What was refused under the key is shown with what came of it.
    let seen = eventually("arrivals of the second key", async || {
        let seen = world.abe.get(&format!("/requests/{}/submissions", two.id())).await.json();
        (seen["results"].as_array().unwrap().len() == 4).then_some(seen)
    })
    .await;
    let outcomes: Vec<_> = seen["results"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["refused", "refused", "first", "replayed"]);
}

#[tokio::test]
async fn of_the_same_sent_at_once_by_many_one_goes_through_and_the_others_are_asked() {
    let world = World::start();
    let sends =
        (0..12).map(|number| {
            let api: Api = if number % 2 == 0 { world.ann.clone() } else { world.abe.clone() };
            async move {
                api.post(ALPHA, &format!("many-{number}"), &asked(&format!("many-{number}"))).await.status
            }
        });
    let mut statuses = futures_util::future::join_all(sends).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 202);
    assert!(statuses[1..].iter().all(|status| *status == 409), "{statuses:?}");
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn a_key_is_replayed_then_gone_then_free_across_restarts() {
    let mut world = World::with(&[
        ("KEYTURN_GUARD_LONGEST_RETRY", "1h"),
        ("KEYTURN_GUARD_RETENTION", "2h"),
        ("KEYTURN_GUARD_TOMBSTONES", "3h"),
    ]);
    let policy = world.nobody().get("/guard").await.is(200).json();
    assert_eq!(policy["retention_seconds"], 7200);
    assert_eq!((&policy["tombstone_seconds"], &policy["wait_seconds"]), (&json!(10800), &json!(5)));
    assert_eq!(policy["longest_retry_seconds"], 3600);
    assert_eq!(policy["retry_schedules"][0]["sender"], "browser");
    let body = fast("kept", json!({}));
    let first = world.ann.post(ALPHA, "kept", &body).await.is(202);
    assert!(first.header("idempotency-key-expires").is_some());
    let id = first.id();
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    later(&mut world, "115m");
    let again = world.ann.post(ALPHA, "kept", &body).await;
    again.repeats(&first);
    assert!(again.header("idempotency-key-expires").is_some());

    later(&mut world, "125m");
    for sent in [&body, &fast("other", json!({ "size": "large" }))] {
        let gone = world.ann.post(ALPHA, "kept", sent).await.refused(410, "idempotency-key-expired");
        assert_eq!(gone.json()["request"]["id"], json!(id));
    }
    let looked =
        world.ann.get("/teams/alpha/submissions?key=kept").await.refused(410, "idempotency-key-expired");
    assert_eq!(looked.json()["request"]["id"], json!(id));
    // Nobody else learns anything of it.
    world.abe.get("/teams/alpha/submissions?key=kept").await.refused(404, "not-found");
    world.ben.get("/teams/alpha/submissions?key=kept").await.refused(404, "not-found");
    assert_eq!(world.count().await, 1);

    later(&mut world, "305m");
    world.ann.get("/teams/alpha/submissions?key=kept").await.refused(404, "not-found");
    let there = world.ann.post(ALPHA, "kept", &body).await.is(200);
    assert_eq!((there.header("keyturn-outcome"), there.id()), (Some("existing"), id));
    assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
}

#[test]
fn what_would_forget_keys_too_soon_stops_the_start_with_its_name() {
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("KEYTURN_GUARD_RETENTION", "83h")], "KEYTURN_GUARD_RETENTION"),
        (&[("KEYTURN_GUARD_LONGEST_RETRY", "7d")], "KEYTURN_GUARD_RETENTION"),
        (&[("KEYTURN_GUARD_TOMBSTONES", "0s")], "KEYTURN_GUARD_TOMBSTONES"),
    ];
    for (settings, named) in cases {
        let home = Home::on_sqlite(settings);
        for command in [["migrate", "--json"], ["serve", "--json"], ["key", "list"]] {
            let output = home.run(&command, "");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && told.contains(named), "{settings:?} {command:?}: {told}");
        }
    }
}

#[tokio::test]
async fn a_server_with_an_older_key_file_refuses_what_it_cannot_judge_until_it_has_the_newer_one() {
    let mut world = World::at(Home::on_postgres(Cluster::shared(), &[]));
    let path = |name: &str| world.server.home.path().join(name);
    let (newest, older) = (path("supplied.key"), path("older.key"));
    std::fs::copy(&newest, &older).unwrap();
    let behind = world.server.home.beside(&[("KEYTURN_SECRET_KEY_FILE", "older.key")]);
    let behind = Server::start(behind);
    let ann = Api { base: behind.base.clone(), ..world.ann.clone() };
    let before = world.ann.post(ALPHA, "before", &fast("before", json!({}))).await.is(202);
    world.server.home.must(&["key", "rotate"], "");
    world.kill();
    world.restart();
    let first = world.ann.post(ALPHA, "k", &fast("one", json!({}))).await.is(202);
    for body in [fast("one", json!({})), fast("two", json!({}))] {
        let refused = ann.post(ALPHA, "k", &body).await.refused(503, "server-behind");
        assert!(refused.header("retry-after").is_some());
    }
    ann.post(ALPHA, "before", &fast("before", json!({}))).await.repeats(&before);
    // It would not start so.
    let output = behind.home.run(&["serve"], "");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("KEYTURN_SECRET_KEY_FILE") && told.contains("lacks version 2"), "{told}");
    // Given the newer file, it judges at once.
    std::fs::copy(&newest, &older).unwrap();
    ann.post(ALPHA, "k", &fast("one", json!({}))).await.repeats(&first);
    ann.post(ALPHA, "k", &fast("two", json!({}))).await.refused(422, "idempotency-key-reused");
    // Nothing is dropped while keys need it.
    let said: Value = serde_json::from_str(&world.server.home.must(&["key", "prune", "--json"], "")).unwrap();
    assert_eq!(said["dropped"], json!([]));
    assert_eq!((&said["versions"][0]["keys"], &said["versions"][1]["keys"]), (&json!(1), &json!(1)));
}
