//! The end of keys, and which version of the portal's key they need until then.

use super::*;

const KEPT: Duration = Duration::from_hours(1);
const TOMBSTONES: Duration = Duration::from_hours(2);

fn before(moment: Moment) -> Moment {
    at(moment.millis() - 1)
}

impl Bench {
    /// Submits a create that arrives at this moment.
    async fn sent_at(&self, key: &str, vm: &str, moment: Moment) -> Submitted {
        let mut submission = self.create(&scope(key), vm, "small");
        submission.arrived.at = moment;
        let Effect::Create { request, .. } = &mut submission.effect else { panic!("not a create") };
        request.view.created_at = moment;
        self.store.submit(submission).await.unwrap()
    }

    /// A create with the key `k` that failed at this moment, and was opened again under the key `again` once its own was
    /// over.
    async fn opened_again_after_its_retention(&self, first_end: Moment) {
        let id = self.created("k", "one").await;
        let run = self.taken("w", self.now()).await;
        self.ended(run.hold(), RequestState::Failed, first_end).await;
        self.swept(first_end.plus(KEPT), 10).await;
        let retry = Effect::Retry(id, ResourceId(self.id()));
        let retry = self.decision(scope("again"), Operation::Retry, retry);
        assert!(matches!(self.store.submit(retry).await.unwrap(), Submitted::First(..)));
    }

    async fn retired(&self, key: &str) -> Option<Moment> {
        self.claim(key).await.unwrap().retired_at
    }

    /// Sweeps until nothing is left to do; how many batches that took.
    async fn swept(&self, now: Moment, limit: u32) -> u32 {
        let mut batches = 0;
        loop {
            batches += 1;
            if self.store.retire(now, KEPT, limit).await.unwrap() < u64::from(limit) {
                return batches;
            }
        }
    }
}

pub(super) async fn keys_become_tombstones_in_place_when_their_retention_is_over(bench: Bench) {
    let (end, late) = (at(2_000_000), at(2_500_000));
    let id = bench.created("k", "one").await;
    let open = bench.created("open", "two").await;
    assert!(matches!(bench.sent_at("early", "one", at(1_100_000)).await, Submitted::Existing(..)));
    let run = bench.taken("w", bench.now()).await;
    assert_eq!(run.request.view.id, id);
    bench.ended(run.hold(), RequestState::Succeeded, end).await;
    // Bound to what had ended before, so it counts from itself.
    assert!(matches!(bench.sent_at("late", "one", late).await, Submitted::Existing(..)));
    assert!(bench.claim("late").await.unwrap().late && !bench.claim("early").await.unwrap().late);

    bench.swept(before(end.plus(KEPT)), 10).await;
    for key in ["k", "early", "late", "open"] {
        assert_eq!(bench.retired(key).await, None, "{key}");
    }
    bench.swept(end.plus(KEPT), 10).await;
    for key in ["k", "early"] {
        let claim = bench.claim(key).await.unwrap();
        assert_eq!((claim.retired_at, claim.request), (Some(end.plus(KEPT)), Some(id)), "{key}");
        assert!(claim.answer.body.is_empty() && claim.answer.location.is_none() && claim.command.is_none());
        assert_eq!((claim.schema_digest, claim.meaning.key_version), (None, 0));
    }
    assert_eq!(bench.retired("late").await, None);
    bench.swept(before(late.plus(KEPT)), 10).await;
    assert_eq!(bench.retired("late").await, None);
    bench.swept(late.plus(KEPT), 10).await;
    assert_eq!(bench.retired("late").await, Some(late.plus(KEPT)));
    // An unfinished request's key is never over.
    bench.swept(late.plus(KEPT * 1000), 10).await;
    assert_eq!((bench.retired("open").await, bench.state(open).await), (None, RequestState::Queued));
    // A late repeat still meets the key, and runs nothing.
    assert!(
        matches!(bench.sent_at("k", "new", late.plus(KEPT)).await, Submitted::Repeat(claim) if claim.retired_at.is_some())
    );

    let over = end.plus(KEPT).plus(TOMBSTONES);
    assert_eq!(bench.store.drop_tombstones(before(over), KEPT, TOMBSTONES, 10).await.unwrap(), 0);
    assert_eq!(bench.store.drop_tombstones(over, KEPT, TOMBSTONES, 10).await.unwrap(), 2);
    assert!(bench.claim("k").await.is_none() && bench.claim("early").await.is_none());
    assert!(bench.claim("late").await.is_some() && bench.claim("open").await.is_some());
    // The key is free; the name rule still holds.
    assert!(matches!(bench.sent_at("k", "one", over).await, Submitted::Existing(_, maker) if maker == id));
}

