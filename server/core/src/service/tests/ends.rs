//! Which report ends a request: that of what it applies until that is being taken back, and then that of taking back alone.

use super::callbacks::{begun_elsewhere, report};
use crate::{
    Portal,
    provisioner::{Begun, Context, Job, Observation, Outcome, Provisioner},
    testing::{House, Plan, Scripted, eventually},
};
use async_trait::async_trait;
use domain::{
    callback::Heard,
    id::RequestId,
    role::PortalRole,
    state::RequestState::{Canceled, Failed, Succeeded, Unknown},
    view::Object,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock},
};

fn succeeded(sequence: i64) -> Value {
    json!({ "state": "succeeded", "sequence": sequence, "outputs": { "url": "x", "password": "hunter2!" } })
}

fn failed(sequence: i64) -> Value {
    json!({ "state": "failed", "sequence": sequence, "error": "no room" })
}

fn dark() -> Observation {
    Observation::CannotTell("dark".into())
}

/// Reports before it answers, and on what it applied also while it removes that.
#[derive(Debug, Clone)]
struct Far {
    portal: Arc<OnceLock<Portal>>,
    /// What it says of the apply before it answers that, and how it answers; without an answer it hangs.
    applies: (Option<Value>, Option<Outcome>),
    /// What it says of the apply while it removes.
    removes: Option<Value>,
    sees: Observation,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    begun: Option<Begun>,
    heard: Vec<Heard>,
    removed: usize,
}

impl Far {
    fn new(says: Option<Value>, answers: Option<Outcome>) -> Self {
        let (portal, seen) = (Arc::default(), Arc::default());
        Self { portal, applies: (says, answers), removes: None, sees: Observation::Absent, seen }
    }

    async fn at_work(&self) -> House {
        let plan = Plan::of(self.clone()).offering(|offering| {
            offering.max_tries = 1;
            offering.secret_outputs = BTreeSet::from(["password".to_owned()]);
        });
        let mut house = House::build(plan).await;
        self.portal.set(house.portal.clone()).unwrap();
        house.work();
        house
    }

    async fn say(&self, event: &str, body: &Value) -> Heard {
        let begun = self.seen.lock().unwrap().begun.clone().unwrap();
        report(self.portal.get().unwrap(), &begun, event, body).await.unwrap().0.outcome
    }

    fn removed(&self) -> usize {
        self.seen.lock().unwrap().removed
    }
}

#[async_trait]
impl Provisioner for Far {
    async fn observe(&self, _: &Job, _: &Context) -> Observation {
        self.sees.clone()
    }

    async fn apply(&self, _: &Job, context: &Context) -> Outcome {
        self.seen.lock().unwrap().begun.clone_from(&context.begun);
        if let Some(body) = &self.applies.0 {
            self.say("before", body).await;
        }
        match &self.applies.1 {
            Some(answer) => answer.clone(),
            None => std::future::pending().await,
        }
    }

    async fn destroy(&self, _: &Job, _: &Context) -> Outcome {
        if let Some(body) = &self.removes {
            let heard = self.say("meanwhile", body).await;
            self.seen.lock().unwrap().heard.push(heard);
        }
        self.seen.lock().unwrap().removed += 1;
        Outcome::Done(Object::new())
    }

    fn works_elsewhere(&self) -> bool {
        true
    }
}

async fn orphans(house: &House) -> Vec<RequestId> {
    let mut admin = house.ann.clone();
    admin.role = PortalRole::Admin;
    let page = house.portal.orphans(&admin, 50, None).await.unwrap();
    page.results.into_iter().map(|orphan| orphan.request.id).collect()
}

#[tokio::test]
async fn what_was_reported_as_made_before_it_is_taken_back_stands() {
    for sees in [Observation::Absent, Observation::Ours(Object::new()), dark()] {
        let far =
            Far { sees, ..Far::new(Some(succeeded(1)), Some(Outcome::Failed("it answered 409".into()))) };
        let house = far.at_work().await;
        let id = house.create("one").await;
        let view = house.reaches(id, Succeeded).await;
        assert_eq!((&view.outputs["url"], view.secret_outputs), (&json!("x"), vec!["password".to_owned()]));
        assert_eq!((far.removed(), house.resource_state("one").await), (0, "active".to_owned()));
    }
}

#[tokio::test]
async fn a_success_that_comes_while_it_is_taken_back_is_an_orphan_and_does_not_end_that() {
    for sees in [Observation::Absent, Observation::Ours(Object::new()), dark()] {
        let removes = !matches!(sees, Observation::Absent);
        let far = Far {
            removes: Some(succeeded(1)),
            sees,
            ..Far::new(None, Some(Outcome::Failed("it answered 409".into())))
        };
        let house = far.at_work().await;
        let id = house.create("one").await;
        let view = house.reaches(id, Failed).await;
        assert_eq!((view.reason.as_deref(), view.outputs), (Some("it answered 409"), Object::new()));
        assert!(house.is_free("one").await);
        if removes {
            let heard = far.seen.lock().unwrap().heard.clone();
            assert_eq!((heard, far.removed()), (vec![Heard::Orphaned], 1));
            assert_eq!(far.say("again", &succeeded(2)).await, Heard::Ended);
            assert_eq!(orphans(&house).await, [id], "listed once");
        }
    }
}

