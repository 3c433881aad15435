//! Secret parameters (`writeOnly`): the provisioner is told them, and nobody else ever is.

mod changes;

use super::callbacks::{begun_elsewhere, report};
use crate::{
    Answered,
    clock::SystemIds,
    keys::Keys,
    provisioner::{Context, Job, Observation, Outcome, Provisioner, fake::Fake},
    service::Arrival,
    store::{ListScope, RequestList},
    testing::{House, Plan, Scripted, composite::made_of, eventually, key, schema, standing, target},
};
use async_trait::async_trait;
use domain::{
    hidden::is_mark,
    name::Name,
    problem::ProblemKind::{AlreadyDecided, InvalidParameters, KeyReused, NameTaken, SuspectedDuplicate},
    role::TeamRole,
    search::Search,
    state::RequestState::{Failed, Succeeded},
    view::{Object, RequestView},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

const SECRET: &str = "canary-4711-hush";
const OTHER: &str = "kestrel-0815-hush";

/// Notes what it is told, and gives away what it can.
#[derive(Debug, Clone, Default)]
struct Tattler(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    jobs: Vec<(String, Object, Object, Object)>,
    fails: u32,
}

impl Tattler {
    /// The parameters, previous parameters and input that it was told last.
    fn last(&self) -> (Object, Object, Object) {
        let told = self.0.lock().unwrap();
        let (_, parameters, previous, input) = told.jobs.last().unwrap().clone();
        (parameters, previous, input)
    }

    fn password(&self) -> Value {
        self.last().0.get("password").cloned().unwrap_or_default()
    }

    /// Lets the next tries fail.
    fn fails(&self, times: u32) {
        self.0.lock().unwrap().fails = times;
    }
}

#[async_trait]
impl Provisioner for Tattler {
    async fn observe(&self, job: &Job, _: &Context) -> Observation {
        let said = Value::Object(job.parameters.clone()).to_string();
        match job.action.as_str() {
            "create" => Observation::Absent,
            "delete" => Observation::Ours(Object::new()),
            _ => Observation::Before(Object::from_iter([("seen".to_owned(), said.into())])),
        }
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        let said = format!("{:?}", (&job.parameters, &job.previous, &job.input));
        context.log.send(format!("told {said}")).await.unwrap();
        let mut told = self.0.lock().unwrap();
        let undone = if job.undo { "undo" } else { &job.action };
        told.jobs.push((undone.into(), job.parameters.clone(), job.previous.clone(), job.input.clone()));
        if told.fails > 0 && !job.undo {
            told.fails -= 1;
            return Outcome::Failed(format!("refused {said}"));
        }
        let dsn =
            format!("db://{}", job.parameters.get("password").and_then(Value::as_str).unwrap_or("none"));
        let outputs =
            json!({ "dsn": dsn, "echo": [said], "deep": { "list": [job.parameters.get("password")] } });
        Outcome::Done(outputs.as_object().unwrap().clone())
    }

    async fn destroy(&self, job: &Job, context: &Context) -> Outcome {
        context.log.send(format!("removed {:?}", job.parameters)).await.unwrap();
        let mut told = self.0.lock().unwrap();
        told.jobs.push(("destroy".into(), job.parameters.clone(), job.previous.clone(), job.input.clone()));
        Outcome::Done(Object::new())
    }
}

fn plan(tattler: &Tattler) -> Plan {
    with_secrets(Plan::of(tattler.clone()))
}

fn with_secrets(plan: Plan) -> Plan {
    plan.offering(|vm| {
        vm.schema = schema(&json!({
            "type": "object",
            "properties": {
                "size": { "enum": ["small", "large"], "default": "small" },
                "note": { "type": "string" },
                "password": { "type": "string", "minLength": 8, "pattern": "^[a-z0-9:-]+$", "writeOnly": true },
            },
        }));
        vm.secret_outputs = ["dsn".to_owned()].into();
        let mut turn = vm.actions.pop_first().unwrap().1;
        turn.schema = schema(&json!({
            "type": "object", "required": ["to"],
            "properties": { "to": { "type": "string", "minLength": 8, "writeOnly": true }, "why": { "type": "string" } },
        }));
        turn.changes = serde_json::from_value(json!({ "password": { "set": "to" } })).unwrap();
        vm.actions = BTreeMap::from([(Name::parse("turn").unwrap(), turn)]);
    })
}

fn vm(name: &str, password: &str) -> Value {
    json!({ "offering": "vm", "name": name, "parameters": { "password": password } })
}

fn shown(answered: &Answered) -> RequestView {
    serde_json::from_slice(&answered.answer.body).unwrap()
}

impl House {
    /// Asserts that a secret stands nowhere on the disk: in no table, no index and no log of the database.
    fn has_no_trace_of(&self, secret: &str) {
        let disk = self.disk();
        let found = disk.windows(secret.len()).position(|window| window == secret.as_bytes());
        let around = found.map(|at| {
            String::from_utf8_lossy(&disk[at.saturating_sub(200)..(at + 100).min(disk.len())]).into_owned()
        });
        assert_eq!(around, None, "{secret} lies on the disk");
    }
}

async fn made(house: &House, name: &str, password: &str) -> Answered {
    let made = house.send(&format!("create-{name}"), &vm(name, password)).await.unwrap();
    house.ended_as(made.request_id.unwrap(), Succeeded).await;
    made
}

#[tokio::test]
async fn a_secret_reaches_the_provisioner_and_nothing_that_is_kept_or_shown() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    let first = made(&house, "one", SECRET).await;
    let id = first.request_id.unwrap();
    assert_eq!(tattler.password(), SECRET);
    let view = house.view(id).await;
    assert!(is_mark(&view.parameters["password"]) && view.parameters["size"] == "small");
    assert_eq!(shown(&first).parameters, view.parameters);
    let told =
        format!("{first:?} {view:?} {:?} {:?}", house.history(id).await, house.resource("one").await.view);
    assert!(!told.contains(SECRET), "{told}");
    assert!(told.contains("***"), "and what its program said was not lost otherwise");
    // What the offering calls a secret output stays whole.
    let dsn = house.portal.reveal(&house.ann, "alpha", "vm", "one", "dsn").await.unwrap();
    assert_eq!(dsn, format!("db://{SECRET}"));
    for word in [SECRET, "canary"] {
        let search = Search::read_query(&format!("q={word}")).unwrap();
        let found = house.store.requests(RequestList { search, scope: ListScope::All }).await.unwrap();
        assert_eq!(found.total, 0, "{word}");
    }
    house.has_no_trace_of(SECRET);
    assert!(!String::from_utf8_lossy(&house.disk()).contains("canary-4711"));
}