pub(super) async fn keys_without_a_request_count_from_themselves(bench: Bench) {
    let ann = bench.someone("ann", PortalRole::Member, None);
    bench.store.add_principal(ann.clone(), bench.now()).await.unwrap();
    let own = Scope { principal: ann.id, ..scope_of("-", 1, "token") };
    let token = TokenView {
        id: TokenId(bench.id()),
        label: "ci".into(),
        created_at: bench.now(),
        expires_at: bench.now().plus(LEASE),
        last_used_at: None,
        revoked_at: None,
        token: None,
        note: None,
    };
    let effect = Effect::TokenCreate { token, digest: [3; 32], answer: Answer::empty() };
    let submission = bench.decision(own.clone(), Operation::TokenCreate, effect);
    let over = submission.arrived.at.plus(KEPT);
    bench.store.submit(submission).await.unwrap();
    let retired_at = async || bench.store.claimed(&own).await.unwrap().unwrap().0.retired_at;
    bench.swept(before(over), 10).await;
    assert_eq!(retired_at().await, None);
    bench.swept(over, 10).await;
    assert_eq!(retired_at().await, Some(over));
}

pub(super) async fn a_request_that_is_opened_again_is_no_hole(bench: Bench) {
    let (first_end, second_end) = (at(2_000_000), at(20_000_000));
    bench.opened_again_after_its_retention(first_end).await;
    // The new key stays while the new attempt is under way, and the old one stays over.
    bench.swept(second_end, 10).await;
    assert_eq!(bench.retired("again").await, None);
    assert_eq!(bench.retired("k").await, Some(first_end.plus(KEPT)));
    let run = bench.taken("w", at(i64::MAX / 2)).await;
    bench.ended(run.hold(), RequestState::Succeeded, second_end).await;
    bench.swept(before(second_end.plus(KEPT)), 10).await;
    assert_eq!(bench.retired("again").await, None);
    bench.swept(second_end.plus(KEPT), 10).await;
    assert_eq!(bench.retired("again").await, Some(second_end.plus(KEPT)));
    assert_eq!(bench.retired("k").await, Some(first_end.plus(KEPT)));
}

pub(super) async fn a_tombstone_stays_while_its_request_is_open_again(bench: Bench) {
    let (first_end, second_end) = (at(2_000_000), at(200_000_000));
    bench.opened_again_after_its_retention(first_end).await;
    let dropped = async |now| bench.store.drop_tombstones(now, KEPT, TOMBSTONES, 10).await.unwrap();
    // Long after the tombstone would have ended, the request is on its way still.
    let late = first_end.plus(KEPT).plus(TOMBSTONES * 10);
    assert_eq!(dropped(late).await, 0);
    let claim = bench.claim("k").await.unwrap();
    bench.store.drop_claim(&scope("k"), &claim, late).await.unwrap();
    assert!(bench.claim("k").await.is_some());
    let run = bench.taken("w", at(i64::MAX / 2)).await;
    bench.ended(run.hold(), RequestState::Succeeded, second_end).await;
    // From its new end it is kept as long as any other.
    let over = second_end.plus(KEPT).plus(TOMBSTONES);
    assert_eq!(dropped(before(over)).await, 0);
    bench.store.drop_claim(&scope("k"), &claim, before(second_end)).await.unwrap();
    assert!(bench.claim("k").await.is_some());
    assert_eq!(dropped(over).await, 1);
    assert!(bench.claim("k").await.is_none() && bench.claim("again").await.is_some());
}

