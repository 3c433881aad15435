//! Reports of work that goes on elsewhere: each counts once, in its order, for its own attempt, and only if it is genuine.

use crate::{
    Portal, Result,
    clock::{StandingClock, SystemIds},
    keys::Keys,
    provisioner::{Begun, Context, Elsewhere, Job, Observation, Outcome, Provisioner},
    service::Delivery,
    signature::{SharedSecret, sign_standard},
    testing::{House, Plan, Scripted, eventually, key, standing},
};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{
    callback::{Heard, HeardView},
    id::RequestId,
    problem::ProblemKind,
    role::PortalRole,
    state::RequestState::{Canceled, Failed, Running, Succeeded, Unknown},
    time::Moment,
    view::Object,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, OnceLock},
    time::Duration,
};

const LONG: Duration = Duration::from_hours(1);

pub(super) fn begun_elsewhere() -> Outcome {
    let what = "a service works on it".to_owned();
    Outcome::InProgress(Elsewhere { what, look_again: LONG, patience: Some(LONG * 2) })
}

/// What takes whatever it is asked to begin elsewhere.
fn goes_on() -> Scripted {
    Scripted::default().away().applying([begun_elsewhere(), begun_elsewhere(), begun_elsewhere()])
}

/// A house with one request that goes on elsewhere.
struct Away {
    house: House,
    script: Scripted,
    clock: Arc<StandingClock>,
    id: RequestId,
}

impl Away {
    async fn at(script: Scripted) -> Self {
        Self::with(Keys::of([(1, [7; 32])]).unwrap(), script).await
    }

    async fn with(keys: Keys, script: Scripted) -> Self {
        let clock = standing();
        let plan = Plan { workers: 1, keys, clock: clock.clone(), ..Plan::of(script.clone()) };
        let plan =
            plan.offering(|offering| offering.secret_outputs = BTreeSet::from(["password".to_owned()]));
        let house = House::at_work(plan).await;
        let id = house.create("one").await;
        let away = Self { house, script, clock, id };
        away.waits(1).await;
        away
    }

    async fn build() -> Self {
        Self::at(goes_on()).await
    }

    /// Until the run waits for the n-th thing that was begun.
    async fn waits(&self, count: usize) -> Begun {
        eventually(async || (self.house.steps(self.id, "wait").await >= count).then_some(())).await;
        self.script.begun().unwrap()
    }

    async fn report(&self, event: &str, body: &Value) -> Result<(HeardView, bool)> {
        report(&self.house.portal, &self.script.begun().unwrap(), event, body).await
    }

    async fn heard(&self, event: &str, body: &Value) -> Heard {
        self.report(event, body).await.unwrap().0.outcome
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.house.database().await).await.unwrap()
    }
}

fn delivery(secret: &SharedSecret, event: &str, at: Moment, body: &[u8]) -> Delivery {
    Delivery {
        ids: vec![event.as_bytes().to_vec()],
        timestamps: vec![at.millis().div_euclid(1000).to_string().into_bytes()],
        signatures: vec![sign_standard(secret, event, at, body).into_bytes()],
        body: Bytes::copy_from_slice(body),
        from: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    }
}

fn callback_id(begun: &Begun) -> String {
    begun.callback.strip_prefix("http://portal.test/api/v1/callbacks/").unwrap().to_owned()
}

pub(super) async fn report(
    portal: &Portal,
    begun: &Begun,
    event: &str,
    body: &Value,
) -> Result<(HeardView, bool)> {
    let delivery = delivery(&begun.secret, event, portal.now(), body.to_string().as_bytes());
    portal.callback(&callback_id(begun), delivery).await
}

fn running(sequence: i64) -> Value {
    json!({ "state": "running", "sequence": sequence })
}

fn succeeded(sequence: i64) -> Value {
    json!({ "state": "succeeded", "sequence": sequence, "outputs": { "url": "x", "password": "hunter2!" } })
}

fn failed(sequence: i64) -> Value {
    json!({ "state": "failed", "sequence": sequence, "error": "no room" })
}

