//! Hooks without HTTP: what their events ask for goes through the same guard.

use crate::{
    Answered, Caller, Error,
    clock::SystemIds,
    keys::Keys,
    provisioner::fake::Fake,
    service::Event,
    testing::{House, Plan, eventually, key, standing},
};
use domain::{
    hook::HookView,
    problem::ProblemKind::{KeyExpired, KeyReused, UnknownOffering},
    role::TeamRole,
    state::RequestState::Succeeded,
    view::RequestView,
};
use serde_json::{Value, json};
use std::time::Duration;

async fn owner(house: &House) -> Caller {
    house.person("olga", "alpha", TeamRole::Owner).await
}

async fn hook(house: &House, owner: &Caller) -> HookView {
    let body = json!({
        "title": "events", "offering": "vm", "signature": "bearer", "name": "{{ payload.name }}",
        "parameters": { "note": "{{ payload.note | default('none') }}" },
    });
    let made = house.portal.create_hook(owner, "alpha", key("hook"), body.to_string().into()).await.unwrap();
    serde_json::from_slice(&made.answer.body).unwrap()
}

async fn deliver(house: &House, hook: &HookView, event: &str, payload: &Value) -> Result<Answered, Error> {
    let secret = hook.secret.as_deref().unwrap();
    let headers = vec![
        ("authorization".to_owned(), format!("Bearer {secret}").into_bytes()),
        ("idempotency-key".to_owned(), event.as_bytes().to_vec()),
    ];
    let event = Event { headers, body: payload.to_string().into(), address: None };
    house.portal.deliver(&hook.id.to_string(), event).await
}

fn shown(answered: &Answered) -> RequestView {
    serde_json::from_slice(&answered.answer.body).unwrap()
}

#[tokio::test]
async fn an_event_that_looks_like_another_goes_through_and_is_marked() {
    let plan = Plan { clock: standing(), ..Plan::of(Fake::default()) };
    let house = House::build(plan.offering(|vm| vm.duplicate_window = Some(Duration::from_hours(1)))).await;
    let hook = hook(&house, &owner(&house).await).await;
    let first = deliver(&house, &hook, "1", &json!({ "name": "one" })).await.unwrap();
    let second = deliver(&house, &hook, "2", &json!({ "name": "two" })).await.unwrap();
    assert!(!second.replayed && !second.existing);
    let marked = house.view(second.request_id.unwrap()).await.duplicate.unwrap();
    assert_eq!((Some(marked.of.id), marked.reason), (first.request_id, None));
    assert_eq!(shown(&first).requested_by, "hook events");
}

#[tokio::test]
async fn a_repeat_is_one_whatever_the_hook_and_the_catalog_have_become() {
    let house = House::build(Plan::of(Fake::default())).await;
    let owner = owner(&house).await;
    let hook = hook(&house, &owner).await;
    let event = json!({ "name": "one" });
    let first = deliver(&house, &hook, "1", &event).await.unwrap();
    let patch = json!({ "name": "other-{{ payload.other }}", "when": "payload.other == 1" }).to_string();
    let id = hook.id.to_string();
    house.portal.change_hook(&owner, "alpha", &id, key("change"), patch.into()).await.unwrap();
    let again = deliver(&house, &hook, "1", &event).await.unwrap();
    assert!(again.replayed && again.answer == first.answer);
    // Also where the offering is gone.
    let changed = house.beside(|plan| plan.offerings.clear()).await;
    assert_eq!(deliver(&changed, &hook, "1", &event).await.unwrap().answer, first.answer);
    assert_eq!(
        deliver(&changed, &hook, "2", &json!({ "name": "x", "other": 1 })).await.unwrap_err().kind,
        UnknownOffering
    );
    // Another payload is another, though the mapping does not read what differs.
    let other = json!({ "name": "one", "unread": 1 });
    let refused = deliver(&house, &hook, "1", &other).await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (KeyReused, first.request_id));
}

#[tokio::test]
async fn a_fixed_value_that_no_event_can_mend_is_told_when_the_hook_is_made() {
    let house = House::build(Plan::of(Fake::default())).await;
    let owner = owner(&house).await;
    let made = async |note: Value| {
        let body = json!({
            "title": "events", "offering": "vm", "signature": "bearer", "name": "{{ payload.name }}",
            "parameters": { "note": note },
        });
        let made = house.portal.create_hook(&owner, "alpha", key("hook"), body.to_string().into()).await;
        made.map_err(|error| error.fields.into_iter().map(|fault| fault.pointer).collect::<Vec<_>>())
    };
    assert_eq!(made(json!(3)).await.unwrap_err(), ["/parameters/note"]);
    made(json!("{{ payload.note }}")).await.unwrap();
}

#[tokio::test]
async fn an_events_identity_is_kept_as_long_as_a_key() {
    let clock = standing();
    let mut house = House::build(Plan { clock: clock.clone(), ..Plan::of(Fake::default()) }).await;
    house.work();
    let hook = hook(&house, &owner(&house).await).await;
    let event = json!({ "name": "one" });
    let first = deliver(&house, &hook, "1", &event).await.unwrap();
    house.reaches(first.request_id.unwrap(), Succeeded).await;
    let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
    clock.advance(retention.saturating_sub(Duration::from_millis(1)));
    assert!(deliver(&house, &hook, "1", &event).await.unwrap().replayed);
    clock.advance(Duration::from_secs(1));
    assert_eq!(deliver(&house, &hook, "1", &event).await.unwrap_err().kind, KeyExpired);
}

#[tokio::test]
async fn what_is_kept_of_hooks_opens_after_the_portals_key_was_renewed_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Keys::read_or_make(&folder.path().join("secret.key"), &SystemIds).unwrap();
    let clock = standing();
    let mut house =
        House::build(Plan { keys: read(), clock: clock.clone(), ..Plan::of(Fake::default()) }).await;
    house.work();
    let owner = owner(&house).await;
    let hook = hook(&house, &owner).await;
    let ignored = json!({ "name": "No Name" });
    deliver(&house, &hook, "1", &ignored).await.unwrap_err();
    let id = hook.id.to_string();
    let listed =
        async |house: &House| house.portal.deliveries(&owner, "alpha", &id, 10, None).await.unwrap().results;
    let delivery = eventually(async || listed(&house).await.pop()).await.id.to_string();
    house.shut_down().await;
    house.portal.rotate_key().await.unwrap();
    let rotated = house.beside(|plan| plan.keys = read()).await;
    let needed = async || rotated.portal.key_versions().await.unwrap()[0].1.secrets;
    assert_eq!(needed().await, 2);
    rotated.portal.prune_keys().await.unwrap();
    assert_eq!(needed().await, 0);
    let one = rotated.portal.delivery(&owner, "alpha", &id, &delivery).await.unwrap();
    assert_eq!(one.payload, Some(ignored.to_string()));
    deliver(&rotated, &hook, "2", &json!({ "name": "two" })).await.unwrap();
}
