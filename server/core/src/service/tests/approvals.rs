//! A second person: who may decide about what somebody asked for, how it is told, and that nobody waits for ever.

use crate::{
    Answered, Caller, Error,
    catalog::ApprovalPolicy,
    provisioner::fake::Fake,
    testing::{Ground, House, Plan, composite::pairs, eventually, key, send, standing, target, vm},
};
use bytes::Bytes;
use domain::{
    approval::{ApprovalNeeded, Decider, LONGEST_REASON, Standing, Verdict},
    id::RequestId,
    problem::ProblemKind::{
        AlreadyDecided, Forbidden, InvalidJson, InvalidParameters, KeyMissing, KeyReused, NotFound,
        OwnRequest, QuotaExceeded,
    },
    role::{PortalRole, TeamRole},
    state::RequestState::{Canceled, Failed, PendingApproval, Queued, Rejected, Running, Succeeded},
};
use serde_json::{Value, json};
use std::time::Duration;

const WEEK: Duration = Duration::from_hours(7 * 24);

fn policy(by: Decider, actions: &[&str]) -> ApprovalPolicy {
    ApprovalPolicy {
        needed: ApprovalNeeded { by, timeout_seconds: WEEK.as_secs() },
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
    }
}

fn guarded(by: Decider, actions: &[&str]) -> Plan {
    Plan::of(Fake::default()).offering(|offering| offering.approval = Some(policy(by, actions)))
}

async fn admin(house: &House, name: &str) -> Caller {
    Caller { role: PortalRole::Admin, ..house.person(name, "beta", TeamRole::Member).await }
}

async fn approve(house: &House, by: &Caller, with: &str, id: RequestId) -> Result<Answered, Error> {
    house.portal.approve(by, &id.to_string(), key(with), Bytes::new()).await
}

async fn reject(
    house: &House,
    by: &Caller,
    with: &str,
    id: RequestId,
    body: &Value,
) -> Result<Answered, Error> {
    house.portal.reject(by, &id.to_string(), key(with), body.to_string().into()).await
}

/// What `by` asks for in team alpha.
async fn asked(house: &House, by: &Caller, name: &str) -> RequestId {
    let asked = send(&house.portal, by, "alpha", name, &vm(name).to_string()).await.unwrap();
    asked.request_id.unwrap()
}

#[tokio::test]
async fn an_owner_or_an_administrator_decides_and_never_who_asked() {
    let mut house = House::build(guarded(Decider::Owner, &["create"])).await;
    house.work();
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let (vic, ben) = (
        house.person("vic", "alpha", TeamRole::Viewer).await,
        house.person("ben", "beta", TeamRole::Owner).await,
    );
    let ada = admin(&house, "ada").await;
    let id = house.create("one").await;
    assert_eq!(house.view(id).await.state, PendingApproval);
    for (who, kind) in [(&house.ann, Forbidden), (&vic, Forbidden), (&ben, NotFound)] {
        assert_eq!(approve(&house, who, "k", id).await.unwrap_err().kind, kind, "{}", who.name);
        let told = reject(&house, who, "k", id, &json!({ "reason": "no" })).await.unwrap_err();
        assert_eq!(told.kind, kind, "{}", who.name);
    }
    assert!(!approve(&house, &olga, "k", id).await.unwrap().existing);
    assert_eq!(house.reaches(id, Succeeded).await.approval.unwrap().decided_by.as_deref(), Some("olga"));
    // Two people: whoever asked needs another, whatever they are.
    let (of_olga, of_ada) = (asked(&house, &olga, "two").await, asked(&house, &ada, "three").await);
    for (who, id) in [(&olga, of_olga), (&ada, of_ada)] {
        assert_eq!(approve(&house, who, "own", id).await.unwrap_err().kind, OwnRequest);
        assert_eq!(
            reject(&house, who, "own", id, &json!({ "reason": "no" })).await.unwrap_err().kind,
            OwnRequest
        );
        let stands = house.portal.standing_towards(who, &id.to_string()).await.unwrap();
        assert_eq!(stands, Some(Standing::Asked));
        assert_eq!(house.view(id).await.state, PendingApproval);
    }
    let waits = |who: &Caller| {
        let (portal, who) = (house.portal.clone(), who.clone());
        async move {
            let found = portal.waiting_for(&who).await.unwrap();
            found.iter().map(|request| request.id).collect::<Vec<_>>()
        }
    };
    assert_eq!((waits(&olga).await, waits(&ada).await), (vec![of_ada], vec![of_olga]));
    assert_eq!((waits(&house.ann).await, waits(&ben).await), (vec![], vec![]));
    approve(&house, &ada, "k-2", of_olga).await.unwrap();
    approve(&house, &olga, "k-3", of_ada).await.unwrap();
    house.reaches(of_olga, Succeeded).await;
    house.reaches(of_ada, Succeeded).await;
}