#[tokio::test]
async fn lines_of_a_report_hold_its_public_outputs_and_nothing_of_its_secret_ones() {
    let away = Away::build().await;
    let early = json!({ "state": "running", "sequence": 1, "log": ["early nested-secret-77"] });
    assert_eq!(away.heard("ev-1", &early).await, Heard::Applied);
    let end = json!({
        "state": "succeeded", "sequence": 2, "progress": "8837261549 at one.test",
        "log": ["one.test has nested-secret-77"],
        "outputs": { "url": "one.test", "password": { "value": ["nested-secret-77", 8_837_261_549_u64] } },
    });
    assert_eq!(away.heard("ev-2", &end).await, Heard::Applied);
    // Before the end is written too.
    let history = away.house.history(away.id).await;
    for shown in ["one.test has ***", "progress: *** at one.test"] {
        assert!(history.contains(&shown.to_owned()), "{history:?}");
    }
    away.house.reaches(away.id, Succeeded).await;
    assert!(away.house.history(away.id).await.contains(&"early ***".to_owned()));
}

#[tokio::test]
async fn a_report_ends_the_request_and_a_repeat_gets_what_became_of_the_first() {
    let away = Away::build().await;
    let progress = json!({
        "state": "progress", "sequence": 1, "attempt": 1, "progress": "half way", "log": ["one line"],
    });
    assert_eq!(away.heard("ev-1", &progress).await, Heard::Applied);
    let history = away.house.history(away.id).await;
    assert!(history.contains(&"progress: half way".to_owned()) && history.contains(&"one line".to_owned()));
    assert_eq!(away.house.view(away.id).await.state, Running);
    let (first, again) = away.report("ev-2", &succeeded(2)).await.unwrap();
    assert!(!again && first.outcome == Heard::Applied);
    let view = away.house.reaches(away.id, Succeeded).await;
    assert_eq!(
        (view.outputs, view.secret_outputs),
        (json!({ "url": "x" }).as_object().unwrap().clone(), vec!["password".to_owned()],)
    );
    away.clock.advance(Duration::from_mins(1));
    let (repeat, again) = away.report("ev-2", &succeeded(2)).await.unwrap();
    assert!(again);
    assert_eq!(repeat, first);
    assert_eq!(away.script.calls(), ["apply"], "what was reported needs no look");
    let disk = away.house.disk();
    assert!(!disk.windows(8).any(|bytes| bytes == b"hunter2!"), "secret outputs are sealed");
}

#[tokio::test]
async fn what_comes_out_of_order_is_recorded_and_never_goes_backwards() {
    let away = Away::build().await;
    assert_eq!(away.heard("c", &running(3)).await, Heard::Applied);
    assert_eq!(away.heard("a", &running(1)).await, Heard::Older);
    assert_eq!(away.heard("b", &failed(2)).await, Heard::Older);
    // Of two with one number the first counts, unless only the second brings the end.
    assert_eq!(away.heard("d", &running(3)).await, Heard::Older);
    assert_eq!(away.house.view(away.id).await.state, Running);
    assert_eq!(away.heard("e", &succeeded(3)).await, Heard::Applied);
    assert_eq!(away.heard("f", &failed(3)).await, Heard::Ended);
    assert_eq!(away.heard("g", &failed(9)).await, Heard::Ended);
    away.house.reaches(away.id, Succeeded).await;
    let history = away.house.history(away.id).await;
    for said in [
        "callback: running (number 1, event a): ignored: older",
        "callback: failed (number 2, event b): ignored: older",
        "callback: failed (number 9, event g): ignored: ended",
    ] {
        assert!(history.contains(&said.to_owned()), "{history:?}");
    }
}

