//! A dry run tells what a submission would do, and leaves nothing behind.

use crate::{
    Error,
    provisioner::fake::Fake,
    service::Arrival,
    testing::{
        House, Plan,
        composite::{made_of, pair, pairs},
        key, send, target, vm, with_fake,
    },
};
use domain::{
    plan::{PlanView, PlannedOutcome, PlannedStep},
    problem::ProblemKind::{
        self, DeletionInProgress, Forbidden, InvalidJson, InvalidParameters, NameTaken, NotFound, NotOffered,
        PreconditionFailed, PreconditionRequired, UnknownOffering,
    },
    role::TeamRole,
    state::RequestState::Succeeded,
};
use serde_json::{Value, json};

/// How many rows each table has.
async fn rows(house: &House) -> Vec<(String, i64)> {
    let mut database = house.database().await;
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            .fetch_all(&mut database)
            .await
            .unwrap();
    let mut rows = Vec::new();
    for table in tables {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let count = sqlx::query_scalar(count).fetch_one(&mut database).await.unwrap();
        rows.push((table, count));
    }
    rows
}

async fn plan(house: &House, body: &Value) -> Result<PlanView, Error> {
    house.portal.plan_request(&house.ann, "alpha", body.to_string().as_bytes(), vec!["env:test".into()]).await
}

#[tokio::test]
async fn a_plan_shows_the_command_as_it_would_be_understood_and_stores_nothing() {
    let (house, fake) = with_fake().await;
    let before = rows(&house).await;
    let mut body = vm("one");
    body["correlation_id"] = "order-1".into();
    body["parameters"]["count"] = json!(2.0);
    let planned = plan(&house, &body).await.unwrap();
    assert_eq!((planned.dry_run, planned.plan.outcome), (true, PlannedOutcome::Create));
    assert_eq!(planned.plan.summary, "would create vm one in team alpha");
    assert_eq!(
        serde_json::to_value(&planned.command).unwrap(),
        json!({ "operation": "create", "offering": "vm", "name": "one", "parameters": { "size": "small", "count": 2 },
            "labels": { "env": "test" }, "correlation_id": "order-1" })
    );
    assert_eq!((planned.quota.cost, planned.quota.limit), (1, None));
    assert!(planned.likely_duplicates.is_empty());
    assert_eq!(rows(&house).await, before);
    assert!(fake.ledger().is_empty());
    // What it would have claimed is free.
    assert!(!house.send("k", &body).await.unwrap().existing);
}

#[tokio::test]
async fn a_plan_meets_the_problem_that_the_submission_would_meet() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    house.shut_down().await;
    let before = rows(&house).await;
    let there = plan(&house, &vm("one")).await.unwrap().plan;
    assert_eq!((there.outcome, there.request.map(|link| link.id)), (PlannedOutcome::Existing, Some(id)));
    let with = |member: &str, value: Value| {
        let mut body = vm("one");
        body[member] = value;
        body
    };
    let cases: [(Value, ProblemKind); 6] = [
        (with("parameters", json!({ "size": "large" })), NameTaken),
        (with("parameters", json!({ "size": "huge" })), InvalidParameters),
        (with("name", json!("NO")), InvalidParameters),
        (with("parent_id", json!(uuid::Uuid::from_u128(1))), InvalidParameters),
        (with("offering", json!("nothing")), UnknownOffering),
        (with("more", json!(1)), InvalidJson),
    ];
    for (body, kind) in cases {
        let text = body.to_string();
        let planned =
            house.portal.plan_request(&house.ann, "alpha", text.as_bytes(), Vec::new()).await.unwrap_err();
        let sent = send(&house.portal, &house.ann, "alpha", "k", &text).await.unwrap_err();
        assert_eq!(planned.kind, kind, "{planned}");
        assert_eq!(
            (planned.kind, planned.detail, planned.differs, planned.request),
            (sent.kind, sent.detail, sent.differs, sent.request)
        );
    }
    let mut vic = house.ann.clone();
    vic.teams[0].1 = TeamRole::Viewer;
    let text = vm("two").to_string();
    for (caller, team, kind) in [(&vic, "alpha", Forbidden), (&house.ann, "beta", NotFound)] {
        let refused = house.portal.plan_request(caller, team, text.as_bytes(), Vec::new()).await.unwrap_err();
        assert_eq!(refused.kind, kind);
    }
    // The refused submissions are history in time; the dry runs are nothing at all.
    assert_eq!(rows(&house).await, before);
}

/// Without a key, and with these values of If-Match.
fn looking_at(tags: &[&str]) -> Arrival {
    Arrival { keys: Vec::new(), if_match: tags.iter().map(|tag| tag.as_bytes().to_vec()).collect() }
}

