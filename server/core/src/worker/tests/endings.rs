//! How a run ends: back-off up to the limit, and `failed` only when nothing is left behind.

use crate::{
    provisioner::{
        Observation, Outcome,
        fake::{Behaviour, Fake},
    },
    testing::{House, Plan, Scripted, eventually, standing, with_fake},
};
use domain::{
    backoff::Backoff,
    state::RequestState::{Canceled, Failed, Running, Succeeded, Unknown},
    view::Object,
};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(10);

/// A house whose clock stands and whose offering waits ten seconds, then twice that, up to five tries.
fn patient(
    provisioner: impl crate::provisioner::Provisioner + 'static,
    clock: std::sync::Arc<crate::clock::StandingClock>,
) -> Plan {
    let plan = Plan::of(provisioner).offering(|offering| {
        offering.max_tries = 5;
        offering.retry = Backoff { base: WAIT, cap: WAIT * 100 };
    });
    Plan { clock, ..plan }
}

#[tokio::test]
async fn a_try_that_may_help_again_waits_longer_each_time() {
    let (fake, clock) = (Fake::default(), standing());
    fake.behave("one", Behaviour::RetryTimes(3));
    let house = House::at_work(patient(fake.clone(), clock.clone())).await;
    let id = house.create("one").await;
    for tried in 1..=3_u32 {
        let wait = WAIT * 2_u32.pow(tried - 1);
        let due = eventually(async || {
            // In this order: what is due before the run was given back is the end of its lease.
            if house.steps(id, "retry").await < tried as usize {
                return None;
            }
            house.store.next_due().await.unwrap()
        })
        .await;
        assert_eq!(due, house.portal.now().plus(wait));
        assert_eq!(house.view(id).await.state, Running);
        clock.advance(wait);
    }
    house.reaches(id, Succeeded).await;
    assert_eq!((fake.applied(id), house.steps(id, "apply").await), (1, 4));
}

#[tokio::test]
async fn tries_stop_at_the_limit_and_leave_nothing_behind() {
    let (mut house, fake) = with_fake().await;
    fake.behave("one", Behaviour::RetryTimes(99));
    house.work();
    let id = house.create("one").await;
    let view = house.reaches(id, Failed).await;
    assert!(view.reason.unwrap().starts_with("2 of 2 tries: "));
    assert_eq!((house.steps(id, "apply").await, fake.things()), (2, 0));
    assert!(house.is_free("one").await);
}

#[tokio::test]
async fn what_the_last_try_left_is_removed_before_the_request_counts_as_failed() {
    let busy = || Outcome::Retryable("busy".into());
    let ours = || Observation::Ours(Object::new());
    // The second try looks first; what it finds there is nothing, but after it something is.
    let script = Scripted::default().applying([busy(), busy()]).observing([Observation::Absent, ours()]);
    let house = House::at_work(Plan::of(script.clone())).await;
    let id = house.create("one").await;
    house.reaches(id, Failed).await;
    assert_eq!(script.calls(), ["apply", "observe", "apply", "observe", "destroy"]);
}

#[tokio::test]
async fn a_failed_apply_is_failed_only_once_nothing_is_left() {
    let ours = || Observation::Ours(Object::new());
    let unsure = || Observation::CannotTell("dark".into());
    let lost = || Outcome::CannotTell("lost".into());
    let no = || Outcome::Failed("no".into());
    let done = || Outcome::Done(Object::new());
    let cases = [
        (vec![Observation::Absent], vec![], Failed, 1),
        (vec![ours()], vec![done()], Failed, 2),
        (vec![unsure()], vec![done()], Failed, 2),
        (vec![ours(), Observation::Absent], vec![lost()], Failed, 3),
        (vec![ours(), ours()], vec![no()], Unknown, 3),
        (vec![ours(), unsure()], vec![lost()], Unknown, 3),
        (vec![unsure(), unsure()], vec![no()], Unknown, 3),
    ];
    for (observe, destroy, end, calls) in cases {
        let case = format!("{observe:?} {destroy:?}");
        let script = Scripted::default().applying([no()]).observing(observe).destroying(destroy);
        let house = House::at_work(Plan::of(script.clone())).await;
        let id = house.create("one").await;
        eventually(async || Some(()).filter(|()| script.calls().len() == calls + 1)).await;
        house.reaches(id, end).await;
        assert_eq!(house.is_free("one").await, end == Failed, "{case}");
        assert_eq!(script.calls().len(), calls + 1, "{case}: {:?}", script.calls());
    }
}

#[tokio::test]
async fn removing_that_may_help_again_is_tried_again_after_a_wait_and_not_at_once() {
    let busy = Outcome::Retryable("busy".into());
    let ours = || Observation::Ours(Object::new());
    let script =
        Scripted::default().hanging().observing([ours(), ours(), ours()]).destroying([busy.clone(), busy]);
    let clock = standing();
    let house = House::at_work(patient(script.clone(), clock.clone())).await;
    let id = house.create("one").await;
    eventually(async || script.calls().first().copied()).await;
    house.cancel(id).await.unwrap();
    // The first try to remove was made by the holder that was stopped; the second, for the cancellation itself.
    eventually(async || Some(()).filter(|()| script.calls().ends_with(&["observe", "destroy"]))).await;
    eventually(async || (house.steps(id, "retry").await == 2).then_some(())).await;
    let due = house.store.next_due().await.unwrap().unwrap();
    assert_eq!(due, house.portal.now().plus(WAIT * 2));
    clock.advance(WAIT * 2);
    house.reaches(id, Canceled).await;
    assert_eq!(script.calls().iter().filter(|call| **call == "destroy").count(), 3);
}

#[tokio::test]
async fn a_request_whose_offering_left_the_catalog_is_unknown_and_can_be_closed() {
    let (fake, clock) = (Fake::default(), standing());
    let house = House::build(Plan { clock: clock.clone(), ..Plan::of(fake.clone()) }).await;
    let id = house.create("one").await;
    super::recovery::die_holding(&house, id, true).await;
    let mut later = house.beside(|plan| plan.offerings.clear()).await;
    later.work();
    eventually(async || (house.steps(id, "wait").await == 1).then_some(())).await;
    clock.advance(Duration::from_mins(11));
    let view = later.reaches(id, Unknown).await;
    assert!(view.reason.unwrap().contains("catalog"));
    later.ann.role = domain::role::PortalRole::Admin;
    let body = r#"{"resolution":"abandon","force":true,"reason":"retired"}"#;
    let arrival = crate::testing::key("close");
    later.portal.resolve(&later.ann, &id.to_string(), arrival, body.into()).await.unwrap();
    let view = later.reaches(id, Failed).await;
    assert_eq!(view.reason.as_deref(), Some("retired"));
    assert!(later.is_free("one").await);
    assert_eq!(fake.ledger(), []);
}