#[tokio::test]
async fn an_earlier_attempt_cannot_finish_a_later_one() {
    let away = Away::build().await;
    let first = away.script.begun().unwrap();
    away.heard("end", &failed(5)).await;
    let view = away.house.reaches(away.id, Failed).await;
    assert_eq!(view.reason.as_deref(), Some("no room"));
    away.house.portal.retry(&away.house.ann, &away.id.to_string(), key("retry"), Bytes::new()).await.unwrap();
    let second = away.waits(2).await;
    assert_ne!(first.callback, second.callback);
    let portal = &away.house.portal;
    let (again, repeat) = report(portal, &first, "end", &failed(5)).await.unwrap();
    assert_eq!((again.outcome, repeat), (Heard::Applied, true));
    let (late, _) = report(portal, &first, "late", &succeeded(6)).await.unwrap();
    assert_eq!(late.outcome, Heard::EarlierAttempt);
    let mut told = succeeded(1);
    told["attempt"] = 1.into();
    assert_eq!(away.heard("told", &told).await, Heard::EarlierAttempt);
    told["attempt"] = 3.into();
    assert_eq!(away.report("ahead", &told).await.unwrap_err().kind, ProblemKind::InvalidParameters);
    assert_eq!(away.house.view(away.id).await.state, Running);
    assert_eq!(away.heard("own", &succeeded(1)).await, Heard::Applied);
    away.house.reaches(away.id, Succeeded).await;
}

#[tokio::test]
async fn an_earlier_attempts_success_beside_a_later_attempt_is_an_orphan_unless_both_made_the_same() {
    for (made, remain) in [("x", 0), ("another", 1)] {
        let away = Away::build().await;
        let first = away.script.begun().unwrap();
        away.heard("end", &failed(5)).await;
        away.house.reaches(away.id, Failed).await;
        let portal = &away.house.portal;
        portal.retry(&away.house.ann, &away.id.to_string(), key("retry"), Bytes::new()).await.unwrap();
        away.waits(2).await;
        let mut ann = away.house.ann.clone();
        ann.role = PortalRole::Admin;
        let orphans = async || portal.orphans(&ann, 50, None).await.unwrap();
        for event in ["late", "again"] {
            let (late, _) = report(portal, &first, event, &succeeded(6)).await.unwrap();
            assert_eq!(late.outcome, Heard::EarlierAttempt);
            let found = orphans().await;
            let shown = (found.total, found.results[0].attempt, found.results[0].request.state);
            assert_eq!(shown, (1, 1, Running), "{event}");
        }
        assert_eq!(away.count("SELECT count(*) FROM audit WHERE act = 'orphan'").await, 1);
        let told = "which may stand beside what attempt 2 makes: orphaned";
        assert!(away.house.history(away.id).await.iter().any(|line| line.ends_with(told)));
        let own =
            json!({ "state": "succeeded", "sequence": 1, "outputs": { "url": made, "password": "other" } });
        assert_eq!(away.heard("own", &own).await, Heard::Applied);
        away.house.reaches(away.id, Succeeded).await;
        let settled = async || {
            let history = away.house.history(away.id).await;
            let over = history.iter().any(|line| line.ends_with("attempt 2 came to: no orphan"));
            (over == (remain == 0)).then_some(())
        };
        eventually(settled).await;
        assert_eq!(orphans().await.total, remain, "{made}");
    }
}

