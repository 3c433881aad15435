//! The second layer: the same intention under another key.

use super::*;
use crate::store::{Confirmation, SecondLook};

impl Bench {
    fn looked_at(&self, scope: &Scope, vm: &str, parameters: u8) -> Submission {
        let mut submission = self.create(scope, vm, "small");
        let Effect::Create { second_look, .. } = &mut submission.effect else { panic!("not a create") };
        *second_look =
            Some(SecondLook { parameters: [parameters; 32], since: at(0), askable: true, confirmed: None });
        submission
    }

    async fn looked(&self, key: &str, vm: &str, change: impl FnOnce(&mut SecondLook)) -> Submitted {
        let mut submission = self.looked_at(&scope(key), vm, 1);
        let Effect::Create { second_look: Some(look), .. } = &mut submission.effect else {
            panic!("no look")
        };
        change(look);
        self.store.submit(submission).await.unwrap()
    }
}

fn confirming(of: RequestId) -> impl FnOnce(&mut SecondLook) {
    move |look| look.confirmed = Some(Confirmation { of, reason: "a spare".into() })
}

#[track_caller]
fn first(submitted: Submitted) -> (Answer, RequestId) {
    match submitted {
        Submitted::First(answer, Some(id)) => (answer, id),
        other => panic!("not a first: {other:?}"),
    }
}

#[track_caller]
fn suspected(submitted: Submitted) -> RequestId {
    match submitted {
        Submitted::Suspected(earlier) => earlier.id,
        other => panic!("not asked: {other:?}"),
    }
}

pub(super) async fn the_same_under_another_key_is_asked_and_burns_no_key(bench: Bench) {
    let (_, one) = first(bench.looked("k-1", "one", |_| ()).await);
    assert_eq!(suspected(bench.looked("k-2", "two", |_| ()).await), one);
    assert!(bench.claim("k-2").await.is_none());
    assert_eq!(bench.all(10, None).await.total, 1);
    assert!(bench.store.resource(&name("blue"), "vm", "two").await.unwrap().is_none());
    // The first's own repeat is a repeat, and its name is what is there already.
    assert!(matches!(bench.looked("k-1", "one", |_| ()).await, Submitted::Repeat(_)));
    assert!(matches!(bench.looked("k-3", "one", |_| ()).await, Submitted::Existing(..)));
    // Others' are nobody's likely duplicates, nor are other parameters, nor what came before the window.
    first(bench.store.submit(bench.looked_at(&scope_of("green", 1, "k"), "two", 1)).await.unwrap());
    first(bench.store.submit(bench.looked_at(&scope("other"), "three", 2)).await.unwrap());
    let created_at = bench.store.request(one).await.unwrap().unwrap().view.created_at;
    first(bench.looked("later", "four", |look| look.since = created_at).await);
}

pub(super) async fn a_confirmed_duplicate_goes_through_and_is_recorded(bench: Bench) {
    let (_, one) = first(bench.looked("k-1", "one", |_| ()).await);
    let other = RequestId(bench.id());
    assert_eq!(
        suspected(bench.looked("k-2", "two", confirming(other)).await),
        one,
        "not what was asked about"
    );
    let (answer, two) = first(bench.looked("k-2", "two", confirming(one)).await);
    let shown: RequestView = serde_json::from_slice(&answer.body).unwrap();
    let kept = bench.store.request(two).await.unwrap().unwrap().view;
    assert_eq!(shown, kept);
    let duplicate = kept.duplicate.unwrap();
    assert_eq!((duplicate.of.id, duplicate.reason.as_deref()), (one, Some("a spare")));
    assert_eq!(bench.claim("k-2").await.unwrap().answer, answer);
    // From now on the newest is what one is asked about.
    assert_eq!(suspected(bench.looked("k-3", "three", confirming(one)).await), two);
    let newest = bench.store.same_creates(&name("blue"), &name("vm"), [1; 32], at(0), 10).await.unwrap();
    assert_eq!(newest.iter().map(|request| request.id).collect::<Vec<_>>(), [two, one]);
}

pub(super) async fn what_came_to_nothing_is_no_duplicate_and_who_cannot_answer_is_not_asked(bench: Bench) {
    for state in [RequestState::Failed, RequestState::Canceled] {
        let (_, id) = first(bench.looked(&format!("k-{state}"), "one", |_| ()).await);
        let run = bench.taken("w", bench.now()).await;
        assert_eq!(run.request.view.id, id);
        bench.ended(run.hold(), state, bench.now()).await;
    }
    let (answer, one) = first(bench.looked("k-1", "one", |_| ()).await);
    assert!(serde_json::from_slice::<RequestView>(&answer.body).unwrap().duplicate.is_none());
    let (_, two) = first(bench.looked("k-2", "two", |look| look.askable = false).await);
    let duplicate = bench.store.request(two).await.unwrap().unwrap().view.duplicate.unwrap();
    assert_eq!((duplicate.of.id, duplicate.reason), (one, None));
}

pub(super) async fn two_of_the_same_at_the_same_moment_see_each_other(bench: Bench) {
    let bench = Arc::new(bench);
    for round in 0..10_u8 {
        let several: Vec<_> = (0..6)
            .map(|number| {
                let bench = Arc::clone(&bench);
                tokio::spawn(async move {
                    let (key, vm) = (format!("k-{round}-{number}"), format!("vm-{round}-{number}"));
                    // Some of a group are not looked at twice.
                    let submission = if number < 4 {
                        bench.looked_at(&scope(&key), &vm, round)
                    } else {
                        bench.create(&scope(&key), &vm, "small")
                    };
                    (number, bench.store.submit(submission).await.unwrap())
                })
            })
            .collect();
        let (mut firsts, mut asked) = (Vec::new(), Vec::new());
        for one in several {
            match one.await.unwrap() {
                (0..4, Submitted::First(_, Some(id))) => firsts.push(id),
                (0..4, Submitted::Suspected(earlier)) => asked.push(earlier.id),
                (4.., Submitted::First(..)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((firsts.len(), asked.len()), (1, 3), "round {round}");
        assert!(asked.iter().all(|earlier| *earlier == firsts[0]));
    }
}