#[tokio::test]
async fn nobody_finds_a_request_by_what_stands_for_its_secret() {
    let mut house = House::build(plan(&Tattler::default())).await;
    let first = house.send("a", &vm("one", SECRET)).await.unwrap();
    let mark = shown(&first).parameters["password"].as_str().unwrap().to_owned();
    for is_indexed in [false, true] {
        if is_indexed {
            house.work();
            house.ended_as(first.request_id.unwrap(), Succeeded).await;
            while house.store.index_words(1000).await.unwrap() > 0 {}
        }
        let mut totals = Vec::new();
        for asked in [
            format!("filters[parameters][EQUALS][password]={mark}"),
            format!("q={mark}"),
            "filters[parameters][EQUALS][size]=small".to_owned(),
        ] {
            let search = Search::read_query(&asked).unwrap();
            totals.push(
                house.store.requests(RequestList { search, scope: ListScope::All }).await.unwrap().total,
            );
        }
        assert_eq!(totals, [0, 0, 1], "indexed: {is_indexed}");
    }
}

#[tokio::test]
async fn what_is_reported_from_elsewhere_shows_no_secret_not_even_where_the_offering_is_unknown() {
    let script = Scripted::default().away().applying([begun_elsewhere()]);
    let plan = with_secrets(Plan { workers: 1, ..Plan::of(script.clone()) });
    let house = House::at_work(plan.offering(|vm| vm.secret_outputs = ["error".to_owned()].into())).await;
    let id = house.send("k", &vm("one", SECRET)).await.unwrap().request_id.unwrap();
    eventually(async || (house.steps(id, "wait").await > 0).then_some(())).await;
    let begun = script.begun().unwrap();
    let says = |sequence: i64, what: &str| {
        json!({ "state": "progress", "sequence": sequence, "progress": format!("{what} {SECRET}"),
            "log": [format!("{what} with {SECRET}")] })
    };
    report(&house.portal, &begun, "first", &says(1, "begins")).await.unwrap();
    let without = house.beside(|plan| plan.offerings.clear()).await;
    report(&without.portal, &begun, "second", &says(2, "goes on")).await.unwrap();
    let failed = json!({ "state": "failed", "sequence": 3, "error": format!("refused {SECRET}") });
    report(&house.portal, &begun, "third", &failed).await.unwrap();
    let view = house.ended_as(id, Failed).await;
    assert!(view.reason.as_ref().is_some_and(|why| why.contains("refused ***")), "{view:?}");
    let told = format!("{view:?} {:?}", house.history(id).await);
    for part in ["begins ***", "begins with ***", "goes on ***", "goes on with ***"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(SECRET), "{told}");
    house.has_no_trace_of(SECRET);
}