#[tokio::test]
async fn where_administrators_decide_owners_do_not() {
    let house = House::build(guarded(Decider::Administrator, &["create"])).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let ada = admin(&house, "ada").await;
    let id = house.create("one").await;
    assert_eq!(approve(&house, &olga, "k", id).await.unwrap_err().kind, Forbidden);
    assert_eq!(house.portal.waiting_for(&olga).await.unwrap(), []);
    assert_eq!(approve(&house, &ada, "k", id).await.unwrap().request_id, Some(id));
    assert_eq!(house.view(id).await.state, Queued);
}

#[tokio::test]
async fn a_decision_is_kept_under_its_key_and_taken_once() {
    let house = House::build(guarded(Decider::Owner, &["create"])).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let otto = house.person("otto", "alpha", TeamRole::Owner).await;
    let id = house.create("one").await;
    let no_key = crate::service::Arrival::default();
    let refused = house.portal.approve(&olga, &id.to_string(), no_key, Bytes::new()).await.unwrap_err();
    assert_eq!(refused.kind, KeyMissing);
    let long = "x".repeat(LONGEST_REASON + 1);
    for (body, kind) in [
        (json!({}), InvalidParameters),
        (json!({ "reason": "  " }), InvalidParameters),
        (json!({ "reason": 7 }), InvalidParameters),
        (json!({ "reason": "nul\0" }), InvalidParameters),
        (json!({ "reason": long }), InvalidParameters),
        (json!({ "why": "x" }), InvalidJson),
        (json!([]), InvalidJson),
    ] {
        let told = reject(&house, &olga, "k", id, &body).await.unwrap_err();
        assert_eq!(told.kind, kind, "{body}");
        assert!(kind != InvalidParameters || told.fields[0].pointer == "/reason");
    }
    // None of those used the key up.
    let first = reject(&house, &olga, "k", id, &json!({ "reason": "too big" })).await.unwrap();
    let repeat = reject(&house, &olga, "k", id, &json!({ "reason": "too big" })).await.unwrap();
    assert!(repeat.replayed && repeat.answer == first.answer);
    let other = reject(&house, &olga, "k", id, &json!({ "reason": "another" })).await.unwrap_err();
    assert_eq!(other.kind, KeyReused);
    assert_eq!(approve(&house, &olga, "k", id).await.unwrap_err().kind, KeyReused);
    for by in [&olga, &otto] {
        let again = reject(&house, by, "k-2", id, &json!({ "reason": "me too" })).await.unwrap();
        assert!(again.existing && again.request_id == Some(id));
        assert_eq!(approve(&house, by, "k-3", id).await.unwrap_err().kind, AlreadyDecided);
    }
    let view = house.view(id).await;
    assert_eq!((view.state, view.reason.as_deref()), (Rejected, Some("olga rejected it: too big")));
    let kept = view.approval.unwrap();
    assert_eq!((kept.verdict, kept.reason.as_deref()), (Some(Verdict::Rejected), Some("too big")));
    assert!(house.is_free("one").await);
    let audited = house.ground.number(
        "SELECT count(*) FROM audit WHERE act = 'request_reject' AND actor = 'olga' AND detail = 'too big'",
    );
    assert_eq!(audited.await, Some(1));
    // Its first submission still gets its first answer.
    assert!(house.send("create-one", &vm("one")).await.unwrap().replayed);
}

#[tokio::test]
async fn who_asked_may_cancel_what_waits() {
    let house = House::build(guarded(Decider::Owner, &["create"])).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let id = house.create("one").await;
    house.cancel(id).await.unwrap();
    assert_eq!(house.view(id).await.state, Canceled);
    assert!(house.is_free("one").await);
    assert_eq!(approve(&house, &olga, "k", id).await.unwrap_err().kind, AlreadyDecided);
    assert_eq!(
        reject(&house, &olga, "k", id, &json!({ "reason": "no" })).await.unwrap_err().kind,
        AlreadyDecided
    );
}

