//! Callbacks that come when their time is over: after a cancellation, and after a deletion and another life.

use super::super::support::{
    Answer, PASSWORD, World,
    browser::{Browser, shown},
    eventually, fresh,
};
use super::{
    Place,
    callbacks::{callback, deliver},
    machine, place,
};
use serde_json::{Value, json};

fn done(sequence: u32, address: &str) -> Value {
    json!({ "state": "succeeded", "sequence": sequence, "outputs": { "address": address } })
}

/// Creates a machine, cancels that, and reports then that it was made; the request.
async fn orphan(place: &Place, name: &str) -> String {
    let Place { world, machines, .. } = place;
    let id = world.ann.made(&machine(name, "callback")).await;
    let (path, secret) = callback(machines, name).await;
    machines.book().things.insert(format!("alpha/{name}"), json!({ "owner": id, "done": [] }));
    world.ann.act(&format!("/requests/{id}/cancel"), &fresh("cancel")).await;
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");
    let base = &world.server.base;
    let first = deliver(base, &path, &secret, "late", &done(1, "late.test")).await.is(200);
    assert_eq!(first.json()["outcome"], "orphaned");
    let again = deliver(base, &path, &secret, "late", &done(1, "late.test")).await.is(200);
    assert_eq!((again.header("idempotency-replayed"), &again.body), (Some("true"), &first.body));
    let failed = json!({ "state": "failed", "sequence": 2 });
    let after = deliver(base, &path, &secret, "later", &failed).await.is(200);
    assert_eq!(after.json()["outcome"], "ignored: ended");
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["state"], "canceled");
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn late_successes_of_canceled_requests_are_listed_for_administrators_page_by_page() {
    let place = place().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(orphan(&place, &format!("late-{number}")).await);
    }
    ids.reverse();
    let world = &place.world;
    let (mut path, mut seen) = ("/orphans?size=2".to_owned(), Vec::new());
    loop {
        let page = world.ada.get(&path).await.is(200).json();
        assert_eq!(page["total"], 3, "{page}");
        let results = page["results"].as_array().unwrap();
        seen.extend(results.iter().map(|orphan| orphan["request"]["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/orphans?size=2&cursor={next}");
    }
    assert_eq!(seen, ids, "newest first, and each once");
    world.ada.get("/orphans?size=0").await.refused(400, "invalid-query");
    world.ada.get("/orphans?after=x").await.refused(400, "invalid-query");
    world.ann.get("/orphans").await.refused(403, "forbidden");
    world.nobody().get("/orphans").await.refused(401, "unauthenticated");

    // The page, without script.
    world.server.home.user("root", "admin", None, Some(PASSWORD));
    let mut browser = Browser::new(&world.server);
    let answer = browser.get("/orphans").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/login?next=%2Forphans")));
    browser.log_in("ann", PASSWORD).await;
    let refused = browser.get("/orphans").await.is(403);
    assert!(!shown(&refused).contains("late-0") && !shown(&refused).contains("href=\"/orphans\""));
    let mut browser = Browser::new(&world.server);
    browser.log_in("root", PASSWORD).await;
    assert!(shown(&browser.get("/history").await.is(200)).contains("href=\"/orphans\""));
    let page = shown(&browser.get("/orphans").await.is(200));
    for id in &ids {
        assert!(page.contains(&format!("href=\"/requests/{id}\"")), "{page}");
    }
    assert!(page.contains("What to do") && page.contains("3 orphans in all."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_a_deleted_life_never_touches_the_next_one() {
    let Place { world, machines, _folder } = place().await;
    let base = &world.server.base;
    let old = world.ann.made(&machine("reborn", "callback")).await;
    let (old_path, old_secret) = callback(&machines, "reborn").await;
    deliver(base, &old_path, &old_secret, "done", &done(1, "old.test")).await.is(200);
    assert_eq!(world.ann.ended(&old).await["state"], "succeeded");
    let resource = "/teams/alpha/resources/machine/reborn";
    let gone = world.ann.delete(resource, &fresh("delete")).await.is(202).id();
    assert_eq!(world.ann.ended(&gone).await["state"], "succeeded");

    machines.book().callbacks.clear();
    let new = world.ann.made(&machine("reborn", "callback")).await;
    let (path, secret) = callback(&machines, "reborn").await;
    assert_ne!(path, old_path);
    let late = [
        ("again", done(2, "old.test")),
        ("failed", json!({ "state": "failed", "sequence": 3 })),
        ("running", json!({ "state": "running", "sequence": 4, "log": ["from the grave"] })),
    ];
    for (event, body) in late {
        let answer = deliver(base, &old_path, &old_secret, event, &body).await.is(200);
        assert_eq!(answer.json()["outcome"], "ignored: ended", "{event}");
    }
    // One life's secret opens no other's callback.
    deliver(base, &path, &old_secret, "x", &done(9, "old.test")).await.refused(401, "signature-wrong");
    assert_eq!(world.ann.get(&format!("/requests/{new}")).await.json()["state"], "running");
    assert_eq!(world.ann.get(resource).await.json()["state"], "creating");
    deliver(base, &path, &secret, "done", &done(1, "new.test")).await.is(200);
    let ended = world.ann.ended(&new).await;
    assert_eq!((&ended["state"], &ended["outputs"]["address"]), (&json!("succeeded"), &json!("new.test")));
    let was = world.ann.get(&format!("/requests/{old}")).await.json();
    assert_eq!((&was["state"], &was["outputs"]["address"]), (&json!("succeeded"), &json!("old.test")));
    assert_eq!(world.ada.get("/orphans").await.json()["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_come_again_stand_on_the_page_of_duplicates() {
    let Place { world, machines, _folder } = place().await;
    let base = &world.server.base;
    let id = world.ann.made(&machine("counted", "callback")).await;
    let (path, secret) = callback(&machines, "counted").await;
    let running = json!({ "state": "running", "sequence": 1 });
    for _ in 0..4 {
        deliver(base, &path, &secret, "ev", &running).await.is(200);
    }
    deliver(base, &path, &secret, "ev", &done(2, "x")).await.refused(422, "idempotency-key-reused");
    deliver(base, &path, &secret, "end", &done(2, "counted.test")).await.is(200);
    world.ann.ended(&id).await;
    let counted = world.ada.get("/duplicates").await.is(200).json();
    assert_eq!((&counted["stopped"], &counted["channels"]["callback"]), (&json!(4), &json!(4)), "{counted}");
    assert_eq!(counted["sources"][0]["sent_by"], "service of machine");
    assert_eq!(counted["rules"], json!({ "mismatched": 1, "replayed": 3 }));
    world.server.home.user("root", "admin", None, Some(PASSWORD));
    let mut browser = Browser::new(&world.server);
    browser.log_in("root", PASSWORD).await;
    let page = shown(&browser.get("/duplicates").await.is(200));
    assert!(page.contains("service of machine") && page.contains("redelivered reports"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_callback_is_the_one_that_the_server_listens_on() {
    let Place { mut world, machines, _folder } = place().await;
    let given = async |world: &World, name: &str| {
        world.ann.made(&machine(name, "callback")).await;
        eventually("it was called", async || machines.book().callbacks.get(name).cloned()).await;
        let url = machines.book().callbacks[name].0.clone();
        assert!(url.starts_with(&format!("{}/api/v1/callbacks/", world.server.base)), "{url}");
        let unsigned = reqwest::Client::new().post(&url).json(&json!({}));
        Answer::of(unsigned).await.refused(401, "signature-wrong");
    };
    given(&world, "first").await;
    // The system gives the next start another port.
    world.kill();
    world.restart();
    given(&world, "second").await;
}