async fn plan_patch(house: &House, name: &str, patch: &Value, tags: &[&str]) -> Result<PlanView, Error> {
    let (body, labels) = (patch.to_string(), vec!["env:test".into()]);
    house.portal.plan_update(&house.ann, &target(name), &looking_at(tags), body.as_bytes(), labels).await
}

async fn plan_act(house: &House, name: &str, action: &str, input: &Value) -> Result<PlanView, Error> {
    let (body, arrival) = (input.to_string(), looking_at(&[]));
    let on = target(name);
    house.portal.plan_action(&house.ann, &on, action, &arrival, body.as_bytes(), Vec::new()).await
}

async fn plan_delete(house: &House, name: &str, tags: &[&str]) -> Result<PlanView, Error> {
    house.portal.plan_delete(&house.ann, &target(name), &looking_at(tags), b"", Vec::new()).await
}

fn json_of(told: &impl serde::Serialize) -> Value {
    serde_json::to_value(told).unwrap()
}

#[tokio::test]
async fn the_plan_of_a_change_names_what_changes_and_stores_nothing() {
    let (mut house, fake) = with_fake().await;
    house.work();
    let made = house.standing("one").await;
    house.shut_down().await;
    let (etag, before, effects) = (house.etag("one").await, rows(&house).await, fake.ledger());

    let planned =
        plan_patch(&house, "one", &json!({ "size": "large", "note": null }), &[&etag]).await.unwrap();
    assert_eq!((planned.dry_run, planned.plan.outcome), (true, PlannedOutcome::Update));
    assert_eq!(planned.plan.summary, "would change vm one in team alpha");
    assert_eq!(
        json_of(&planned.command),
        json!({ "operation": "update", "target": "alpha/vm/one", "parameters": { "size": "large", "note": null },
            "labels": { "env": "test" } })
    );
    assert_eq!(
        json_of(&planned.plan.changes),
        json!([{ "name": "size", "before": "small", "after": "large" }])
    );
    assert_eq!(
        json_of(&planned.plan.steps),
        json!([{ "step": "update", "action": "update", "offering": "vm", "type": "vm", "name": "one",
            "parameters": { "size": "large", "count": 1 } }])
    );
    assert_eq!((planned.quota.cost, planned.likely_duplicates.len()), (0, 0));
    let nothing = plan_patch(&house, "one", &json!({ "size": "small" }), &[&etag]).await.unwrap().plan;
    assert_eq!(
        (nothing.summary.as_str(), nothing.changes),
        ("would change nothing of vm one in team alpha", vec![])
    );

    let planned = plan_act(&house, "one", "grow", &json!({ "by": 2 })).await.unwrap();
    assert_eq!((planned.plan.outcome, planned.quota.cost), (PlannedOutcome::Action, 0));
    assert_eq!(json_of(&planned.plan.changes), json!([{ "name": "count", "before": 1, "after": 3 }]));
    assert_eq!(planned.plan.steps[0].parameters, json!({ "by": 2 }).as_object().unwrap().clone());
    let planned = plan_act(&house, "one", "restart", &json!({})).await.unwrap();
    assert_eq!(
        (planned.plan.summary.as_str(), planned.plan.changes),
        ("would do restart with vm one in team alpha", vec![])
    );

    let planned = plan_delete(&house, "one", &[&etag]).await.unwrap();
    assert_eq!((planned.plan.outcome, planned.quota.cost), (PlannedOutcome::Delete, -1));
    assert_eq!(planned.plan.summary, "would delete vm one in team alpha");
    assert_eq!(planned.plan.steps[0].action, "delete");

    assert_eq!(rows(&house).await, before);
    assert_eq!(fake.ledger(), effects);
    assert_eq!(house.etag("one").await, etag);
    assert_eq!(house.resource("one").await.view.created_by.id, made);
}