#[tokio::test]
async fn nobody_waits_for_ever_and_a_late_decision_comes_too_late() {
    let clock = standing();
    let plan = Plan { clock: clock.clone(), ..guarded(Decider::Owner, &["create"]) };
    let mut house = House::build(plan).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let id = house.create("one").await;
    assert_eq!(house.view(id).await.approval.unwrap().expires_at, clock_now(&house).plus(WEEK));
    clock.advance(WEEK);
    assert_eq!(approve(&house, &olga, "k", id).await.unwrap_err().kind, AlreadyDecided);
    house.work();
    let view = house.reaches(id, Rejected).await;
    assert_eq!(view.approval.unwrap().verdict, Some(Verdict::TimedOut));
    assert_eq!(house.steps(id, "approval").await, 1);
    assert!(house.is_free("one").await);
    house.send("again", &vm("one")).await.unwrap();
}

fn clock_now(house: &House) -> domain::time::Moment {
    house.portal.now()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_the_time_to_decide_is_the_databases() {
    // A server whose clock stands far in the past takes it in, and one far ahead looks for what is over.
    let clock = standing();
    let house =
        House::build_on(Ground::postgres(), Plan { clock, ..guarded(Decider::Owner, &["create"]) }).await;
    let id = house.create("one").await;
    let expires = house.view(id).await.approval.unwrap().expires_at;
    assert!(expires.since(house.portal.now()) > WEEK, "by the database's time: {expires}");
    let ahead = expires.plus(WEEK * 10);
    assert_eq!(house.store.undecided(ahead, 10).await.unwrap(), []);
    assert!(!house.store.time_out(id, ahead).await.unwrap());
}

#[tokio::test]
async fn changes_deletes_and_actions_wait_where_the_offering_says_so() {
    let mut house = House::build(guarded(Decider::Owner, &["update", "delete", "grow"])).await;
    house.work();
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    house.standing("one").await;
    let update = house.updated("one", &json!({ "size": "large" })).await;
    let grow = house.act("grow", "one", "grow", &json!({ "by": 2 })).await.unwrap().request_id.unwrap();
    let restart = house.act("restart", "one", "restart", &json!({})).await.unwrap().request_id.unwrap();
    for (id, state) in [(update, PendingApproval), (grow, PendingApproval), (restart, Queued)] {
        assert_eq!(house.view(id).await.state, state);
    }
    // The later first: it still waits for its turn.
    approve(&house, &olga, "k-1", grow).await.unwrap();
    approve(&house, &olga, "k-2", update).await.unwrap();
    for id in [update, grow, restart] {
        house.reaches(id, Succeeded).await;
    }
    assert_eq!(house.parameter("one", "count").await, json!(3));
    let delete = house.deleted("one").await;
    assert_eq!(house.view(delete).await.state, PendingApproval);
    assert_eq!(house.resource_state("one").await, "active");
    approve(&house, &olga, "k-3", delete).await.unwrap();
    house.reaches(delete, Succeeded).await;
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn a_dry_run_tells_whose_approval_it_would_take() {
    let mut plan = guarded(Decider::Owner, &["create", "delete"]);
    plan.offerings.extend(pairs(&Fake::default()).offerings.into_iter().skip(1));
    plan.offerings[1].approval = Some(policy(Decider::Administrator, &["create"]));
    let house = House::build(plan).await;
    let tried = async |body: Value| {
        house
            .portal
            .plan_request(&house.ann, "alpha", body.to_string().as_bytes(), Vec::new())
            .await
            .unwrap()
            .plan
    };
    let alone = tried(vm("one")).await;
    let needed = ApprovalNeeded { by: Decider::Owner, timeout_seconds: WEEK.as_secs() };
    assert_eq!(alone.approval, Some(needed));
    assert!(alone.summary.ends_with("once an owner of the team or an administrator has approved it"));
    let whole = tried(json!({ "offering": "pair", "name": "two", "parameters": {} })).await;
    assert_eq!(whole.approval, None);
    let by = |step: &str| {
        whole.steps.iter().find(|one| one.step == step).unwrap().approval.map(|needed| needed.by)
    };
    assert_eq!((by("disk"), by("machine")), (Some(Decider::Administrator), Some(Decider::Owner)));
    // Nothing of it was kept, so it is asked for as if nobody had tried.
    let id = house.create("one").await;
    assert_eq!(house.view(id).await.state, PendingApproval);
    let existing = tried(vm("one")).await;
    assert_eq!(existing.approval, None);
    let delete =
        house.portal.plan_delete(&house.ann, &target("one"), &key("k"), b"", Vec::new()).await.unwrap();
    assert_eq!(delete.plan.approval, Some(needed));
}

#[tokio::test]
async fn a_whole_waits_for_the_approval_of_its_steps() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.offerings[1].approval = Some(policy(Decider::Owner, &["create", "delete"]));
    let house = House::at_work(plan).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let id = house.pair("one").await;
    let disk = house.step_reaches(id, "disk", PendingApproval).await;
    let log = house.step_reaches(id, "log", PendingApproval).await;
    house.reaches(id, Running).await;
    assert!(fake.ledger().is_empty());
    approve(&house, &olga, "k-1", disk).await.unwrap();
    approve(&house, &olga, "k-2", log).await.unwrap();
    house.reaches(id, Succeeded).await;
    // To take the whole away is one decision: its parts need none of their own.
    let target = crate::service::Target { kind: "pair".into(), ..target("one") };
    let delete =
        house.portal.delete(&house.ann, target, key("delete"), Bytes::new(), Vec::new()).await.unwrap();
    house.reaches(delete.request_id.unwrap(), Succeeded).await;
    assert!(house.at("disk", "one-disk").await.is_none());
}

#[tokio::test]
async fn a_whole_fails_where_a_step_is_rejected_and_tried_again_asks_again() {
    let mut plan = pairs(&Fake::default());
    plan.offerings[1].approval = Some(policy(Decider::Owner, &["create"]));
    let house = House::at_work(plan).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    let otto = house.person("otto", "alpha", TeamRole::Owner).await;
    let body = crate::testing::composite::pair("one").to_string();
    let id = send(&house.portal, &olga, "alpha", "k", &body).await.unwrap().request_id.unwrap();
    let disk = house.step_reaches(id, "disk", PendingApproval).await;
    let log = house.step_reaches(id, "log", PendingApproval).await;
    // Whoever asked for the whole asked for its parts.
    assert_eq!(approve(&house, &olga, "own", disk).await.unwrap_err().kind, OwnRequest);
    reject(&house, &otto, "k-1", disk, &json!({ "reason": "too big" })).await.unwrap();
    let view = house.reaches(id, Failed).await;
    assert!(view.reason.as_deref().unwrap().contains("otto rejected it: too big"), "{:?}", view.reason);
    assert_eq!(house.view(log).await.state, Canceled, "nobody has to decide about it any more");
    for (kind, name) in [("disk", "one-disk"), ("disk", "one-log"), ("pair", "one")] {
        assert!(house.at(kind, name).await.is_none(), "{name}");
    }
    house.portal.retry(&olga, &id.to_string(), key("again"), Bytes::new()).await.unwrap();
    for (step, with) in [("disk", "k-2"), ("log", "k-3")] {
        let waits = eventually(async || {
            let steps = house.store.steps_of(id).await.unwrap();
            let mut waiting = steps.iter().filter(|one| one.request.view.state == PendingApproval);
            waiting.find(|one| one.step == step).map(|one| one.request.view.id)
        });
        approve(&house, &otto, with, waits.await).await.unwrap();
    }
    house.reaches(id, Succeeded).await;
}

#[tokio::test]
async fn what_waits_holds_its_share_of_the_quota_until_it_is_rejected() {
    let house = House::build(guarded(Decider::Owner, &["create"])).await;
    let olga = house.person("olga", "alpha", TeamRole::Owner).await;
    house.portal.set_team_quota("alpha", Some(1)).await.unwrap();
    let id = house.create("one").await;
    assert_eq!(house.send("k", &vm("two")).await.unwrap_err().kind, QuotaExceeded);
    reject(&house, &olga, "k", id, &json!({ "reason": "no" })).await.unwrap();
    assert!(!house.send("k", &vm("two")).await.unwrap().replayed);
}
