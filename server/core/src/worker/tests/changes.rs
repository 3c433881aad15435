//! Changes are carried out in order and once, whoever dies; one that comes to nothing is taken back.

use crate::{
    provisioner::{
        Provisioner,
        fake::{Behaviour, Fake},
        tests::context,
    },
    testing::{House, eventually, vm, with_fake},
};
use domain::{
    id::RequestId,
    problem::ProblemKind,
    state::RequestState::{Canceled, Failed, Succeeded, Unknown},
};
use serde_json::json;
use std::time::Duration;

async fn at_work() -> (House, Fake) {
    let (mut house, fake) = with_fake().await;
    house.work();
    (house, fake)
}

/// Takes the run that is due as a worker that dies at once; with `begun`, after it noted that it would begin.
async fn die_holding(house: &House, id: RequestId, begun: bool) {
    let now = house.portal.now();
    let run = house.store.take_run("dead", now, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(run.request.view.id, id);
    if begun {
        house.store.note(run.hold(), Vec::new(), true, now).await.unwrap();
    }
}

#[tokio::test]
async fn changes_are_carried_out_in_the_order_of_their_acceptance() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    fake.behave("one", Behaviour::SucceedAfter(Duration::from_millis(20)));
    let mut ids = Vec::new();
    for number in 2..8 {
        ids.push(house.updated("one", &json!({ "count": number })).await);
    }
    for id in &ids {
        house.ended_as(*id, Succeeded).await;
    }
    let done: Vec<_> = fake.ledger().iter().map(|effect| effect.request_id).skip(1).collect();
    assert_eq!(done, ids);
    let end = house.resource("one").await;
    assert_eq!(
        (&end.view.parameters["count"], end.applied.as_ref()),
        (&json!(7), Some(&end.view.parameters))
    );
    assert_eq!(end.view.outputs["address"], "one.alpha.test", "outputs stay");
    assert_eq!(fake.parameters(&house.job_of(ids[0]).await), Some(end.view.parameters));
}

#[tokio::test]
async fn an_update_that_fails_leaves_the_thing_as_it_was() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    let before = house.resource("one").await;
    for (behaviour, undone) in [
        (Behaviour::Fail("no".into()), 0),
        (Behaviour::FailHalfWay("no".into()), 1),
        (Behaviour::RetryTimes(9), 0),
    ] {
        fake.behave("one", behaviour);
        let id = house.updated("one", &json!({ "size": "large" })).await;
        let failed = house.ended_as(id, Failed).await;
        assert!(failed.reason.is_some());
        assert_eq!(fake.count(id, "undo"), undone);
        let job = house.job_of(id).await;
        assert_eq!(fake.parameters(&job), Some(before.view.parameters.clone()));
        let after = house.resource("one").await;
        assert_eq!(
            (after.view.parameters, after.applied),
            (before.view.parameters.clone(), before.applied.clone())
        );
    }
    assert_eq!(
        house.resource("one").await.view.version,
        before.view.version + 6,
        "there and back, three times"
    );
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_for_a_person_to_decide() {
    for (resolution, size) in [("abandon", "small"), ("adopt", "large"), ("retry", "large")] {
        let (house, fake) = at_work().await;
        house.standing("one").await;
        fake.behave("one", Behaviour::FailHalfWay("no".into()));
        fake.behave("one/undo", Behaviour::Fail("no way back".into()));
        let id = house.updated("one", &json!({ "size": "large" })).await;
        let later = house.updated("one", &json!({ "note": "later" })).await;
        let unknown = house.reaches(id, Unknown).await;
        assert!(unknown.reason.unwrap().contains("taken back"));
        assert!(!house.view(later).await.state.is_final(), "what comes after it waits");
        fake.behave("one", Behaviour::Succeed);
        fake.behave("one/undo", Behaviour::Succeed);
        house.resolve(id, resolution).await;
        house.ended_as(id, if resolution == "abandon" { Failed } else { Succeeded }).await;
        house.ended_as(later, Succeeded).await;
        assert_eq!(fake.applied(id), 1, "{resolution}: never again in doubt");
        let job = house.job_of(later).await;
        assert_eq!(fake.parameters(&job).unwrap()["size"], size, "{resolution}");
        assert_eq!(house.parameter("one", "note").await, "later");
    }
}

