//! What is made of steps, by real programs: whole, killed at work, and seen as one chain.

use super::support::{
    ALPHA, Home, PASSWORD, World,
    browser::{Browser, shown},
    eventually, fresh,
};
use serde_json::{Value, json};
use std::{path::Path, process::Command, time::Duration};

/// The catalog that comes with the portal.
fn samples() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog");
    folder.to_str().unwrap().to_owned()
}

const PAIR: &str = r#"title: Pair
description: Two machines, the second of which is told of the first.
category: Tests
version: "1"
parameters:
  type: object
  properties:
    seconds: { type: number, default: 0 }
    behaviour: { type: string, default: ok }
steps:
  - id: first
    offering: vm
    name: "{{ name }}-first"
    parameters: { seconds: "{{ parameters.seconds }}" }
  - id: second
    offering: vm
    name: "{{ name }}-second"
    needs: [first]
    parameters:
      seconds: "{{ parameters.seconds }}"
      behaviour: "{{ parameters.behaviour }}"
"#;

const BOTH: &str = r#"title: Both
description: Two machines side by side, of which one fails at first and the other takes its time.
category: Tests
version: "1"
parameters: { type: object, properties: {} }
steps:
  - { id: bad, offering: vm, name: "{{ name }}-bad", parameters: { behaviour: fail-once } }
  - { id: slow, offering: vm, name: "{{ name }}-slow", parameters: { seconds: 3 } }
"#;

/// A world whose catalog has the machines of the tests and pairs of them.
fn with_pairs() -> World {
    let mut home = Home::new(&[("KEYTURN_LEASE", "2s")]);
    let catalog = home.path().join("catalog");
    for (offering, text) in [("pair", PAIR), ("both", BOTH)] {
        std::fs::create_dir_all(catalog.join(offering)).unwrap();
        std::fs::write(catalog.join(offering).join("offering.yaml"), text).unwrap();
    }
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog/vm");
    std::os::unix::fs::symlink(machines, catalog.join("vm")).unwrap();
    home.set("KEYTURN_CATALOG", catalog.to_str().unwrap());
    World::at(home)
}

fn pair(name: &str, parameters: &Value) -> Value {
    json!({ "offering": "pair", "name": name, "parameters": parameters })
}

/// Step, action and state of all in the chain of a request.
async fn chain(world: &World, id: &str) -> Vec<String> {
    let chain = world.ann.get(&format!("/requests/{id}/chain")).await.is(200).json();
    let told = |one: &Value| {
        let step = one["step"].as_str().unwrap_or("-");
        format!("{step} {} {}", one["action"].as_str().unwrap(), one["state"].as_str().unwrap())
    };
    chain["results"].as_array().unwrap().iter().map(told).collect()
}