#[tokio::test]
async fn equal_secrets_are_equal_and_others_are_told_apart_by_name_only() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    let first = made(&house, "one", SECRET).await;
    // The same key: a repeat, spelled otherwise, and another meaning.
    let spelled =
        json!({ "offering": "vm", "name": "one", "parameters": { "size": "small", "password": SECRET } });
    for body in [vm("one", SECRET), spelled] {
        let again = house.send("create-one", &body).await.unwrap();
        assert!(again.replayed && again.answer == first.answer);
    }
    let reused = house.send("create-one", &vm("one", OTHER)).await.unwrap_err();
    assert_eq!(
        (reused.kind, reused.differs.as_slice()),
        (KeyReused, ["parameters.password".to_owned()].as_slice())
    );
    let mut sized = vm("one", SECRET);
    sized["parameters"]["size"] = "large".into();
    assert_eq!(house.send("create-one", &sized).await.unwrap_err().differs, ["parameters.size"]);
    sized["parameters"]["size"] = "huge".into();
    assert_eq!(house.send("create-one", &sized).await.unwrap_err().differs, ["parameters.size"]);
    // Another key: there already, or taken.
    let existing = house.send("other", &vm("one", SECRET)).await.unwrap();
    assert!(existing.existing && existing.request_id == first.request_id);
    assert!(house.send("other", &vm("one", SECRET)).await.unwrap().replayed);
    assert_eq!(house.send("other", &vm("one", OTHER)).await.unwrap_err().differs, ["parameters.password"]);
    let taken = house.send("taken", &vm("one", OTHER)).await.unwrap_err();
    assert_eq!(
        (taken.kind, taken.differs.as_slice()),
        (NameTaken, ["parameters.password".to_owned()].as_slice())
    );
    for error in [reused, taken] {
        let told = format!("{error:?}");
        assert!(!told.contains(SECRET) && !told.contains(OTHER), "{told}");
    }
    house.has_no_trace_of(OTHER);
}

#[tokio::test]
async fn likely_duplicates_are_found_by_their_secrets_too() {
    let window = Duration::from_hours(1);
    let plan = plan(&Tattler::default()).offering(|vm| vm.duplicate_window = Some(window));
    let house = House::build(plan).await;
    let first = house.send("a", &vm("one", SECRET)).await.unwrap();
    let asked = house.send("b", &vm("two", SECRET)).await.unwrap_err();
    assert_eq!((asked.kind, asked.request), (SuspectedDuplicate, first.request_id));
    assert!(!house.send("c", &vm("three", OTHER)).await.unwrap().existing);
    let body = vm("four", SECRET).to_string();
    let planned = house.portal.plan_request(&house.ann, "alpha", body.as_bytes(), Vec::new()).await.unwrap();
    assert_eq!(planned.likely_duplicates[0].id, first.request_id.unwrap());
    assert!(!serde_json::to_string(&planned).unwrap().contains(SECRET));
}