#[tokio::test]
async fn a_change_whose_worker_died_is_taken_up_and_done_once() {
    for action in ["update", "grow", "delete"] {
        for (begun, done) in [(false, false), (true, false), (true, true)] {
            let (mut house, fake) = at_work().await;
            let maker = house.standing("one").await;
            house.shut_down().await;
            let id = match action {
                "update" => house.updated("one", &json!({ "size": "large" })).await,
                "grow" => {
                    house.act("k", "one", "grow", &json!({ "by": 2 })).await.unwrap().request_id.unwrap()
                }
                _ => house.deleted("one").await,
            };
            die_holding(&house, id, begun).await;
            if done {
                let job = house.job_of(id).await;
                match action {
                    "delete" => fake.destroy(&job, &context().0).await,
                    _ => fake.apply(&job, &context().0).await,
                };
            }
            let mut house = house.beside(|_| ()).await;
            house.work();
            house.ended_as(id, Succeeded).await;
            let effect = if action == "delete" { "destroy" } else { "apply" };
            assert_eq!(fake.count(id, effect), 1, "{action} {begun} {done}");
            assert_eq!(house.steps(id, "observe").await, usize::from(begun));
            match action {
                "update" => assert_eq!(house.parameter("one", "size").await, "large"),
                "grow" => assert_eq!(house.parameter("one", "count").await, 3),
                _ => assert!(house.is_free("one").await && fake.things() == 0),
            }
            assert_eq!(fake.applied(maker), 1);
        }
    }
}

#[tokio::test]
async fn a_lost_answer_is_found_by_looking() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    fake.behave("one", Behaviour::LoseAnswer);
    fake.behave("one/delete", Behaviour::LoseAnswer);
    let update = house.updated("one", &json!({ "size": "large" })).await;
    let action = house.act("k", "one", "grow", &json!({ "by": 4 })).await.unwrap().request_id.unwrap();
    house.ended_as(action, Succeeded).await;
    assert_eq!((fake.applied(update), fake.applied(action)), (1, 1));
    assert_eq!(house.resource("one").await.applied.unwrap()["count"], 5);
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    assert_eq!((fake.count(delete, "destroy"), fake.things()), (1, 0));
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn an_action_that_nobody_can_tell_of_is_done_or_not_as_a_person_says() {
    for (resolution, end, count) in [("adopt", Succeeded, 3), ("abandon", Failed, 1)] {
        let (house, fake) = at_work().await;
        house.standing("one").await;
        fake.behave("one", Behaviour::Unobservable);
        let action = house.act("k", "one", "grow", &json!({ "by": 2 })).await.unwrap().request_id.unwrap();
        house.reaches(action, Unknown).await;
        house.resolve(action, resolution).await;
        house.ended_as(action, end).await;
        assert_eq!(house.parameter("one", "count").await, count, "{resolution}");
        assert_eq!(fake.applied(action), 1, "nothing can be put back, and nothing runs again");
        let history = house.history(action).await;
        assert!(history.iter().any(|entry| entry.contains("without a look")), "{history:?}");
    }
}

#[tokio::test]
async fn a_running_update_is_stopped_and_taken_back() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    fake.behave("one", Behaviour::Hang);
    let id = house.updated("one", &json!({ "size": "large" })).await;
    eventually(async || (house.steps(id, "apply").await > 0).then_some(())).await;
    house.cancel(id).await.unwrap();
    house.ended_as(id, Canceled).await;
    assert_eq!(house.parameter("one", "size").await, "small");
    let action = house.act("k", "one", "restart", &json!({})).await.unwrap().request_id.unwrap();
    eventually(async || (house.steps(action, "apply").await > 0).then_some(())).await;
    house.cancel(action).await.unwrap();
    house.ended_as(action, Canceled).await;
    assert_eq!(fake.ledger().len(), 1, "only the create had its effect");
}

#[tokio::test]
async fn a_cancellation_that_meets_the_end_of_an_update_has_one_outcome_in_every_place() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    let mut ends = [0, 0];
    for number in 0..40_u64 {
        let before = house.resource("one").await.applied.unwrap();
        // Some are certain to come too late and some to come in time; the others race.
        let hangs = number % 4 == 0;
        let race = Behaviour::SucceedAfter(Duration::from_millis(number % 10));
        fake.behave("one", if hangs { Behaviour::Hang } else { race });
        let id = house.updated("one", &json!({ "note": format!("{number}") })).await;
        if number % 4 == 3 {
            house.ends(id).await;
        }
        tokio::time::sleep(Duration::from_millis(number % 6)).await;
        let canceled = house.cancel(id).await;
        let view = house.ends(id).await;
        let resource = house.resource("one").await;
        assert_eq!(resource.applied.as_ref(), Some(&resource.view.parameters));
        assert_eq!(fake.parameters(&house.job_of(id).await).as_ref(), resource.applied.as_ref());
        match view.state {
            Succeeded => {
                assert_eq!(resource.view.parameters["note"], format!("{number}"));
                ends[0] += 1;
            }
            Canceled => {
                assert_eq!(resource.view.parameters, before);
                assert!(canceled.is_ok());
                ends[1] += 1;
            }
            other => panic!("{other}: {:?}", house.history(id).await),
        }
        if let Err(refused) = canceled {
            assert_eq!(refused.kind, ProblemKind::AlreadyDecided);
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "the race went one way only: {ends:?}");
}

