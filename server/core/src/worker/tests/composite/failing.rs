//! What fails as a whole keeps what its steps made: the next attempt goes on from there, and nothing is made twice. What
//! is stopped leaves nothing, whatever it adopted.

use super::*;
use crate::{Caller, testing::composite::pair};
use domain::{problem::ProblemKind, role::PortalRole, view::RequestView};

/// Asks for the removal of a resource of one of the steps.
async fn deleted(house: &House, kind: &str, name: &str) {
    let target = Target { team: "alpha".into(), kind: kind.into(), name: name.into() };
    let fresh = house.portal.new_submission_key();
    let asked = house.portal.delete(&house.ann, target, key(&fresh), Bytes::new(), Vec::new()).await.unwrap();
    house.ended_as(asked.request_id.unwrap(), Succeeded).await;
}

/// A pair whose machine failed, and that request; its disks are there.
async fn failed_pair(house: &House, fake: &Fake, name: &str) -> (RequestId, RequestView) {
    fake.behave(name, Behaviour::Fail("no room".into()));
    let id = house.pair(name).await;
    let failed = house.ended_as(id, Failed).await;
    fake.behave(name, Behaviour::Succeed);
    (id, failed)
}

/// Which requests have made something for the steps of a parent, and how often.
async fn made_by(house: &House, fake: &Fake, id: RequestId) -> Vec<(String, usize)> {
    let steps = house.store.steps_of(id).await.unwrap();
    let made = steps.iter().filter(|one| one.request.view.action == "create");
    made.map(|one| (one.step.clone(), fake.applied(one.request.view.id))).collect()
}

fn once(steps: &[&str]) -> Vec<(String, usize)> {
    steps.iter().map(|step| ((*step).to_owned(), 1)).collect()
}

