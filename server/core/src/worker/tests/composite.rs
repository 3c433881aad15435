//! What is made of steps: each is a request of its own, nothing is doubled, and what is stopped or removed leaves nothing.

mod failing;

use crate::{
    provisioner::fake::{Behaviour, Fake},
    service::Target,
    testing::{
        House, SOON,
        composite::{made_of, pair, pairs},
        key, send, vm,
    },
};
use bytes::Bytes;
use domain::{
    action,
    id::RequestId,
    role::TeamRole,
    state::RequestState::{Canceled, Failed, Running, Succeeded, Unknown},
    submission::Channel,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

async fn at_work() -> (House, Fake) {
    let fake = Fake::default();
    (House::at_work(pairs(&fake)).await, fake)
}

/// With but one worker nothing goes on if anybody holds it while waiting.
async fn with_one_worker() -> (House, Fake) {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.workers = 1;
    (House::at_work(plan).await, fake)
}

/// Asks for the removal of `pair/<name>`.
async fn removed(house: &House, name: &str) -> RequestId {
    let target = Target { team: "alpha".into(), kind: "pair".into(), name: name.into() };
    let fresh = house.portal.new_submission_key();
    let asked = house.portal.delete(&house.ann, target, key(&fresh), Bytes::new(), Vec::new()).await.unwrap();
    asked.request_id.unwrap()
}

#[tokio::test]
async fn each_step_is_a_request_of_its_own_and_the_parent_shows_what_came_of_them() {
    let (house, fake) = at_work().await;
    let mut body = pair("one");
    body["correlation_id"] = "ORD-1".into();
    body["labels"] = json!({ "env": "prod", "idempotency.key": "evt-1" });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!(view.outputs["address"], "one.alpha.test");
    assert_eq!(view.outputs["disks"], json!(["one-disk.alpha.test", "one-log.alpha.test"]));
    assert_eq!(
        house.family(id).await,
        ["disk create succeeded", "log create succeeded", "machine create succeeded"]
    );
    for (step, name) in [("disk", "one-disk"), ("machine", "one"), ("log", "one-log")] {
        let child = house.step(id, step).await;
        let view = house.view(child).await;
        assert_eq!((view.name.as_str(), view.parent_id, view.channel), (name, Some(id), Channel::Composite));
        assert_eq!((view.correlation_id.as_str(), view.requested_by.as_str()), ("ORD-1", "ann"));
        assert_eq!(view.labels.get("env").map(String::as_str), Some("prod"));
        assert_eq!(view.labels.get("idempotency.key"), None);
        let arrived = &house.store.submissions(child).await.unwrap().results[0];
        assert_eq!(arrived.key, format!("{id}/{step}"));
        assert_eq!(fake.applied(child), 1);
    }
    let disk = house.view(house.step(id, "disk").await).await;
    assert_eq!((&disk.parameters["size"], &disk.parameters["count"]), (&json!("large"), &json!(3)));
    let machine = house.view(house.step(id, "machine").await).await;
    assert_eq!(machine.parameters["note"], "on one-disk.alpha.test");
    assert_eq!(machine.parameters["tags"], json!(["one", "plain"]));
    assert!(disk.finished_at.unwrap() <= machine.created_at, "a step waits for what it reads");
    let history = house.history(id).await;
    for said in ["disk: done", "machine: done", "log: done"] {
        assert_eq!(history.iter().filter(|entry| *entry == said).count(), 1, "{history:?}");
    }
}

#[tokio::test]
async fn a_parent_that_waits_holds_no_worker_and_is_woken_by_its_step() {
    let (house, fake) = with_one_worker().await;
    fake.behave("one", Behaviour::SucceedAfter(Duration::from_millis(300)));
    let id = house.pair("one").await;
    let machine = house.step_reaches(id, "machine", Running).await;
    assert_eq!(house.view(id).await.state, Running);
    house.ended_as(machine, Succeeded).await;
    let woken = tokio::time::timeout(Duration::from_secs(5), house.ended_as(id, Succeeded)).await;
    assert!(woken.is_ok(), "it was told, and did not look again after its longest wait only");
}

#[tokio::test]
async fn a_parent_that_is_canceled_stops_its_steps_and_leaves_nothing() {
    let (house, fake) = with_one_worker().await;
    fake.behave("one", Behaviour::Hang);
    let id = house.pair("one").await;
    house.step_reaches(id, "machine", Running).await;
    house.cancel(id).await.unwrap();
    house.ended_as(id, Canceled).await;
    assert_eq!(fake.things(), 0);
    assert!(house.family(id).await.contains(&"machine create canceled".to_owned()));
    assert!(house.at("pair", "one").await.is_none());
}

#[tokio::test]
async fn a_delete_removes_what_the_steps_made_last_first() {
    let (house, fake) = at_work().await;
    let id = house.pair("one").await;
    house.ended_as(id, Succeeded).await;
    assert_eq!(fake.things(), 3);
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!(fake.things(), 0);
    let made = house.store.steps_of(id).await.unwrap();
    let gone = house.store.steps_of(delete).await.unwrap();
    let (made, gone): (Vec<_>, Vec<_>) = (
        made.iter().map(|one| one.step.as_str()).collect(),
        gone.iter().rev().map(|one| one.step.as_str()).collect(),
    );
    assert_eq!(made, gone);
    for one in house.store.steps_of(delete).await.unwrap() {
        assert_eq!(
            (one.request.view.action.as_str(), one.request.view.parent_id),
            (action::DELETE, Some(delete))
        );
        assert_eq!(one.request.view.correlation_id, house.view(delete).await.correlation_id);
    }
    assert!(house.at("pair", "one").await.is_none());
}

#[tokio::test]
async fn a_delete_meets_a_create_under_way_and_leaves_nothing() {
    let (house, fake) = with_one_worker().await;
    fake.behave("one", Behaviour::Hang);
    let id = house.pair("one").await;
    house.step_reaches(id, "machine", Running).await;
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    house.ended_as(id, Canceled).await;
    assert_eq!(fake.things(), 0);
    assert!(house.at("pair", "one").await.is_none() && house.at("vm", "one").await.is_none());
}

#[tokio::test]
async fn what_was_there_already_counts_and_stays_when_the_whole_is_removed() {
    let (house, fake) = at_work().await;
    let log = json!({ "offering": "disk", "name": "one-log", "parameters": {} });
    let log = house.send("log", &log).await.unwrap().request_id.unwrap();
    house.ended_as(log, Succeeded).await;
    let id = house.pair("one").await;
    house.ended_as(id, Succeeded).await;
    assert_eq!(house.family(id).await.len(), 2);
    let history = house.history(id).await.join("\n");
    assert!(history.contains(&format!("log: it was there already, made by request {log}")), "{history}");
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!((fake.things(), fake.count(log, "destroy")), (1, 0));
}

#[tokio::test]
async fn a_step_of_which_nobody_can_tell_is_waited_for_until_somebody_decides() {
    let (house, fake) = at_work().await;
    fake.behave("one", Behaviour::Unobservable);
    let id = house.pair("one").await;
    let machine = house.step_reaches(id, "machine", Unknown).await;
    crate::testing::eventually(async || {
        house
            .history(id)
            .await
            .iter()
            .any(|entry| entry.starts_with("machine: nobody can tell"))
            .then_some(())
    })
    .await;
    assert_eq!(house.view(id).await.state, Running);
    fake.behave("one", Behaviour::Succeed);
    house.resolve(machine, "retry").await;
    house.ended_as(id, Succeeded).await;
    assert_eq!((fake.applied(machine), fake.things()), (1, 3));
}

#[tokio::test]
async fn a_removal_that_fails_is_tried_once_more_and_then_said() {
    let (house, fake) = at_work().await;
    let id = house.pair("one").await;
    house.ended_as(id, Succeeded).await;
    fake.behave("one/delete", Behaviour::Fail("it is stuck".into()));
    let delete = removed(&house, "one").await;
    let reason = house.ended_as(delete, Failed).await.reason.unwrap();
    assert!(reason.contains("it is stuck"), "{reason}");
    let machine = house.step(delete, "machine").await;
    assert_eq!(house.view(machine).await.attempt, 2);
    assert_eq!((fake.things(), house.at("pair", "one").await.unwrap().view.state.as_str()), (3, "active"));
    fake.behave("one/delete", Behaviour::Succeed);
    house.retry(delete).await.unwrap();
    house.ended_as(delete, Succeeded).await;
    assert_eq!((fake.things(), fake.count(machine, "destroy")), (0, 1));
}

#[tokio::test]
async fn steps_are_never_asked_about_likely_duplicates_but_marked() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.offerings[1].duplicate_window = Some(Duration::from_hours(1));
    let house = House::at_work(plan).await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let id = house.pair(name).await;
        house.ended_as(id, Succeeded).await;
        ids.push(id);
    }
    let (first, second) = (house.step(ids[0], "disk").await, house.step(ids[1], "disk").await);
    assert_eq!(house.view(second).await.duplicate.unwrap().of.id, first);
}