#[tokio::test]
async fn a_delete_stops_what_is_at_work_and_tears_down_once() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    fake.behave("one", Behaviour::Hang);
    let at_work = house.updated("one", &json!({ "size": "large" })).await;
    let waits = house.updated("one", &json!({ "note": "x" })).await;
    eventually(async || (house.steps(at_work, "apply").await > 0).then_some(())).await;
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    for lost in [at_work, waits] {
        let view = house.ended_as(lost, Canceled).await;
        assert!(view.reason.unwrap().contains("being deleted"));
        assert_eq!((fake.applied(lost), fake.count(lost, "undo")), (0, 0));
    }
    assert_eq!((fake.count(delete, "destroy"), fake.things()), (1, 0));
    // And a create that is at work.
    let create = house.send("again", &vm("one")).await.unwrap().request_id.unwrap();
    eventually(async || (house.steps(create, "apply").await > 0).then_some(())).await;
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    house.ended_as(create, Canceled).await;
    assert!(house.is_free("one").await && fake.things() == 0);
}

#[tokio::test]
async fn a_delete_that_fails_leaves_the_resource_and_may_be_tried_again() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    let before = house.resource("one").await.view.version;
    fake.behave("one/delete", Behaviour::Fail("it is protected".into()));
    let delete = house.deleted("one").await;
    let failed = house.ended_as(delete, Failed).await;
    assert!(failed.reason.unwrap().contains("protected"));
    let after = house.resource("one").await;
    assert_eq!((after.view.state.as_str(), after.view.version), ("active", before + 2));
    let update = house.updated("one", &json!({ "size": "large" })).await;
    house.ended_as(update, Succeeded).await;
    let refused = house.retry(delete).await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::AlreadyDecided);
    fake.behave("one/delete", Behaviour::Succeed);
    let again = house.deleted("one").await;
    house.ended_as(again, Succeeded).await;
    assert_eq!((fake.count(again, "destroy"), fake.things()), (1, 0));
}

#[tokio::test]
async fn a_delete_of_which_nobody_can_tell_holds_the_name_until_it_is_decided() {
    for (resolution, mended) in [("adopt", false), ("retry", true), ("abandon", true)] {
        let (house, fake) = at_work().await;
        house.standing("one").await;
        fake.behave("one/delete", Behaviour::CannotTell);
        let delete = house.deleted("one").await;
        house.reaches(delete, Unknown).await;
        let refused = house.send("other", &crate::testing::vm("one")).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::DeletionInProgress);
        if mended {
            fake.behave("one/delete", Behaviour::Succeed);
        }
        house.resolve(delete, resolution).await;
        if resolution == "abandon" {
            house.ended_as(delete, Failed).await;
            assert_eq!(house.resource_state("one").await, "active");
        } else {
            house.ended_as(delete, Succeeded).await;
            assert!(house.is_free("one").await);
        }
        assert_eq!(fake.count(delete, "destroy"), usize::from(resolution == "retry"));
    }
}

#[tokio::test]
async fn what_somebody_removed_without_the_portal_cannot_be_changed_but_deleted() {
    let (house, fake) = at_work().await;
    let maker = house.standing("one").await;
    fake.lose(&house.job(maker).await);
    let update = house.updated("one", &json!({ "size": "large" })).await;
    house.ended_as(update, Failed).await;
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn a_change_that_failed_is_tried_again_and_done_once() {
    let (house, fake) = at_work().await;
    house.standing("one").await;
    fake.behave("one", Behaviour::Fail("not now".into()));
    let action = house.act("k", "one", "grow", &json!({ "by": 2 })).await.unwrap().request_id.unwrap();
    house.ended_as(action, Failed).await;
    assert_eq!(house.parameter("one", "count").await, 1);
    fake.behave("one", Behaviour::Succeed);
    house.retry(action).await.unwrap();
    let view = house.reaches(action, Succeeded).await;
    assert_eq!((view.attempt, fake.applied(action)), (2, 1));
    assert_eq!(house.parameter("one", "count").await, 3);
}

#[tokio::test]
async fn what_does_not_fit_without_an_earlier_change_is_not_carried_out() {
    let (mut house, fake) = at_work().await;
    house.standing("one").await;
    house.shut_down().await;
    let first = house.updated("one", &json!({ "count": 99, "behaviour": "fail" })).await;
    let second = house.act("less", "one", "grow", &json!({ "by": -50 })).await.unwrap().request_id.unwrap();
    let third = house.updated("one", &json!({ "note": "x" })).await;
    let mut house = house.beside(|_| ()).await;
    house.work();
    house.ended_as(first, Failed).await;
    let failed = house.ended_as(second, Failed).await;
    assert!(failed.reason.as_ref().is_some_and(|why| why.contains("/parameters/count")), "{failed:?}");
    assert_eq!(fake.applied(second), 0, "minus 49 is never asked for");
    house.ended_as(third, Succeeded).await;
    assert_eq!(
        (house.parameter("one", "count").await, house.parameter("one", "note").await),
        (json!(1), json!("x"))
    );
}