pub(super) async fn who_opens_a_request_again_finds_its_keys_alike_whether_they_were_swept_or_not(
    bench: Bench,
) {
    let (first_end, second_end) = (at(2_000_000), at(20_000_000));
    let over = first_end.plus(KEPT);
    for swept in [true, false] {
        let key = |what: &str| format!("{what}-{swept}");
        let id = bench.created(&key("k"), &key("vm")).await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Failed, first_end).await;
        if swept {
            bench.swept(over, 10).await;
        }
        bench.store.retire_request(id, before(over), KEPT).await.unwrap();
        assert_eq!(bench.retired(&key("k")).await, swept.then_some(over), "not before its time");
        bench.store.retire_request(id, over, KEPT).await.unwrap();
        let retry = Effect::Retry(id, ResourceId(bench.id()));
        let retry = bench.decision(scope(&key("again")), Operation::Retry, retry);
        assert!(matches!(bench.store.submit(retry).await.unwrap(), Submitted::First(..)));
        assert_eq!(bench.retired(&key("k")).await, Some(over), "what is over stays over");
        let claim = bench.claim(&key("k")).await.unwrap();
        assert!(claim.answer.body.is_empty() && claim.request == Some(id));
        // Nothing of a request that is on its way is over.
        bench.store.retire_request(id, second_end.plus(KEPT * 10), KEPT).await.unwrap();
        assert_eq!(bench.retired(&key("again")).await, None);
        let run = bench.taken("w", at(i64::MAX / 2)).await;
        bench.ended(run.hold(), RequestState::Succeeded, second_end).await;
        bench.swept(before(second_end.plus(KEPT)), 10).await;
        assert_eq!(bench.retired(&key("again")).await, None);
        bench.swept(second_end.plus(KEPT), 10).await;
        assert_eq!(bench.retired(&key("again")).await, Some(second_end.plus(KEPT)));
    }
}

pub(super) async fn the_keys_of_a_change_that_is_tried_again_are_kept_until_its_next_end(bench: Bench) {
    bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Succeeded, at(1_500_000)).await;
    let change = bench.change("patch", "one", "update", patch(&json!({ "note": "n" })));
    let Submitted::Accepted(_, id, _) = bench.store.submit(change).await.unwrap() else { panic!() };
    let run = bench.taken("w", bench.now()).await;
    let (first_end, second_end) = (at(2_000_000), at(20_000_000));
    bench.ended(run.hold(), RequestState::Failed, first_end).await;
    bench.swept(first_end.plus(KEPT), 10).await;
    assert_eq!(bench.retired("patch").await, Some(first_end.plus(KEPT)));
    let retry = Effect::Retry(id, ResourceId(bench.id()));
    let retry = bench.decision(scope("again"), Operation::Retry, retry);
    assert!(matches!(bench.store.submit(retry).await.unwrap(), Submitted::First(..)));
    let run = bench.taken("w", at(i64::MAX / 2)).await;
    bench.ended(run.hold(), RequestState::Succeeded, second_end).await;
    bench.swept(before(second_end.plus(KEPT)), 10).await;
    assert_eq!(bench.retired("again").await, None);
    bench.swept(second_end.plus(KEPT), 10).await;
    assert_eq!(bench.retired("again").await, Some(second_end.plus(KEPT)));
}

