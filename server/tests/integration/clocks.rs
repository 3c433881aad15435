//! Time moved by `KEYTURN_CLOCK_OFFSET` to where something ends: what holds a moment before, and what holds after.

use super::support::{ALPHA, Answer, Cluster, Home, World, eventually, vm};
use portal::clock::{Clock, SystemClock};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::time::Duration;

pub(super) const SECOND: i64 = 1000;

/// The machine's time, in milliseconds.
pub(super) fn machine() -> i64 {
    SystemClock::default().now().millis()
}

/// What the portal writes as a time, in milliseconds.
pub(super) fn millis(shown: &Value) -> i64 {
    let moment: domain::time::Moment = serde_json::from_value(shown.clone()).unwrap();
    moment.millis()
}

/// Starts the server again with its clock moved so that `end` comes a while after; how far it was moved.
pub(super) fn start_before(world: &mut World, end: i64, before: i64) -> i64 {
    world.kill();
    let offset = end - before - machine();
    world.server.home.set("KEYTURN_CLOCK_OFFSET", &format!("{offset}ms"));
    world.restart();
    offset
}

/// Asks the same again and again while the server's clock passes `end`, and judges each answer by when it was given:
/// `holds` as long as it lasts, within the second before as well, and `over` from the very end on.
async fn crosses(
    world: &mut World,
    end: i64,
    ask: impl AsyncFnMut(&World) -> Answer,
    holds: impl Fn(&Answer),
    over: impl Fn(&Answer),
) {
    // A machine under load may take long to start the server, so there are more tries.
    crosses_in(&[3 * SECOND, 10 * SECOND, 30 * SECOND], world, end, ask, holds, over).await;
}

