//! Changes at the service: the order of checks, what a repeat is, and what is refused.

use crate::{
    AnswerKind, Error,
    service::Target,
    testing::{House, Plan, key, schema, target, with_fake},
};
use bytes::Bytes;
use domain::{
    problem::ProblemKind,
    role::TeamRole,
    state::RequestState::{Canceled, Queued, Succeeded},
    view::RequestView,
};
use serde_json::{Value, json};
use std::sync::Arc;

async fn at_work() -> House {
    let (mut house, _) = with_fake().await;
    house.work();
    house
}

fn kind(result: Result<crate::Answered, Error>) -> ProblemKind {
    result.unwrap_err().kind
}

#[tokio::test]
async fn an_update_is_accepted_once_and_its_repeat_replays_though_the_version_moved_on() {
    let house = at_work().await;
    house.standing("one").await;
    let etag = house.etag("one").await;
    let large = json!({ "size": "large" });
    let first = house.patch(&house.ann, "k", "one", &large, &[&etag]).await.unwrap();
    assert_eq!(first.answer.kind, AnswerKind::Accepted);
    let id = first.request_id.unwrap();
    let shown: RequestView = serde_json::from_slice(&first.answer.body).unwrap();
    assert_eq!((shown.action.as_str(), shown.state), ("update", Queued));
    assert_eq!(shown.patch, Some(large.as_object().unwrap().clone()));
    assert_eq!(shown.parameters, json!({ "size": "large", "count": 1 }).as_object().unwrap().clone());
    house.ended_as(id, Succeeded).await;
    assert_eq!(first.answer.etag, Some(house.etag("one").await), "success does not move it");
    // With its old tag, another, none or a wrong one: If-Match is no part of the meaning.
    for tags in [vec![etag.as_str()], vec!["\"x\""], vec![], vec!["*"], vec!["nonsense"]] {
        let again = house.patch(&house.ann, "k", "one", &large, &tags).await.unwrap();
        assert!(again.replayed, "{tags:?}");
        assert_eq!((again.answer, again.state), (first.answer.clone(), Some(Succeeded)));
    }
    // Also when the resource is gone.
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    let again = house.patch(&house.ann, "k", "one", &large, &[]).await.unwrap();
    assert_eq!((again.replayed, again.answer), (true, first.answer));
    assert!(house.send("create-one", &crate::testing::vm("one")).await.unwrap().replayed);
    assert!(house.is_free("one").await, "and neither brings it back");
}