pub(super) async fn sweeping_goes_on_in_bounded_batches_and_beside_others(bench: Bench) {
    let bench = Arc::new(bench);
    for number in 0..30 {
        bench.created(&format!("k-{number}"), &format!("vm-{number}")).await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Succeeded, at(2_000_000 + number)).await;
    }
    let now = at(2_000_100).plus(KEPT);
    assert!(bench.store.retire(now, KEPT, 3).await.unwrap() >= 3);
    let over = async |key: i64| bench.retired(&format!("k-{key}")).await.is_some();
    assert!(over(0).await && over(2).await, "what ended first is swept first");
    assert!(!over(3).await && !over(29).await, "a batch is bounded");
    let several: Vec<_> = (0..4)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.swept(now, 3).await })
        })
        .collect();
    for one in several {
        assert!(one.await.unwrap() >= 1);
    }
    // One that met only what others held has stopped early; the next turn is its.
    bench.swept(now, 3).await;
    for number in 0..30 {
        assert_eq!(bench.retired(&format!("k-{number}")).await, Some(at(2_000_000 + number).plus(KEPT)));
    }
    let now = now.plus(TOMBSTONES);
    let several: Vec<_> = (0..4)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                let mut removed = 0;
                for _ in 0..30 {
                    removed += bench.store.drop_tombstones(now, KEPT, TOMBSTONES, 3).await.unwrap();
                }
                removed
            })
        })
        .collect();
    let mut removed = 0;
    for one in several {
        removed += one.await.unwrap();
    }
    assert_eq!(removed, 30);
    assert!(bench.claim("k-7").await.is_none());
}

pub(super) async fn one_claim_is_dropped_only_when_its_time_is_over(bench: Bench) {
    let end = at(2_000_000);
    bench.created("k", "one").await;
    bench.created("open", "two").await;
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Succeeded, end).await;
    let (claim, open) = (bench.claim("k").await.unwrap(), bench.claim("open").await.unwrap());
    bench.store.drop_claim(&scope("k"), &claim, before(end)).await.unwrap();
    bench.store.drop_claim(&scope("open"), &open, end).await.unwrap();
    assert!(bench.claim("k").await.is_some() && bench.claim("open").await.is_some());
    // Another claim of the same key is not the one that was met.
    let other = Claim { claimed_at: end, ..claim.clone() };
    bench.store.drop_claim(&scope("k"), &other, end).await.unwrap();
    assert!(bench.claim("k").await.is_some());
    bench.store.drop_claim(&scope("k"), &claim, end).await.unwrap();
    assert!(bench.claim("k").await.is_none());
}

pub(super) async fn it_is_known_what_each_version_of_the_key_is_needed_for(bench: Bench) {
    let head = |version: u8| [b'k', b't', 0, 0, 0, version];
    let sealed = |version, rest: &[u8]| [head(version).as_slice(), rest].concat();
    let id = bench.created("k", "one").await;
    bench.created("open", "two").await;
    let run = bench.taken("w", bench.now()).await;
    let ending = Ending {
        secrets: Some(sealed(1, b"old")),
        secret_names: vec!["password".into()],
        ..Ending::without_outputs(RequestState::Succeeded, None)
    };
    bench.store.end_run(run.hold(), ending, at(2_000_000)).await.unwrap();
    let needed = async || bench.store.key_use().await.unwrap();
    let both = |claims, secrets| crate::keys::Use { claims, secrets };
    assert_eq!(needed().await.into_iter().collect::<Vec<_>>(), [(1, both(2, 1))]);

    let found = bench.store.sealed_otherwise(&head(2), 10).await.unwrap();
    let resource = bench.store.request(id).await.unwrap().unwrap().resource;
    assert_eq!(found, [(resource, sealed(1, b"old"))]);
    assert!(bench.store.sealed_otherwise(&head(1), 10).await.unwrap().is_empty());
    assert!(!bench.store.reseal(resource, sealed(1, b"other"), sealed(2, b"new")).await.unwrap());
    assert!(bench.store.reseal(resource, sealed(1, b"old"), sealed(2, b"new")).await.unwrap());
    assert!(bench.store.sealed_otherwise(&head(2), 10).await.unwrap().is_empty());
    assert_eq!(bench.store.sealed_otherwise(&head(1), 10).await.unwrap().len(), 1, "newer ones as well");
    assert_eq!(needed().await.into_iter().collect::<Vec<_>>(), [(1, both(2, 0)), (2, both(0, 1))]);
    // A tombstone needs no key any more.
    bench.swept(at(2_000_000).plus(KEPT), 10).await;
    assert_eq!(needed().await.get(&1), Some(&both(1, 0)));
}