#[tokio::test]
async fn secret_outputs_go_into_secret_outputs_only() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.offerings[0].secret_outputs.insert("address".into());
    let steps = "
steps:
  - { id: machine, offering: vm }
outputs:
  key: '{{ steps.machine.outputs.address }}'
";
    let mut keyed = made_of("keyed", steps);
    keyed.secret_outputs.insert("key".into());
    let leaking = "
steps:
  - { id: machine, offering: vm }
  - { id: disk, offering: disk, parameters: { note: '{{ steps.machine.outputs[\"addr\" ~ \"ess\"] }}' } }
";
    plan.offerings.extend([keyed, made_of("leaking", leaking)]);
    let house = House::at_work(plan).await;
    let body = json!({ "offering": "keyed", "name": "one", "parameters": {} });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!((view.outputs.len(), view.secret_outputs), (0, vec!["key".to_owned()]));
    let life = house.at("keyed", "one").await.unwrap();
    assert!(life.secrets.is_some());
    let owner = house.person("olga", "alpha", TeamRole::Owner).await;
    let seen = house.portal.reveal(&owner, "alpha", "keyed", "one", "key").await.unwrap();
    assert_eq!(seen, "one.alpha.test");

    let body = json!({ "offering": "leaking", "name": "two", "parameters": {} });
    let id = house.send("l", &body).await.unwrap().request_id.unwrap();
    let reason = house.ended_as(id, Failed).await.reason.unwrap();
    assert!(!reason.contains("two.alpha.test"), "{reason}");
    assert!(!String::from_utf8_lossy(&house.disk()).contains("two.alpha.test"));
}

