//! After any doubt it is looked at first: work that was done is adopted, work that was not is done once.

use crate::{
    provisioner::{
        Observation, Outcome, Provisioner,
        fake::{Behaviour, Fake},
        tests::context,
    },
    testing::{House, Plan, Scripted, vm, with_fake},
};
use domain::{
    id::RequestId,
    problem::ProblemKind,
    state::RequestState::{Failed, Succeeded, Unknown},
    view::Object,
};
use std::time::Duration;

/// Takes the request's run as a worker that dies at once; with `begun`, after it noted that it would begin.
pub(super) async fn die_holding(house: &House, id: RequestId, begun: bool) {
    let now = house.portal.now();
    // A lease of no length is over at once.
    let run = house.store.take_run("dead", now, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(run.request.view.id, id);
    if begun {
        house.store.note(run.hold(), Vec::new(), true, now).await.unwrap();
    }
}

#[tokio::test]
async fn a_first_run_applies_without_looking() {
    let (mut house, fake) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    let view = house.reaches(id, Succeeded).await;
    assert_eq!(view.outputs["address"], "one.alpha.test");
    assert_eq!(fake.applied(id), 1);
    assert_eq!(house.history(id).await, ["queued", "running", "apply: begun", "succeeded"]);
    assert_eq!(house.resource_state("one").await, "active");
}

#[tokio::test]
async fn work_done_before_a_crash_is_adopted_and_never_repeated() {
    let (mut house, fake) = with_fake().await;
    let id = house.create("one").await;
    die_holding(&house, id, true).await;
    fake.apply(&house.job(id).await, &context().0).await;
    house.work();
    let view = house.reaches(id, Succeeded).await;
    assert_eq!(view.outputs["address"], "one.alpha.test");
    assert_eq!((fake.applied(id), house.steps(id, "observe").await), (1, 1));
    assert_eq!(house.steps(id, "apply").await, 0);
}

#[tokio::test]
async fn work_not_done_before_a_crash_is_done_once() {
    for begun in [true, false] {
        let (mut house, fake) = with_fake().await;
        let id = house.create("one").await;
        die_holding(&house, id, begun).await;
        house.work();
        house.reaches(id, Succeeded).await;
        assert_eq!(fake.applied(id), 1);
        // Nothing can have been begun before the note that says so.
        assert_eq!(house.steps(id, "observe").await, usize::from(begun));
    }
}

#[tokio::test]
async fn a_run_whose_holder_died_again_and_again_is_still_done_once() {
    let (mut house, fake) = with_fake().await;
    let id = house.create("one").await;
    for _ in 0..5 {
        die_holding(&house, id, true).await;
    }
    house.work();
    house.reaches(id, Succeeded).await;
    assert_eq!(fake.applied(id), 1);
}

#[tokio::test]
async fn a_lost_answer_is_found_by_looking_and_the_work_is_adopted() {
    let (mut house, fake) = with_fake().await;
    fake.behave("one", Behaviour::LoseAnswer);
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    assert_eq!((fake.applied(id), house.steps(id, "apply").await), (1, 1));
}

/// A request whose outcome nobody can tell, in a house at work.
async fn in_doubt(behaviour: Behaviour) -> (House, Fake, RequestId) {
    let (mut house, fake) = with_fake().await;
    fake.behave("one", behaviour);
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Unknown).await;
    (house, fake, id)
}

#[tokio::test]
async fn what_nobody_can_tell_is_unknown_runs_no_more_and_holds_its_name() {
    let (house, fake, id) = in_doubt(Behaviour::Unobservable).await;
    assert_eq!(fake.applied(id), 1, "it is never run again in doubt");
    assert_eq!(house.store.next_due().await.unwrap(), None);
    let view = house.view(id).await;
    assert!(view.reason.is_some() && view.finished_at.is_none());
    let mut other = vm("one");
    other["parameters"]["size"] = "large".into();
    let refused = house.send("other", &other).await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (ProblemKind::NameTaken, Some(id)));
}

#[tokio::test]
async fn an_unknown_request_can_be_adopted_without_being_run_again() {
    let (house, fake, id) = in_doubt(Behaviour::Unobservable).await;
    house.resolve(id, "adopt").await;
    house.reaches(id, Succeeded).await;
    assert_eq!((fake.applied(id), fake.things()), (1, 1));
    assert_eq!(house.resource_state("one").await, "active");
}

#[tokio::test]
async fn adopting_what_is_not_there_is_refused_by_looking() {
    let (house, fake, id) = in_doubt(Behaviour::CannotTell).await;
    fake.behave("one", Behaviour::Succeed);
    house.resolve(id, "adopt").await;
    let view = house.reaches(id, Unknown).await;
    assert!(view.reason.unwrap().contains("nothing to adopt"));
    house.resolve(id, "abandon").await;
    house.reaches(id, Failed).await;
    assert_eq!(fake.ledger(), []);
}

#[tokio::test]
async fn an_unknown_request_that_is_retried_is_looked_at_first() {
    for (behaviour, begun) in [(Behaviour::Unobservable, 1), (Behaviour::CannotTell, 0)] {
        let (house, fake, id) = in_doubt(behaviour).await;
        assert_eq!(fake.applied(id), begun);
        fake.behave("one", Behaviour::Succeed);
        house.resolve(id, "retry").await;
        house.reaches(id, Succeeded).await;
        assert_eq!((fake.applied(id), fake.things()), (1, 1));
    }
}

#[tokio::test]
async fn an_unknown_request_that_is_abandoned_leaves_nothing_and_frees_its_name() {
    for behaviour in [Behaviour::Unobservable, Behaviour::CannotTell] {
        let (house, fake, id) = in_doubt(behaviour).await;
        house.resolve(id, "abandon").await;
        house.reaches(id, Failed).await;
        assert_eq!(fake.things(), 0);
        assert!(house.is_free("one").await);
    }
}

#[tokio::test]
async fn something_of_the_name_that_the_request_did_not_make_is_left_alone() {
    let strange =
        Scripted::default().applying([Outcome::CannotTell("lost".into())]).observing([Observation::Foreign]);
    let house = House::at_work(Plan::of(strange.clone())).await;
    let id = house.create("one").await;
    let view = house.reaches(id, Failed).await;
    assert!(view.reason.unwrap().contains("did not make it"));
    assert_eq!(strange.calls(), ["apply", "observe"]);

    let (mut house, fake) = with_fake().await;
    let id = house.create("one").await;
    fake.plant(&house.job(id).await, RequestId(uuid::Uuid::from_u128(1)));
    house.work();
    house.reaches(id, Failed).await;
    assert_eq!((fake.things(), fake.ledger().len()), (1, 0));
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn the_next_attempt_of_a_failed_request_looks_first_and_may_succeed() {
    let script = Scripted::default()
        .applying([Outcome::Failed("no".into())])
        .observing([Observation::Absent, Observation::Ours(Object::new())]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Failed).await;
    let arrival = crate::testing::key("again");
    house.portal.retry(&house.ann, &id.to_string(), arrival, bytes::Bytes::new()).await.unwrap();
    let view = house.reaches(id, Succeeded).await;
    assert_eq!(view.attempt, 2);
    assert_eq!(script.calls(), ["apply", "observe", "observe"]);
}
