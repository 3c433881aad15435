//! First times and repeats: equal spellings get the first answer, other meanings are refused by the names of what differs.

use crate::{
    AnswerKind, Answered, Error,
    testing::{House, Plan, key, send, vm, with_fake},
};
use bytes::Bytes;
use domain::{
    problem::ProblemKind,
    role::TeamRole,
    state::RequestState::{Queued, Succeeded},
    view::RequestView,
};
use serde_json::{Value, json};

/// What a repeat must have in common with its first.
#[track_caller]
fn repeats(again: &Answered, first: &Answered) {
    assert!(again.replayed && !first.replayed);
    assert_eq!(again.answer, first.answer);
    assert_eq!(again.request_id, first.request_id);
    assert!(again.state.is_some());
}

#[track_caller]
fn reused(result: Result<Answered, Error>, first: &Answered, differs: &[&str]) {
    let refused = result.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::KeyReused, "{refused}");
    assert_eq!(refused.differs, differs);
    assert_eq!(refused.request, first.request_id);
}

async fn rows(house: &House) -> Vec<i64> {
    let mut database = house.database().await;
    let mut rows = Vec::new();
    for table in ["request", "resource", "claim", "run", "submission", "audit"] {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        rows.push(sqlx::query_scalar(count).fetch_one(&mut database).await.unwrap());
    }
    rows
}

#[tokio::test]
async fn a_first_time_makes_everything_at_once_and_answers_with_the_request() {
    let (house, _) = with_fake().await;
    let first = house.send("k", &vm("one")).await.unwrap();
    assert_eq!(first.answer.kind, AnswerKind::Accepted);
    let id = first.request_id.unwrap();
    assert_eq!(first.answer.location, Some(format!("/api/v1/requests/{id}")));
    let shown: RequestView = serde_json::from_slice(&first.answer.body).unwrap();
    assert_eq!(shown, house.view(id).await);
    assert_eq!((shown.state, shown.correlation_id), (Queued, id.to_string()));
    assert_eq!(rows(&house).await, [1, 1, 1, 1, 1, 1]);
    assert_eq!(house.resource_state("one").await, "creating");
}

#[tokio::test]
async fn equal_spellings_get_the_first_answer() {
    let base = r#"{"offering":"vm","name":"one","parameters":{"size":"small","count":1,"note":"é","nested":{"a":1,"b":2}},"labels":{"env":"test"}}"#;
    let same = [
        ("the same bytes", base),
        (
            "members in another order",
            r#"{"labels":{"env":"test"},"parameters":{"nested":{"b":2,"a":1},"note":"é","count":1,"size":"small"},"name":"one","offering":"vm"}"#,
        ),
        (
            "other white space",
            "{\r\n  \"offering\" : \"vm\",\r\n \"name\":\"one\", \"parameters\": {\"size\":\"small\",\t\"count\":1,\"note\":\"é\",\"nested\":{\"a\":1,\"b\":2}},\"labels\":{\"env\":\"test\"}}  \n",
        ),
        (
            "numbers and characters spelled otherwise",
            r#"{"offering":"vm","name":"one","parameters":{"size":"small","count":1.0,"note":"\u00e9","nested":{"a":1e0,"b":0.2e1}},"labels":{"env":"test"}}"#,
        ),
        (
            "defaults left out",
            r#"{"offering":"vm","name":"one","parameters":{"note":"é","nested":{"a":1,"b":2}},"labels":{"env":"test"}}"#,
        ),
        (
            "null in place of nothing",
            r#"{"offering":"vm","name":"one","parent_id":null,"correlation_id":null,"parameters":{"size":null,"tags":null,"note":"é","nested":{"a":1,"b":2,"c":null}},"labels":{"env":"test"}}"#,
        ),
        (
            "labels as a list",
            r#"{"offering":"vm","name":"one","parameters":{"note":"é","nested":{"a":1,"b":2}},"labels":["env:test"]}"#,
        ),
        (
            "a confirmation",
            r#"{"offering":"vm","name":"one","parameters":{"note":"é","nested":{"a":1,"b":2}},"labels":{"env":"test"},"confirm_duplicate":{"of":"x","reason":"y"}}"#,
        ),
    ];
    let (house, _) = with_fake().await;
    let first = house.send_text("k", base).await.unwrap();
    for (what, body) in same {
        let again = house.send_text("k", body).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        repeats(&again, &first);
    }
    // The same key as a structured-field string, and the label in the address.
    let body = r#"{"offering":"vm","name":"one","parameters":{"note":"é","nested":{"a":1,"b":2}}}"#;
    let labels = vec!["env:test".to_owned()];
    let again =
        house.portal.create_request(&house.ann, "alpha", key("\"k\""), body.into(), labels).await.unwrap();
    repeats(&again, &first);
    assert_eq!(rows(&house).await[..2], [1, 1]);
}