#[tokio::test]
async fn what_does_not_fit_is_told_without_the_secret() {
    let house = House::build(plan(&Tattler::default())).await;
    for (password, rule) in
        [(json!("Hush!Hush!Canary"), "pattern"), (json!("hush"), "minLength"), (json!(471_147_114), "type")]
    {
        let body = json!({ "offering": "vm", "name": "one", "parameters": { "password": password } });
        let refused = house.send("k", &body).await.unwrap_err();
        assert_eq!(
            (refused.kind, refused.fields[0].pointer.as_str()),
            (InvalidParameters, "/parameters/password")
        );
        let told = format!("{refused:?}");
        assert!(told.contains(rule) && !told.contains(password.to_string().trim_matches('"')), "{told}");
    }
    let first = house.send("k", &vm("one", SECRET)).await.unwrap();
    let mark = shown(&first).parameters["password"].clone();
    let copied = json!({ "offering": "vm", "name": "two", "parameters": { "password": mark } });
    let refused = house.send("m", &copied).await.unwrap_err();
    assert!(refused.kind == InvalidParameters && refused.fields[0].detail.contains("stands for the secret"));
}

#[tokio::test]
async fn a_dry_run_shows_no_secret_and_stores_nothing() {
    let tattler = Tattler::default();
    let house = House::at_work(plan(&tattler)).await;
    made(&house, "one", SECRET).await;
    let arrival = Arrival { keys: Vec::new(), if_match: vec![house.etag("one").await.into_bytes()] };
    let rows = async || {
        let count = "SELECT (SELECT count(*) FROM setting) + (SELECT count(*) FROM request) + (SELECT count(*) FROM claim)";
        sqlx::query_scalar::<_, i64>(count).fetch_one(&mut house.database().await).await.unwrap()
    };
    let before = rows().await;
    let (one, patch) = (target("one"), json!({ "password": OTHER, "size": "large" }).to_string());
    let planned = house.portal.plan_update(&house.ann, &one, &arrival, patch.as_bytes(), Vec::new());
    let planned = planned.await.unwrap();
    let names: Vec<&str> = planned.plan.changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["password", "size"]);
    let told = serde_json::to_string(&planned).unwrap();
    assert!(!told.contains(OTHER) && !told.contains(SECRET), "{told}");
    let same = json!({ "password": SECRET }).to_string();
    let planned = house.portal.plan_update(&house.ann, &one, &arrival, same.as_bytes(), Vec::new());
    assert_eq!(planned.await.unwrap().plan.changes, []);
    let input = json!({ "to": OTHER }).to_string();
    let planned = house.portal.plan_action(&house.ann, &one, "turn", &arrival, input.as_bytes(), Vec::new());
    assert!(!serde_json::to_string(&planned.await.unwrap()).unwrap().contains(OTHER));
    assert_eq!(rows().await, before);
    let fresh = House::build(plan(&tattler)).await;
    let body = vm("one", SECRET).to_string();
    let count = "SELECT count(*) FROM setting";
    let settings: i64 = sqlx::query_scalar(count).fetch_one(&mut fresh.database().await).await.unwrap();
    fresh.portal.plan_request(&fresh.ann, "alpha", body.as_bytes(), Vec::new()).await.unwrap();
    let now: i64 = sqlx::query_scalar(count).fetch_one(&mut fresh.database().await).await.unwrap();
    assert_eq!(now, settings);
}

/// An offering whose one step takes its secret.
fn with_part(tattler: &Tattler) -> Plan {
    let mut plan = plan(tattler);
    let mut both = made_of(
        "both",
        r#"
steps:
  - id: machine
    offering: vm
    parameters: { password: "{{ parameters.password }}", note: "{{ parameters.note }}" }
"#,
    );
    both.schema = Arc::clone(&plan.offerings[0].schema);
    plan.offerings.push(both);
    plan
}