#[tokio::test]
async fn a_late_success_of_what_was_canceled_is_an_orphan_that_administrators_see() {
    let away = Away::build().await;
    away.house.cancel(away.id).await.unwrap();
    away.house.reaches(away.id, Canceled).await;
    let (first, begun) = (away.script.begun().unwrap(), away.script.calls());
    assert_eq!(away.heard("late", &succeeded(1)).await, Heard::Orphaned, "{begun:?}");
    let (repeat, again) = report(&away.house.portal, &first, "late", &succeeded(1)).await.unwrap();
    assert_eq!((repeat.outcome, again), (Heard::Orphaned, true));
    let history = away.house.history(away.id).await;
    assert!(history.contains(&"made elsewhere: {\"url\":\"x\"}".to_owned()), "{history:?}");
    assert_eq!(away.house.view(away.id).await.state, Canceled);
    assert_eq!(away.count("SELECT count(*) FROM audit WHERE act = 'orphan'").await, 1);
    let mut ann = away.house.ann.clone();
    assert_eq!(away.house.portal.orphans(&ann, 50, None).await.unwrap_err().kind, ProblemKind::Forbidden);
    ann.role = PortalRole::Admin;
    let orphans = away.house.portal.orphans(&ann, 1, None).await.unwrap();
    assert_eq!(orphans.results.iter().map(|orphan| orphan.request.id).collect::<Vec<_>>(), [away.id]);
    assert_eq!((orphans.total, orphans.next), (1, None));
    let place = crate::store::cursor::write(orphans.results[0].at, orphans.results[0].callback.0);
    assert_eq!(away.house.portal.orphans(&ann, 1, Some(place)).await.unwrap().results, []);
    for (size, cursor) in [(0, None), (1001, None), (1, Some("x".to_owned()))] {
        let error = away.house.portal.orphans(&ann, size, cursor).await.unwrap_err();
        assert_eq!(error.kind, ProblemKind::InvalidQuery);
    }
}

#[tokio::test]
async fn a_report_of_an_old_life_never_touches_a_new_one() {
    let away = Away::build().await;
    let old = away.script.begun().unwrap();
    away.house.cancel(away.id).await.unwrap();
    away.house.reaches(away.id, Canceled).await;
    let answered = away.house.send("again", &crate::testing::vm("one")).await.unwrap();
    let new = answered.request_id.unwrap();
    eventually(async || (away.house.steps(new, "wait").await == 1).then_some(())).await;
    let (heard, _) = report(&away.house.portal, &old, "late", &succeeded(7)).await.unwrap();
    assert_eq!(heard.outcome, Heard::Orphaned);
    assert_eq!(away.house.view(new).await.state, Running);
    assert_eq!(away.house.resource_state("one").await, "creating");
}

#[tokio::test]
async fn what_is_being_canceled_is_taken_back_once_its_end_is_reported() {
    let Outcome::InProgress(elsewhere) = begun_elsewhere() else { unreachable!() };
    let going_on = || Observation::InProgress(elsewhere.clone());
    let away = Away::at(Scripted::default().away().applying([begun_elsewhere()]).observing([
        going_on(),
        going_on(),
        going_on(),
    ]))
    .await;
    away.house.cancel(away.id).await.unwrap();
    eventually(async || (away.script.calls().len() == 4).then_some(())).await;
    assert_eq!(away.script.calls(), ["apply", "observe", "stop", "observe"], "its end is awaited");
    assert_eq!(away.heard("ev", &succeeded(1)).await, Heard::Applied);
    away.house.reaches(away.id, Canceled).await;
    assert_eq!(away.script.calls()[4..], ["observe", "destroy"]);
}

#[tokio::test]
async fn a_success_answers_the_question_of_an_unknown_request() {
    let script = Scripted::default()
        .away()
        .applying([Outcome::CannotTell("lost".into())])
        .observing([Observation::CannotTell("dark".into()), Observation::CannotTell("dark".into())]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Unknown).await;
    let (heard, _) = report(&house.portal, &script.begun().unwrap(), "ev", &succeeded(1)).await.unwrap();
    assert_eq!(heard.outcome, Heard::Applied);
    house.reaches(id, Succeeded).await;
    assert_eq!(script.calls().iter().filter(|call| **call == "apply").count(), 1);
}

#[tokio::test]
async fn the_same_id_with_another_body_is_refused_and_recorded_once() {
    let away = Away::build().await;
    away.heard("ev", &running(1)).await;
    for _ in 0..3 {
        let error = away.report("ev", &succeeded(2)).await.unwrap_err();
        assert_eq!((error.kind, error.request), (ProblemKind::KeyReused, Some(away.id)));
    }
    assert_eq!(away.house.view(away.id).await.state, Running);
    let history = away.house.history(away.id).await;
    assert_eq!(history.iter().filter(|entry| entry.contains("refused: another report")).count(), 1);
    assert_eq!(away.count("SELECT mismatches FROM callback").await, 3);
    // IDs differ by case as well, and the same body under another ID is another report.
    assert_eq!(away.heard("EV", &running(2)).await, Heard::Applied);
    assert_eq!(away.heard("other", &running(2)).await, Heard::Older);
    assert_eq!(away.count("SELECT count(*) FROM callback").await, 3);
}