#[tokio::test]
async fn other_meanings_are_refused_by_the_names_of_what_differs() {
    let base = json!({ "offering": "vm", "name": "one", "parameters": { "count": 1, "tags": ["x", "y"], "quota": 9_007_199_254_740_991_u64,
        "nested": { "a": { "b": { "c": { "d": 1 } } } } }, "labels": { "env": "test" }, "correlation_id": "order-1" });
    let cases: [(&str, serde_json::Value, &[&str]); 11] = [
        ("/name", json!("two"), &["name"]),
        ("/parameters/size", json!("large"), &["parameters.size"]),
        ("/parameters/tags", json!(["y", "x"]), &["parameters.tags"]),
        ("/parameters/quota", json!(9_007_199_254_740_990_u64), &["parameters.quota"]),
        ("/parameters/quota", json!("9007199254740991"), &["parameters.quota"]),
        ("/parameters/nested/a/b/c/d", json!(2), &["parameters.nested"]),
        ("/parameters/note", json!(""), &["parameters.note"]),
        ("/labels/env", json!("production"), &["labels.env"]),
        ("/labels/more", json!("x"), &["labels.more"]),
        ("/correlation_id", json!("order-2"), &["correlation_id"]),
        ("/correlation_id", json!(null), &["correlation_id"]),
    ];
    let (house, _) = with_fake().await;
    let first = house.send("k", &base).await.unwrap();
    for (pointer, value, differs) in cases {
        let mut other = base.clone();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        other.pointer_mut(parent).unwrap()[member] = value;
        reused(house.send("k", &other).await, &first, differs);
    }
    repeats(&house.send("k", &base).await.unwrap(), &first);
}

#[tokio::test]
async fn a_generated_correlation_id_is_no_part_of_the_meaning() {
    let (house, _) = with_fake().await;
    let first = house.send("k", &vm("one")).await.unwrap();
    let mut spelled = vm("one");
    spelled["correlation_id"] = first.request_id.unwrap().to_string().into();
    reused(house.send("k", &spelled).await, &first, &["correlation_id"]);
}

#[tokio::test]
async fn a_key_stands_for_one_operation_on_one_target() {
    let (house, _) = with_fake().await;
    let (one, two) = (house.create("one").await, house.create("two").await);
    let cancel = async |id: domain::id::RequestId, with| {
        house.portal.cancel(&house.ann, &id.to_string(), key(with), Bytes::new()).await
    };
    let first = cancel(one, "c").await.unwrap();
    repeats(&cancel(one, "c").await.unwrap(), &first);
    reused(cancel(two, "c").await, &first, &["target"]);
    reused(house.send("c", &vm("three")).await, &first, &["operation"]);
    let retry = house.portal.retry(&house.ann, &one.to_string(), key("c"), Bytes::new()).await;
    reused(retry, &first, &["operation"]);
    let create = house.send("create-one", &vm("one")).await.unwrap();
    let refused = cancel(one, "create-one").await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (ProblemKind::KeyReused, create.request_id));
    assert!(refused.differs.contains(&"operation".to_owned()), "{:?}", refused.differs);
}

#[tokio::test]
async fn keys_of_other_people_and_teams_are_unrelated_and_letter_case_counts() {
    let (house, _) = with_fake().await;
    let abe = house.person("abe", "alpha", TeamRole::Member).await;
    let mut both = house.ann.clone();
    both.teams.push((domain::name::Name::parse("beta").unwrap(), TeamRole::Member));
    let body = |name: &str| vm(name).to_string();
    let first = send(&house.portal, &house.ann, "alpha", "Key", &body("one")).await.unwrap();
    for (caller, team, with, name) in
        [(&abe, "alpha", "Key", "two"), (&both, "beta", "Key", "one"), (&house.ann, "alpha", "kEY", "three")]
    {
        let other = send(&house.portal, caller, team, with, &body(name)).await.unwrap();
        assert!(!other.replayed);
        assert_ne!(other.request_id, first.request_id);
    }
    // Looking up sees one's own scope only.
    let mine = house.portal.look_up(&house.ann, "alpha", b"Key").await.unwrap();
    assert_eq!(Some(mine.id), first.request_id);
    let missing = house.portal.look_up(&house.ann, "alpha", b"KEY").await.unwrap_err();
    assert_eq!(missing.kind, ProblemKind::NotFound);
}

#[tokio::test]
async fn a_repeat_says_where_the_request_stands_and_stays_the_first_answer() {
    let (mut house, _) = with_fake().await;
    let first = house.send("k", &vm("one")).await.unwrap();
    house.work();
    let view = house.reaches(first.request_id.unwrap(), Succeeded).await;
    let again = house.send("k", &vm("one")).await.unwrap();
    repeats(&again, &first);
    assert_eq!(again.state, Some(Succeeded));
    // Retention counts from the end of the request.
    let retention = house.portal.guard_policy().retention_seconds;
    let expires = view.finished_at.unwrap().plus(std::time::Duration::from_secs(retention));
    assert_eq!(again.expires, Some(expires));
}