#[tokio::test]
async fn a_part_that_failed_too_long_ago_to_be_tried_again_is_asked_for_anew() {
    let tattler = Tattler::default();
    let house = House::at_work(with_part(&tattler)).await;
    tattler.fails(1);
    let body = json!({ "offering": "both", "name": "one", "parameters": { "password": SECRET } });
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    house.ended_as(id, Failed).await;
    let first = house.step(id, "machine").await;
    // Its end came so much earlier than the parent's that only what it was told is forgotten.
    let forgotten = sqlx::query("UPDATE request SET hidden = NULL WHERE id = $1").bind(first.0);
    let done = forgotten.execute(&mut house.database().await).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
    house.retry(id).await.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(tattler.password(), SECRET);
    assert_eq!(house.view(first).await.state, Failed);
}

#[tokio::test]
async fn a_part_is_handed_its_secret_and_shows_it_as_little() {
    let tattler = Tattler::default();
    let house = House::at_work(with_part(&tattler)).await;
    let body = json!({ "offering": "both", "name": "one", "parameters": { "password": SECRET } });
    let planned = house
        .portal
        .plan_request(&house.ann, "alpha", body.to_string().as_bytes(), Vec::new())
        .await
        .unwrap();
    let step = &planned.plan.steps[0];
    assert!(is_mark(&step.parameters["password"]) && step.problem.is_none(), "{step:?}");
    let id = house.send("k", &body).await.unwrap().request_id.unwrap();
    house.ended_as(id, Succeeded).await;
    assert_eq!(tattler.password(), SECRET);
    let child = house.view(house.step(id, "machine").await).await;
    assert!(is_mark(&child.parameters["password"]));
    assert_ne!(child.parameters["password"], house.view(id).await.parameters["password"]);
    assert_eq!(child.parameters, step.parameters, "as the dry run said");
    house.has_no_trace_of(SECRET);
}

#[tokio::test]
async fn secrets_outlive_the_exchange_of_keys_and_so_does_their_equality() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Keys::read_or_make(&folder.path().join("secret.key"), &SystemIds).unwrap();
    let (tattler, clock) = (Tattler::default(), standing());
    let mut house = House::build(Plan { keys: read(), clock: clock.clone(), ..plan(&tattler) }).await;
    house.work();
    let first = made(&house, "one", SECRET).await;
    house.shut_down().await;
    house.portal.rotate_key().await.unwrap();
    let mut rotated = house.beside(|plan| plan.keys = read()).await;
    assert_eq!(rotated.portal.prune_keys().await.unwrap(), Vec::<i64>::new(), "a claim still needs it");
    clock.advance(Duration::from_secs(rotated.portal.guard_policy().retention_seconds));
    rotated.work();
    eventually(async || Some(rotated.portal.prune_keys().await.unwrap()).filter(|gone| *gone == [1])).await;
    rotated.shut_down().await;
    assert_eq!(read().versions(), [2]);
    let mut later = house.beside(|plan| plan.keys = read()).await;
    later.work();
    let existing = later.send("other", &vm("one", SECRET)).await.unwrap();
    assert!(existing.existing && existing.request_id == first.request_id);
    assert_eq!(later.send("third", &vm("one", OTHER)).await.unwrap_err().kind, NameTaken);
    later.ended_as(later.updated("one", &json!({ "size": "large" })).await, Succeeded).await;
    assert_eq!(tattler.password(), SECRET);
}

