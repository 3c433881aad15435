//! Work that is interrupted, fails or is stopped at a bad moment: what its key's repeats are told, and what was done.

use super::support::{ALPHA, PASSWORD, World, browser::Browser, browser::hidden, eventually, vm};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The lines of the ledger in which the test's program writes what it did.
fn ledger(world: &World) -> Vec<String> {
    let file = world.server.home.path().join("data/offerings/vm/ledger");
    let ledger = std::fs::read_to_string(file).unwrap_or_default();
    ledger.lines().map(str::to_owned).collect()
}

async fn until_lines(world: &World, count: usize) {
    eventually("the effect is there", async || (ledger(world).len() >= count).then_some(())).await;
}

async fn request(world: &World, id: &str) -> Value {
    world.ann.get(&format!("/requests/{id}")).await.is(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_before_or_after_the_effect_repeats_it_never_and_its_key_is_never_stuck() {
    for (name, parameters, before) in [
        ("before", json!({ "seconds": 2 }), true),
        ("after", json!({ "behaviour": "slow-answer", "seconds": 3 }), false),
    ] {
        let mut world = World::with(&[("KEYTURN_LEASE", "2s")]);
        let body = vm(name, parameters);
        let first = world.ann.post(ALPHA, "k", &body).await.is(202);
        if before {
            eventually("it runs", async || {
                (request(&world, &first.id()).await["state"] == "running").then_some(())
            })
            .await;
        } else {
            until_lines(&world, 1).await;
        }
        world.kill();
        assert_eq!(ledger(&world).is_empty(), before);
        world.restart();
        let begun = Instant::now();
        loop {
            // In every moment the first answer is there.
            let again = world.ann.post(ALPHA, "k", &body).await;
            again.repeats(&first);
            if again.header("keyturn-request-state") == Some("succeeded") {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", again.headers);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let lines = ledger(&world);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(&format!("apply {} ", first.id())));
        assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
        // What was done already is found by looking, what was not is done.
        let told = world.ann.get(&format!("/requests/{}/events", first.id())).await.text();
        assert_eq!(told.contains("it is there, made by this request"), !before, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_went_wrong_behind_the_portal_a_keys_repeat_tells_of_the_one_request() {
    let world = World::start();
    let cases = [
        // Busy before any effect, the answer lost after it, the program killed after it, and a plain failure.
        ("retry-once", "succeeded", 1),
        ("lose-answer", "succeeded", 1),
        ("crash", "succeeded", 1),
        ("fail", "failed", 0),
    ];
    for (behaviour, state, effects) in cases {
        let body = vm(behaviour, json!({ "behaviour": behaviour }));
        let first = world.ann.post(ALPHA, behaviour, &body).await.is(202);
        assert_eq!(world.ann.ended(&first.id()).await["state"], state, "{behaviour}");
        let again = world.ann.post(ALPHA, behaviour, &body).await;
        again.repeats(&first);
        assert_eq!(again.header("keyturn-request-state"), Some(state));
        let done = ledger(&world).iter().filter(|line| line.contains(&first.id())).count();
        assert_eq!(done, effects, "{behaviour}");
    }
    // By the form it is the same: the one request, as it stands.
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let id = hidden(&browser.get("/offerings/vm/new").await.is(200), "request_id");
    let form = [
        ("request_id", id.as_str()),
        ("team", "alpha"),
        ("name", "by-form"),
        ("p.behaviour", "fail"),
        ("p.count", "1"),
    ];
    let first = browser.post("/offerings/vm/new", &form).await.is(303);
    let place = first.header("location").unwrap().to_owned();
    let made = place.strip_prefix("/requests/").unwrap();
    assert_eq!(world.ann.ended(made).await["state"], "failed");
    let again = browser.post("/offerings/vm/new", &form).await.is(303);
    assert_eq!(again.header("location").unwrap(), format!("{place}?repeat=1"));
    assert_eq!((world.count().await, world.resources("alpha").await), (5, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_meets_the_end_is_said_to_have_come_too_late() {
    let world = World::start();
    let one = world.ann.made(&vm("one", json!({}))).await;
    assert_eq!(world.ann.ended(&one).await["state"], "succeeded");
    let restart = "/teams/alpha/resources/vm/one/actions/restart";
    // An action cannot be taken back, and this one is done before its program ends.
    let slow = json!({ "behaviour": "slow-answer", "seconds": 30 });
    let id = world.ann.post(restart, "restart", &slow).await.is(202).id();
    until_lines(&world, 2).await;
    let stop = format!("/requests/{id}/cancel");
    let first = world.ann.act(&stop, "stop").await.is(202);
    assert_ne!(first.json()["state"], "canceled", "{}", first.text());
    // Asked again before it is over it is asked already; after that it was decided otherwise.
    let again = world.ann.act(&stop, "stop-again").await;
    match again.status {
        200 => {
            assert_eq!(again.header("keyturn-outcome"), Some("existing"));
            assert_ne!(again.json()["state"], "canceled", "{}", again.text());
        }
        _ => drop(again.refused(409, "already-decided")),
    }
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let reason = ended["reason"].as_str().unwrap_or_else(|| panic!("it does not say why: {ended}"));
    assert!(reason.contains("before it could be stopped"), "{reason}");
    let told = world.ann.get(&format!("/requests/{id}/events")).await.text();
    assert!(told.contains("asked to stop") && told.contains("before it could be stopped"), "{told}");
    let repeat = world.ann.act(&stop, "stop").await;
    repeat.repeats(&first);
    assert_eq!(repeat.header("keyturn-request-state"), Some("succeeded"));
    world.ann.act(&stop, "too-late").await.refused(409, "already-decided");
    // One that nobody stopped says nothing of it.
    let id = world.ann.post(restart, "again", &json!({})).await.is(202).id();
    assert_eq!(world.ann.ended(&id).await["reason"], Value::Null);
}