/// Every effect that the machines' program had, as `effect request`.
fn ledger(world: &World) -> Vec<String> {
    let ledger = world.server.home.path().join("data/offerings/vm/ledger");
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[tokio::test]
async fn the_sample_starter_makes_a_repository_and_a_certificate_for_real() {
    let world = World::with(&[("KEYTURN_CATALOG", &samples())]);
    let body = json!({
        "offering": "service-starter", "name": "orders", "correlation_id": "ORD-1", "labels": { "env": "prod" },
        "parameters": { "domain": "example.org", "description": "Takes orders", "days": 30 },
    });
    let id = world.ann.made(&body).await;
    let made = world.ann.ended(&id).await;
    assert_eq!(made["state"], "succeeded", "{made}");
    assert_eq!(
        chain(&world, &id).await,
        ["- create succeeded", "repository create succeeded", "certificate create succeeded"]
    );

    let clone = world.server.home.path().join("clone");
    let url = made["outputs"]["clone_url"].as_str().unwrap();
    let url = world.server.home.path().join(url);
    let cloned =
        Command::new("git").args(["clone", "-q", url.to_str().unwrap(), clone.to_str().unwrap()]).status();
    assert!(cloned.unwrap().success());
    assert!(std::fs::read_to_string(clone.join("README.md")).unwrap().contains("Takes orders"));
    let pem = world.server.home.path().join("certificate.pem");
    std::fs::write(&pem, made["outputs"]["certificate"].as_str().unwrap()).unwrap();
    let shown =
        Command::new("openssl").args(["x509", "-noout", "-ext", "subjectAltName", "-in"]).arg(&pem).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("DNS:orders.example.org"), "{shown}");
    assert_eq!(made["secret_outputs"], json!(["private_key"]));
    assert!(!made.to_string().contains("PRIVATE KEY"));
    let reveal = "/teams/alpha/resources/service-starter/orders/secrets/private_key/reveal";
    assert!(world.ada.act(reveal, &fresh("reveal")).await.is(200).text().contains("PRIVATE KEY"));

    let found = world
        .ann
        .get("/teams/alpha/requests?filters[labels][EQUALS][system.correlationId]=ORD-1")
        .await
        .is(200)
        .json();
    assert_eq!(found["total"], 3, "{found}");
    let of_parent = |one: &&Value| one["parent_id"] == json!(id);
    assert_eq!(found["results"].as_array().unwrap().iter().filter(of_parent).count(), 2);
    assert!(found["results"].as_array().unwrap().iter().all(|one| one["labels"]["env"] == "prod"));

    let delete = world
        .ann
        .delete("/teams/alpha/resources/service-starter/orders", &fresh("delete"))
        .await
        .is(202)
        .id();
    assert_eq!(world.ann.ended(&delete).await["state"], "succeeded");
    assert_eq!(world.resources("alpha").await, 0);
    assert!(!url.exists());
}

#[tokio::test]
async fn a_server_killed_while_steps_are_at_work_doubles_none() {
    let mut world = with_pairs();
    let id = world.ann.post(ALPHA, "pair", &pair("one", &json!({ "seconds": 1 }))).await.is(202).id();
    for step in ["first create running", "second create running"] {
        eventually(step, async || chain(&world, &id).await.contains(&step.to_owned()).then_some(())).await;
        world.kill();
        world.restart();
    }
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(
        chain(&world, &id).await,
        ["- create succeeded", "first create succeeded", "second create succeeded"]
    );
    let made = ledger(&world);
    assert_eq!(made.len(), 2, "{made:?}");
    let again = world.ann.post(ALPHA, "pair", &pair("one", &json!({ "seconds": 1 }))).await.is(202);
    assert_eq!((again.id(), again.header("idempotency-replayed")), (id, Some("true")));
}

#[tokio::test]
async fn a_failed_step_fails_the_whole_which_keeps_what_was_made_and_may_be_tried_again() {
    let world = with_pairs();
    let id = world.ann.made(&pair("one", &json!({ "behaviour": "fail" }))).await;
    let failed = world.ann.ended(&id).await;
    assert_eq!(failed["state"], "failed");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("second") && reason.contains("vm one-first"), "{failed}");
    assert_eq!(world.resources("alpha").await, 1);
    let family = ["- create failed", "first create succeeded", "second create failed"];
    assert_eq!(chain(&world, &id).await, family);
    world.ann.act(&format!("/requests/{id}/retry"), &fresh("retry")).await.is(202);
    assert_eq!(world.ann.ended(&id).await["state"], "failed");
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["attempt"], 2);
    assert_eq!(chain(&world, &id).await, family);
    assert_eq!((world.resources("alpha").await, ledger(&world).len()), (1, 1));
}