#[tokio::test]
async fn a_report_that_could_not_be_handled_is_not_seen() {
    let away = Away::build().await;
    let mut database = away.house.database().await;
    let broken =
        "CREATE TRIGGER broken BEFORE UPDATE OF woken ON run BEGIN SELECT RAISE(ABORT, 'broken'); END";
    sqlx::query(broken).execute(&mut database).await.unwrap();
    assert!(away.report("ev", &succeeded(1)).await.is_err());
    assert_eq!(away.count("SELECT count(*) FROM callback").await, 0);
    assert_eq!(away.house.steps(away.id, "callback").await, 0);
    sqlx::query("DROP TRIGGER broken").execute(&mut database).await.unwrap();
    let (heard, again) = away.report("ev", &succeeded(1)).await.unwrap();
    assert_eq!((heard.outcome, again), (Heard::Applied, false));
    away.house.reaches(away.id, Succeeded).await;
}

#[tokio::test]
async fn a_report_that_is_not_genuine_is_refused_and_leaves_no_trace() {
    let away = Away::build().await;
    let (begun, now, portal) = (away.script.begun().unwrap(), away.house.portal.now(), &away.house.portal);
    let body = r#"{ "state":"running", "sequence":1.0, "progress":"\u001B \u001b x 🎉" }"#.as_bytes();
    let good = delivery(&begun.secret, "ev", now, body);
    let text = |text: &str| vec![text.as_bytes().to_vec()];
    let right = String::from_utf8(good.signatures[0].clone()).unwrap();
    let hex = "0".repeat(63);
    let bad: Vec<Vec<Vec<u8>>> = vec![
        vec![],
        text(""),
        text("x"),
        text(&hex),
        text(&format!("{hex}00")),
        text("v1,not base64"),
        text(&format!("v1,{}", "A".repeat(43) + "=")),
        text(&right[..right.len() - 2]),
        text(&format!("{right}A")),
        text(&right.replace("v1,", "v2,")),
        text(&format!("v1,{}", "é".repeat(22))),
        vec![b"v1,\xff\xfe".to_vec()],
        vec![right.clone().into_bytes(), right.clone().into_bytes()],
    ];
    let id = callback_id(&begun);
    for signatures in bad {
        let shape = format!("{signatures:?}");
        let error = portal.callback(&id, Delivery { signatures, ..good.clone() }).await.unwrap_err();
        assert_eq!(error.kind, ProblemKind::SignatureWrong, "{shape}");
        assert!(!error.to_string().contains(begun.secret.reveal()));
    }
    let off = |seconds: i64| Moment::from_millis(now.millis() + seconds * 1000);
    for at in [off(-3600), off(3600)] {
        let error = portal.callback(&id, delivery(&begun.secret, "ev", at, body)).await.unwrap_err();
        assert_eq!(error.kind, ProblemKind::SignatureWrong);
    }
    let rewritten = Bytes::from(serde_json::from_slice::<Value>(body).unwrap().to_string());
    let error = portal.callback(&id, Delivery { body: rewritten, ..good.clone() }).await.unwrap_err();
    assert_eq!(error.kind, ProblemKind::SignatureWrong);
    assert_eq!(away.count("SELECT count(*) FROM callback").await, 0);
    // One of several signatures is enough, over exactly these bytes.
    let several = text(&format!("v1,AAAA {right}"));
    let (heard, again) =
        portal.callback(&id, Delivery { signatures: several, ..good.clone() }).await.unwrap();
    assert_eq!((heard.outcome, again), (Heard::Applied, false), "its ID was not used up");
}

