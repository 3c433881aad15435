//! What nobody can look at: a person's word to try again counts once, and what was never begun leaves no doubt.

use super::recovery::die_holding;
use crate::{
    provisioner::{
        Observation, Outcome,
        fake::{Behaviour, Fake},
    },
    testing::{House, Plan, Scripted, eventually, key, standing, with_fake},
};
use domain::{
    id::RequestId,
    problem::ProblemKind,
    state::RequestState::{Failed, Queued, Running, Succeeded, Unknown},
    view::Object,
};
use std::time::Duration;

fn lost() -> Outcome {
    Outcome::CannotTell("the answer was lost".into())
}

fn blind() -> Observation {
    Observation::CannotTell("nobody can look".into())
}

fn unsent(again: bool) -> Outcome {
    Outcome::NotBegun { why: "no connection".into(), again }
}

fn count(script: &Scripted, call: &str) -> usize {
    script.calls().iter().filter(|made| **made == call).count()
}

/// A house whose request nobody can tell of.
async fn unknown(script: &Scripted) -> (House, RequestId) {
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Unknown).await;
    (house, id)
}

#[tokio::test]
async fn a_retry_that_a_person_decided_is_carried_out_though_nobody_can_look() {
    let script = Scripted::default().applying([lost()]).observing((0..20).map(|_| blind()));
    let (house, id) = unknown(&script).await;
    assert_eq!(count(&script, "apply"), 1, "never silently");
    house.resolve(id, "retry").await;
    house.reaches(id, Succeeded).await;
    assert_eq!(count(&script, "apply"), 2);
    assert_eq!(script.calls().last_chunk(), Some(&["observe", "apply"]), "a look comes first");
    let history = house.history(id).await;
    assert!(
        history.iter().any(|entry| entry.contains("carried out once more, as was decided")),
        "{history:?}"
    );
}

#[tokio::test]
async fn to_decide_the_same_again_under_another_key_is_no_error_and_counts_once() {
    let script = Scripted::default().applying([lost()]).observing((0..20).map(|_| blind()));
    let (mut house, id) = unknown(&script).await;
    house.shut_down().await;
    let otherwise = async |house: &House, with: &str| {
        let body = r#"{"resolution":"abandon"}"#.into();
        house.portal.resolve(&house.ann, &id.to_string(), key(with), body).await.unwrap_err().kind
    };
    assert!(!house.resolve(id, "retry").await.existing);
    let again = house.resolve(id, "retry").await;
    assert_eq!((again.existing, again.request_id), (true, Some(id)));
    assert_eq!(otherwise(&house, "otherwise").await, ProblemKind::AlreadyDecided);
    house.work();
    house.reaches(id, Succeeded).await;
    assert!(house.resolve(id, "retry").await.existing, "also once it is over");
    assert_eq!(otherwise(&house, "too-late").await, ProblemKind::AlreadyDecided);
    assert_eq!(count(&script, "apply"), 2);
}

#[tokio::test]
async fn a_persons_word_to_try_again_counts_once_also_where_the_server_dies_by_it() {
    let script = Scripted::default().applying([lost(), lost(), lost()]).observing((0..90).map(|_| blind()));
    let (mut house, id) = unknown(&script).await;
    house.resolve(id, "retry").await;
    house.reaches(id, Unknown).await;
    assert_eq!(count(&script, "apply"), 2, "its own doubt is looked at and not run again");
    house.shut_down().await;
    house.resolve(id, "retry").await;
    assert_eq!(house.view(id).await.state, Queued);
    die_holding(&house, id, true).await;
    house.work();
    house.reaches(id, Unknown).await;
    assert_eq!(count(&script, "apply"), 2, "whoever takes it after a crash cannot know what was begun");
}

#[tokio::test]
async fn a_retry_of_what_can_be_seen_runs_nothing_that_is_there() {
    for (seen, end, applied) in [
        (Observation::Ours(Object::new()), Succeeded, 1),
        (Observation::Foreign, Failed, 1),
        (Observation::Absent, Succeeded, 2),
    ] {
        let script = Scripted::default().applying([lost()]).observing([blind(), seen]);
        let plan = Plan::of(script.clone()).offering(|offering| offering.max_tries = 1);
        let house = House::at_work(plan).await;
        let id = house.create("one").await;
        house.reaches(id, Unknown).await;
        house.resolve(id, "retry").await;
        house.reaches(id, end).await;
        assert_eq!(count(&script, "apply"), applied);
    }
}

#[tokio::test]
async fn changes_and_deletes_are_tried_again_at_a_persons_word_too() {
    let (mut house, fake): (House, Fake) = with_fake().await;
    house.work();
    house.standing("one").await;
    fake.behave("one/delete", Behaviour::CannotTell);
    let delete = house.deleted("one").await;
    house.reaches(delete, Unknown).await;
    fake.behave("one/delete", Behaviour::Unobservable);
    house.resolve(delete, "retry").await;
    eventually(async || (fake.count(delete, "destroy") == 1).then_some(())).await;
    house.reaches(delete, Unknown).await;
    assert_eq!(fake.count(delete, "destroy"), 1);
}