#[tokio::test]
async fn a_server_killed_between_a_steps_failure_and_the_parents_end_fails_alike_and_the_retry_adopts() {
    let mut world = with_pairs();
    let id = world.ann.made(&json!({ "offering": "both", "name": "one", "parameters": {} })).await;
    let (failed, running) = ("bad create failed".to_owned(), "slow create running".to_owned());
    eventually("one failed beside the other", async || {
        let chain = chain(&world, &id).await;
        (chain.contains(&failed) && chain.contains(&running)).then_some(())
    })
    .await;
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["state"], "running");
    world.kill();
    world.restart();
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "failed");
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.contains("Step bad") && reason.contains("vm one-slow"), "{ended}");
    assert_eq!(chain(&world, &id).await, ["- create failed", "bad create failed", "slow create succeeded"]);
    assert_eq!((ledger(&world).len(), world.resources("alpha").await), (1, 1));

    world.ann.act(&format!("/requests/{id}/retry"), &fresh("retry")).await.is(202);
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(
        chain(&world, &id).await,
        ["- create succeeded", "bad create succeeded", "slow create succeeded"]
    );
    let made = ledger(&world);
    assert!(made.len() == 2 && made.iter().all(|effect| effect.starts_with("apply ")), "{made:?}");
    assert_ne!(made[0], made[1], "each was made once");
}

#[tokio::test]
async fn a_parent_is_named_by_who_sees_it_and_hands_its_correlation_id_down() {
    let world = World::start();
    let mut body = super::support::fast("root", json!({}));
    body["correlation_id"] = "ORD-7".into();
    let root = world.ann.made(&body).await;
    let mut child = super::support::fast("child", json!({}));
    child["parent_id"] = json!(root);
    let made = world.ann.post(ALPHA, "child", &child).await.is(202).json();
    assert_eq!((&made["correlation_id"], &made["parent_id"]), (&json!("ORD-7"), &json!(root)));
    assert_eq!(made["labels"]["system.correlationId"], "ORD-7");
    let (path, text) =
        (format!("{ALPHA}?labels=system.correlationId:ORD-8"), child.to_string().replace("child", "other"));
    world.ann.text(&path, &fresh("k"), &text).await.refused(422, "invalid-parameters");
    world.ben.post("/teams/beta/requests", &fresh("k"), &child).await.refused(422, "invalid-parameters");
    let seen =
        world.ann.get(&format!("/requests/{}/chain", made["id"].as_str().unwrap())).await.is(200).json();
    assert_eq!(seen["results"].as_array().unwrap().len(), 2);
    assert_eq!(seen["more"], false);
    world.ben.get(&format!("/requests/{root}/chain")).await.refused(404, "not-found");
    tokio::time::timeout(Duration::from_secs(30), world.ann.ended(&root)).await.unwrap();
}

/// The request of a step, by the chain of its parent: of several the last.
async fn step(world: &World, id: &str, step: &str) -> Value {
    let chain = world.ann.get(&format!("/requests/{id}/chain")).await.is(200).json();
    let all = chain["results"].as_array().unwrap().iter().rev();
    let mut made = all.filter(|one| one["step"] == step && one["action"] == "create");
    made.next().unwrap()["id"].clone()
}

/// What the chain of a request says of the root's steps that have not begun.
async fn not_begun(world: &World, id: &str) -> Value {
    let chain = world.ann.get(&format!("/requests/{id}/chain")).await.is(200).json();
    chain["results"][0]["not_begun"].clone()
}