#[tokio::test]
async fn an_id_is_needed_and_unknown_callbacks_are_not_found_and_guesses_are_braked() {
    let away = Away::build().await;
    let (begun, now, portal) = (away.script.begun().unwrap(), away.house.portal.now(), &away.house.portal);
    let body = running(1).to_string();
    let good = delivery(&begun.secret, "ev", now, body.as_bytes());
    let id = callback_id(&begun);
    let long = vec![b'x'; 256];
    for ids in [vec![], vec![vec![]], vec![b"a b".to_vec()], vec![long], vec![b"a".to_vec(), b"a".to_vec()]] {
        let error = portal.callback(&id, Delivery { ids, ..good.clone() }).await.unwrap_err();
        assert!(matches!(error.kind, ProblemKind::KeyMissing | ProblemKind::KeyInvalid), "{error}");
    }
    for unknown in ["0190aaaa-0000-7000-8000-000000000000", "x", ""] {
        let error = portal.callback(unknown, good.clone()).await.unwrap_err();
        assert_eq!(error.kind, ProblemKind::NotFound);
    }
    let wrong = Delivery { signatures: vec![b"v1,AAAA".to_vec()], ..good.clone() };
    let mut kinds = Vec::new();
    for _ in 0..200 {
        kinds.push(portal.callback(&id, wrong.clone()).await.unwrap_err().kind);
    }
    assert_eq!(kinds.last(), Some(&ProblemKind::TooManyAttempts));
    // Whoever has the secret gets through all the same.
    assert!(portal.callback(&id, good).await.is_ok());
}

#[tokio::test]
async fn what_does_not_fit_is_named_and_may_be_sent_again_under_its_id() {
    let away = Away::build().await;
    for (body, place) in [
        (json!({ "sequence": 1 }), "/state"),
        (json!({ "state": "done", "sequence": 1 }), "/state"),
        (json!({ "state": "running" }), "/sequence"),
        (json!({ "state": "running", "sequence": -1 }), "/sequence"),
        (json!({ "state": "running", "sequence": 1.5 }), "/sequence"),
        (json!({ "state": "running", "sequence": 1, "attempt": 0 }), "/attempt"),
        (json!({ "state": "running", "sequence": 1, "outputs": {} }), "/outputs"),
        (json!({ "state": "succeeded", "sequence": 1, "error": "x" }), "/error"),
        (json!({ "state": "running", "sequence": 1, "log": "x" }), "/log"),
        (json!({ "state": "running", "sequence": 1, "log": [1] }), "/log/0"),
    ] {
        let error = away.report("ev", &body).await.unwrap_err();
        assert_eq!(error.kind, ProblemKind::InvalidParameters, "{body}");
        assert_eq!(error.fields[0].pointer, place);
    }
    let error =
        away.report("ev", &json!({ "state": "running", "sequence": 1, "more": 1 })).await.unwrap_err();
    assert_eq!(error.kind, ProblemKind::InvalidJson);
    assert_eq!(away.heard("ev", &running(1)).await, Heard::Applied);
}

/// Reports its own success before it answers, as a quick service does, and then answers this.
#[derive(Debug, Clone)]
struct Quick {
    portal: Arc<OnceLock<Portal>>,
    answers: Outcome,
}

#[async_trait]
impl Provisioner for Quick {
    async fn observe(&self, _: &Job, _: &Context) -> Observation {
        Observation::Absent
    }

    async fn apply(&self, _: &Job, context: &Context) -> Outcome {
        let begun = context.begun.clone().unwrap();
        report(self.portal.get().unwrap(), &begun, "quick", &succeeded(1)).await.unwrap();
        self.answers.clone()
    }

    async fn destroy(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::Done(Object::new())
    }

