//! Versions of the key: old ones go on judging what was hashed with them, and without the right one nothing is judged.

use crate::{
    clock::SystemIds,
    keys::Keys,
    provisioner::{Outcome, fake::Fake},
    testing::{House, Plan, Scripted, eventually, standing, vm},
};
use domain::{
    problem::ProblemKind::{KeyExpired, KeyReused, ServerBehind},
    state::RequestState::Succeeded,
};
use serde_json::json;
use std::time::Duration;

fn first() -> Keys {
    Keys::of([(1, [7; 32])]).unwrap()
}

fn both() -> Keys {
    Keys::of([(1, [7; 32]), (2, [8; 32])]).unwrap()
}

async fn version_of(house: &House, key: &str) -> i64 {
    let version = sqlx::query_scalar("SELECT key_version FROM claim WHERE key = $1").bind(key);
    version.fetch_one(&mut house.database().await).await.unwrap()
}

#[tokio::test]
async fn a_repeat_is_recognised_under_the_version_that_its_first_was_hashed_with() {
    let house = House::build(Plan { keys: first(), ..Plan::of(Fake::default()) }).await;
    let sent = house.send("k", &vm("one")).await.unwrap();
    let rotated = house.beside(|plan| plan.keys = both()).await;
    let mut spelled = vm("one");
    spelled["parameters"]["size"] = "small".into();
    for body in [vm("one"), spelled] {
        let again = rotated.send("k", &body).await.unwrap();
        assert!(again.replayed && again.answer == sent.answer);
    }
    assert_eq!(rotated.send("k", &vm("two")).await.unwrap_err().kind, KeyReused);
    let canceled = house.cancel(sent.request_id.unwrap()).await.unwrap();
    assert_eq!(rotated.cancel(sent.request_id.unwrap()).await.unwrap().answer, canceled.answer);
    rotated.send("new", &vm("two")).await.unwrap();
    assert_eq!((version_of(&house, "k").await, version_of(&house, "new").await), (1, 2));
}

#[tokio::test]
async fn a_server_that_lacks_the_newer_key_refuses_and_never_misjudges() {
    let house = House::build(Plan { keys: first(), ..Plan::of(Fake::default()) }).await;
    let rotated = house.beside(|plan| plan.keys = both()).await;
    let sent = rotated.send("k", &vm("one")).await.unwrap();
    for body in [vm("one"), vm("two")] {
        let refused = house.send("k", &body).await.unwrap_err();
        assert_eq!((refused.kind, refused.request), (ServerBehind, None), "{refused}");
        assert!(refused.retry_after.is_some());
    }
    // What it can judge it does, and another server judges the rest.
    assert!(!house.send("own", &vm("two")).await.unwrap().replayed);
    assert_eq!(rotated.send("k", &vm("one")).await.unwrap().answer, sent.answer);
}

#[tokio::test]
async fn a_running_server_learns_a_newer_version_from_its_file_when_it_meets_it() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Keys::read_or_make(&folder.path().join("secret.key"), &SystemIds).unwrap();
    let house = House::build(Plan { keys: read(), ..Plan::of(Fake::default()) }).await;
    assert_eq!(house.portal.rotate_key().await.unwrap(), 2);
    // It goes on with the version that it was opened with, so that others can be given the file first.
    house.send("before", &vm("before")).await.unwrap();
    assert_eq!(version_of(&house, "before").await, 1);
    let other = house.beside(|plan| plan.keys = read()).await;
    let first = other.send("k", &vm("one")).await.unwrap();
    assert_eq!(version_of(&house, "k").await, 2);
    assert_eq!(house.send("k", &vm("one")).await.unwrap().answer, first.answer);
    assert_eq!(house.send("k", &vm("two")).await.unwrap_err().kind, KeyReused);
}

#[tokio::test]
async fn a_start_with_another_key_or_without_one_is_refused_by_its_version() {
    let house = House::build(Plan { keys: both(), ..Plan::of(Fake::default()) }).await;
    let other = Keys::of([(1, [7; 32]), (2, [9; 32])]).unwrap();
    for (keys, words) in [(other, "another key of version 2"), (first(), "lacks version 2")] {
        let refused = house.refused_beside(|plan| plan.keys = keys).await.to_string();
        assert!(refused.starts_with("KEYTURN_SECRET_KEY_FILE: ") && refused.contains(words), "{refused}");
    }
    let newest = Keys::of([(2, [8; 32])]).unwrap();
    assert!(house.refused_beside(|plan| plan.keys = newest).await.to_string().contains("lacks version 1"));
}

#[tokio::test]
async fn a_secret_opens_under_the_version_that_sealed_it() {
    let outputs = json!({ "password": "hunter2-hunter2" }).as_object().unwrap().clone();
    let plan = Plan::of(Scripted::default().applying([Outcome::Done(outputs)]))
        .offering(|vm| vm.secret_outputs = ["password".to_owned()].into());
    let mut house = House::build(Plan { keys: first(), ..plan }).await;
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    let rotated = house.beside(|plan| plan.keys = both()).await;
    let shown = rotated.portal.reveal(&house.ann, "alpha", "vm", "one", "password").await.unwrap();
    assert_eq!(shown, "hunter2-hunter2");
}

#[tokio::test]
async fn a_version_is_dropped_only_when_no_key_and_no_secret_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Keys::read_or_make(&folder.path().join("secret.key"), &SystemIds).unwrap();
    let clock = standing();
    let outputs = json!({ "password": "hunter2-hunter2" }).as_object().unwrap().clone();
    let plan = Plan::of(Scripted::default().applying([Outcome::Done(outputs)]))
        .offering(|vm| vm.secret_outputs = ["password".to_owned()].into());
    let mut house = House::build(Plan { keys: read(), clock: clock.clone(), ..plan }).await;
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    house.shut_down().await;
    house.portal.rotate_key().await.unwrap();
    let mut rotated = house.beside(|plan| plan.keys = read()).await;
    let needed = async |house: &House| {
        let versions = house.portal.key_versions().await.unwrap().into_iter();
        versions.map(|(number, needed)| (number, needed.claims, needed.secrets)).collect::<Vec<_>>()
    };
    assert_eq!(needed(&rotated).await, [(1, 1, 1), (2, 0, 0)]);
    // The secret is sealed anew; the key that was hashed with the old version still has to be recognised.
    assert_eq!(rotated.portal.prune_keys().await.unwrap(), Vec::<i64>::new());
    assert_eq!(needed(&rotated).await, [(1, 1, 0), (2, 0, 1)]);
    assert!(rotated.send("create-one", &vm("one")).await.unwrap().replayed);
    let retention = Duration::from_secs(rotated.portal.guard_policy().retention_seconds);
    clock.advance(retention);
    rotated.work();
    eventually(async || Some(needed(&rotated).await).filter(|needed| needed[0].1 == 0)).await;
    assert_eq!(rotated.portal.prune_keys().await.unwrap(), [1]);
    // From then on the file goes without it, and so does a start.
    assert_eq!(read().versions(), [2]);
    let later = house.beside(|plan| plan.keys = read()).await;
    let shown = later.portal.reveal(&house.ann, "alpha", "vm", "one", "password").await.unwrap();
    assert_eq!(shown, "hunter2-hunter2");
    let late = later.send("create-one", &vm("one")).await.unwrap_err();
    assert_eq!((late.kind, late.request), (KeyExpired, Some(id)));
}