/// The same, starting so long before the end in each try.
async fn crosses_in(
    tries: &[i64],
    world: &mut World,
    end: i64,
    mut ask: impl AsyncFnMut(&World) -> Answer,
    holds: impl Fn(&Answer),
    over: impl Fn(&Answer),
) {
    for before in tries {
        let offset = start_before(world, end, *before);
        let (mut just_before, mut just_after) = (0, 0);
        loop {
            let asked = machine() + offset;
            let answer = ask(world).await;
            let answered = machine() + offset;
            if answered < end {
                holds(&answer);
                just_before += u32::from(asked >= end - SECOND);
            } else if asked >= end {
                over(&answer);
                just_after += 1;
            }
            if asked > end + SECOND {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if just_before > 0 && just_after > 0 {
            return;
        }
    }
    panic!("the server never started in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_kept_to_the_end_of_its_retention_and_no_longer() {
    kept_and_no_longer(World::at(Home::on_sqlite(&[]))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_a_key_is_kept_to_the_end_of_its_retention_and_no_longer() {
    kept_and_no_longer(World::at(Home::on_postgres(Cluster::shared(), &[]))).await;
}

async fn kept_and_no_longer(mut world: World) {
    let body = vm("one", json!({}));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    let finished = millis(&world.ann.ended(&first.id()).await["finished_at"]);
    let policy = Answer::of(world.nobody().call("GET", "/guard")).await.json();
    let end = finished + policy["retention_seconds"].as_i64().unwrap() * SECOND;

    let told = world.ann.post(ALPHA, "k", &body).await;
    assert_eq!(millis(&json!(told.header("idempotency-key-expires").unwrap())), end);
    let repeat = async |world: &World| world.ann.post(ALPHA, "k", &body).await;
    let is_over = |answer: &Answer| drop(answer.clone().refused(410, "idempotency-key-expired"));
    crosses(&mut world, end, repeat, |answer| answer.repeats(&first), is_over).await;

    let other = vm("one", json!({ "size": "large" }));
    let changed = async |world: &World| world.ann.post(ALPHA, "k", &other).await;
    let is_reused = |answer: &Answer| drop(answer.clone().refused(422, "idempotency-key-reused"));
    crosses(&mut world, end, changed, is_reused, is_over).await;

    let look = async |world: &World| world.ann.get("/teams/alpha/submissions?key=k").await;
    let is_found = |answer: &Answer| assert_eq!(answer.clone().is(200).id(), first.id());
    crosses(&mut world, end, look, is_found, is_over).await;

    // Whatever the clock said, it was done once.
    assert_eq!(world.count().await, 1);
    let ledger = std::fs::read_to_string(world.server.home.path().join("data/offerings/vm/ledger")).unwrap();
    assert_eq!(ledger.lines().count(), 1, "{ledger}");
}

/// Retentions that end before the callers' tokens do.
const SHORT: [(&str, &str); 3] = [
    ("KEYTURN_GUARD_LONGEST_RETRY", "1h"),
    ("KEYTURN_GUARD_RETENTION", "2h"),
    ("KEYTURN_GUARD_TOMBSTONES", "3h"),
];
const HOUR: i64 = 3600 * SECOND;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_refused_to_the_end_of_its_tombstone_and_no_longer() {
    refused_and_no_longer(World::at(Home::on_sqlite(&SHORT))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_a_key_is_refused_to_the_end_of_its_tombstone_and_no_longer() {
    refused_and_no_longer(World::at(Home::on_postgres(Cluster::shared(), &SHORT))).await;
}

async fn refused_and_no_longer(mut world: World) {
    let body = vm("one", json!({}));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    let end = millis(&world.ann.ended(&first.id()).await["finished_at"]) + 5 * HOUR;
    let look = async |world: &World| world.ann.get("/teams/alpha/submissions?key=k").await;
    let is_over = |answer: &Answer| {
        let refused = answer.clone().refused(410, "idempotency-key-expired");
        assert_eq!(refused.json()["request"]["id"], json!(first.id()));
    };
    let is_free = |answer: &Answer| drop(answer.clone().refused(404, "not-found"));
    // Once it was beyond the end the tombstone is gone, so there is one try, with time enough to start.
    crosses_in(&[12 * SECOND], &mut world, end, look, is_over, is_free).await;
    // The key is free, and the name rule still holds.
    let again = world.ann.post(ALPHA, "k", &body).await.is(200);
    assert_eq!((again.header("keyturn-outcome"), again.id()), (Some("existing"), first.id()));
    assert_eq!(world.count().await, 1);
    let ledger = std::fs::read_to_string(world.server.home.path().join("data/offerings/vm/ledger")).unwrap();
    assert_eq!(ledger.lines().count(), 1, "{ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_what_is_not_at_its_end_is_kept_however_long_that_takes() {
    let mut world = World::start();
    let body = vm("one", json!({ "behaviour": "observe-unknown" }));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    eventually("nobody can tell", async || {
        let state = world.ann.get(&format!("/requests/{}", first.id())).await.json()["state"].clone();
        (state == "unknown").then_some(())
    })
    .await;
    // Tokens end sooner than this, so the caller gets another.
    world.kill();
    world.server.home.set("KEYTURN_CLOCK_OFFSET", "1000d");
    let token = world.server.home.token("ann");
    world.restart();
    let ann = world.server.api(&token);
    ann.post(ALPHA, "k", &body).await.repeats(&first);
    ann.post(ALPHA, "k", &vm("two", json!({}))).await.refused(422, "idempotency-key-reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_taken_from_a_killed_server_when_its_lease_is_over_and_not_before() {
    for before in [3 * SECOND, 10 * SECOND, 30 * SECOND] {
        let mut world = World::at(Home::on_sqlite(&[("KEYTURN_LEASE", "1h")]));
        let id = world.ann.made(&vm("one", json!({ "seconds": 1 }))).await;
        let options = SqliteConnectOptions::new().filename(world.server.home.database());
        let mut database = options.connect().await.unwrap();
        loop {
            let begun = sqlx::query_scalar("SELECT touched FROM run");
            if begun.fetch_optional(&mut database).await.unwrap() == Some(true) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        world.kill();
        let lease = sqlx::query_scalar("SELECT due_at FROM run WHERE owner IS NOT NULL");
        let end: i64 = lease.fetch_one(&mut database).await.unwrap();

        let offset = start_before(&mut world, end, before);
        if machine() + offset > end - SECOND {
            continue;
        }
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let taken = "SELECT min(at) FROM event WHERE entry LIKE '%\"observe\"%'";
        let taken: i64 = sqlx::query_scalar(taken).fetch_one(&mut database).await.unwrap();
        // A program that looks takes its time as well.
        assert!(
            (end..end + 10 * SECOND).contains(&taken),
            "taken {} ms after the end of its lease",
            taken - end
        );
        return;
    }
    panic!("the server never started in time");
}
