//! A repeat that meets its first under way waits, but not without end; and what was told not to be carried out is not.

use crate::{
    provisioner::fake::Fake,
    settings::GuardSettings,
    testing::{Ground, House, Plan, eventually, vm},
};
use domain::{
    problem::ProblemKind::{Contended, KeyInUse},
    state::RequestState,
};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_millis(200);

async fn house_on(ground: Ground) -> House {
    let guard = GuardSettings { wait: WAIT, ..GuardSettings::default() };
    House::build_on(ground, Plan { guard, ..Plan::of(Fake::default()) }).await
}

async fn made(house: &House) -> i64 {
    house.ground.number("SELECT count(*) FROM request").await.unwrap()
}

/// From now on every claim takes much longer to write than anybody waits.
const SLOW: &str = "CREATE VIEW many AS
        WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 5000000) SELECT n FROM counted;
     CREATE TRIGGER slow AFTER INSERT ON claim BEGIN SELECT count(*) FROM many; END";

#[tokio::test(flavor = "multi_thread")]
async fn past_the_wait_the_key_is_in_use_and_later_the_first_answer_is_there() {
    let house = house_on(Ground::sqlite()).await;
    house.ground.execute(SLOW).await;
    let body = vm("one");
    let begun = Instant::now();
    let (first, repeat) = tokio::join!(house.send("k", &body), house.send("k", &body));
    assert!(begun.elapsed() >= WAIT);
    for told in [first, repeat] {
        let told = told.unwrap_err();
        assert_eq!((told.kind, told.retry_after.is_some()), (KeyInUse, true), "{told}");
    }
    // Who was told to come again gets the one answer, whichever of them was written.
    let answer = eventually(async || house.send("k", &body).await.ok()).await;
    let again = house.send("k", &body).await.unwrap();
    assert!(again.replayed && again.answer == answer.answer);
    assert_eq!(made(&house).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_kept_waiting_is_told_so_and_never_carried_out_later() {
    let house = house_on(Ground::sqlite()).await;
    // Another process sits on the database.
    let mut held = house.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut held).await.unwrap();
    let told = house.send("lone", &vm("one")).await.unwrap_err();
    assert_eq!((told.kind, told.retry_after.is_some()), (Contended, true), "{told}");
    // The first was called back, so it is not met.
    let again = house.send("lone", &vm("one")).await.unwrap_err();
    assert_eq!(again.kind, Contended, "{again}");
    sqlx::query("COMMIT").execute(&mut held).await.unwrap();
    // Whatever was still in the queue is through once this one is.
    eventually(async || house.send("other", &vm("two")).await.ok()).await;
    assert_eq!(made(&house).await, 1, "what was refused was carried out all the same");
    let runs = house.send("lone", &vm("three")).await.unwrap();
    assert!(!runs.replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_session_is_about_to_claim_is_in_use_for_the_first_who_waits_too() {
    let house = house_on(Ground::postgres()).await;
    let mut held = house.ground.server().await;
    let claim = format!(
        "BEGIN; INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, answer_kind, body, claimed_at)
         VALUES ('alpha', '{}', 'held', '', '', 1, 'accepted', '', 1)",
        house.ann.id.0,
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(claim)).execute(&mut held).await.unwrap();
    let body = vm("one");
    for _ in 0..2 {
        let told = house.send("held", &body).await.unwrap_err();
        assert_eq!((told.kind, told.retry_after.is_some()), (KeyInUse, true), "{told}");
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut held).await.unwrap();
    assert!(!house.send("held", &body).await.unwrap().replayed);
    assert_eq!(made(&house).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_too_what_was_kept_waiting_is_never_carried_out_later() {
    let house = house_on(Ground::postgres()).await;
    let id = house.create("made").await;
    // Somebody keeps everybody from claiming anything.
    let mut held = house.ground.server().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE claim IN SHARE MODE").execute(&mut held).await.unwrap();
    let body = vm("one");
    let (create, decision) = tokio::join!(house.send("lone", &body), house.cancel(id));
    for told in [create.unwrap_err(), decision.unwrap_err()] {
        assert_eq!((told.kind, told.retry_after.is_some()), (Contended, true), "{told}");
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut held).await.unwrap();
    let runs = house.send("lone", &vm("three")).await.unwrap();
    assert!(!runs.replayed);
    assert_eq!(made(&house).await, 2, "what was refused was carried out all the same");
    assert_eq!(house.view(id).await.state, RequestState::Queued);
}
