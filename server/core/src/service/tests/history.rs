//! Every arrival is kept with its outcome: firsts with their claim, repeats and refusals in batches soon after.

use crate::{
    service::{Target, history::WAITING},
    testing::{House, SOON, eventually, key, vm, with_fake},
};
use bytes::Bytes;
use domain::{command::Operation, id::RequestId, problem::ProblemKind, role::TeamRole, submission::Channel};
use std::time::{Duration, Instant};

/// What became of a request's arrivals, once there are this many.
pub(super) async fn outcomes(house: &House, id: RequestId, count: usize) -> Vec<&'static str> {
    eventually(async || {
        let kept = house.store.submissions(id).await.unwrap();
        let outcomes: Vec<_> = kept.results.iter().map(|one| one.outcome.as_str()).collect();
        (outcomes.len() >= count).then_some(outcomes)
    })
    .await
}

#[tokio::test]
async fn every_arrival_is_kept_with_its_door_sender_and_outcome() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    house.ann.channel = Channel::Form;
    assert!(house.send("create-one", &vm("one")).await.unwrap().replayed);
    let refused = house.send("create-one", &vm("two")).await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::KeyReused);
    assert!(house.send("other", &vm("one")).await.unwrap().existing);
    // A refusal that led to nothing belongs to no request.
    house.send("other-again", &vm("TWO")).await.unwrap_err();
    outcomes(&house, id, 4).await;
    let kept = house.store.submissions(id).await.unwrap();
    let mut told: Vec<_> = kept
        .results
        .iter()
        .map(|one| (one.key.as_str(), one.outcome.as_str(), one.channel, one.problem.as_deref()))
        .collect();
    told.sort_by_key(|(key, outcome, ..)| (*key, *outcome));
    assert_eq!(
        told,
        [
            ("create-one", "first", Channel::Api, None),
            ("create-one", "mismatched", Channel::Form, Some("idempotency-key-reused")),
            ("create-one", "replayed", Channel::Form, None),
            ("other", "existing", Channel::Form, None),
        ]
    );
    assert!(kept.results.iter().all(|one| one.sent_by == "ann" && one.operation == "create"));
    let refusals = eventually(async || {
        let count = "SELECT count(*) FROM submission WHERE key = 'other-again' AND outcome = 'refused'
                        AND problem = 'invalid-parameters' AND request IS NULL";
        let count: i64 = sqlx::query_scalar(count).fetch_one(&mut house.database().await).await.unwrap();
        Some(count).filter(|count| *count > 0)
    });
    assert_eq!(refusals.await, 1);
}

#[tokio::test]
async fn a_repeat_is_written_down_within_a_second() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    // A machine that stood still in between proves nothing, so one of a few must be in time.
    let mut spans = Vec::new();
    for count in 2..7 {
        house.send("create-one", &vm("one")).await.unwrap();
        let answered = Instant::now();
        outcomes(&house, id, count).await;
        spans.push(answered.elapsed());
    }
    assert!(spans.iter().any(|span| *span < Duration::from_secs(1)), "{spans:?}");
}

#[tokio::test]
async fn beyond_a_thousand_repeats_of_one_key_are_only_counted() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    for _ in 0..1100 {
        assert!(house.send("create-one", &vm("one")).await.unwrap().replayed);
    }
    let kept = eventually(async || {
        let kept = house.store.submissions(id).await.unwrap();
        (kept.total == 1101).then_some(kept)
    })
    .await;
    assert_eq!((kept.results.len(), kept.only_counted), (1000, 101));
}

#[tokio::test]
async fn a_shutdown_writes_what_waits() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await;
    for _ in 0..3 {
        house.send("create-one", &vm("one")).await.unwrap();
    }
    tokio::time::timeout(SOON, house.shut_down()).await.unwrap();
    assert_eq!(house.store.submissions(id).await.unwrap().results.len(), 4);
}

#[tokio::test]
async fn what_comes_faster_than_it_can_be_written_is_counted() {
    let (mut house, _) = with_fake().await;
    let id = house.create("one").await;
    let portal = &house.portal.0;
    let repeat = key("create-one").key().unwrap();
    let repeat = portal.arrived(&house.ann, "alpha", repeat, Operation::Create, portal.clock.now());
    let answered = house.send("create-one", &vm("one")).await;
    // Nobody writes it yet.
    for _ in 0..WAITING + 3 {
        portal.record(repeat.clone(), &answered, false);
    }
    house.work();
    let total = u64::try_from(WAITING).unwrap() + 5;
    let kept = eventually(async || {
        let kept = house.store.submissions(id).await.unwrap();
        (kept.total.unsigned_abs() >= total).then_some(kept)
    })
    .await;
    assert_eq!(kept.total.unsigned_abs(), total, "the first, the one that was sent, and those recorded");
    assert!(kept.results.len() <= 1000, "{}", kept.results.len());
    let duplicates = "SELECT sum(count) FROM duplicate_count WHERE rule = 'replayed'";
    let duplicates: i64 =
        sqlx::query_scalar(duplicates).fetch_one(&mut house.database().await).await.unwrap();
    assert_eq!(duplicates.unsigned_abs(), total - 1);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_kept_of_who_may_see_the_team_and_of_nobody_else() {
    let (mut house, _) = with_fake().await;
    house.work();
    let id = house.create("one").await.to_string();
    let stranger = house.person("ben", "beta", TeamRole::Owner).await;
    let target = || Target { team: "alpha".into(), kind: "vm".into(), name: "one".into() };
    let bad = || Bytes::from_static(b"{\"unread\":");
    for (who, caller) in [("a", &house.ann), ("b", &stranger)] {
        let with = |door: &str| key(&format!("{who}-{door}"));
        let portal = &house.portal;
        for refused in [
            portal.create_request(caller, "alpha", with("create"), bad(), Vec::new()).await,
            portal.update(caller, target(), with("update"), bad(), Vec::new()).await,
            portal.delete(caller, target(), with("delete"), bad(), Vec::new()).await,
            portal.act(caller, target(), "grow", with("act"), bad(), Vec::new()).await,
            portal.cancel(caller, &id, with("cancel"), bad()).await,
            portal.retry(caller, &id, with("retry"), bad()).await,
            portal.resolve(caller, &id, with("resolve"), bad()).await,
        ] {
            assert_eq!(
                refused.unwrap_err().kind,
                ProblemKind::InvalidJson,
                "before whether anything is seen"
            );
        }
    }
    // What comes later is written later.
    house.send("last", &vm("LAST")).await.unwrap_err();
    let kept = async |which: &'static str| -> i64 {
        sqlx::query_scalar(which).fetch_one(&mut house.database().await).await.unwrap()
    };
    eventually(async || (kept("SELECT count(*) FROM submission WHERE key = 'last'").await > 0).then_some(()))
        .await;
    let refused = "SELECT count(DISTINCT operation) FROM submission
                    WHERE key LIKE 'a-%' AND outcome = 'refused' AND problem = 'invalid-json' AND request IS NULL";
    assert_eq!(kept(refused).await, 7);
    assert_eq!(kept("SELECT count(*) FROM submission WHERE key LIKE 'b-%'").await, 0);
}
