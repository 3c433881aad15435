//! A repeat that meets its first under way waits, but not without end.

use crate::{
    provisioner::fake::Fake,
    settings::GuardSettings,
    testing::{House, Plan, eventually, vm},
};
use domain::problem::ProblemKind::{Contended, KeyInUse};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn past_the_wait_the_key_is_in_use_and_later_the_first_answer_is_there() {
    let wait = Duration::from_millis(200);
    let guard = GuardSettings { wait, ..GuardSettings::default() };
    let house = House::build(Plan { guard, ..Plan::of(Fake::default()) }).await;
    // Somebody sits on the database, so the first cannot be written.
    let mut held = house.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut held).await.unwrap();
    let body = vm("one");
    let begun = Instant::now();
    let (first, repeat) = tokio::join!(house.send("k", &body), house.send("k", &body));
    assert!(begun.elapsed() >= wait);
    for told in [first, repeat] {
        let told = told.unwrap_err();
        assert_eq!((told.kind, told.retry_after.is_some()), (KeyInUse, true), "{told}");
    }
    sqlx::query("COMMIT").execute(&mut held).await.unwrap();
    // Who was told to come again gets the one answer, whichever of them was written.
    let answer = eventually(async || house.send("k", &body).await.ok()).await;
    let again = house.send("k", &body).await.unwrap();
    assert!(again.replayed && again.answer == answer.answer);
    let made: i64 = sqlx::query_scalar("SELECT count(*) FROM request")
        .fetch_one(&mut house.database().await)
        .await
        .unwrap();
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_that_the_database_keeps_waiting_is_not_told_to_be_in_use() {
    let wait = Duration::from_millis(200);
    let guard = GuardSettings { wait, ..GuardSettings::default() };
    let house = House::build(Plan { guard, ..Plan::of(Fake::default()) }).await;
    let mut held = house.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut held).await.unwrap();
    let told = house.send("lone", &vm("one")).await.unwrap_err();
    assert_eq!((told.kind, told.retry_after.is_some()), (Contended, true), "{told}");
    // That one may be written yet, so whoever sends it again meets it.
    let again = house.send("lone", &vm("one")).await.unwrap_err();
    assert_eq!(again.kind, KeyInUse, "{again}");
    sqlx::query("COMMIT").execute(&mut held).await.unwrap();
    eventually(async || house.send("lone", &vm("one")).await.ok()).await;
}
