//! Changes of what is there: updates, actions and deletes, sent by two people, again, at once, and into each other.

use super::support::{ALPHA, Answer, Api, World, eventually, fast, fresh, vm};
use futures_util::future::join_all;
use serde_json::{Value, json};

const ONE: &str = "/teams/alpha/resources/fast/one";

/// A world in which `fast/one` is there.
async fn with_one() -> World {
    let world = World::start();
    let id = world.ann.made(&fast("one", json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    world
}

/// The request that an answer shows, at its end, which must be this.
async fn ended(api: &Api, answer: &Answer, state: &str) -> Value {
    let request = api.ended(&answer.id()).await;
    assert_eq!(request["state"], state, "{request}");
    request
}

#[tokio::test]
async fn of_two_people_who_edit_the_second_sees_both_versions_and_nothing_is_lost() {
    let world = with_one().await;
    let seen = world.ann.etag(ONE).await;
    let large = json!({ "size": "large" });
    let saved = world.ada.patch(ONE, "save", &seen, &large).await.is(202);
    assert_eq!(saved.header("location"), Some(format!("/api/v1/requests/{}", saved.id()).as_str()));
    let version = saved.header("etag").unwrap().to_owned();
    ended(&world.ada, &saved, "succeeded").await;
    assert_eq!(world.ann.etag(ONE).await, version, "the answer names the version that the change made");

    let note = json!({ "note": "x" });
    let stale = world.ann.patch(ONE, "mine", &seen, &note).await.refused(412, "precondition-failed").json();
    assert_eq!((&stale["versions"]["yours"], &stale["versions"]["current"]), (&json!(seen), &json!(version)));
    assert_eq!(stale["versions"]["parameters"]["size"], "large");
    let send = |tag: Option<&str>| {
        let call = world.ann.call("PATCH", ONE).header("Idempotency-Key", "mine").json(&note);
        Answer::of(if let Some(tag) = tag { call.header("If-Match", tag) } else { call })
    };
    send(None).await.refused(428, "precondition-required");
    send(Some("*")).await.refused(428, "precondition-required");
    for wrong in ["3", "\"3\"", "nonsense", "\"open", &format!("W/{version}"), ""] {
        send(Some(wrong)).await.refused(412, "precondition-failed");
    }
    let now = world.ann.get(ONE).await.json();
    assert_eq!((&now["parameters"]["size"], &now["version"]), (&json!("large"), &json!(2)));
    // A keyed repeat of the save that went through, from the old page.
    world.ada.patch(ONE, "save", &seen, &large).await.repeats(&saved);
    world.ada.patch(ONE, "save", "nonsense", &large).await.repeats(&saved);
    // And the second person's change on top, in a list of tags, with the key that was refused before.
    let merged = send(Some(&format!("\"x\" , {version}"))).await.is(202);
    let merged = ended(&world.ann, &merged, "succeeded").await;
    assert_eq!(merged["parameters"], json!({ "size": "large", "count": 1, "note": "x" }));
    assert_eq!(merged["patch"], note);
}

#[tokio::test]
async fn a_patch_is_read_strictly_and_in_order() {
    let world = with_one().await;
    let etag = world.ann.etag(ONE).await;
    let typed = |kind: &str, body: &str| {
        let call = world.ann.call("PATCH", ONE).header("Idempotency-Key", "k").header("If-Match", &etag);
        Answer::of(call.header("Content-Type", kind).body(body.to_owned()))
    };
    typed("text/plain", "{}").await.refused(415, "unsupported-media-type");
    typed("application/json-patch+json", "[]").await.refused(415, "unsupported-media-type");
    typed("application/json", "{\"size\":\"small\",\"size\":\"large\"}").await.refused(400, "invalid-json");
    typed("application/json", "[]").await.refused(400, "invalid-json");
    typed("application/json", "{\"size\":\"huge\"}").await.refused(422, "invalid-parameters");
    let wrong = typed("application/merge-patch+json", "{\"count\":1000,\"zap\":1}").await;
    let wrong = wrong.refused(422, "invalid-parameters").json();
    let mut pointers: Vec<_> =
        wrong["errors"].as_array().unwrap().iter().map(|error| error["pointer"].clone()).collect();
    pointers.sort_by_key(ToString::to_string);
    assert_eq!(pointers, [json!("/count"), json!("/zap")]);
    let keyless = world.ann.call("PATCH", ONE).json(&json!({}));
    Answer::of(keyless).await.refused(400, "idempotency-key-missing");
    world.vic.patch(ONE, "k", &etag, &json!({ "size": "huge" })).await.refused(403, "forbidden");
    world.ben.patch(ONE, "k", &etag, &json!({})).await.refused(404, "not-found");
    let two = ONE.replace("one", "two");
    world.ann.patch(&two, "k", &etag, &json!({})).await.refused(404, "not-found");
    let odd = format!("{ONE}?odd=1");
    world.ann.patch(&odd, "k", &etag, &json!({})).await.refused(400, "invalid-query");
    // None of it used the key up; labels and the correlation ID come by the address.
    let labeled = format!("{ONE}?labels=env:test&labels=system.correlationId:payment-1");
    let answer = world.ann.patch(&labeled, "k", &etag, &json!({ "size": "large" })).await.is(202);
    let request = ended(&world.ann, &answer, "succeeded").await;
    assert_eq!(
        (&request["correlation_id"], &request["labels"]["env"]),
        (&json!("payment-1"), &json!("test"))
    );
    let found =
        "/requests?filters[labels][EQUALS][system.correlationId]=payment-1&filters[action][EQUALS]=update";
    assert_eq!(world.ann.get(found).await.json()["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_who_change_the_same_version_at_once_one_wins() {
    let world = with_one().await;
    for round in 0..5 {
        let etag = world.ann.etag(ONE).await;
        let sends = (0..10).map(|number| {
            let (api, etag) = (world.ann.clone(), etag.clone());
            async move { api.patch(ONE, &fresh("race"), &etag, &json!({ "note": format!("{number}") })).await }
        });
        let answers = join_all(sends).await;
        let count = |status| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(202), count(412)), (1, 9), "round {round}");
        let won = answers.iter().find(|answer| answer.status == 202).unwrap();
        ended(&world.ann, won, "succeeded").await;
        assert_eq!(won.header("etag").map(str::to_owned), Some(world.ann.etag(ONE).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_disks_are_added_once_however_often_it_is_asked() {
    let world = with_one().await;
    let path = format!("{ONE}/actions/add-disks");
    let two = json!({ "count": 2 });
    let sends = (0..10).map(|_| world.ann.post(&path, "disks", &two));
    let answers = join_all(sends).await;
    let first = answers.iter().find(|answer| answer.header("idempotency-replayed").is_none()).unwrap();
    for answer in &answers {
        assert_eq!(answer.lasting(), first.lasting());
    }
    assert_eq!(first.status, 202);
    let request = ended(&world.ann, first, "succeeded").await;
    assert_eq!((&request["action"], &request["parameters"]), (&json!("add-disks"), &two));
    assert_eq!(request["desired"]["count"], 3);
    for _ in 0..3 {
        world.ann.post(&path, "disks", &two).await.repeats(first);
    }
    let now = world.ann.get(ONE).await.json();
    assert_eq!((&now["parameters"]["count"], &now["version"]), (&json!(3), &json!(2)));
    let other = world.ann.post(&path, "disks", &json!({ "count": 3 })).await;
    assert_eq!(other.refused(422, "idempotency-key-reused").json()["differs"], json!(["parameters.count"]));
    // With another key it is another intention.
    let again = world.ann.post(&path, "disks-2", &two).await.is(202);
    ended(&world.ann, &again, "succeeded").await;
    assert_eq!(world.ann.get(ONE).await.json()["parameters"]["count"], 5);
    let much = world.ann.post(&path, "disks-3", &json!({ "count": 99 })).await;
    assert_eq!(much.refused(422, "invalid-parameters").json()["errors"][0]["pointer"], "/count");
    // An action without parameters needs no body; one that there is not is not there.
    let restart = format!("{ONE}/actions/restart");
    let first = world.ann.act(&restart, "restart").await.is(202);
    for _ in 0..2 {
        world.ann.act(&restart, "restart").await.repeats(&first);
    }
    let found =
        "/requests?filters[type][EQUALS]=fast&filters[name][EQUALS]=one&filters[action][EQUALS]=restart";
    assert_eq!(world.ann.get(found).await.json()["total"], 1, "once, and once in the history");
    world.ann.act(&format!("{ONE}/actions/explode"), "k").await.refused(404, "not-found");
    world.vic.act(&restart, "k").await.refused(403, "forbidden");
    world.ben.act(&restart, "k").await.refused(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_delete_bring_about_one_teardown() {
    let world = with_one().await;
    let two = ONE.replace("one", "two");
    world.ann.delete(&two, "never").await.refused(404, "not-found");
    world.ben.delete(ONE, "k").await.refused(404, "not-found");
    world.vic.delete(ONE, "k").await.refused(403, "forbidden");
    let sends = (0..20).map(|number| {
        let (api, key) = (if number % 2 == 0 { &world.ann } else { &world.abe }, format!("d-{}", number / 4));
        async move { api.delete(ONE, &key).await }
    });
    let answers = join_all(sends).await;
    let accepted: Vec<_> = answers.iter().filter(|answer| answer.status == 202).collect();
    let id = accepted[0].id();
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
        assert_eq!(answer.id(), id, "one delete");
        if answer.status == 200 {
            assert_eq!(answer.header("keyturn-outcome"), Some("existing"));
        }
    }
    let request = ended(&world.ann, accepted[0], "succeeded").await;
    assert_eq!((&request["action"], &request["parameters"]), (&json!("delete"), &json!({})));
    world.ann.get(ONE).await.refused(404, "not-found");
    let gone = world.ann.delete(ONE, "later").await.is(200);
    assert_eq!((gone.id(), gone.header("keyturn-outcome")), (id.clone(), Some("existing")));
    world.ann.delete(ONE, "later").await.repeats(&gone);
    let found = "/requests?filters[type][EQUALS]=fast&filters[name][EQUALS]=one";
    assert_eq!(world.ann.get(found).await.json()["total"], 2, "a create and a delete");
    // A new life: its own history, and no old key touches it.
    let again = world.ann.made(&fast("one", json!({ "size": "large" }))).await;
    world.ann.ended(&again).await;
    for answer in &answers {
        assert_ne!(answer.id(), again);
    }
    world.ann.delete(ONE, "later").await.repeats(&gone);
    world.ann.delete(ONE, "d-0").await;
    let now = world.ann.get(ONE).await.is(200).json();
    assert_eq!(
        (&now["state"], &now["version"], &now["created_by"]["id"]),
        (&json!("active"), &json!(1), &json!(again))
    );
    assert_eq!(now["requests"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_creates_repeat_after_the_delete_replays_and_makes_nothing() {
    let world = World::start();
    let body = fast("one", json!({}));
    let first = world.ann.post(ALPHA, "create", &body).await.is(202);
    world.ann.ended(&first.id()).await;
    let delete = world.ann.delete(ONE, "delete").await.is(202);
    ended(&world.ann, &delete, "succeeded").await;
    let again = world.ann.post(ALPHA, "create", &body).await;
    again.repeats(&first);
    assert_eq!(again.header("keyturn-request-state"), Some("succeeded"));
    assert_eq!((world.count().await, world.resources("alpha").await), (2, 0));
}

#[tokio::test]
async fn a_resource_shows_what_waits_and_what_was_asked_last() {
    let world = with_one().await;
    let etag = world.ann.etag(ONE).await;
    let update = world.ann.patch(ONE, "k", &etag, &json!({ "size": "large" })).await.is(202);
    ended(&world.ann, &update, "succeeded").await;
    let now = world.vic.get(ONE).await.is(200).json();
    assert_eq!(now["pending"], json!([]));
    let last = now["requests"].as_array().unwrap();
    assert_eq!((&last[0]["action"], &last[0]["id"]), (&json!("update"), &json!(update.id())));
    assert_eq!((&last[1]["action"], &last[1]["state"]), (&json!("create"), &json!("succeeded")));
    let submissions = world.ann.get(&format!("/requests/{}/submissions", update.id())).await.json();
    assert_eq!(submissions["results"][0]["operation"], "update");
    assert_eq!(world.ann.get("/teams/alpha/submissions?key=k").await.is(200).id(), update.id());
}

#[tokio::test]
async fn a_create_of_what_is_being_deleted_is_told_to_come_again() {
    let world = World::start();
    let path = "/teams/alpha/resources/vm/slow";
    let create = world.ann.made(&vm("slow", json!({ "seconds": 60 }))).await;
    eventually("it is at work", async || {
        (world.ann.get(&format!("/requests/{create}")).await.json()["state"] == "running").then_some(())
    })
    .await;
    let delete = world.ann.delete(path, "delete").await.is(202);
    let refused = world.ann.post(ALPHA, "again", &vm("slow", json!({}))).await;
    if refused.status != 202 {
        assert!(refused.header("retry-after").is_some());
        refused.refused(409, "deletion-in-progress");
    }
    ended(&world.ann, &delete, "succeeded").await;
    assert_eq!(world.ann.ended(&create).await["state"], "canceled");
    let again = world.ann.post(ALPHA, "again", &vm("slow", json!({}))).await.is(202);
    assert_eq!(world.ann.ended(&again.id()).await["state"], "succeeded");
}
