//! Holding a run: one holder at a time, whose writes stop counting and whose program stops when the hold is lost.

use crate::{
    clock::SystemClock,
    provisioner::fake::{Behaviour, Fake},
    testing::{House, Plan, Scripted, eventually, offering, with_fake},
};
use domain::state::RequestState::{Running, Succeeded};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

#[tokio::test]
async fn a_shutdown_gives_the_run_back_at_once_and_another_goes_on() {
    let script = Scripted::default().hanging();
    let plan = Plan { lease: Duration::from_hours(1), ..Plan::of(script.clone()) };
    let mut house = House::at_work(plan).await;
    let id = house.create("one").await;
    eventually(async || script.calls().first().copied()).await;
    house.shut_down().await;
    assert!(script.stopped().is_some());
    assert!(house.store.next_due().await.unwrap().unwrap() <= house.portal.now());
    assert_eq!(house.view(id).await.state, Running);

    let fake = Fake::default();
    let mut next = house.beside(|plan| plan.offerings = vec![offering("vm", Arc::new(fake.clone()))]).await;
    next.work();
    next.reaches(id, Succeeded).await;
    assert_eq!((fake.applied(id), next.steps(id, "observe").await), (1, 1));
}

#[tokio::test]
async fn who_lost_its_lease_writes_nothing_and_its_program_is_stopped() {
    let script = Scripted::default().hanging();
    let plan = Plan { lease: Duration::from_secs(3), ..Plan::of(script.clone()) };
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    eventually(async || script.calls().first().copied()).await;

    // A server whose clock is an hour ahead thinks that the lease is over.
    let fake = Fake::default();
    let mut other = house
        .beside(|plan| {
            plan.clock = Arc::new(SystemClock { offset_millis: 3_600_000 });
            plan.offerings = vec![offering("vm", Arc::new(fake.clone()))];
        })
        .await;
    other.work();
    other.reaches(id, Succeeded).await;
    eventually(async || script.stopped()).await;
    drop(house);
    assert_eq!(fake.applied(id), 1);
    let history = other.history(id).await;
    let written =
        ["queued", "running", "apply: begun", "observe: it is not there", "apply: begun", "succeeded"];
    assert_eq!(history, written);
}

#[tokio::test]
async fn who_cannot_renew_stops_its_program_before_the_lease_ends() {
    let lease = Duration::from_secs(3);
    let script = Scripted::default().hanging();
    let house = House::at_work(Plan { lease, ..Plan::of(script.clone()) }).await;
    let id = house.create("one").await;
    eventually(async || script.calls().first().copied()).await;
    // Another process holds the database's write lock, so that every renewal waits.
    let mut database = house.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.unwrap();
    let begun = Instant::now();
    let stopped = eventually(async || script.stopped()).await;
    assert!(stopped < begun + lease, "{:?}", stopped - begun);
    sqlx::query("ROLLBACK").execute(&mut database).await.unwrap();
    drop(database);
    // What it had begun is taken up again once the lease is over.
    eventually(async || (script.calls() == ["apply", "observe", "apply"]).then_some(())).await;
    assert_eq!(house.view(id).await.state, Running);
}

#[tokio::test]
async fn a_lease_shorter_than_the_work_is_renewed() {
    let fake = Fake::default();
    let lease = Duration::from_millis(600);
    fake.behave("one", Behaviour::SucceedAfter(lease * 4));
    let mut house = House::at_work(Plan { lease, ..Plan::of(fake.clone()) }).await;
    let mut other = house.beside(|_| ()).await;
    other.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    assert_eq!((fake.applied(id), house.steps(id, "apply").await), (1, 1));
    house.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_portals_on_one_database_never_run_the_same_run_twice() {
    let (mut house, fake) = with_fake().await;
    let mut other = house.beside(|_| ()).await;
    house.work();
    other.work();
    let mut ids = Vec::new();
    for number in 0..60 {
        let name = format!("vm-{number}");
        fake.behave(&name, Behaviour::SucceedAfter(Duration::from_millis(number % 5)));
        let at = if number % 2 == 0 { &house } else { &other };
        ids.push(at.create(&name).await);
    }
    for id in ids {
        house.reaches(id, Succeeded).await;
        assert_eq!((fake.applied(id), house.steps(id, "apply").await), (1, 1));
    }
    assert_eq!(fake.ledger().len(), 60);
}