#[tokio::test]
async fn the_plan_of_a_change_meets_the_problem_that_the_change_would_meet() {
    let (house, _) = with_fake().await;
    house.create("one").await;
    let etag = house.etag("one").await;
    let stale = etag.replace(".1\"", ".7\"");
    let before = rows(&house).await;
    let cases: [(&str, Value, Vec<&str>, ProblemKind); 7] = [
        ("one", json!({ "size": "huge" }), vec![], InvalidParameters),
        ("one", json!({ "zap": 1 }), vec![&etag], InvalidParameters),
        ("one", json!({ "size": "large" }), vec![], PreconditionRequired),
        ("one", json!({ "size": "large" }), vec!["*"], PreconditionRequired),
        ("one", json!({ "size": "large" }), vec![&stale], PreconditionFailed),
        ("two", json!({ "size": "large" }), vec![&etag], NotFound),
        ("one", json!([]), vec![&etag], InvalidJson),
    ];
    for (name, patch, tags, kind) in cases {
        let planned = plan_patch(&house, name, &patch, &tags).await.unwrap_err();
        assert_eq!(planned.kind, kind, "{patch} {planned}");
        let sent = house.patch(&house.ann, "k", name, &patch, &tags).await.unwrap_err();
        assert_eq!(
            (planned.kind, planned.detail, planned.fields, planned.versions),
            (sent.kind, sent.detail, sent.fields, sent.versions)
        );
    }
    for (name, action, input, kind) in [
        ("one", "grow", json!({ "by": 1000 }), InvalidParameters),
        ("one", "grow", json!({ "by": "x" }), InvalidParameters),
        ("one", "fly", json!({}), NotFound),
        ("two", "grow", json!({}), NotFound),
    ] {
        let planned = plan_act(&house, name, action, &input).await.unwrap_err();
        assert_eq!(planned.kind, kind, "{action} {input} {planned}");
        let sent = house.act("k", name, action, &input).await.unwrap_err();
        assert_eq!((planned.kind, planned.detail, planned.fields), (sent.kind, sent.detail, sent.fields));
    }
    assert_eq!(plan_delete(&house, "one", &[&stale]).await.unwrap_err().kind, PreconditionFailed);
    assert_eq!(plan_delete(&house, "two", &[]).await.unwrap_err().kind, NotFound);
    let mut vic = house.ann.clone();
    vic.teams[0].1 = TeamRole::Viewer;
    let patch = json!({ "size": "huge" }).to_string();
    let (one, unseen) = (target("one"), looking_at(&[]));
    let refused = house.portal.plan_update(&vic, &one, &unseen, patch.as_bytes(), Vec::new());
    assert_eq!(refused.await.unwrap_err().kind, Forbidden);
    let mut away = target("one");
    away.team = "beta".into();
    let refused = house.portal.plan_delete(&house.ann, &away, &unseen, b"", Vec::new());
    assert_eq!(refused.await.unwrap_err().kind, NotFound);
    assert_eq!(rows(&house).await, before);
}

#[tokio::test]
async fn of_what_is_deleted_the_plan_of_another_delete_is_to_do_nothing() {
    let (mut house, _) = with_fake().await;
    house.create("one").await;
    let waiting = house.updated("one", &json!({ "note": "x" })).await;
    let open = plan_delete(&house, "one", &[]).await.unwrap().plan.open_requests;
    assert_eq!(open.last().map(|link| link.id), Some(waiting), "which it would stop");
    let delete = house.deleted("one").await;
    let being = plan_delete(&house, "one", &[]).await.unwrap();
    assert_eq!((being.plan.outcome, being.quota.cost), (PlannedOutcome::Existing, 0));
    assert_eq!(being.plan.request.map(|link| link.id), Some(delete));
    let refused = plan_patch(&house, "one", &json!({ "note": "y" }), &[&house.etag("one").await]).await;
    assert_eq!(refused.unwrap_err().kind, DeletionInProgress);
    house.work();
    house.ended_as(delete, Succeeded).await;
    house.shut_down().await;
    let gone = plan_delete(&house, "one", &[]).await.unwrap().plan;
    assert_eq!((gone.outcome, gone.request.map(|link| link.id)), (PlannedOutcome::Existing, Some(delete)));
    assert_eq!(plan_act(&house, "one", "restart", &json!({})).await.unwrap_err().kind, NotFound);
}

#[tokio::test]
async fn a_key_that_comes_with_a_dry_run_of_a_change_is_not_claimed() {
    let (house, _) = with_fake().await;
    house.create("one").await;
    let before = rows(&house).await;
    for _ in 0..2 {
        let planned = house.portal.plan_delete(&house.ann, &target("one"), &key("k"), b"", Vec::new()).await;
        assert_eq!(planned.unwrap().plan.outcome, PlannedOutcome::Delete);
    }
    assert_eq!(rows(&house).await, before);
    assert!(!house.delete("k", "one").await.unwrap().replayed);
}

/// Step, action, offering and name.
fn told(steps: &[PlannedStep]) -> Vec<String> {
    let told = |step: &PlannedStep| {
        let name = step.name.as_ref().map_or("?", |name| name.as_str());
        format!("{} {} {} {name}", step.step, step.action, step.offering)
    };
    steps.iter().map(told).collect()
}

async fn plan_of(house: &House, body: &Value) -> PlanView {
    house.portal.plan_request(&house.ann, "alpha", body.to_string().as_bytes(), Vec::new()).await.unwrap()
}