#[tokio::test]
async fn a_retried_parent_adopts_its_steps_and_a_canceled_one_leaves_nothing() {
    let world = with_pairs();
    let id = world.ann.made(&pair("one", &json!({ "behaviour": "cannot-tell" }))).await;
    let unknown = "second create unknown".to_owned();
    eventually("nobody can tell", async || chain(&world, &id).await.contains(&unknown).then_some(())).await;
    // The parent waits for a person's decision about the step, and does not decide by itself.
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["state"], "running");
    let second = step(&world, &id, "second").await;
    let path = format!("/requests/{}", second.as_str().unwrap());
    let closed = json!({ "resolution": "abandon", "force": true, "reason": "for a test" });
    world.ada.post(&format!("{path}/resolve"), &fresh("close"), &closed).await.is(202);
    let history = world.ann.get(&format!("{path}/events")).await.text();
    assert!(history.contains("abandon by force, by ada: for a test"), "{history}");
    assert_eq!(world.ann.ended(&id).await["state"], "failed");
    assert_eq!(world.resources("alpha").await, 1, "what the first step made stays");

    std::fs::write(world.server.home.path().join("data/offerings/vm/mended"), "").unwrap();
    let retry = format!("/requests/{id}/retry");
    let first = world.ann.act(&retry, "again").await.is(202);
    let ended = world.ann.ended(&id).await;
    assert_eq!((&ended["state"], &ended["attempt"]), (&json!("succeeded"), &json!(2)), "{ended}");
    world.ann.act(&retry, "again").await.repeats(&first);
    world.ann.act(&retry, &fresh("other")).await.refused(409, "already-decided");
    assert_eq!(step(&world, &id, "second").await, second, "the same request once more");
    assert_eq!(world.ann.get(&path).await.json()["attempt"], 2);
    let applied = format!("apply {}", second.as_str().unwrap());
    assert_eq!(ledger(&world).iter().filter(|effect| **effect == applied).count(), 1);
    assert_eq!(ledger(&world).len(), 2, "the first step was adopted");
    assert_eq!(world.resources("alpha").await, 3);

    let other = world.ann.made(&pair("two", &json!({ "seconds": 30 }))).await;
    let running = "first create running".to_owned();
    eventually("it runs", async || chain(&world, &other).await.contains(&running).then_some(())).await;
    let cancel = format!("/requests/{other}/cancel");
    let first = world.ann.act(&cancel, "stop").await.is(202);
    world.ann.act(&cancel, "stop").await.repeats(&first);
    assert_eq!(not_begun(&world, &other).await, json!(["second"]));
    assert_eq!(world.ann.ended(&other).await["state"], "canceled");
    assert_eq!(not_begun(&world, &other).await, json!(["second"]));
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = shown(&browser.get(&format!("/requests/{other}")).await.is(200));
    assert!(page.contains("not begun: step second") && !page.contains("not begun: step first"), "{page}");
    assert_eq!(not_begun(&world, &id).await, Value::Null, "what succeeded is whole");
    let again = world.ann.act(&cancel, &fresh("stop")).await.is(200);
    assert_eq!(again.header("keyturn-outcome"), Some("existing"));
    assert_eq!(chain(&world, &other).await, ["- create canceled", "first create canceled"]);
    assert_eq!(world.resources("alpha").await, 3);

    let whole = "/teams/alpha/resources/pair/one";
    let first = world.ann.delete(whole, "end").await.is(202);
    assert_eq!(world.ann.ended(&first.id()).await["state"], "succeeded");
    world.ann.delete(whole, "end").await.repeats(&first);
    assert_eq!(world.resources("alpha").await, 0);
    let made = ledger(&world);
    let count = |effect: &str| made.iter().filter(|one| one.starts_with(effect)).count();
    assert_eq!(count("apply"), count("destroy"), "{made:?}");
}

#[tokio::test]
async fn the_pages_of_a_pair_say_what_it_is_made_of_and_what_goes_with_it() {
    let world = with_pairs();
    let id = world.ann.made(&pair("one", &json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = "/teams/alpha/resources/pair/one";
    for (place, says) in [("", "Made of"), ("/delete", "This deletes with it")] {
        let text = browser.get(&format!("{page}{place}")).await.is(200).text();
        assert!(text.contains(says), "{text}");
        for part in ["first", "second"] {
            assert!(
                text.contains(&format!("href=\"/teams/alpha/resources/vm/one-{part}\"")),
                "{part}: {text}"
            );
        }
    }
    // What is gone does not go with it any more.
    let gone = world.ann.delete("/teams/alpha/resources/vm/one-first", "gone").await.is(202);
    assert_eq!(world.ann.ended(&gone.id()).await["state"], "succeeded");
    let text = browser.get(&format!("{page}/delete")).await.is(200).text();
    assert!(!text.contains("vm/one-first") && text.contains("vm/one-second"), "{text}");
}