#[tokio::test]
async fn what_was_never_begun_is_tried_again_without_a_look_and_fails_when_tries_are_over() {
    let script = Scripted::default().applying([unsent(true)]).observing([blind()]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls(), ["apply", "apply"]);

    for again in [true, false] {
        let script = Scripted::default().applying((0..9).map(|_| unsent(again))).observing([blind()]);
        let plan = Plan::of(script.clone()).offering(|offering| offering.max_tries = 3);
        let house = House::at_work(plan).await;
        let id = house.create("one").await;
        let reason = house.reaches(id, Failed).await.reason.unwrap();
        assert!(reason.contains("no connection"), "{reason}");
        assert_eq!(script.calls(), vec!["apply"; if again { 3 } else { 1 }], "nothing was begun");
        assert!(house.is_free("one").await);
    }
}

#[tokio::test]
async fn a_call_that_was_not_carried_out_takes_no_earlier_doubt_away() {
    let absent = || Observation::Absent;
    let script =
        Scripted::default().applying([lost(), unsent(true)]).observing([absent(), absent(), blind()]);
    let plan = Plan::of(script.clone()).offering(|offering| offering.max_tries = 3);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    house.reaches(id, Unknown).await;
    assert_eq!(script.calls(), ["apply", "observe", "observe", "apply", "observe"]);
}

#[tokio::test]
async fn a_persons_word_is_not_used_up_by_a_call_that_was_never_carried_out() {
    let script = Scripted::default().applying([lost(), unsent(true)]).observing((0..20).map(|_| blind()));
    let (house, id) = unknown(&script).await;
    house.resolve(id, "retry").await;
    house.reaches(id, Succeeded).await;
    assert_eq!(count(&script, "apply"), 3);
}

/// A house whose request has failed: what it may have left was removed.
async fn failed(script: &Scripted) -> (House, RequestId) {
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Failed).await;
    (house, id)
}

#[tokio::test]
async fn a_failed_create_that_a_person_tries_again_is_carried_out_though_nobody_can_look() {
    let script =
        Scripted::default().applying([Outcome::Failed("no room".into())]).observing((0..20).map(|_| blind()));
    let (house, id) = failed(&script).await;
    let before = script.calls().len();
    house.retry(id).await.unwrap();
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls()[before..], ["observe", "apply"], "a look comes first");
    // Its own doubt is looked at, and no further call is made without a further word.
    let script = Scripted::default()
        .applying([Outcome::Failed("no room".into()), lost(), lost()])
        .observing((0..20).map(|_| blind()));
    let (house, id) = failed(&script).await;
    house.retry(id).await.unwrap();
    house.reaches(id, Unknown).await;
    assert_eq!(count(&script, "apply"), 2);
}

#[tokio::test]
async fn a_retry_that_was_never_begun_fails_where_nothing_is_seen_and_is_unknown_where_nobody_can_look() {
    for (seen, end) in [(Observation::Absent, Failed), (blind(), Unknown)] {
        let script = Scripted::default()
            .applying([Outcome::Failed("no room".into()), unsent(false)])
            .observing((0..20).map(|_| seen.clone()));
        let (house, id) = failed(&script).await;
        house.retry(id).await.unwrap();
        let view = house.reaches(id, end).await;
        assert_eq!(view.attempt, 2);
        assert!(view.reason.unwrap().contains("no connection"));
        assert_eq!(count(&script, "apply"), 2);
    }
}

#[tokio::test]
async fn a_run_whose_offering_one_server_lacks_is_left_to_one_that_knows_it() {
    for begun in [false, true] {
        let clock = standing();
        let (script, within) = (Scripted::default(), Duration::from_mins(10));
        let mut house = House::build(Plan { clock: clock.clone(), ..Plan::of(script.clone()) }).await;
        let id = house.create("one").await;
        if begun {
            die_holding(&house, id, true).await;
        }
        let mut lacks = house.beside(|plan| plan.offerings.clear()).await;
        lacks.work();
        eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
        for _ in 0..3 {
            clock.advance(within / 4);
            // Taken once more.
            let now = house.portal.now();
            eventually(async || lacks.store.next_due().await.unwrap().filter(|due| *due > now)).await;
            assert_eq!(house.view(id).await.state, Running);
        }
        lacks.shut_down().await;
        assert_eq!(house.steps(id, "wait").await, 1, "however often it is taken");
        clock.advance(within / 8);
        house.work();
        house.reaches(id, Succeeded).await;
        assert_eq!(script.calls().last(), Some(&"apply"));
    }
}

#[tokio::test]
async fn a_run_whose_offering_nobody_knows_ends_by_what_was_begun() {
    for (begun, end) in [(false, Failed), (true, Unknown)] {
        let clock = standing();
        let house = House::build(Plan { clock: clock.clone(), ..Plan::of(Scripted::default()) }).await;
        let id = house.create("one").await;
        if begun {
            die_holding(&house, id, true).await;
        }
        let mut lacks = house.beside(|plan| plan.offerings.clear()).await;
        lacks.work();
        eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
        clock.advance(Duration::from_mins(11));
        let reason = house.reaches(id, end).await.reason.unwrap();
        assert!(reason.contains("missing from the catalog"), "{reason}");
        assert_eq!(house.is_free("one").await, end == Failed);
    }
}
