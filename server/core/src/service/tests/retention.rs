//! How long a key is kept, reckoned from its request's end.

use crate::{
    clock::{Clock as _, HastyClock, StandingClock},
    provisioner::fake::{Behaviour, Fake},
    store::{NO_TEAM, Scope},
    testing::{Ground, House, Plan, eventually, send, standing, vm},
};
use domain::{
    key::SubmissionKey,
    problem::ProblemKind::{self, KeyExpired, NotFound},
    state::RequestState::{Failed, Queued, Succeeded},
    time::Moment,
};
use std::{sync::Arc, time::Duration};

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

#[tokio::test]
async fn the_key_of_a_failed_request_that_is_tried_again_after_its_retention_is_over_swept_or_not() {
    for ground in [Ground::sqlite, Ground::postgres] {
        for swept in [false, true] {
            let (clock, fake) = (standing(), Fake::default());
            let mut house =
                House::build_on(ground(), Plan { clock: clock.clone(), ..Plan::of(fake.clone()) }).await;
            fake.behave("one", Behaviour::Fail("no room".into()));
            let id = house.send("k", &vm("one")).await.unwrap().request_id.unwrap();
            house.work();
            house.reaches(id, Failed).await;
            house.shut_down().await;
            let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
            clock.advance(retention);
            if swept {
                assert!(house.store.retire(clock.now(), retention, 10).await.unwrap() > 0);
            }
            house.retry(id).await.unwrap();
            let refused = house.send("k", &vm("one")).await.unwrap_err();
            assert_eq!((refused.kind, refused.request), (KeyExpired, Some(id)), "swept: {swept}");
            assert_eq!(house.view(id).await.state, Queued);
        }
    }
}

#[tokio::test]
async fn what_is_swept_is_refused_as_before_with_its_request_until_its_tombstone_is_over() {
    let clock = standing();
    let mut house = House::build(Plan { clock: clock.clone(), ..Plan::of(Fake::default()) }).await;
    house.work();
    let id = house.send("k", &vm("one")).await.unwrap().request_id.unwrap();
    house.reaches(id, Succeeded).await;
    house.shut_down().await;
    let policy = house.portal.guard_policy();
    clock.advance(Duration::from_secs(policy.retention_seconds));
    // The sweeper of a server that starts begins at once.
    let mut house = house.beside(|_| ()).await;
    house.work();
    eventually(async || {
        let body: Vec<u8> =
            sqlx::query_scalar("SELECT body FROM claim WHERE key = 'k' AND retired_at IS NOT NULL")
                .fetch_optional(&mut house.database().await)
                .await
                .unwrap()?;
        Some(body).filter(Vec::is_empty)
    })
    .await;
    for name in ["one", "two"] {
        let refused = house.send("k", &vm(name)).await.unwrap_err();
        assert_eq!((refused.kind, refused.request), (KeyExpired, Some(id)));
    }
    let looked = house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap_err();
    assert_eq!((looked.kind, looked.request), (KeyExpired, Some(id)));
    // The late repeats are in the request's history.
    let outcomes = super::history::outcomes(&house, id, 3).await;
    assert_eq!(outcomes, ["first", "refused", "refused"]);
    // Who may not see the request any more learns nothing of it.
    let mut moved = house.ann.clone();
    moved.teams.clear();
    let refused = send(&house.portal, &moved, "alpha", "k", &vm("one").to_string()).await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (NotFound, None));
    house.shut_down().await;
    clock.advance(Duration::from_secs(policy.tombstone_seconds).saturating_sub(MOMENT));
    assert_eq!(house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap_err().kind, KeyExpired);
    clock.advance(MOMENT);
    // Swept or not: the key is free, and the name rule still holds.
    assert_eq!(house.portal.look_up(&house.ann, "alpha", b"k").await.unwrap_err().kind, NotFound);
    let again = house.send("k", &vm("one")).await.unwrap();
    assert_eq!((again.existing, again.replayed, again.request_id), (true, false, Some(id)));
}

#[tokio::test]
async fn a_key_bound_to_what_ended_long_ago_is_kept_from_its_own_arrival() {
    let clock = standing();
    let mut house = House::build(Plan { clock: clock.clone(), ..Plan::of(Fake::default()) }).await;
    house.work();
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
    clock.advance(retention * 3);
    let found = house.send("late", &vm("one")).await.unwrap();
    assert!(found.existing);
    clock.advance(retention.saturating_sub(MOMENT));
    let again = house.send("late", &vm("one")).await.unwrap();
    assert!(again.replayed && again.answer == found.answer && again.expires == found.expires);
    clock.advance(MOMENT);
    assert_eq!(house.send("late", &vm("one")).await.unwrap_err().kind, KeyExpired);
}

#[tokio::test]
async fn a_token_is_kept_under_its_key_from_its_making() {
    let clock = standing();
    let house = House::build(Plan { clock: clock.clone(), ..Plan::of(Fake::default()) }).await;
    let make = async || {
        let body = r#"{"label":"ci"}"#;
        house.portal.create_token(&house.ann, crate::testing::key("t"), body.into()).await
    };
    let first = make().await.unwrap();
    let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
    clock.advance(retention.saturating_sub(MOMENT));
    let again = make().await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.expires, first.expires);
    clock.advance(MOMENT);
    let refused = make().await.unwrap_err();
    assert_eq!((refused.kind, refused.request), (KeyExpired, None));
}

#[tokio::test]
async fn no_more_is_promised_than_is_kept() {
    // Time goes on between the arrival of a submission and its answer.
    let clock = Arc::new(HastyClock(StandingClock::at(Moment::from_millis(1_780_000_000_000))));
    let house = House::build(Plan { clock, ..Plan::of(Fake::default()) }).await;
    let retention = Duration::from_secs(house.portal.guard_policy().retention_seconds);
    let made = house.portal.create_token(&house.ann, crate::testing::key("t"), r#"{"label":"ci"}"#.into());
    let promised = made.await.unwrap().expires.unwrap();
    let scope =
        Scope { team: NO_TEAM.into(), principal: house.ann.id, key: SubmissionKey::parse(b"t").unwrap() };
    let (claim, _) = house.store.claimed(&scope).await.unwrap().unwrap();
    assert_eq!(promised, claim.claimed_at.plus(retention));
    // What it makes may end at once.
    let before = house.portal.now();
    let first = house.send("k", &vm("one")).await.unwrap().expires.unwrap();
    assert_eq!(first, before.plus(Duration::from_secs(1)).plus(retention));
    let before = house.portal.now();
    let again = house.send("k", &vm("one")).await.unwrap().expires.unwrap();
    assert_eq!(again, before.plus(Duration::from_secs(1)).plus(retention));
}
