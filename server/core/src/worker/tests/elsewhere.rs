//! Work that goes on elsewhere: awaited without a worker, woken early, stopped before it is taken back.

use crate::{
    provisioner::{Elsewhere, Observation, Outcome},
    testing::{House, Plan, Scripted, eventually, standing},
};
use domain::{
    state::RequestState::{Canceled, Failed, Running, Succeeded, Unknown},
    view::Object,
};
use std::{sync::Arc, time::Duration};

const LOOK: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_mins(5);

fn elsewhere() -> Elsewhere {
    Elsewhere { what: "a flow elsewhere".into(), look_again: LOOK, patience: Some(PATIENCE) }
}

fn begun() -> Outcome {
    Outcome::InProgress(elsewhere())
}

fn going_on() -> Observation {
    Observation::InProgress(elsewhere())
}

fn ours() -> Observation {
    Observation::Ours(Object::new())
}

/// One worker, which would be held up by anything that it waits for itself.
fn plan(script: &Scripted) -> (Plan, Arc<crate::clock::StandingClock>) {
    let clock = standing();
    (Plan { workers: 1, clock: clock.clone(), ..Plan::of(script.clone()) }, clock)
}

async fn waits(house: &House, script: &Scripted, calls: usize) {
    eventually(async || (script.calls().len() >= calls).then_some(())).await;
    let next = house.portal.now().plus(LOOK);
    eventually(async || house.store.next_due().await.unwrap().filter(|due| *due == next)).await;
}

#[tokio::test]
async fn what_goes_on_elsewhere_is_looked_at_again_and_counts_as_no_try() {
    let script = Scripted::default().applying([begun()]).observing([going_on(), going_on(), ours()]);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    for calls in 1..=3 {
        waits(&house, &script, calls).await;
        assert_eq!(house.view(id).await.state, Running);
        clock.advance(LOOK);
    }
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls(), ["apply", "observe", "observe", "observe"]);
    assert_eq!(house.steps(id, "wait").await, 1, "however often one looks, it is said once");
    assert_eq!(house.steps(id, "retry").await, 0);
}

#[tokio::test]
async fn a_waiting_run_holds_no_worker_up_and_is_woken_early() {
    let script = Scripted::default().applying([begun()]).observing([ours()]);
    let (plan, _clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 1).await;
    let other = house.create("two").await;
    house.reaches(other, Succeeded).await;
    assert_eq!(house.view(id).await.state, Running);
    house.store.wake(id, house.portal.now()).await.unwrap();
    house.reaches(id, Succeeded).await;
}

#[tokio::test]
async fn patience_ends_in_not_knowing_and_a_new_look_has_new_patience() {
    // The second look of whoever tries again is at the thing itself.
    let absent = Observation::Absent;
    let script = Scripted::default().applying([begun()]).observing([going_on(), going_on(), absent, ours()]);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 1).await;
    clock.advance(PATIENCE + Duration::from_secs(1));
    let view = house.reaches(id, Unknown).await;
    assert_eq!(view.reason.as_deref(), Some("a flow elsewhere: no end after 301 s"));
    house.resolve(id, "retry").await;
    waits(&house, &script, 4).await;
    assert_eq!(house.view(id).await.state, Running, "what goes on is not begun once more");
    clock.advance(LOOK);
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls(), ["apply", "observe", "observe", "observe", "observe"]);
}

#[tokio::test]
async fn what_is_said_to_go_on_without_end_comes_to_the_end_that_a_person_chooses() {
    let (absent, cannot_tell) = (|| Observation::Absent, || Observation::CannotTell("no way to look".into()));
    let seen = |itself| vec![going_on(), going_on(), itself];
    for (resolution, looks, end, calls) in [
        ("adopt", seen(ours()), Succeeded, vec!["observe", "observe"]),
        ("adopt", seen(cannot_tell()), Succeeded, vec!["observe", "observe"]),
        ("adopt", seen(absent()), Unknown, vec!["observe", "observe"]),
        ("retry", seen(ours()), Succeeded, vec!["observe", "observe"]),
        ("abandon", seen(going_on()), Failed, vec!["observe", "stop", "observe", "destroy"]),
    ] {
        let script = Scripted::default().applying([begun()]).observing(looks);
        let (plan, clock) = plan(&script);
        let house = House::at_work(plan).await;
        let id = house.create("one").await;
        waits(&house, &script, 1).await;
        clock.advance(PATIENCE + Duration::from_secs(1));
        house.reaches(id, Unknown).await;
        let before = script.calls().len();
        house.resolve(id, resolution).await;
        eventually(async || (script.calls().len() >= before + calls.len()).then_some(())).await;
        house.reaches(id, end).await;
        assert_eq!(script.calls()[before..], calls, "{resolution}");
        assert_eq!(house.is_free("one").await, end == Failed, "{resolution}");
    }
}