#[tokio::test]
async fn the_meaning_of_a_change_is_what_was_sent_and_a_null_is_part_of_it() {
    let house = at_work().await;
    house.standing("one").await;
    house.standing("two").await;
    let etag = house.etag("one").await;
    let first = json!({ "note": "x", "tags": null });
    let answered = house.patch(&house.ann, "k", "one", &first, &[&etag]).await.unwrap();
    for (name, other, differs) in [
        ("one", json!({ "note": "x" }), vec!["parameters.tags"]),
        ("one", json!({ "note": "secret-y", "tags": null }), vec!["parameters.note"]),
        ("one", json!({ "note": "x", "tags": null, "count": 2 }), vec!["parameters.count"]),
        ("two", first.clone(), vec!["target"]),
    ] {
        let refused = house.patch(&house.ann, "k", name, &other, &[&etag]).await.unwrap_err();
        assert_eq!((refused.kind, refused.request), (ProblemKind::KeyReused, answered.request_id));
        assert_eq!(refused.differs, differs);
        assert!(!refused.detail.contains("secret-y"));
    }
    assert_eq!(kind(house.delete("k", "one").await), ProblemKind::KeyReused);
    assert_eq!(kind(house.act("k", "one", "grow", &first).await), ProblemKind::KeyReused);
    assert_eq!(kind(house.send("k", &crate::testing::vm("one")).await), ProblemKind::KeyReused);
    // Spelled otherwise it is the same.
    let text = Bytes::from(r#"{ "tags":null,"\u006eote" : "x" }"#);
    let again = house.portal.update(&house.ann, target("one"), key("k"), text, Vec::new()).await.unwrap();
    assert!(again.replayed);
    // Labels are part of it too.
    let labeled = vec!["env:test".to_owned()];
    let body = Bytes::from(first.to_string());
    let refused = house.portal.update(&house.ann, target("one"), key("k"), body, labeled).await.unwrap_err();
    assert_eq!(refused.differs, ["labels.env"]);
}

#[tokio::test]
async fn a_change_without_the_version_it_was_thought_out_by_is_refused() {
    let house = at_work().await;
    house.standing("one").await;
    let (old, body) = (house.etag("one").await, json!({ "note": "mine" }));
    for tags in [vec![], vec!["*"]] {
        let refused = house.patch(&house.ann, "k", "one", &body, &tags).await;
        assert_eq!(kind(refused), ProblemKind::PreconditionRequired);
    }
    let other = house.updated("one", &json!({ "size": "large" })).await;
    house.ended_as(other, Succeeded).await;
    let current = house.etag("one").await;
    let weak = format!("W/{current}");
    for tags in
        [vec![old.as_str()], vec![weak.as_str()], vec!["3"], vec!["\"unknown\"", "\"tags\""], vec![""]]
    {
        let refused = house.patch(&house.ann, "k", "one", &body, &tags).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::PreconditionFailed, "{tags:?}");
        let versions = refused.versions.unwrap();
        assert_eq!((&versions.current, &versions.parameters["size"]), (&current, &json!("large")));
    }
    let refused = house.patch(&house.ann, "k", "one", &body, &[&old]).await.unwrap_err();
    assert_eq!(refused.versions.unwrap().yours, old);
    assert_eq!(house.etag("one").await, current, "nothing was changed");
    // The key was not used up, and one of several tags is enough.
    house.patch(&house.ann, "k", "one", &body, &["\"other\", W/\"x\"", &current]).await.unwrap();
    // Deletes and actions honour what is sent.
    let mut stale = key("act");
    stale.if_match = vec![old.clone().into_bytes()];
    let acted =
        house.portal.act(&house.ann, target("one"), "restart", stale.clone(), Bytes::new(), vec![]).await;
    assert_eq!(kind(acted), ProblemKind::PreconditionFailed);
    let deleted = house.portal.delete(&house.ann, target("one"), stale, Bytes::new(), vec![]).await;
    assert_eq!(kind(deleted), ProblemKind::PreconditionFailed);
    let mut any = key("any");
    any.if_match = vec![b"*".to_vec()];
    house.portal.delete(&house.ann, target("one"), any, Bytes::new(), vec![]).await.unwrap();
}

#[tokio::test]
async fn checks_come_in_one_order() {
    let mut plan = Plan::of(crate::provisioner::fake::Fake::default());
    plan.offerings[0].schema = schema(&json!({
        "type": "object",
        "properties": { "size": { "enum": ["small", "large"], "default": "small" },
                        "region": { "type": "string", "default": "north", "x-immutable": true } },
    }));
    let house = House::at_work(plan).await;
    house.standing("one").await;
    let wrong = json!({ "size": "huge" });
    let (vic, ben) = (
        house.person("vic", "alpha", TeamRole::Viewer).await,
        house.person("ben", "beta", TeamRole::Member).await,
    );
    // Not JSON, not visible, not allowed, not there, not fitting, no version.
    let broken = house.portal.update(&ben, target("one"), key("k"), Bytes::from("{"), vec![]).await;
    assert_eq!(kind(broken), ProblemKind::InvalidJson);
    let list = house.portal.update(&house.ann, target("one"), key("k"), Bytes::from("[1]"), vec![]).await;
    assert_eq!(kind(list), ProblemKind::InvalidJson);
    assert_eq!(kind(house.patch(&ben, "k", "one", &wrong, &[]).await), ProblemKind::NotFound);
    assert_eq!(kind(house.patch(&vic, "k", "one", &wrong, &[]).await), ProblemKind::Forbidden);
    assert_eq!(kind(house.patch(&vic, "k", "two", &wrong, &[]).await), ProblemKind::Forbidden);
    assert_eq!(kind(house.patch(&house.ann, "k", "two", &wrong, &[]).await), ProblemKind::NotFound);
    let target_of = |kind: &str, name: &str| Target { kind: kind.into(), ..target(name) };
    for bad in [target_of("vm", "No Name"), target_of("../x", "one"), target_of("nothing", "one")] {
        let deleted = house.portal.delete(&house.ann, bad, key("k"), Bytes::new(), vec![]).await;
        assert_eq!(kind(deleted), ProblemKind::NotFound);
    }
    for (patch, pointer) in [
        (&wrong, "/size"),
        (&json!({ "unknown": 1 }), "/unknown"),
        (&json!({ "region": "south" }), "/region"),
    ] {
        let refused = house.patch(&house.ann, "k", "one", patch, &[]).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::InvalidParameters, "before the missing version");
        assert_eq!(refused.fields[0].pointer, pointer);
    }
    let fits = house.patch(&house.ann, "k", "one", &json!({ "size": null }), &[]).await;
    assert_eq!(kind(fits), ProblemKind::PreconditionRequired);
    let labels = vec!["system.owner:me".to_owned()];
    let labeled = house.portal.delete(&house.ann, target("one"), key("k"), Bytes::new(), labels).await;
    assert_eq!(labeled.unwrap_err().fields[0].pointer, "/labels");
    // None of it used the key up.
    assert!(!house.delete("k", "one").await.unwrap().replayed);
}

