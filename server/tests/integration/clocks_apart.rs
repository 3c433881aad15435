//! Two servers on one PostgreSQL whose clocks are ten minutes apart: what ends, and who says so.

use super::{
    clocks::{SECOND, machine, millis, start_before},
    hooks,
    support::{ALPHA, Answer, Api, Cluster, Home, Server, World, eventually, vm},
};
use serde_json::json;
use std::time::Duration;

const MINUTE: i64 = 60 * SECOND;

/// One more server on the same database, and ann there.
fn beside(world: &World, offset: i64) -> (Server, Api) {
    let server = Server::start(world.server.home.beside(&[("KEYTURN_CLOCK_OFFSET", &format!("{offset}ms"))]));
    let ann = server.api(world.ann.token.as_deref().unwrap());
    (server, ann)
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_disagree_on_the_time_never_run_a_key_twice_at_its_end() {
    let settings = [
        ("KEYTURN_GUARD_LONGEST_RETRY", "1h"),
        ("KEYTURN_GUARD_RETENTION", "2h"),
        ("KEYTURN_GUARD_TOMBSTONES", "3h"),
    ];
    let mut world = World::at(Home::on_postgres(Cluster::shared(), &settings));
    let body = vm("one", json!({}));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    let retired = millis(&world.ann.ended(&first.id()).await["finished_at"]) + 120 * MINUTE;
    let is_over = |answer: &Answer| answer.status == 410;

    // Ahead it is over; behind it is not, for ten minutes more.
    let offset = start_before(&mut world, retired, SECOND);
    let (behind, there) = beside(&world, offset - 10 * MINUTE);
    let mut over = 0;
    while over < 10 {
        let asked = machine() + offset;
        let answer = world.ann.post(ALPHA, "k", &body).await;
        if machine() + offset < retired {
            answer.repeats(&first);
        } else if asked >= retired {
            answer.refused(410, "idempotency-key-expired");
            over += 1;
        }
        there.post(ALPHA, "k", &body).await.repeats(&first);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(behind);
    // What one server made a tombstone is one to all: this one has just started and remembers nothing.
    world.kill();
    world.restart();
    let (behind, there) = beside(&world, offset - 10 * MINUTE);
    eventually("the tombstone is seen behind", async || {
        Some(there.post(ALPHA, "k", &body).await).filter(is_over)
    })
    .await
    .refused(410, "idempotency-key-expired");
    drop(behind);

    // Ahead its tombstone is over, so the key means something new; behind that is the same.
    let offset = start_before(&mut world, retired + 180 * MINUTE, -SECOND);
    let (_behind, there) = beside(&world, offset - 10 * MINUTE);
    let again = world.ann.post(ALPHA, "k", &body).await.is(200);
    assert_eq!((again.header("keyturn-outcome"), again.id()), (Some("existing"), first.id()));
    for api in [&there, &world.ann] {
        api.post(ALPHA, "k", &body).await.repeats(&again);
    }
    assert_eq!(world.count().await, 1);
    let ledger = std::fs::read_to_string(world.server.home.path().join("data/offerings/vm/ledger")).unwrap();
    assert_eq!(ledger.lines().count(), 1, "{ledger}");
}

/// The only run: its fence, the end of its lease, and the database's time.
async fn run(database: &mut sqlx::PgConnection) -> (i64, i64, i64) {
    let run = sqlx::query_as("SELECT fence, due_at, keyturn_now(0) FROM run");
    run.fetch_one(database).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_by_the_databases_clock_and_not_a_moment_before() {
    // The server that takes over is ten minutes ahead, and ten minutes behind.
    tokio::join!(taken_over(-5, 5), taken_over(5, -5));
}

async fn taken_over(killed: i64, takes_over: i64) {
    let offset = format!("{killed}m");
    let settings = [("KEYTURN_LEASE", "8s"), ("KEYTURN_CLOCK_OFFSET", offset.as_str())];
    let mut world = World::at(Home::on_postgres(Cluster::shared(), &settings));
    let id = world.ann.made(&vm("one", json!({ "seconds": 2 }))).await;
    let path = format!("/requests/{id}");
    eventually("it runs", async || (world.ann.get(&path).await.json()["state"] == "running").then_some(()))
        .await;
    world.kill();
    let mut database = world.server.home.postgres().await;
    let (fence, end, _) = run(&mut database).await;
    let (_other, there) = beside(&world, takes_over * MINUTE);
    let mut just_before = 0;
    let taken = loop {
        let (holder, _, now) = run(&mut database).await;
        if holder != fence {
            break now;
        }
        just_before += u32::from(now >= end - SECOND && now < end);
        assert!(now < end + 20 * SECOND, "nobody takes over");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(taken >= end, "taken {} ms before the end of its lease", end - taken);
    assert!(just_before > 0, "nobody looked in the second before");
    assert_eq!(there.ended(&id).await["state"], "succeeded");
    let ledger = world.server.home.path().join("data/offerings/vm/ledger");
    assert_eq!(std::fs::read_to_string(ledger).unwrap().lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_counts_five_minutes_either_way_of_the_servers_own_clock() {
    let world = World::at(Home::on_postgres(Cluster::shared(), &[("KEYTURN_CLOCK_OFFSET", "5m")]));
    let (_other, there) = beside(&world, -5 * MINUTE);
    let hook = hooks::made(&hooks::owner(&world), &hooks::definition("standard")).await;
    for (api, offset) in [(&world.nobody(), 5 * MINUTE), (&there, -5 * MINUTE)] {
        for (number, seconds) in (0..).zip([-301, -299, 299, 301]) {
            let event = format!("event-{offset}-{seconds}");
            let body =
                hooks::order(&format!("{}-{number}", if offset > 0 { "ahead" } else { "behind" }), number)
                    .to_string();
            // It is judged only where a second's end did not fall between.
            for _ in 0..20 {
                let asked = machine() + offset;
                let at = asked / SECOND + seconds;
                let address = format!("{}/api/v1/hooks/{}", api.base, hook.id);
                let call = api.client.post(address).header("Content-Type", "application/json");
                let call = call
                    .header("webhook-id", &event)
                    .header("webhook-timestamp", at)
                    .header("webhook-signature", hooks::standard(&hook.secret, &event, at, &body));
                let answer = Answer::of(call.body(body.clone())).await;
                let answered = machine() + offset;
                let counts = [asked, answered].map(|now| (now - at * SECOND).abs() <= 5 * MINUTE);
                if counts[0] != counts[1] {
                    continue;
                }
                assert_eq!(counts[0], seconds.abs() < 300, "{seconds}");
                if counts[0] {
                    assert!([200, 202].contains(&answer.status), "{seconds}: {}", answer.text());
                } else {
                    answer.refused(401, "signature-wrong");
                }
                break;
            }
        }
    }
    assert_eq!(world.count().await, 4);
}
