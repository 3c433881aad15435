//! How long a key is kept, reckoned from its request's end.

use crate::{
    provisioner::fake::Fake,
    testing::{House, Plan, standing, vm},
};
use domain::{problem::ProblemKind, state::RequestState::Succeeded};
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_key_is_over_when_its_retention_is_and_not_a_moment_before() {
    let (clock, fake) = (standing(), Fake::default());
    let mut house = House::build(Plan { clock: clock.clone(), ..Plan::of(fake.clone()) }).await;
    let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
    let first = house.send("k", &vm("one")).await.unwrap();
    let id = first.request_id.unwrap();
    // As long as the request is not at its end, its key is never over.
    clock.advance(retention * 2);
    assert!(house.send("k", &vm("one")).await.unwrap().replayed);
    house.work();
    house.reaches(id, Succeeded).await;
    clock.advance(retention.saturating_sub(MOMENT));
    assert_eq!(house.send("k", &vm("one")).await.unwrap().answer, first.answer);
    assert_eq!(house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap().id, id);
    clock.advance(MOMENT);
    // Whatever the body: nothing runs, and the first request is named.
    for name in ["one", "two"] {
        let refused = house.send("k", &vm(name)).await.unwrap_err();
        assert_eq!((refused.kind, refused.request), (ProblemKind::KeyExpired, Some(id)));
    }
    let looked = house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap_err();
    assert_eq!(looked.kind, ProblemKind::KeyExpired);
    assert_eq!(fake.ledger().len(), 1);
    // The name rule still holds under another key.
    assert!(house.send("other", &vm("one")).await.unwrap().existing);
}
