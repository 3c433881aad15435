//! Secrets that a change or an action brings: kept, replaced, removed and taken back.

use super::{OTHER, SECRET, Tattler, made, plan};
use crate::testing::House;
use domain::{
    hidden::is_mark,
    problem::ProblemKind::{InvalidParameters, KeyReused, PreconditionFailed},
    state::RequestState::{Failed, Succeeded},
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_change_keeps_replaces_or_removes_a_secret() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    made(&house, "one", SECRET).await;
    let mark = house.parameter("one", "password").await;
    // Of other members.
    house.ended_as(house.updated("one", &json!({ "size": "large" })).await, Succeeded).await;
    let (now, before, _) = tattler.last();
    assert_eq!(
        (&now["password"], &before["password"], &now["size"]),
        (&json!(SECRET), &json!(SECRET), &json!("large"))
    );
    assert_eq!(house.parameter("one", "password").await, mark);
    // By another, which is told apart but never shown.
    let etag = house.etag("one").await;
    let changed = house.patch(&house.ann, "p", "one", &json!({ "password": OTHER }), &[&etag]).await.unwrap();
    house.ended_as(changed.request_id.unwrap(), Succeeded).await;
    let (now, before, _) = tattler.last();
    assert_eq!((&now["password"], &before["password"]), (&json!(OTHER), &json!(SECRET)));
    assert!(
        house.patch(&house.ann, "p", "one", &json!({ "password": OTHER }), &[&etag]).await.unwrap().replayed
    );
    let reused =
        house.patch(&house.ann, "p", "one", &json!({ "password": SECRET }), &[&etag]).await.unwrap_err();
    assert_eq!(
        (reused.kind, reused.differs.as_slice()),
        (KeyReused, ["parameters.password".to_owned()].as_slice())
    );
    let stale =
        house.patch(&house.ann, "s", "one", &json!({ "password": SECRET }), &[&etag]).await.unwrap_err();
    assert_eq!(stale.kind, PreconditionFailed);
    assert!(!format!("{stale:?}").contains("hush"));
    for (patch, part) in [
        (json!({ "password": "Canary" }), "minLength"),
        (json!({ "password": mark }), "stands for the secret"),
    ] {
        let etag = house.etag("one").await;
        let unfit = house.patch(&house.ann, "w", "one", &patch, &[&etag]).await.unwrap_err();
        assert!(
            unfit.kind == InvalidParameters
                && unfit
                    .fields
                    .iter()
                    .any(|field| field.pointer == "/password" && field.detail.contains(part)),
            "{unfit:?}"
        );
        assert!(!format!("{unfit:?}").contains("Canary"));
    }
    // By nothing.
    house.ended_as(house.updated("one", &json!({ "password": null })).await, Succeeded).await;
    assert_eq!(tattler.password(), Value::Null);
    assert_eq!(house.parameter("one", "password").await, Value::Null);
    for secret in [SECRET, OTHER] {
        house.has_no_trace_of(secret);
    }
}

#[tokio::test]
async fn a_mark_that_is_copied_elsewhere_stays_a_mark() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    made(&house, "one", SECRET).await;
    let mark = house.parameter("one", "password").await;
    house.ended_as(house.updated("one", &json!({ "note": mark })).await, Succeeded).await;
    assert_eq!((&tattler.last().0["note"], tattler.password()), (&mark, json!(SECRET)));
}

#[tokio::test]
async fn a_change_that_fails_goes_back_to_the_old_secret_and_may_be_tried_again_with_the_new() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    made(&house, "one", SECRET).await;
    let mark = house.parameter("one", "password").await;
    tattler.fails(1);
    let id = house.updated("one", &json!({ "password": OTHER })).await;
    let failed = house.ended_as(id, Failed).await;
    assert!(
        failed.reason.as_ref().is_some_and(|why| why.contains("***") && !why.contains("hush")),
        "{failed:?}"
    );
    let (now, before, _) = tattler.last();
    assert_eq!((&now["password"], &before["password"]), (&json!(SECRET), &json!(OTHER)), "taken back");
    assert_eq!(house.parameter("one", "password").await, mark);
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(tattler.password(), OTHER);
    for secret in [SECRET, OTHER] {
        house.has_no_trace_of(secret);
    }
}

#[tokio::test]
async fn an_action_takes_a_secret_and_sets_one() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    made(&house, "one", SECRET).await;
    let acted = house.act("t", "one", "turn", &json!({ "to": OTHER, "why": "leaked" })).await.unwrap();
    let id = acted.request_id.unwrap();
    house.ended_as(id, Succeeded).await;
    let (now, before, input) = tattler.last();
    assert_eq!(
        (&now["password"], &before["password"], &input["to"]),
        (&json!(OTHER), &json!(SECRET), &json!(OTHER))
    );
    let view = house.view(id).await;
    assert!(is_mark(&view.parameters["to"]) && view.parameters["why"] == "leaked");
    assert_eq!(view.desired.unwrap()["password"], view.parameters["to"]);
    assert!(house.act("t", "one", "turn", &json!({ "to": OTHER, "why": "leaked" })).await.unwrap().replayed);
    let reused = house.act("t", "one", "turn", &json!({ "to": SECRET, "why": "leaked" })).await.unwrap_err();
    assert_eq!(reused.differs, ["parameters.to"]);
    // A secret that the offering's own rule refuses is told at the action's parameter.
    let unfit = house.act("u", "one", "turn", &json!({ "to": "Not-Allowed!" })).await.unwrap_err();
    assert!(unfit.fields[0].pointer == "/to" && !format!("{unfit:?}").contains("Not-Allowed"), "{unfit:?}");
    house.has_no_trace_of(OTHER);
}