#[tokio::test]
async fn steps_stand_in_steps() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    let steps = "
steps:
  - { id: pair, offering: pair }
  - { id: disk, offering: disk, name: '{{ name }}-more', parameters: { note: '{{ steps.pair.outputs.address }}' } }
";
    plan.offerings.push(made_of("site", steps));
    let house = House::at_work(plan).await;
    let body = json!({ "offering": "site", "name": "one", "correlation_id": "ORD-9", "parameters": {} });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(fake.things(), 4);
    let chain = house.store.chain(house.step(id, "disk").await, 50).await.unwrap().unwrap();
    let shown: Vec<_> = chain.results.iter().map(|one| (one.depth, one.step.as_deref())).collect();
    assert_eq!(
        shown,
        [
            (0, None),
            (1, Some("pair")),
            (2, Some("disk")),
            (2, Some("log")),
            (2, Some("machine")),
            (1, Some("disk")),
        ]
    );
    let target = Target { team: "alpha".into(), kind: "site".into(), name: "one".into() };
    let delete = house.portal.delete(&house.ann, target, key("d"), Bytes::new(), Vec::new()).await.unwrap();
    house.ended_as(delete.request_id.unwrap(), Succeeded).await;
    assert_eq!(fake.things(), 0);
}

/// A server on the house's database that is killed after a while, wherever it is at work.
fn killed_after(house: &Arc<House>, millis: u64) {
    let house = Arc::clone(house);
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut other = house.beside(|_| {}).await;
            other.work();
            tokio::time::sleep(Duration::from_millis(millis)).await;
            // What it holds stays held, as with a process that is no more.
            std::mem::forget(other);
        });
        runtime.shutdown_background();
    })
    .join()
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_at_any_point_never_doubles_a_step() {
    for removes in [false, true] {
        let fake = Fake::default();
        let mut plan = pairs(&fake);
        plan.lease = Duration::from_millis(250);
        let mut house = House::build(plan).await;
        let mut ids = Vec::new();
        if removes {
            house.work();
            for name in ["one", "two", "three"] {
                let id = house.pair(name).await;
                house.ended_as(id, Succeeded).await;
            }
            house.shut_down().await;
        }
        for name in ["one", "two", "three"] {
            ids.push(if removes { removed(&house, name).await } else { house.pair(name).await });
        }
        let shared = Arc::new(house);
        for round in 0..12 {
            killed_after(&shared, 7 + round * 9);
        }
        let Some(mut house) = Arc::into_inner(shared) else { panic!("nobody else has it") };
        house.work();
        for id in ids {
            house.ended_as(id, Succeeded).await;
            let steps = house.store.steps_of(id).await.unwrap();
            assert_eq!(steps.len(), 3, "{:?}", house.family(id).await);
            for one in steps {
                let operation = if removes { "destroy" } else { "apply" };
                assert_eq!(fake.count(one.request.view.id, operation), 1);
            }
        }
        assert_eq!(fake.things(), if removes { 0 } else { 9 });
        tokio::time::timeout(SOON, house.shut_down()).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_person_names_as_parent_is_no_step_of_it() {
    let (house, fake) = at_work().await;
    let id = house.pair("one").await;
    house.ended_as(id, Succeeded).await;
    let mut other = vm("other");
    other["parent_id"] = json!(id);
    let with_key = format!("{id}/machine/2");
    let sent = send(&house.portal, &house.ann, "alpha", &with_key, &other.to_string()).await.unwrap();
    house.ended_as(sent.request_id.unwrap(), Succeeded).await;
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!(fake.things(), 1, "it is not removed with the parent");
}

#[tokio::test]
async fn what_a_person_sends_under_the_key_of_a_step_is_not_taken_for_the_step() {
    let (house, fake) = at_work().await;
    fake.behave("one-disk", Behaviour::SucceedAfter(Duration::from_millis(300)));
    let id = house.pair("one").await;
    let mut others = Vec::new();
    for (name, parent) in [("other", None), ("another", Some(id))] {
        let mut other = vm(name);
        other["parent_id"] = json!(parent);
        let with_key = format!("{id}/machine{}", if parent.is_some() { "/retry/1" } else { "" });
        let sent = send(&house.portal, &house.ann, "alpha", &with_key, &other.to_string()).await.unwrap();
        others.push(sent.request_id.unwrap());
    }
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!(view.outputs["address"], "one.alpha.test");
    let machine = house.step(id, "machine").await;
    assert!(!others.contains(&machine) && fake.applied(machine) == 1);
}