async fn says(house: &House, id: RequestId, what: &str) {
    crate::testing::eventually(async || {
        house.history(id).await.iter().any(|entry| entry.contains(what)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_step_that_fails_keeps_what_the_others_made_and_its_parent_says_what_stays() {
    let (house, fake) = at_work().await;
    fake.behave("one", Behaviour::FailHalfWay("no room".into()));
    let id = house.pair("one").await;
    let view = house.ended_as(id, Failed).await;
    let machine = house.step(id, "machine").await;
    let reason = view.reason.unwrap();
    assert!(
        reason.contains("machine") && reason.contains("no room") && reason.contains(&machine.to_string())
    );
    assert!(reason.contains("stays") && reason.contains("disk one-disk, disk one-log"), "{reason}");
    assert!(reason.ends_with("Try again goes on from there."), "{reason}");
    assert_eq!(fake.things(), 2, "{:?}", house.history(id).await);
    for (kind, name) in [("pair", "one"), ("vm", "one")] {
        assert!(house.at(kind, name).await.is_none(), "{kind}/{name} is free");
    }
    for name in ["one-disk", "one-log"] {
        assert_eq!(house.at("disk", name).await.unwrap().view.state, "active");
        says(&house, id, &format!("disk {name} stays")).await;
    }
    assert_eq!(
        house.family(id).await,
        ["disk create succeeded", "log create succeeded", "machine create failed"]
    );
}

#[tokio::test]
async fn the_next_attempt_retries_what_failed_and_adopts_what_was_made() {
    let (house, fake) = at_work().await;
    let (id, _) = failed_pair(&house, &fake, "one").await;
    let machine = house.step(id, "machine").await;
    house.retry(id).await.unwrap();
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!((view.attempt, fake.things()), (2, 3));
    assert_eq!(view.outputs["disks"], json!(["one-disk.alpha.test", "one-log.alpha.test"]));
    assert_eq!(house.step(id, "machine").await, machine, "its request goes on");
    assert_eq!((house.view(machine).await.attempt, fake.applied(machine)), (2, 1));
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
    let chain = house.store.chain(id, 50).await.unwrap().unwrap();
    let shown: Vec<_> = chain.results.iter().map(|one| one.step.as_deref().unwrap_or("-")).collect();
    assert_eq!(shown, ["-", "disk", "log", "machine"]);

    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!(fake.things(), 0, "what was adopted goes with the whole");
}

#[tokio::test]
async fn what_is_under_way_beside_a_step_that_fails_comes_to_its_end_and_is_adopted() {
    let (house, fake) = at_work().await;
    fake.behave("one-disk", Behaviour::Fail("no room".into()));
    fake.behave("one-log", Behaviour::Wait);
    let id = house.pair("one").await;
    house.step_reaches(id, "disk", Failed).await;
    says(&house, id, "no other step is begun; what is under way comes to its own end first").await;
    let log = house.step_reaches(id, "log", Running).await;
    assert_eq!(house.view(id).await.state, Running, "it waits for the other");
    fake.behave("one-log", Behaviour::Succeed);
    let reason = house.ended_as(id, Failed).await.reason.unwrap();
    assert!(reason.contains("disk one-log") && !reason.contains("disk one-disk"), "{reason}");
    assert_eq!(house.family(id).await, ["disk create failed", "log create succeeded"]);
    assert_eq!((house.view(log).await.attempt, fake.applied(log)), (1, 1));

    fake.behave("one-disk", Behaviour::Succeed);
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
}

#[tokio::test]
async fn one_of_which_nobody_can_tell_holds_up_the_end_beside_a_step_that_failed() {
    let (house, fake) = at_work().await;
    fake.behave("one-disk", Behaviour::Fail("no room".into()));
    fake.behave("one-log", Behaviour::Unobservable);
    let id = house.pair("one").await;
    house.step_reaches(id, "disk", Failed).await;
    let log = house.step_reaches(id, "log", Unknown).await;
    says(&house, id, "log: nobody can tell").await;
    assert_eq!(house.view(id).await.state, Running);
    fake.behave("one-log", Behaviour::Succeed);
    house.resolve(log, "adopt").await;
    house.ended_as(id, Failed).await;
    assert_eq!((fake.applied(log), fake.things()), (1, 1));
}

#[tokio::test]
async fn a_failed_step_that_a_person_tries_again_meanwhile_is_no_failure_any_more() {
    let (house, fake) = at_work().await;
    fake.behave("one-disk", Behaviour::Fail("no room".into()));
    fake.behave("one-log", Behaviour::Wait);
    let id = house.pair("one").await;
    let disk = house.step_reaches(id, "disk", Failed).await;
    says(&house, id, "no other step is begun").await;
    fake.behave("one-disk", Behaviour::Succeed);
    house.retry(disk).await.unwrap();
    house.ended_as(disk, Succeeded).await;
    fake.behave("one-log", Behaviour::Succeed);
    assert_eq!(house.ended_as(id, Succeeded).await.attempt, 1);
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
}

#[tokio::test]
async fn what_a_person_removed_since_is_made_anew_once() {
    let (house, fake) = at_work().await;
    let (id, _) = failed_pair(&house, &fake, "one").await;
    deleted(&house, "disk", "one-disk").await;
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine", "disk"]));
    assert_eq!(fake.things(), 3);
}

#[tokio::test]
async fn what_a_person_changed_since_is_adopted_as_it_is() {
    let (house, fake) = at_work().await;
    fake.behave("one-log", Behaviour::Wait);
    let id = house.pair("one").await;
    house.step_reaches(id, "machine", Succeeded).await;
    fake.behave("one-log", Behaviour::Fail("no room".into()));
    house.ended_as(id, Failed).await;
    let change = house.updated("one", &json!({ "note": "by hand" })).await;
    house.ended_as(change, Succeeded).await;
    fake.behave("one-log", Behaviour::Succeed);
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
    assert_eq!(house.at("vm", "one").await.unwrap().view.parameters["note"], "by hand");
}

#[tokio::test]
async fn a_cancellation_removes_what_was_made_in_every_attempt() {
    let (house, fake) = at_work().await;
    let (id, _) = failed_pair(&house, &fake, "one").await;
    fake.behave("one", Behaviour::Hang);
    house.retry(id).await.unwrap();
    house.step_reaches(id, "machine", Running).await;
    house.cancel(id).await.unwrap();
    house.ended_as(id, Canceled).await;
    assert_eq!(fake.things(), 0, "{:?}", house.history(id).await);
    assert!(house.at("pair", "one").await.is_none() && house.at("disk", "one-disk").await.is_none());
    let family = house.family(id).await;
    assert!(family.contains(&"disk delete succeeded".to_owned()), "{family:?}");
}

#[tokio::test]
async fn a_parent_that_waits_to_fail_can_be_canceled_and_leaves_nothing() {
    let (house, fake) = at_work().await;
    fake.behave("one-log", Behaviour::Wait);
    fake.behave("one", Behaviour::Fail("no room".into()));
    let id = house.pair("one").await;
    house.step_reaches(id, "machine", Failed).await;
    says(&house, id, "no other step is begun").await;
    house.cancel(id).await.unwrap();
    house.ended_as(id, Canceled).await;
    assert_eq!(fake.things(), 0, "{:?}", house.history(id).await);
}

#[tokio::test]
async fn one_that_is_abandoned_leaves_nothing_and_one_that_is_let_go_on_adopts_what_is_there() {
    for resolution in ["abandon", "retry"] {
        let (house, fake) = at_work().await;
        fake.behave("one", Behaviour::Hang);
        fake.behave("one-disk/delete", Behaviour::Fail("it is stuck".into()));
        let id = house.pair("one").await;
        house.step_reaches(id, "machine", Running).await;
        let log = house.step_reaches(id, "log", Succeeded).await;
        house.cancel(id).await.unwrap();
        house.reaches(id, Unknown).await;
        for name in ["one", "one-disk/delete"] {
            fake.behave(name, Behaviour::Succeed);
        }
        house.resolve(id, resolution).await;
        if resolution == "abandon" {
            house.ended_as(id, Failed).await;
            assert_eq!(fake.things(), 0);
            continue;
        }
        assert_eq!(house.ended_as(id, Succeeded).await.attempt, 1);
        assert_eq!(fake.things(), 3);
        // The machine was stopped and the log was removed before, so that these were asked for once more.
        let made = made_by(&house, &fake, id).await;
        assert_eq!(made.iter().filter(|(step, _)| step == "disk").count(), 1, "{made:?}");
        assert_eq!(made.iter().map(|(_, times)| times).sum::<usize>(), 4, "{made:?}");
        assert_ne!(house.step(id, "log").await, log);
    }
}

#[tokio::test]
async fn a_step_whose_name_is_taken_fails_the_parent_and_leaves_the_other_alone() {
    let (house, fake) = at_work().await;
    let other = house.create("one").await;
    house.ended_as(other, Succeeded).await;
    let id = house.pair("one").await;
    let reason = house.ended_as(id, Failed).await.reason.unwrap();
    assert!(reason.contains("machine") && reason.contains("vm one exists"), "{reason}");
    assert_eq!(fake.things(), 3, "the other, and what the steps before it made");
    assert!(house.at("vm", "one").await.is_some() && house.at("pair", "one").await.is_none());
    assert_eq!((fake.applied(other), fake.count(other, "destroy")), (1, 0));

    deleted(&house, "vm", "one").await;
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
}

#[tokio::test]
async fn a_step_that_is_refused_lets_what_is_under_way_come_to_its_end_and_begins_nothing() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    let steps = "
steps:
  - { id: slow, offering: disk, name: '{{ name }}-slow' }
  - { id: after, offering: disk, name: '{{ name }}-after', needs: [slow] }
  - { id: wrong, offering: disk, name: '{{ name }} is no name' }
";
    plan.offerings.push(made_of("odd", steps));
    let house = House::at_work(plan).await;
    fake.behave("one-slow", Behaviour::Wait);
    let body = json!({ "offering": "odd", "name": "one", "parameters": {} });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    house.step_reaches(id, "slow", Running).await;
    says(&house, id, "no other step is begun").await;
    fake.behave("one-slow", Behaviour::Succeed);
    let reason = house.ended_as(id, Failed).await.reason.unwrap();
    assert!(reason.contains("Step wrong") && reason.contains("disk one-slow"), "{reason}");
    assert_eq!(house.family(id).await, ["slow create succeeded"]);
    assert_eq!(fake.things(), 1);
}

#[tokio::test]
async fn a_mistake_in_the_outputs_keeps_what_was_made() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    let steps = "
steps:
  - { id: machine, offering: vm }
outputs:
  missing: '{{ steps.machine.outputs.missing }}'
";
    plan.offerings.push(made_of("odd", steps));
    let house = House::at_work(plan).await;
    let body = json!({ "offering": "odd", "name": "one", "parameters": {} });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    let reason = house.ended_as(id, Failed).await.reason.unwrap();
    assert!(reason.contains("Output missing") && reason.contains("vm one"), "{reason}");
    assert!(house.at("odd", "one").await.is_none() && house.at("vm", "one").await.is_some());
    assert_eq!((fake.things(), made_by(&house, &fake, id).await), (1, once(&["machine"])));
}

#[tokio::test]
async fn a_new_parent_adopts_what_a_failed_one_made_and_it_stays_when_that_is_deleted() {
    let (house, fake) = at_work().await;
    let (first, _) = failed_pair(&house, &fake, "one").await;
    let second = house.send("again", &pair("one")).await.unwrap().request_id.unwrap();
    assert_ne!(first, second);
    house.ended_as(second, Succeeded).await;
    assert_eq!(made_by(&house, &fake, second).await, once(&["machine"]));
    let refused = house.retry(first).await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::NameTaken, "the name is in use");
    says(&house, second, "it stays when this is removed").await;

    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!(fake.things(), 2, "what was there before stays");
    house.retry(first).await.unwrap();
    house.ended_as(first, Succeeded).await;
    assert_eq!(made_by(&house, &fake, first).await, once(&["disk", "log", "machine"]));
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!(fake.things(), 0, "and goes with the one that made it");
}

#[tokio::test]
async fn what_somebody_made_in_the_place_of_a_failed_step_counts_if_it_is_just_that() {
    let (house, fake) = at_work().await;
    let (id, _) = failed_pair(&house, &fake, "one").await;
    let parameters = json!({ "note": "on one-disk.alpha.test", "tags": ["one", "plain"] });
    let other = json!({ "offering": "vm", "name": "one", "parameters": parameters });
    let other = house.send("other", &other).await.unwrap().request_id.unwrap();
    house.ended_as(other, Succeeded).await;
    house.retry(id).await.unwrap();
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!(view.outputs["address"], "one.alpha.test");
    assert_eq!(fake.things(), 3);
    let delete = removed(&house, "one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!((fake.things(), fake.count(other, "destroy")), (1, 0), "it is somebody else's");
}

#[tokio::test]
async fn steps_in_steps_are_adopted_by_a_retry_and_removed_by_a_cancellation() {
    for retried in [true, false] {
        let fake = Fake::default();
        let mut plan = pairs(&fake);
        let steps = "
steps:
  - { id: pair, offering: pair }
  - { id: slow, offering: disk, name: '{{ name }}-slow' }
";
        plan.offerings.push(made_of("site", steps));
        let house = House::at_work(plan).await;
        fake.behave("one", Behaviour::Fail("no room".into()));
        fake.behave("one-slow", Behaviour::Wait);
        let body = json!({ "offering": "site", "name": "one", "parameters": {} });
        let id = house.send("k", &body).await.unwrap().request_id.unwrap();
        let inner = house.step_reaches(id, "pair", Failed).await;
        assert_eq!(fake.things(), 2);
        if retried {
            fake.behave("one-slow", Behaviour::Succeed);
            let reason = house.ended_as(id, Failed).await.reason.unwrap();
            assert!(reason.contains("disk one-disk, disk one-log, disk one-slow"), "{reason}");
            fake.behave("one", Behaviour::Succeed);
            house.retry(id).await.unwrap();
            house.ended_as(id, Succeeded).await;
            assert_eq!(made_by(&house, &fake, inner).await, once(&["disk", "log", "machine"]));
            assert_eq!((house.view(inner).await.attempt, fake.things()), (2, 4));
        } else {
            house.cancel(id).await.unwrap();
            house.ended_as(id, Canceled).await;
            assert_eq!(fake.things(), 0, "{:?}", house.history(id).await);
        }
    }
}

#[tokio::test]
async fn a_step_closed_by_force_is_retried_with_its_parent() {
    let (house, fake) = at_work().await;
    fake.behave("one", Behaviour::CannotTell);
    let id = house.pair("one").await;
    let machine = house.step_reaches(id, "machine", Unknown).await;
    let admin = Caller { role: PortalRole::Admin, ..house.ann.clone() };
    let body = r#"{"resolution":"abandon","force":true,"reason":"for a test"}"#;
    house.portal.resolve(&admin, &machine.to_string(), key("close"), body.into()).await.unwrap();
    house.ended_as(id, Failed).await;
    assert_eq!(fake.things(), 2);
    fake.behave("one", Behaviour::Succeed);
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(made_by(&house, &fake, id).await, once(&["disk", "log", "machine"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_at_any_point_fails_alike_and_its_retry_doubles_no_step() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.lease = Duration::from_millis(250);
    let mut house = House::build(plan).await;
    let names = ["one", "two", "three"];
    let mut ids = Vec::new();
    for name in names {
        fake.behave(name, Behaviour::Fail("no room".into()));
        ids.push(house.pair(name).await);
    }
    for retried in [false, true] {
        let shared = Arc::new(house);
        for round in 0..12 {
            killed_after(&shared, 7 + round * 9);
        }
        let Some(back) = Arc::into_inner(shared) else { panic!("nobody else has it") };
        house = back;
        house.work();
        let mut made_in_all = 0;
        for id in &ids {
            let view = house.ended_as(*id, if retried { Succeeded } else { Failed }).await;
            assert!(retried || view.reason.unwrap().contains("stays"));
            let made = made_by(&house, &fake, *id).await;
            // A step that was not asked for yet when another failed is asked for by the retry.
            assert!(made.len() == 3 || !retried, "{made:?} {:?}", house.family(*id).await);
            for (step, times) in made {
                let expected = usize::from(retried || step != "machine");
                assert_eq!(times, expected, "{step}");
                made_in_all += times;
            }
        }
        assert_eq!(fake.things(), made_in_all);
        tokio::time::timeout(SOON, house.shut_down()).await.unwrap();
        if !retried {
            for (name, id) in names.iter().zip(&ids) {
                fake.behave(name, Behaviour::Succeed);
                house.retry(*id).await.unwrap();
            }
        }
    }
}