    fn works_elsewhere(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_report_that_overtakes_the_answer_is_not_lost() {
    for answers in [begun_elsewhere(), Outcome::CannotTell("lost".into()), Outcome::Retryable("busy".into())]
    {
        let quick = Quick { portal: Arc::default(), answers };
        let mut house =
            House::build(Plan::of(quick.clone()).offering(|offering| offering.max_tries = 1)).await;
        quick.portal.set(house.portal.clone()).unwrap();
        house.work();
        let id = house.create("one").await;
        let view = house.reaches(id, Succeeded).await;
        assert_eq!(view.outputs["url"], "x", "{:?}", quick.answers);
        assert_eq!(house.steps(id, "apply").await, 1);
    }
}

#[tokio::test]
async fn callbacks_are_kept_as_long_as_keys_and_then_swept() {
    let away = Away::build().await;
    away.heard("ev", &succeeded(1)).await;
    away.house.reaches(away.id, Succeeded).await;
    let retention = Duration::from_hours(7 * 24);
    let store = &away.house.store;
    let end = away.house.view(away.id).await.finished_at.unwrap();
    let early = Moment::from_millis(end.plus(retention).millis() - 1);
    assert_eq!(store.sweep_errands(early, retention, 100).await.unwrap(), 0);
    assert!(away.report("ev", &succeeded(1)).await.unwrap().1);
    assert_eq!(store.sweep_errands(end.plus(retention), retention, 100).await.unwrap(), 1);
    assert_eq!(away.count("SELECT count(*) FROM callback").await, 0);
    assert_eq!(away.report("ev", &succeeded(1)).await.unwrap_err().kind, ProblemKind::NotFound);
}

#[tokio::test]
async fn a_callback_is_still_accepted_once_its_key_was_rotated_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Keys::read_or_make(&folder.path().join("secret.key"), &SystemIds).unwrap();
    let mut away = Away::with(read(), goes_on()).await;
    // A first attempt that failed, whose claim is a tombstone by now, and a second one that goes on.
    let first = away.script.begun().unwrap();
    away.heard("end", &failed(1)).await;
    away.house.reaches(away.id, Failed).await;
    let retention = Duration::from_secs(away.house.portal.guard_policy().retention_seconds);
    away.clock.advance(retention + Duration::from_secs(1));
    away.house.store.retire(away.house.portal.now(), retention, 100).await.unwrap();
    away.house.portal.rotate_key().await.unwrap();
    let rotated = away.house.beside(|plan| plan.keys = read()).await;
    let id = away.id.to_string();
    rotated.portal.retry(&away.house.ann, &id, key("retry"), Bytes::new()).await.unwrap();
    let second = away.waits(2).await;
    assert_eq!(away.heard("half", &running(1)).await, Heard::Applied);
    away.house.shut_down().await;
    let old = async |house: &House| house.portal.key_versions().await.unwrap()[0];
    assert_eq!(old(&rotated).await.1.claims, 0);
    assert!(old(&rotated).await.1.secrets >= 3, "two secrets and a reason");
    assert_eq!(rotated.portal.prune_keys().await.unwrap(), [1]);
    assert_eq!(read().versions(), [2]);
    // Who opens the portal from now on has never seen the key that the secrets were made under.
    let mut later = away.house.beside(|plan| plan.keys = read()).await;
    let (again, repeat) = report(&later.portal, &first, "end", &failed(1)).await.unwrap();
    assert_eq!((again.outcome, repeat), (Heard::Applied, true));
    let (late, _) = report(&later.portal, &first, "late", &succeeded(2)).await.unwrap();
    assert_eq!(late.outcome, Heard::EarlierAttempt);
    let (heard, _) = report(&later.portal, &second, "done", &succeeded(2)).await.unwrap();
    assert_eq!(heard.outcome, Heard::Applied);
    later.work();
    assert_eq!(later.reaches(away.id, Succeeded).await.outputs["url"], "x");
    let wrong = later.beside(|_| {}).await;
    let other = SharedSecret::generate(&SystemIds);
    let forged = delivery(&other, "forged", wrong.portal.now(), running(9).to_string().as_bytes());
    let error = wrong.portal.callback(&callback_id(&second), forged).await.unwrap_err();
    assert_eq!(error.kind, ProblemKind::SignatureWrong);
}
