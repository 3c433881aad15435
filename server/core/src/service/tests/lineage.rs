//! Descendants share the root's correlation ID, inherit labels, and descend only from what their sender sees.

use crate::testing::{House, eventually, key, vm, with_fake};
use bytes::Bytes;
use domain::{
    id::RequestId,
    problem::ProblemKind::{InvalidParameters, KeyReused},
    role::{PortalRole, TeamRole},
};
use serde_json::{Value, json};

/// A create of this name that descends from a request.
fn descendant(name: &str, parent: RequestId) -> Value {
    let mut body = vm(name);
    body["parent_id"] = json!(parent);
    body
}

/// A request `root` of the correlation ID `ORD-1`, with labels.
async fn rooted() -> (House, RequestId) {
    let (house, _) = with_fake().await;
    let mut body = vm("root");
    body["correlation_id"] = "ORD-1".into();
    body["labels"] = json!({ "env": "prod", "owner": "ann", "idempotency.key": "evt-1" });
    let root = house.send("root", &body).await.unwrap().request_id.unwrap();
    (house, root)
}

#[tokio::test]
async fn descendants_share_the_roots_correlation_id_and_inherit_labels() {
    let (house, root) = rooted().await;
    let mut child = descendant("child", root);
    child["labels"] = json!({ "env": "test", "step": "one" });
    let child = house.send("child", &child).await.unwrap().request_id.unwrap();
    let grandchild = house.send("grandchild", &descendant("grandchild", child)).await.unwrap();
    for (id, parent) in [(child, root), (grandchild.request_id.unwrap(), child)] {
        let view = house.view(id).await;
        let labels: Vec<_> = view.labels.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        assert_eq!(labels, ["env:test", "owner:ann", "step:one", "system.correlationId:ORD-1"]);
        assert_eq!((view.correlation_id.as_str(), view.parent_id), ("ORD-1", Some(parent)));
        let arrived = &house.store.submissions(id).await.unwrap().results[0];
        assert_eq!(arrived.correlation_id.as_deref(), Some("ORD-1"));
    }
}

#[tokio::test]
async fn a_root_without_a_correlation_id_hands_its_own_id_down() {
    let (house, _) = with_fake().await;
    let root = house.create("root").await;
    let mut same = descendant("same", root);
    same["correlation_id"] = json!(root);
    for (key, body) in [("child", descendant("child", root)), ("same", same)] {
        let child = house.send(key, &body).await.unwrap().request_id.unwrap();
        assert_eq!(house.view(child).await.correlation_id, root.to_string());
    }
}

#[tokio::test]
async fn another_correlation_id_than_the_parents_is_refused() {
    let (house, root) = rooted().await;
    let mut body = descendant("child", root);
    body["correlation_id"] = "ORD-2".into();
    let refused = house.send("child", &body).await.unwrap_err();
    assert_eq!((refused.kind, refused.fields[0].pointer.as_str()), (InvalidParameters, "/correlation_id"));
    let labelled = house.portal.create_request(
        &house.ann,
        "alpha",
        key("child"),
        Bytes::from(descendant("child", root).to_string()),
        vec!["system.correlationId:ORD-2".into()],
    );
    assert_eq!(labelled.await.unwrap_err().kind, InvalidParameters);
    house.send("child", &descendant("child", root)).await.unwrap();
}

#[tokio::test]
async fn a_descendants_repeat_replays_and_only_what_was_sent_is_named_as_different() {
    let (house, root) = rooted().await;
    let body = descendant("child", root);
    assert!(!house.send("child", &body).await.unwrap().replayed);
    assert!(house.send("child", &body).await.unwrap().replayed);
    let mut other = body.clone();
    other["parameters"]["size"] = "large".into();
    let refused = house.send("child", &other).await.unwrap_err();
    assert_eq!((refused.kind, refused.differs), (KeyReused, vec!["parameters.size".to_owned()]));
}

#[tokio::test]
async fn a_parent_is_of_the_same_team() {
    let (house, root) = rooted().await;
    let mut both = house.person("bea", "beta", TeamRole::Member).await;
    both.teams.extend(house.ann.teams.clone());
    let mut admin = house.person("root", "beta", TeamRole::Owner).await;
    admin.role = PortalRole::Admin;
    for caller in [both, admin] {
        let body = descendant("child", root).to_string();
        let refused = crate::testing::send(&house.portal, &caller, "beta", "child", &body).await.unwrap_err();
        assert_eq!((refused.kind, refused.fields[0].pointer.as_str()), (InvalidParameters, "/parent_id"));
        assert!(refused.fields[0].detail.contains("own team"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_line_of_descent_has_an_end() {
    let (house, root) = rooted().await;
    let mut last = root;
    for generation in 2..=super::super::lineage::MOST_GENERATIONS {
        let name = format!("g{generation}");
        last = house.send(&name, &descendant(&name, last)).await.unwrap().request_id.unwrap();
    }
    let refused = house.send("more", &descendant("more", last)).await.unwrap_err();
    assert_eq!((refused.kind, refused.fields[0].pointer.as_str()), (InvalidParameters, "/parent_id"));
}

#[tokio::test]
async fn a_refused_submission_keeps_the_correlation_id_of_its_address() {
    let (mut house, _) = with_fake().await;
    house.work();
    let mut body = vm("one");
    body["parameters"]["size"] = "huge".into();
    let labels = vec!["system.correlationId:pay:1".into()];
    let sent = house.portal.create_request(&house.ann, "alpha", key("k"), body.to_string().into(), labels);
    assert_eq!(sent.await.unwrap_err().kind, InvalidParameters);
    let kept: String = eventually(async || {
        let look = "SELECT correlation_id FROM submission WHERE key = 'k'";
        sqlx::query_scalar(look).fetch_optional(&mut house.database().await).await.unwrap()
    })
    .await;
    assert_eq!(kept, "pay:1");
}