#[tokio::test]
async fn what_is_over_keeps_no_secret_and_what_failed_keeps_it_for_another_try() {
    let (tattler, clock) = (Tattler::default(), standing());
    let mut house = House::build(Plan { clock: clock.clone(), ..plan(&tattler) }).await;
    house.work();
    let kept = async |house: &House| {
        let count = "SELECT count(*) FROM request WHERE hidden IS NOT NULL";
        sqlx::query_scalar::<_, i64>(count).fetch_one(&mut house.database().await).await.unwrap()
    };
    made(&house, "one", SECRET).await;
    assert_eq!(kept(&house).await, 1);
    house.ended_as(house.deleted("one").await, Succeeded).await;
    assert_eq!(kept(&house).await, 0);
    assert_eq!(tattler.password(), SECRET, "which its teardown was told");
    assert!(
        house.send("create-one", &vm("one", SECRET)).await.unwrap().replayed,
        "a repeat needs none of it"
    );

    tattler.fails(2);
    let id = house.send("f", &vm("two", SECRET)).await.unwrap().request_id.unwrap();
    house.ended_as(id, Failed).await;
    assert_eq!(kept(&house).await, 1);
    house.retry(id).await.unwrap();
    house.ended_as(id, Failed).await;
    assert_eq!(tattler.password(), SECRET);
    house.shut_down().await;
    clock.advance(Duration::from_secs(house.portal.guard_policy().retention_seconds));
    let mut house = house.beside(|_| ()).await;
    house.work();
    eventually(async || Some(kept(&house).await).filter(|kept| *kept == 0)).await;
    let late = house.retry(id).await.unwrap_err();
    assert!(late.kind == AlreadyDecided && late.detail.contains("secret parameters are not kept"), "{late}");
    house.has_no_trace_of(SECRET);
}

#[tokio::test]
async fn no_event_gives_a_secret() {
    let house = House::build(plan(&Tattler::default())).await;
    let owner = house.person("olga", "alpha", TeamRole::Owner).await;
    let body = json!({ "title": "events", "offering": "vm", "signature": "bearer", "name": "{{ payload.name }}",
        "parameters": { "password": "{{ payload.password }}" } });
    let refused =
        house.portal.create_hook(&owner, "alpha", key("h"), body.to_string().into()).await.unwrap_err();
    assert!(refused.fields.iter().any(|field| field.detail.contains("no event can give")), "{refused:?}");
    // Nor is there a hook for what cannot do without.
    let house = house
        .beside(|plan| {
            let mut needy = plan.offerings[0].schema.value().clone();
            needy["required"] = json!(["password"]);
            plan.offerings[0].schema = schema(&needy);
        })
        .await;
    let body =
        json!({ "title": "events", "offering": "vm", "signature": "bearer", "name": "{{ payload.name }}" });
    let refused =
        house.portal.create_hook(&owner, "alpha", key("n"), body.to_string().into()).await.unwrap_err();
    let told: Vec<_> = refused.fields.iter().map(|field| field.pointer.as_str()).collect();
    assert_eq!(told, ["/offering"], "{refused:?}");
}

#[tokio::test]
async fn what_was_kept_in_clear_before_is_hidden_by_the_next_change() {
    let tattler = Tattler::default();
    let mut open = plan(&tattler);
    let secret = Arc::clone(&open.offerings[0].schema);
    let clear = secret.value().to_string().replace("\"writeOnly\":true", "\"writeOnly\":false");
    open.offerings[0].schema = schema(&serde_json::from_str(&clear).unwrap());
    let mut house = House::at_work(open).await;
    made(&house, "one", SECRET).await;
    assert_eq!(house.parameter("one", "password").await, SECRET);
    house.shut_down().await;
    let mut house = house.beside(|plan| plan.offerings[0].schema = Arc::clone(&secret)).await;
    house.work();
    house.ended_as(house.updated("one", &json!({ "size": "large" })).await, Succeeded).await;
    assert_eq!(tattler.password(), SECRET);
    assert!(is_mark(&house.parameter("one", "password").await));
    house.ended_as(house.updated("one", &json!({ "note": "x" })).await, Succeeded).await;
    assert_eq!(tattler.password(), SECRET);
}

#[tokio::test]
async fn an_offering_without_secrets_is_kept_as_ever() {
    let house = House::build(Plan::of(Fake::default())).await;
    house.create("one").await;
    let kept = "SELECT count(*) FROM request WHERE hidden IS NOT NULL";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&mut house.database().await).await.unwrap();
    let key = "SELECT count(*) FROM setting WHERE name = 'parameter_key'";
    let key: i64 = sqlx::query_scalar(key).fetch_one(&mut house.database().await).await.unwrap();
    assert_eq!((kept, key), (0, 0));
}
