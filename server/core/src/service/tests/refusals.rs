//! A refusal changes nothing and burns no key: the same key runs once the cause is gone.

use crate::{
    Error,
    service::Arrival,
    testing::{House, send, vm, with_fake},
};
use domain::{
    problem::ProblemKind::{
        self, Forbidden, InvalidJson, InvalidParameters, KeyInvalid, KeyMissing, NameTaken, NotFound,
        UnknownOffering,
    },
    role::{PortalRole, TeamRole},
    state::RequestState::Canceled,
};
use serde_json::{Value, json};

/// How many claims, requests, resources and runs there are.
async fn kept(house: &House) -> i64 {
    let count = "SELECT (SELECT count(*) FROM claim) + (SELECT count(*) FROM request) + (SELECT count(*) FROM resource)
                      + (SELECT count(*) FROM run)";
    sqlx::query_scalar(count).fetch_one(&mut house.database().await).await.unwrap()
}

#[tokio::test]
async fn a_refused_body_can_be_corrected_under_the_same_key() {
    let with = |pointer: &str, value: Value| {
        let mut body = vm("one");
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[member] = value;
        body.to_string()
    };
    let cases: Vec<(String, ProblemKind, &str)> = vec![
        ("{".into(), InvalidJson, ""),
        ("[]".into(), InvalidJson, ""),
        (r#"{"offering":"vm","offering":"vm","name":"one"}"#.into(), InvalidJson, ""),
        (
            r#"{"offering":"vm","name":"one","parameters":{"size":"small","size":"large"}}"#.into(),
            InvalidJson,
            "",
        ),
        (r#"{"offering":"vm","name":"one","parameters":{"quota":9007199254740993}}"#.into(), InvalidJson, ""),
        (r#"{"offering":"vm","name":"one","parameters":{"count":1e999}}"#.into(), InvalidJson, ""),
        (with("/extra", json!(1)), InvalidJson, ""),
        (with("/offering", json!("nothing")), UnknownOffering, "/offering"),
        (with("/offering", json!(7)), InvalidParameters, "/offering"),
        (with("/name", json!("One")), InvalidParameters, "/name"),
        (with("/name", json!("one ")), InvalidParameters, "/name"),
        (with("/name", json!("a".repeat(64))), InvalidParameters, "/name"),
        (with("/name", json!(null)), InvalidParameters, "/name"),
        (with("/parameters", json!([])), InvalidParameters, "/parameters"),
        (with("/parameters/size", json!("huge")), InvalidParameters, "/parameters/size"),
        (with("/parameters/count", json!("1")), InvalidParameters, "/parameters/count"),
        (with("/parameters/unknown", json!(1)), InvalidParameters, "/parameters"),
        (with("/labels", json!({ "system.x": "y" })), InvalidParameters, "/labels"),
        (with("/labels", json!({ "UPPER": "y" })), InvalidParameters, "/labels"),
        (with("/correlation_id", json!("with\nbreak")), InvalidParameters, "/correlation_id"),
        (with("/parent_id", json!("nobody")), InvalidParameters, "/parent_id"),
        (with("/parent_id", json!(uuid::Uuid::from_u128(1))), InvalidParameters, "/parent_id"),
    ];
    for (body, kind, pointer) in cases {
        let (house, _) = with_fake().await;
        let refused = house.send_text("k", &body).await.unwrap_err();
        assert_eq!(refused.kind, kind, "{body}: {refused}");
        let places: Vec<&str> = refused.fields.iter().map(|field| field.pointer.as_str()).collect();
        assert!(
            pointer.is_empty() || places.iter().any(|place| place.starts_with(pointer)),
            "{body}: {places:?}"
        );
        assert_eq!(kept(&house).await, 0, "{body}");
        let corrected = house.send("k", &vm("one")).await.unwrap();
        assert!(!corrected.replayed, "{body}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_one_is_refused_and_none_is_invented() {
    let (house, _) = with_fake().await;
    let send = async |keys: &[&[u8]]| -> Result<_, Error> {
        let arrival = Arrival { keys: keys.iter().map(|key| key.to_vec()).collect(), ..Arrival::default() };
        house
            .portal
            .create_request(&house.ann, "alpha", arrival, vm("one").to_string().into(), Vec::new())
            .await
    };
    let long = [b'a'; 256];
    let cases: [(&[&[u8]], ProblemKind); 9] = [
        (&[], KeyMissing),
        (&[b""], KeyMissing),
        (&[b"  "], KeyMissing),
        (&[b"\"\""], KeyMissing),
        (&[b"one", b"one"], KeyInvalid),
        (&[&long], KeyInvalid),
        (&["ключ".as_bytes()], KeyInvalid),
        (&[b"tab\there"], KeyInvalid),
        (&[b"nul\0"], KeyInvalid),
    ];
    for (keys, kind) in cases {
        let refused = send(keys).await.unwrap_err();
        assert!(
            refused.kind == kind || (kind == KeyMissing && refused.kind == KeyInvalid),
            "{keys:?}: {refused}"
        );
    }
    assert_eq!(kept(&house).await, 0);
    assert!(!send(&[&long[..255]]).await.unwrap().replayed);
}

#[tokio::test]
async fn a_taken_name_is_told_by_what_differs_and_free_again_after_a_cancellation() {
    let (house, _) = with_fake().await;
    let holder = house.create("one").await;
    let mut other = vm("one");
    other["parameters"]["size"] = "large".into();
    let refused = house.send("k", &other).await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (NameTaken, Some(holder)));
    assert_eq!(refused.differs, ["parameters.size"]);
    house.cancel(holder).await.unwrap();
    assert_eq!(house.view(holder).await.state, Canceled);
    let first = house.send("k", &other).await.unwrap();
    assert!(!first.replayed && !first.existing);
    assert_ne!(first.request_id, Some(holder));
}

#[tokio::test]
async fn a_role_that_only_looks_is_refused_and_the_key_runs_once_it_may() {
    let (house, _) = with_fake().await;
    let mut vic = house.person("vic", "alpha", TeamRole::Viewer).await;
    // Whether the values fit is nothing to somebody who may not ask.
    for body in [vm("one"), vm("NO")] {
        let refused = send(&house.portal, &vic, "alpha", "k", &body.to_string()).await.unwrap_err();
        assert_eq!(refused.kind, Forbidden);
    }
    vic.teams[0].1 = TeamRole::Member;
    assert!(!send(&house.portal, &vic, "alpha", "k", &vm("one").to_string()).await.unwrap().replayed);
}

#[tokio::test]
async fn a_team_that_one_cannot_see_and_one_that_is_not_there_are_the_same() {
    let (house, _) = with_fake().await;
    let mut admin = house.ann.clone();
    admin.role = PortalRole::Admin;
    for (caller, team) in
        [(&house.ann, "beta"), (&house.ann, "nowhere"), (&house.ann, "NOT/A/TEAM"), (&admin, "nowhere")]
    {
        let refused = send(&house.portal, caller, team, "k", &vm("one").to_string()).await.unwrap_err();
        assert_eq!((refused.kind, refused.detail), (NotFound, Error::not_found().detail), "{team}");
    }
    assert_eq!(kept(&house).await, 0);
    assert!(!send(&house.portal, &admin, "beta", "k", &vm("one").to_string()).await.unwrap().replayed);
}