#[tokio::test]
async fn a_removed_parameter_falls_back_to_its_default() {
    let house = at_work().await;
    house.standing("one").await;
    let large = house.updated("one", &json!({ "size": "large", "nested": { "a": 1, "b": 2 } })).await;
    house.ended_as(large, Succeeded).await;
    let back = house.updated("one", &json!({ "size": null, "nested": { "a": null } })).await;
    let view = house.ended_as(back, Succeeded).await;
    let meant = json!({ "size": "small", "count": 1, "nested": { "b": 2 } });
    assert_eq!(Value::Object(view.parameters), meant);
}

#[tokio::test]
async fn a_relative_action_happens_once_for_each_key() {
    let house = at_work().await;
    house.standing("one").await;
    let first = house.act("k", "one", "grow", &json!({ "by": 2 })).await.unwrap();
    for input in [json!({ "by": 2 }), json!({ "by": 2.0, "behaviour": null })] {
        assert!(house.act("k", "one", "grow", &input).await.unwrap().replayed);
    }
    let id = first.request_id.unwrap();
    let view = house.ended_as(id, Succeeded).await;
    assert_eq!((view.action.as_str(), &view.desired.unwrap()["count"]), ("grow", &json!(3)));
    assert_eq!(house.parameter("one", "count").await, 3);
    let refused = house.act("k", "one", "grow", &json!({ "by": 3 })).await.unwrap_err();
    assert_eq!((refused.kind, refused.differs), (ProblemKind::KeyReused, vec!["parameters.by".to_owned()]));
    let refused = house.act("k", "one", "restart", &json!({ "by": 2 })).await.unwrap_err();
    assert_eq!((refused.kind, refused.differs), (ProblemKind::KeyReused, vec!["action".to_owned()]));
    // An omitted default and the same default spelled out mean the same.
    let omitted = house.act("k2", "one", "grow", &json!({})).await.unwrap();
    assert!(house.act("k2", "one", "grow", &json!({ "by": 1 })).await.unwrap().replayed);
    house.ended_as(omitted.request_id.unwrap(), Succeeded).await;
    // What it would come to must fit, and what is there may have moved on since.
    let refused = house.act("k3", "one", "grow", &json!({ "by": 97 })).await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::InvalidParameters);
    assert_eq!(refused.fields[0].pointer, "/by");
    assert_eq!(kind(house.act("k3", "one", "explode", &json!({})).await), ProblemKind::NotFound);
    assert_eq!(kind(house.act("k3", "two", "grow", &json!({})).await), ProblemKind::NotFound);
    let refused = house.act("k3", "one", "grow", &json!({ "by": "x" })).await.unwrap_err();
    assert_eq!(refused.fields[0].pointer, "/by");
    house.act("k3", "one", "grow", &json!({ "by": 96 })).await.unwrap();
    let delete = house.deleted("one").await;
    house.ended_as(delete, Succeeded).await;
    assert!(
        house.act("k", "one", "grow", &json!({ "by": 2.0 })).await.unwrap().replayed,
        "though it is gone"
    );
}

