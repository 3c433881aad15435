//! Holding a run: one holder at a time, whose writes stop counting and whose program stops when the hold is lost.

use crate::{
    clock::SystemClock,
    provisioner::{
        Context, Job, Observation, Outcome, Provisioner,
        fake::{Behaviour, Fake},
    },
    testing::{House, Plan, Scripted, eventually, offering, with_fake},
};
use async_trait::async_trait;
use domain::{
    state::RequestState::{Running, Succeeded},
    view::Object,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
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
            plan.clock = Arc::new(SystemClock::shifted(3_600_000));
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

/// Loses its first answer; the first look for it takes until it is broken off.
#[derive(Debug, Default)]
struct SlowToLook {
    applied: AtomicU32,
    begun: AtomicU32,
    broken_off: AtomicU32,
}

#[async_trait]
impl Provisioner for SlowToLook {
    async fn observe(&self, _: &Job, context: &Context) -> Observation {
        if self.begun.fetch_add(1, Ordering::SeqCst) > 0 {
            return Observation::Absent;
        }
        context.stop.cancelled().await;
        self.broken_off.fetch_add(1, Ordering::SeqCst);
        Observation::CannotTell("stopped".into())
    }

    async fn apply(&self, _: &Job, _: &Context) -> Outcome {
        match self.applied.fetch_add(1, Ordering::SeqCst) {
            0 => Outcome::CannotTell("the answer was lost".into()),
            _ => Outcome::Done(Object::new()),
        }
    }

    async fn destroy(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::Done(Object::new())
    }
}

#[tokio::test]
async fn a_look_that_was_broken_off_for_want_of_the_database_leaves_nothing_in_doubt() {
    let slow = Arc::new(SlowToLook::default());
    let plan = Plan { lease: Duration::from_secs(1), workers: 1, ..Plan::of(Fake::default()) };
    let plan = plan.offering(|offering| (offering.provisioner, offering.max_tries) = (slow.clone(), 1));
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    let happened = async |count: &AtomicU32| {
        eventually(async || (count.load(Ordering::SeqCst) > 0).then_some(())).await;
    };
    happened(&slow.begun).await;
    // As if the database were away: nothing is renewed until the lease is about to end.
    let mut database = house.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.unwrap();
    happened(&slow.broken_off).await;
    sqlx::query("ROLLBACK").execute(&mut database).await.unwrap();
    // There was one try only, and it was not used up by that.
    house.reaches(id, Succeeded).await;
    assert_eq!(slow.applied.load(Ordering::SeqCst), 2);
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
