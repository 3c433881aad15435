//! Cancelling: the program is stopped, nothing is left, and a race with the end has one outcome that holds everywhere.

use crate::{
    provisioner::fake::Behaviour,
    testing::{House, Plan, Scripted, eventually, key, with_fake},
};
use bytes::Bytes;
use domain::{
    problem::ProblemKind,
    state::RequestState::{Canceled, Queued, Running, Succeeded},
};
use std::time::Duration;

#[tokio::test]
async fn a_running_request_is_stopped_and_leaves_nothing() {
    let script = Scripted::default().hanging();
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    eventually(async || script.calls().first().copied()).await;
    let answered = house.cancel(id).await.unwrap();
    assert_eq!(answered.request_id, Some(id));
    house.reaches(id, Canceled).await;
    assert!(script.stopped().is_some());
    assert_eq!(script.calls(), ["apply", "observe"]);
    assert!(house.is_free("one").await);
    let (again, none) = (key("again"), Bytes::new());
    let again = house.portal.cancel(&house.ann, &id.to_string(), again, none).await.unwrap();
    assert!(again.existing, "stopping again is no error");
}

#[tokio::test]
async fn a_cancellation_is_heard_long_before_the_lease_would_be_renewed() {
    let script = Scripted::default().hanging();
    let plan = Plan { lease: Duration::from_hours(1), ..Plan::of(script.clone()) };
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    // At the very moment the run was taken, when its holder may not listen yet.
    house.reaches(id, Running).await;
    house.cancel(id).await.unwrap();
    house.reaches(id, Canceled).await;
}

#[tokio::test]
async fn a_request_that_nobody_began_is_canceled_at_once() {
    let (house, fake) = with_fake().await;
    let id = house.create("one").await;
    assert_eq!(house.view(id).await.state, Queued);
    house.cancel(id).await.unwrap();
    assert_eq!(house.view(id).await.state, Canceled);
    assert_eq!(house.store.next_due().await.unwrap(), None);
    assert!(house.is_free("one").await && fake.ledger().is_empty());
}

#[tokio::test]
async fn a_cancellation_that_meets_the_end_has_one_outcome_in_every_place() {
    let (mut house, fake) = with_fake().await;
    house.work();
    let mut ends = [0, 0];
    for number in 0..60_u64 {
        let name = format!("race-{number}");
        fake.behave(&name, Behaviour::SucceedAfter(Duration::from_millis(number % 12)));
        let id = house.create(&name).await;
        tokio::time::sleep(Duration::from_millis(number % 7)).await;
        let canceled = house.cancel(id).await;
        let view = eventually(async || Some(house.view(id).await).filter(|view| view.state.is_final())).await;
        let stands = fake.ledger().iter().filter(|effect| effect.request_id == id).count() % 2 == 1;
        match view.state {
            Succeeded => {
                assert!(stands && house.resource_state(&name).await == "active");
                ends[0] += 1;
            }
            Canceled => {
                assert!(!stands && house.is_free(&name).await);
                assert!(canceled.is_ok());
                ends[1] += 1;
            }
            other => panic!("{other}: {:?}", house.history(id).await),
        }
        if let Err(refused) = canceled {
            assert_eq!(refused.kind, ProblemKind::AlreadyDecided);
        }
        assert!(fake.applied(id) <= 1);
    }
    assert!(ends[0] > 0 && ends[1] > 0, "the race went one way only: {ends:?}");
}