#[tokio::test]
async fn who_may_still_see_the_request_gets_the_replay_and_nobody_else() {
    let (mut house, _) = with_fake().await;
    house.work();
    let first = house.send("k", &vm("one")).await.unwrap();
    let id = first.request_id.unwrap();
    let mut ann = house.ann.clone();
    ann.teams[0].1 = TeamRole::Viewer;
    let again = send(&house.portal, &ann, "alpha", "k", &vm("one").to_string()).await.unwrap();
    repeats(&again, &first);
    ann.teams.clear();
    for body in [vm("one"), vm("two")] {
        let refused = send(&house.portal, &ann, "alpha", "k", &body.to_string()).await.unwrap_err();
        assert_eq!((refused.kind, refused.request), (ProblemKind::NotFound, None));
        assert_eq!(refused.differs, Vec::<String>::new());
    }
    let looked = house.portal.look_up(&ann, "alpha", b"k").await.unwrap_err();
    assert_eq!(looked.kind, ProblemKind::NotFound);
    // The attempts are written down where those who may see the request find them.
    let outcomes = super::history::outcomes(&house, id, 4).await;
    assert_eq!(outcomes, ["first", "replayed", "refused", "refused"]);
}

#[tokio::test]
async fn many_at_once_make_one_request_and_get_one_answer() {
    let (house, fake) = with_fake().await;
    let mut house = house;
    let mut other = house.beside(|_| ()).await;
    house.work();
    other.work();
    for round in 0..10 {
        let (name, with) = (format!("vm-{round}"), format!("k-{round}"));
        let mut sends = tokio::task::JoinSet::new();
        for number in 0..20 {
            let portal = if number % 2 == 0 { &house.portal } else { &other.portal }.clone();
            let (ann, with, body) = (house.ann.clone(), with.clone(), vm(&name).to_string());
            sends.spawn(async move { send(&portal, &ann, "alpha", &with, &body).await.unwrap() });
        }
        let answers = sends.join_all().await;
        assert_eq!(answers.iter().filter(|answered| !answered.replayed).count(), 1);
        assert!(answers.iter().all(|answered| answered.answer == answers[0].answer));
        let id = answers[0].request_id.unwrap();
        house.reaches(id, Succeeded).await;
        assert_eq!(fake.applied(id), 1);
    }
    assert_eq!(rows(&house).await[..3], [10, 10, 10]);
}

#[tokio::test]
async fn already_there_as_asked_is_a_success_and_its_key_is_kept() {
    let (mut house, fake) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    let mut body = vm("one");
    body["correlation_id"] = "order-7".into();
    // While it is being made, and when it is there.
    for with in ["being-made", "there"] {
        let found = house.send(with, &body).await.unwrap();
        assert!(found.existing && !found.replayed);
        assert_eq!((found.answer.kind, found.request_id), (AnswerKind::Done, Some(id)));
        let again = house.send(with, &body).await.unwrap();
        assert!(again.existing);
        repeats(&again, &found);
        let mut other = body.clone();
        other["parameters"]["size"] = "large".into();
        reused(house.send(with, &other).await, &found, &["parameters.size"]);
        house.reaches(id, Succeeded).await;
    }
    assert_eq!(fake.applied(id), 1);
    let kept = house.portal.submissions(&house.ann, &id.to_string()).await.unwrap();
    let existing: Vec<_> = kept.results.iter().filter(|one| one.outcome.as_str() == "existing").collect();
    assert!(existing.iter().all(|one| one.correlation_id.as_deref() == Some("order-7")));
    assert_eq!(existing.len(), 2);
}

#[tokio::test]
async fn a_retry_of_a_create_after_its_resource_is_gone_makes_nothing() {
    let plan = Plan::of(crate::testing::Scripted::default().hanging());
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    house.cancel(id).await.unwrap();
    house.reaches(id, domain::state::RequestState::Canceled).await;
    let again = house.send("create-one", &vm("one")).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.state, Some(domain::state::RequestState::Canceled));
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn what_differs_is_named_whether_or_not_it_fits() {
    let (house, _) = with_fake().await;
    let first = json!({ "offering": "vm", "name": "one", "parameters": { "size": "large", "count": 2 }, "labels": { "a": "1" } });
    house.send("k", &first).await.unwrap();
    let with = |change: Value| {
        let mut body = first.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    // Something in each does not fit.
    for (change, differs) in [
        (json!({ "name": "NOT ONE" }), &["name"][..]),
        (json!({ "name": "NOT ONE", "labels": { "a": "2" } }), &["labels.a", "name"]),
        (json!({ "labels": { "system.x": "y" } }), &["labels", "labels.a"]),
        (json!({ "parameters": { "size": "huge", "count": 2 } }), &["parameters.size"]),
        (json!({ "parameters": { "count": "2" } }), &["parameters.count", "parameters.size"]),
        (json!({ "parameters": [] }), &["parameters", "parameters.count", "parameters.size"]),
        (json!({ "correlation_id": 7, "parent_id": "nobody" }), &["correlation_id", "parent_id"]),
        (json!({ "correlation_id": "c", "name": "NOT ONE" }), &["correlation_id", "name"]),
    ] {
        let refused = house.send("k", &with(change.clone())).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::KeyReused, "{change}");
        assert_eq!(refused.differs, differs, "{change}");
    }
}
