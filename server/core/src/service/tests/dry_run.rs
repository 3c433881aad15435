//! A dry run tells what a submission would do, and leaves nothing behind.

use crate::{
    Error,
    testing::{House, send, vm, with_fake},
};
use domain::{
    plan::{PlanView, PlannedOutcome},
    problem::ProblemKind::{
        self, Forbidden, InvalidJson, InvalidParameters, NameTaken, NotFound, UnknownOffering,
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