#[tokio::test]
async fn what_fails_after_a_person_let_it_be_tried_again_is_not_removed_before_it_ends() {
    let no = Outcome::Failed("no room".into());
    let looks = [going_on(), Observation::Absent, going_on(), going_on(), ours()];
    let script = Scripted::default().applying([begun(), no]).observing(looks);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 1).await;
    clock.advance(PATIENCE + Duration::from_secs(1));
    house.reaches(id, Unknown).await;
    house.resolve(id, "retry").await;
    waits(&house, &script, 7).await;
    let calls = ["apply", "observe", "observe", "apply", "observe", "stop", "observe"];
    assert_eq!(script.calls(), calls, "nobody decided to take it back while it goes on");
    clock.advance(LOOK);
    house.reaches(id, Failed).await;
    assert_eq!(script.calls()[calls.len()..], ["observe", "destroy"]);
}

#[tokio::test]
async fn a_removal_without_end_is_asked_for_again_by_a_person() {
    let no = Outcome::Failed("no room".into());
    let gone = Outcome::Done(Object::new());
    let script = Scripted::default()
        .applying([no])
        .observing([ours(), going_on(), going_on(), going_on(), going_on()])
        .destroying([begun(), gone]);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 3).await;
    clock.advance(PATIENCE + Duration::from_secs(1));
    house.reaches(id, Unknown).await;
    let before = script.calls().len();
    house.resolve(id, "abandon").await;
    house.reaches(id, Failed).await;
    assert_eq!(script.calls()[before..].last(), Some(&"destroy"));
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn what_is_canceled_elsewhere_is_stopped_before_it_is_removed() {
    let script = Scripted::default().applying([begun()]).observing([going_on(), going_on(), ours()]);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 1).await;
    house.cancel(id).await.unwrap();
    // Stopping takes its time as well.
    waits(&house, &script, 4).await;
    clock.advance(LOOK);
    house.reaches(id, Canceled).await;
    assert_eq!(script.calls(), ["apply", "observe", "stop", "observe", "observe", "destroy"]);
}

#[tokio::test]
async fn a_removal_that_goes_on_elsewhere_keeps_what_it_is_for() {
    let no = Outcome::Failed("no room".into());
    let script = Scripted::default().applying([no]).observing([ours(), ours()]).destroying([begun()]);
    let (plan, clock) = plan(&script);
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    waits(&house, &script, 3).await;
    clock.advance(LOOK);
    // The next hold does not make it again: it goes on removing, and the reason is the first one.
    let view = house.reaches(id, Failed).await;
    assert_eq!(view.reason.as_deref(), Some("no room"));
    assert_eq!(script.calls(), ["apply", "observe", "destroy", "observe", "destroy"]);
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn news_that_come_while_somebody_works_on_it_are_not_slept_through() {
    let script = Scripted::default().applying([begun()]).observing([ours()]).hanging();
    let (plan, _clock) = plan(&script);
    let mut house = House::build(plan).await;
    let id = house.create("one").await;
    let run = house.store.take_run("other", house.portal.now(), LOOK * 6).await.unwrap().unwrap();
    house.store.note(run.hold(), Vec::new(), true, house.portal.now()).await.unwrap();
    house.store.wake(id, house.portal.now()).await.unwrap();
    let waiting =
        crate::store::Waiting { meant: run.intent, wait: LOOK * 60, turned: None, entry: None, note: None };
    house.store.wait_elsewhere(run.hold(), waiting, house.portal.now()).await.unwrap();
    house.work();
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls(), ["observe"]);
}
