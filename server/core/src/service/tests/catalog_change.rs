//! A change of the catalog never turns an honest retry into a refusal.

use crate::testing::{House, schema, vm, with_fake};
use domain::problem::ProblemKind;
use serde_json::{Value, json};

/// A portal on the same database whose catalog has another schema.
async fn after(house: &House, changed: Value) -> House {
    house
        .beside(|plan| {
            plan.offerings[0].version = "2".into();
            plan.offerings[0].schema = schema(&changed);
        })
        .await
}

fn first_body() -> Value {
    let mut body = vm("one");
    body["parameters"] = json!({ "size": "small", "note": "x" });
    body
}

fn narrower() -> Value {
    json!({ "type": "object", "properties": { "size": { "enum": ["huge"], "default": "huge" } } })
}

#[tokio::test]
async fn the_same_body_is_replayed_without_asking_any_schema() {
    let (house, _) = with_fake().await;
    let first = house.send("k", &first_body()).await.unwrap();
    for changed in [
        after(&house, narrower()).await,
        // Even when the offering has left the catalog.
        house.beside(|plan| plan.offerings.clear()).await,
    ] {
        let again = changed.send("k", &first_body()).await.unwrap();
        assert!(again.replayed);
        assert_eq!(again.answer, first.answer);
        let fresh = changed.send("fresh", &first_body()).await.unwrap_err();
        assert!(matches!(fresh.kind, ProblemKind::InvalidParameters | ProblemKind::UnknownOffering));
    }
}

#[tokio::test]
async fn another_spelling_is_understood_under_the_schema_of_the_first() {
    let (house, _) = with_fake().await;
    let first = house.send("k", &first_body()).await.unwrap();
    // Under the new schema the default that is left out here would be another.
    let mut changed = narrower();
    changed["properties"]["note"] = json!({ "type": "string" });
    changed["properties"]["size"] = json!({ "enum": ["small", "large"], "default": "large" });
    let changed = after(&house, changed).await;
    let mut spelled = vm("one");
    spelled["parameters"] = json!({ "note": "x" });
    let again = changed.send("k", &spelled).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.answer, first.answer);
}

#[tokio::test]
async fn what_means_something_else_under_the_schema_of_the_first_is_reused() {
    let (house, _) = with_fake().await;
    let first = house.send("k", &first_body()).await.unwrap();
    let changed = after(&house, narrower()).await;
    // Valid under the first schema with another meaning; invalid there and valid now; invalid under both.
    for (size, differs) in
        [("large", "parameters.size"), ("huge", "parameters.size"), ("tiny", "parameters.size")]
    {
        let mut other = first_body();
        other["parameters"]["size"] = size.into();
        let refused = changed.send("k", &other).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::KeyReused, "{size}: {refused}");
        assert_eq!((refused.request, &refused.differs[..]), (first.request_id, &[differs.to_owned()][..]));
    }
}
