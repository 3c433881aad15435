//! The same intention under another key: asked, and not refused for good.

use crate::{
    Error,
    testing::{House, Plan, standing, vm},
};
use crate::{clock::StandingClock, provisioner::fake::Fake};
use domain::{
    problem::ProblemKind::{InvalidJson, InvalidParameters, SuspectedDuplicate},
    submission::Channel,
    view::RequestView,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const WINDOW: Duration = Duration::from_hours(1);
/// Of two of the same moment neither is the newer one.
const LATER: Duration = Duration::from_millis(1);

async fn asking() -> (House, Arc<StandingClock>) {
    let clock = standing();
    let plan = Plan { clock: clock.clone(), ..Plan::of(Fake::default()) };
    (House::build(plan.offering(|vm| vm.duplicate_window = Some(WINDOW))).await, clock)
}

fn confirmed(name: &str, of: impl serde::Serialize, reason: &str) -> Value {
    let mut body = vm(name);
    body["confirm_duplicate"] = json!({ "of": of, "reason": reason });
    body
}

fn asked(error: &Error) -> String {
    assert_eq!(error.kind, SuspectedDuplicate, "{error}");
    let earlier = error.earlier.as_ref().unwrap();
    assert_eq!(Some(earlier.id), error.request);
    earlier.name.to_string()
}

#[tokio::test]
async fn the_same_under_another_key_is_asked_and_goes_through_with_a_reason() {
    let (house, clock) = asking().await;
    let one = house.create("one").await;
    clock.advance(LATER);
    let mut spelled = vm("two");
    spelled["parameters"] = json!({ "count": 1.0 });
    let question = house.send("k", &spelled).await.unwrap_err();
    assert_eq!(asked(&question), "one");
    assert!(question.detail.contains("confirm_duplicate") && question.detail.contains(&one.to_string()));
    // The key is as it was: the same one carries the answer.
    let first = house.send("k", &confirmed("two", one, " a spare ")).await.unwrap();
    let shown: RequestView = serde_json::from_slice(&first.answer.body).unwrap();
    let duplicate = shown.duplicate.unwrap();
    assert_eq!((duplicate.of.id, duplicate.reason.as_deref()), (one, Some("a spare")));
    let audited: String = sqlx::query_scalar("SELECT detail FROM audit WHERE act = 'duplicate_confirm'")
        .fetch_one(&mut house.database().await)
        .await
        .unwrap();
    assert_eq!(audited, format!("{one}: a spare"));
    // The answer to the question is no part of the meaning.
    for body in [vm("two"), confirmed("two", one, "another reason")] {
        let again = house.send("k", &body).await.unwrap();
        assert!(again.replayed && again.answer == first.answer);
    }
    // Others of the team are asked too, and only they.
    let abe = house.person("abe", "alpha", domain::role::TeamRole::Member).await;
    let text = vm("three").to_string();
    let question = crate::testing::send(&house.portal, &abe, "alpha", "k", &text).await.unwrap_err();
    assert_eq!(asked(&question), "two");
    let ben = house.person("ben", "beta", domain::role::TeamRole::Member).await;
    crate::testing::send(&house.portal, &ben, "beta", "k", &text).await.unwrap();
    let mut other = vm("four");
    other["parameters"]["size"] = "large".into();
    house.send("other", &other).await.unwrap();
}

#[tokio::test]
async fn the_window_ends_and_what_came_to_nothing_is_not_asked_about() {
    let (house, clock) = asking().await;
    let one = house.create("one").await;
    clock.advance(WINDOW.saturating_sub(Duration::from_millis(1)));
    assert_eq!(asked(&house.send("k", &vm("two")).await.unwrap_err()), "one");
    clock.advance(Duration::from_millis(1));
    house.send("k", &vm("two")).await.unwrap();
    house.cancel(one).await.unwrap();
    let two = house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap().id;
    house.cancel(two).await.unwrap();
    house.send("l", &vm("three")).await.unwrap();
}

#[tokio::test]
async fn a_confirmation_is_whole_or_refused_at_its_place() {
    let (house, _) = asking().await;
    let one = house.create("one").await;
    let cases = [
        (json!({ "of": "it", "reason": "x" }), "/confirm_duplicate/of"),
        (json!({ "reason": "x" }), "/confirm_duplicate/of"),
        (json!({ "of": one }), "/confirm_duplicate/reason"),
        (json!({ "of": one, "reason": "  " }), "/confirm_duplicate/reason"),
        (json!({ "of": one, "reason": "a\nb" }), "/confirm_duplicate/reason"),
        (json!({ "of": one, "reason": "x".repeat(501) }), "/confirm_duplicate/reason"),
    ];
    for (confirmation, place) in cases {
        let mut body = vm("two");
        body["confirm_duplicate"] = confirmation;
        let refused = house.send("k", &body).await.unwrap_err();
        assert_eq!((refused.kind, refused.fields[0].pointer.as_str()), (InvalidParameters, place));
    }
    // Another shape is another body: read as every body is, before the key is looked up.
    for shape in [json!("yes"), json!([]), json!({ "of": one, "reason": "x", "more": 1 })] {
        let mut body = vm("two");
        body["confirm_duplicate"] = shape;
        assert_eq!(house.send("k", &body).await.unwrap_err().kind, InvalidJson);
    }
    assert!(!house.send("k", &confirmed("two", one, &"x".repeat(500))).await.unwrap().replayed);
}

#[tokio::test]
async fn children_and_events_are_not_asked_but_marked() {
    let (house, clock) = asking().await;
    let one = house.create("one").await;
    clock.advance(LATER);
    let mut child = vm("two");
    child["parent_id"] = json!(one);
    // Who names a parent by itself can answer all the same.
    assert_eq!(asked(&house.send("child", &child).await.unwrap_err()), "one");
    let step = house.ann.clone().by(Channel::Composite);
    let two = crate::testing::send(&house.portal, &step, "alpha", "step", &child.to_string()).await.unwrap();
    clock.advance(LATER);
    let hook = house.ann.clone().by(Channel::Hook);
    let text = vm("three").to_string();
    let three = crate::testing::send(&house.portal, &hook, "alpha", "event", &text).await.unwrap();
    let two = two.request_id.unwrap();
    for (id, of) in [(two, one), (three.request_id.unwrap(), two)] {
        let duplicate = house.view(id).await.duplicate.unwrap();
        assert_eq!((duplicate.of.id, duplicate.reason), (of, None));
    }
}

#[tokio::test]
async fn a_plan_lists_what_one_would_be_asked_about() {
    let (house, _) = asking().await;
    house.create("one").await;
    let text = vm("two").to_string();
    let planned = house.portal.plan_request(&house.ann, "alpha", text.as_bytes(), Vec::new()).await.unwrap();
    let names: Vec<_> = planned.likely_duplicates.iter().map(|earlier| earlier.name.as_str()).collect();
    assert_eq!(names, ["one"]);
    house.send("k", &vm("two")).await.unwrap_err();
}