#[tokio::test]
async fn an_end_that_was_reported_counts_before_the_answer_and_the_look() {
    let answers = [Some(Outcome::Done(Object::new())), Some(Outcome::CannotTell("lost".into())), None];
    for answer in answers {
        let sees = Observation::Ours(Object::new());
        let far = Far { sees: sees.clone(), ..Far::new(Some(succeeded(1)), answer.clone()) };
        let house = far.at_work().await;
        let id = house.create("one").await;
        let view = house.reaches(id, Succeeded).await;
        let kept = (view.outputs.get("url"), view.secret_outputs.len());
        assert_eq!(kept, (Some(&json!("x")), 1), "{answer:?}");
        let far = Far { sees, ..Far::new(Some(failed(1)), answer.clone()) };
        let house = far.at_work().await;
        let id = house.create("one").await;
        let view = house.reaches(id, Failed).await;
        assert_eq!((view.reason.as_deref(), far.removed()), (Some("no room"), 1), "{answer:?}");
    }
}

#[tokio::test]
async fn a_success_after_a_cancellation_is_an_orphan_and_asks_for_no_second_removal() {
    let script = Scripted::default()
        .away()
        .applying([begun_elsewhere()])
        .destroying([begun_elsewhere()])
        .observing([Observation::Ours(Object::new())]);
    let house = House::at_work(Plan { workers: 1, ..Plan::of(script.clone()) }).await;
    let id = house.create("one").await;
    eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
    let made = script.begun().unwrap();
    house.cancel(id).await.unwrap();
    let removed = async || (script.calls().last() == Some(&"destroy")).then_some(());
    eventually(removed).await;
    let removal = script.begun().unwrap();
    assert_ne!(made.callback, removal.callback);
    let say = async |begun: &Begun, event: &str, body: &Value| {
        report(&house.portal, begun, event, body).await.unwrap().0.outcome
    };
    assert_eq!(say(&made, "late", &succeeded(1)).await, Heard::Orphaned);
    assert_eq!(say(&made, "later", &succeeded(2)).await, Heard::Ended);
    let other = house.create("two").await;
    house.reaches(other, Succeeded).await;
    assert_eq!(script.calls(), ["apply", "observe", "destroy", "apply"], "nobody was woken");
    assert_eq!(say(&removal, "gone", &json!({ "state": "succeeded", "sequence": 1 })).await, Heard::Applied);
    house.reaches(id, Canceled).await;
    assert_eq!(say(&made, "last", &succeeded(3)).await, Heard::Ended);
    assert_eq!(orphans(&house).await, [id]);
}

#[tokio::test]
async fn a_removal_that_is_reported_as_failed_is_over_at_once() {
    let Outcome::InProgress(elsewhere) = begun_elsewhere() else { unreachable!() };
    for (seen, state) in [
        (Observation::InProgress(elsewhere), Unknown),
        (dark(), Unknown),
        (Observation::Ours(Object::new()), Failed),
        (Observation::Absent, Succeeded),
    ] {
        let script = Scripted::default().away().destroying([begun_elsewhere()]).observing([seen]);
        let house = House::at_work(Plan::of(script.clone())).await;
        let id = house.create("one").await;
        house.reaches(id, Succeeded).await;
        let gone = house.deleted("one").await;
        eventually(async || (house.steps(gone, "wait").await == 1).then_some(())).await;
        let removal = script.begun().unwrap();
        report(&house.portal, &removal, "busy", &failed(1)).await.unwrap();
        let view = house.reaches(gone, state).await;
        if state != Succeeded {
            assert_eq!(view.reason.as_deref(), Some("no room"));
        }
        assert_eq!((house.steps(gone, "report").await, house.steps(gone, "wait").await), (1, 1));
    }
}

/// A request that nobody can tell of, and what it was begun with.
async fn unknown(script: &Scripted) -> (House, RequestId, Begun) {
    let house = House::at_work(Plan::of(script.clone()).offering(|offering| offering.max_tries = 1)).await;
    let id = house.create("one").await;
    house.reaches(id, Unknown).await;
    let begun = script.begun().unwrap();
    (house, id, begun)
}