#[tokio::test]
async fn the_plan_of_what_is_made_of_steps_lists_them_and_counts_what_all_cost() {
    let fake = Fake::default();
    let mut plan = pairs(&fake);
    plan.offerings[1].quota_cost = 5;
    plan.offerings.push(made_of(
        "nest",
        r#"
steps:
  - id: both
    offering: pair
    name: "{{ name }}-in"
    parameters: { size: "{{ parameters.size }}", note: "{{ request_id }}" }
  - id: own
    offering: disk
    needs: [both]
    parameters: { note: "{{ correlation_id }}", count: "{{ parameters.quota }}" }
"#,
    ));
    let mut house = House::build(plan).await;
    let before = rows(&house).await;
    let planned = plan_of(&house, &pair("one")).await;
    assert_eq!(
        told(&planned.plan.steps),
        ["disk create disk one-disk", "machine create vm one", "log create disk one-log"]
    );
    let [disk, machine, log] = &planned.plan.steps[..] else { panic!() };
    assert_eq!(json_of(&disk.parameters), json!({ "size": "large", "count": 3 }));
    assert_eq!(json_of(&machine.parameters), json!({ "tags": ["one", "plain"] }));
    assert_eq!(
        (machine.unknown.clone(), machine.needs.clone()),
        (vec!["note".to_owned()], vec!["disk".to_owned()])
    );
    assert_eq!(json_of(&log.parameters), json!({ "size": "small", "count": 1 }));
    assert_eq!(planned.quota.cost, 1 + 5 + 1 + 5);

    let nest =
        json!({ "offering": "nest", "name": "two", "parameters": { "size": "large", "quota": "many" } });
    let planned = plan_of(&house, &nest).await;
    let [both, own] = &planned.plan.steps[..] else { panic!() };
    assert_eq!(
        (told(&planned.plan.steps)[0].as_str(), both.unknown.clone()),
        ("both create pair two-in", vec!["note".to_owned()])
    );
    assert_eq!(
        told(&both.steps),
        ["disk create disk two-in-disk", "machine create vm two-in", "log create disk two-in-log"]
    );
    assert_eq!(both.steps[0].unknown, ["count"], "which may have a default, or depend on what is not known");
    assert_eq!(own.unknown, ["note"], "the correlation ID would be the request's own ID");
    assert_eq!(planned.quota.cost, 1 + (1 + 5 + 1 + 5) + 5);
    let mut known = nest.clone();
    known["correlation_id"] = "ORD-1".into();
    let own = plan_of(&house, &known).await.plan.steps.remove(1);
    assert!(own.problem.as_ref().is_some_and(|why| why.starts_with("/parameters/count ")), "{own:?}");
    assert_eq!(rows(&house).await, before);

    // What is there already is not made again, and what is taken is told.
    let disk = |size: &str| json!({ "offering": "disk", "name": "one-disk", "parameters": { "size": size, "count": 3 } });
    house.send("there", &disk("large")).await.unwrap();
    let planned = plan_of(&house, &pair("one")).await;
    assert_eq!((planned.plan.steps[0].action.as_str(), planned.quota.cost), ("existing", 1 + 1 + 5));
    let mut small = pair("one");
    small["parameters"]["size"] = "small".into();
    let taken = plan_of(&house, &small).await.plan.steps.remove(0);
    assert!(taken.problem.as_ref().is_some_and(|why| why.contains("parameters.size")), "{taken:?}");

    // And its delete takes away what its steps made, the last first.
    house.work();
    let id = house.pair("three").await;
    house.reaches(id, Succeeded).await;
    house.shut_down().await;
    let before = rows(&house).await;
    let mut on = target("three");
    on.kind = "pair".into();
    let planned = house.portal.plan_delete(&house.ann, &on, &looking_at(&[]), b"", Vec::new()).await.unwrap();
    assert_eq!(
        told(&planned.plan.steps),
        ["machine delete vm three", "log delete disk three-log", "disk delete disk three-disk"]
    );
    assert_eq!(planned.quota.cost, -(1 + 5 + 1 + 5));
    let etag = house.at("pair", "three").await.unwrap().view.etag().to_string();
    let refused = house.portal.plan_update(&house.ann, &on, &looking_at(&[&etag]), b"{}", Vec::new()).await;
    assert_eq!(refused.unwrap_err().kind, NotOffered);
    assert_eq!(rows(&house).await, before);
}

#[tokio::test]
async fn what_would_be_asked_about_is_told_and_what_is_there_costs_nothing() {
    let window = std::time::Duration::from_hours(1);
    let plan = Plan::of(Fake::default()).offering(|offering| offering.duplicate_window = Some(window));
    let house = House::build(plan).await;
    let id = house.create("one").await;
    let planned = plan_of(&house, &vm("two")).await;
    assert_eq!(planned.likely_duplicates.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    let there = plan_of(&house, &vm("one")).await;
    assert_eq!((there.plan.outcome, there.quota.cost), (PlannedOutcome::Existing, 0));
    assert!(there.plan.steps.is_empty());
}