#[tokio::test]
async fn a_delete_is_one_whatever_the_key_and_never_of_the_next_life() {
    let house = at_work().await;
    assert_eq!(kind(house.delete("early", "one").await), ProblemKind::NotFound);
    house.standing("one").await;
    let old = house.etag("one").await;
    let first = house.delete("d", "one").await.unwrap();
    let id = first.request_id.unwrap();
    house.ended_as(id, Succeeded).await;
    let again = house.delete("d", "one").await.unwrap();
    assert_eq!((again.replayed, again.answer, again.state), (true, first.answer, Some(Succeeded)));
    let other = house.delete("d2", "one").await.unwrap();
    assert_eq!((other.existing, other.answer.kind, other.request_id), (true, AnswerKind::Done, Some(id)));
    assert!(house.delete("d2", "one").await.unwrap().replayed);
    // The same as long as the version of that life is meant; a version of another life is not.
    let with = |name: &str, tag: &str| {
        let mut arrival = key(name);
        arrival.if_match = vec![tag.as_bytes().to_vec()];
        arrival
    };
    let body = Bytes::new;
    let same = house.portal.delete(&house.ann, target("one"), with("d3", &old), body(), vec![]).await;
    assert!(same.unwrap().existing);
    let foreign = house.portal.delete(&house.ann, target("one"), with("d4", "\"x.1\""), body(), vec![]).await;
    assert_eq!(kind(foreign), ProblemKind::PreconditionFailed);
    // A new life begins: what was decided about the old one does not touch it.
    let new = house.send("new", &crate::testing::vm("one")).await.unwrap();
    assert!(!new.replayed && !new.existing);
    house.ended_as(new.request_id.unwrap(), Succeeded).await;
    assert!(house.delete("d", "one").await.unwrap().replayed);
    let stale = house.portal.delete(&house.ann, target("one"), with("d5", &old), body(), vec![]).await;
    assert_eq!(kind(stale), ProblemKind::PreconditionFailed);
    assert_eq!(house.resource_state("one").await, "active");
    let second = house.delete("d6", "one").await.unwrap();
    assert_ne!(second.request_id, Some(id));
}

#[tokio::test]
async fn a_waiting_change_is_seen_with_its_resource_and_may_be_canceled() {
    let (house, _) = with_fake().await;
    let create = house.create("one").await;
    let update = house.updated("one", &json!({ "size": "large" })).await;
    let detail = house.portal.resource(&house.ann, "alpha", "vm", "one").await.unwrap();
    let pending: Vec<_> = detail.pending.iter().map(|request| request.id).collect();
    let last: Vec<_> = detail.requests.iter().map(|request| request.id).collect();
    assert_eq!((pending, last), (vec![create, update], vec![update, create]));
    assert_eq!((detail.resource.version, detail.applied), (2, None));
    house.cancel(update).await.unwrap();
    assert_eq!(house.view(update).await.state, Canceled);
    let detail = house.portal.resource(&house.ann, "alpha", "vm", "one").await.unwrap();
    assert_eq!((detail.resource.version, &detail.resource.parameters["size"]), (3, &json!("small")));
    let query = crate::service::RequestQuery {
        search: domain::search::Search::read_query("filters[type][EQUALS]=vm&filters[name][EQUALS]=one")
            .unwrap(),
        ..crate::service::RequestQuery::default()
    };
    assert_eq!(house.portal.requests(&house.ann, query).await.unwrap().total, 2);
}

#[tokio::test]
async fn an_offering_that_cannot_change_what_it_made_says_so() {
    let plan =
        Plan::of(crate::provisioner::fake::Fake::default()).offering(|offering| offering.updates = false);
    let mut house = House::at_work(plan).await;
    house.standing("one").await;
    let etag = house.etag("one").await;
    let refused = house.patch(&house.ann, "k", "one", &json!({ "size": "large" }), &[&etag]).await;
    assert_eq!(kind(refused), ProblemKind::NotOffered);
    house.shut_down().await;
    // Nor can anybody say what a change means whose offering has left the catalog.
    let other = house
        .beside(|plan| {
            plan.offerings =
                vec![crate::testing::offering("other", Arc::new(crate::provisioner::fake::Fake::default()))];
        })
        .await;
    assert_eq!(kind(other.delete("k", "one").await), ProblemKind::OfferingUnavailable);
}