#[tokio::test]
async fn a_failure_that_is_reported_of_what_nobody_can_tell_of_is_looked_into() {
    let lost = || Scripted::default().away().applying([Outcome::CannotTell("lost".into())]);
    // The first try asks, and so does the last word before it is given up.
    for seen in [Observation::Absent, Observation::Ours(Object::new()), dark()] {
        let (house, id, begun) = unknown(&lost().observing([dark(), seen])).await;
        let (heard, _) = report(&house.portal, &begun, "end", &failed(1)).await.unwrap();
        assert_eq!(heard.outcome, Heard::Applied);
        assert_eq!(house.reaches(id, Failed).await.reason.as_deref(), Some("no room"));
        assert!(house.is_free("one").await);
    }
    // Where it cannot be taken back, a person decides, and a success is not lost.
    let stuck =
        lost().observing([dark(), dark(), dark()]).destroying([Outcome::Failed("it is locked".into())]);
    let (house, id, begun) = unknown(&stuck).await;
    report(&house.portal, &begun, "end", &failed(1)).await.unwrap();
    let locked = async || {
        let view = house.view(id).await;
        view.reason.filter(|why| view.state == Unknown && why.contains("it is locked"))
    };
    eventually(locked).await;
    let (heard, _) = report(&house.portal, &begun, "late", &succeeded(2)).await.unwrap();
    assert_eq!((heard.outcome, orphans(&house).await), (Heard::Orphaned, vec![id]));
    house.resolve(id, "abandon").await;
    house.reaches(id, Failed).await;
}

#[tokio::test]
async fn a_removal_that_failed_by_report_is_tried_again_at_a_persons_word() {
    let script = Scripted::default()
        .away()
        .applying([begun_elsewhere()])
        .observing([Observation::Ours(Object::new()), Observation::Ours(Object::new())])
        .destroying([begun_elsewhere()]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
    report(&house.portal, &script.begun().unwrap(), "end", &failed(1)).await.unwrap();
    eventually(async || (script.calls().last() == Some(&"destroy")).then_some(())).await;
    let removal = script.begun().unwrap();
    report(&house.portal, &removal, "busy", &json!({ "state": "failed", "sequence": 1, "error": "busy" }))
        .await
        .unwrap();
    let view = house.reaches(id, Unknown).await;
    assert_eq!(view.reason.as_deref(), Some("What was begun could not be taken back: busy"));
    house.resolve(id, "abandon").await;
    house.reaches(id, Failed).await;
    assert_eq!(script.calls(), ["apply", "observe", "destroy", "observe", "destroy"]);
}

#[tokio::test]
async fn each_other_body_under_an_id_is_recorded_and_no_more_than_a_hundred() {
    let script = Scripted::default().away().applying([begun_elsewhere()]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
    let begun = script.begun().unwrap();
    let running = |sequence: i64| json!({ "state": "running", "sequence": sequence });
    report(&house.portal, &begun, "ev", &running(1)).await.unwrap();
    let refused = async || {
        let history = house.history(id).await;
        history.iter().filter(|entry| entry.contains("refused: another report")).count()
    };
    for sequence in [2, 3, 4, 5, 5] {
        report(&house.portal, &begun, "ev", &running(sequence)).await.unwrap_err();
    }
    assert_eq!(refused().await, 4);
    for sequence in 6..120 {
        report(&house.portal, &begun, "ev", &running(sequence)).await.unwrap_err();
    }
    assert_eq!(refused().await, 99, "the repeat counts too");
}

/// Takes a removal in, and says that it is under way for as long as its note says that it was taken in.
#[derive(Debug, Clone, Default)]
struct Remover(Arc<Mutex<Option<Begun>>>);

#[async_trait]
impl Provisioner for Remover {
    async fn observe(&self, _: &Job, context: &Context) -> Observation {
        match begun_elsewhere() {
            Outcome::InProgress(elsewhere) if context.note().contains_key("begun") => {
                Observation::InProgress(elsewhere)
            }
            _ => Observation::Ours(Object::new()),
        }
    }

    async fn apply(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::Done(Object::new())
    }

    async fn destroy(&self, _: &Job, context: &Context) -> Outcome {
        self.0.lock().unwrap().clone_from(&context.begun);
        context.set_note(Object::from_iter([("begun".to_owned(), true.into())]));
        begun_elsewhere()
    }

    fn works_elsewhere(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn after_a_removal_was_reported_as_failed_a_look_shows_what_stands() {
    let remover = Remover::default();
    let house = House::at_work(Plan::of(remover.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    let gone = house.deleted("one").await;
    eventually(async || (house.steps(gone, "wait").await == 1).then_some(())).await;
    let removal = remover.0.lock().unwrap().clone().unwrap();
    report(&house.portal, &removal, "busy", &failed(1)).await.unwrap();
    assert_eq!(house.reaches(gone, Failed).await.reason.as_deref(), Some("no room"));
    assert_eq!(house.resource_state("one").await, "active");
}
