//! Counts of duplicates: over time, by rule and by source.

use super::*;
use crate::store::{
    Confirmation, SecondLook,
    duplicates::{PeriodCount, SLOT, SourceCount},
};
use domain::{
    duplicates::Rule,
    submission::SubmissionOutcome::{Mismatched, Refused, Replayed, Waited},
};

fn slot(number: i64) -> Moment {
    at(number * i64::try_from(SLOT.as_millis()).unwrap())
}

/// What was counted in each period, in one order.
async fn counted(bench: &Bench, edges: Vec<Moment>) -> Vec<(usize, &'static str, String, i64)> {
    let (periods, _) = bench.store.duplicates(edges, 10).await.unwrap();
    let shown = |count: PeriodCount| (count.place, count.rule.as_str(), count.channel, count.count);
    let mut counts: Vec<_> = periods.into_iter().map(shown).collect();
    counts.sort();
    counts
}

pub(super) async fn duplicates_are_counted_by_time_rule_and_source(bench: Bench) {
    bench.created("k", "one").await;
    let arrived = |outcome, problem, channel, at| Arrived {
        outcome,
        problem,
        channel,
        at,
        ..bench.arrived(scope("k"), Operation::Create)
    };
    let before = Moment::from_millis(slot(5).millis() - 1);
    let mut clicks = arrived(Replayed, None, Channel::Form, before);
    clicks.token_label = None;
    bench
        .store
        .record(Arc::new([
            arrived(Replayed, None, Channel::Api, slot(4)),
            arrived(Replayed, None, Channel::Api, before),
            clicks,
            arrived(Waited, None, Channel::Api, slot(5)),
            arrived(Mismatched, Some("idempotency-key-reused"), Channel::Api, slot(6)),
            arrived(Refused, Some("idempotency-key-expired"), Channel::Hook, slot(6)),
            arrived(Refused, Some("suspected-duplicate"), Channel::Form, slot(6)),
            arrived(Refused, Some("invalid-parameters"), Channel::Form, slot(6)),
        ]))
        .await
        .unwrap();
    // Counts of one quarter of an hour add up, whoever writes them.
    bench.store.record([arrived(Replayed, None, Channel::Api, before)].into()).await.unwrap();
    let api = |place, rule, count| (place, rule, "api".to_owned(), count);
    assert_eq!(
        counted(&bench, vec![slot(4), slot(5), slot(6), slot(7)]).await,
        [
            api(0, "replayed", 3),
            (0, "replayed", "form".into(), 1),
            api(1, "waited", 1),
            (2, "asked", "form".into(), 1),
            (2, "expired", "hook".into(), 1),
            api(2, "mismatched", 1),
        ]
    );
    assert_eq!(counted(&bench, vec![slot(5), slot(6)]).await, [api(0, "waited", 1)]);
    let (_, sources) = bench.store.duplicates(vec![slot(0), slot(9)], 1).await.unwrap();
    let most = SourceCount {
        rule: Rule::Replayed,
        channel: "api".into(),
        sent_by: "ann".into(),
        token_label: "ci".into(),
        count: 3,
    };
    assert_eq!(sources, [most], "the most first, and no more than were asked for");
}

pub(super) async fn repeats_that_are_only_counted_are_duplicates_too(bench: Bench) {
    bench.created("k", "one").await;
    for _ in 0..3 {
        let repeats = (0..500).map(|_| Arrived {
            outcome: SubmissionOutcome::Replayed,
            ..bench.arrived(scope("k"), Operation::Create)
        });
        bench.store.record(repeats.collect()).await.unwrap();
    }
    let (periods, _) = bench.store.duplicates(vec![slot(0), slot(1000)], 10).await.unwrap();
    assert_eq!(periods.iter().map(|period| period.count).sum::<i64>(), 1500);
}

pub(super) async fn duplicates_under_another_key_are_counted_with_their_claim(bench: Bench) {
    let one = bench.created("k", "one").await;
    // Already there under another key; in doubt: confirmed, and one that could not be asked.
    bench.store.submit(bench.create(&scope("other"), "one", "small")).await.unwrap();
    for (vm, askable) in [("two", true), ("three", false)] {
        let mut submission = bench.create(&scope(vm), vm, "small");
        let Effect::Create { second_look, .. } = &mut submission.effect else { panic!("not a create") };
        let confirmed = None;
        *second_look = Some(SecondLook { parameters: [1; 32], since: at(0), askable, confirmed });
        bench.store.submit(submission).await.unwrap();
    }
    let two = bench.all(10, None).await.results.into_iter().find(|made| made.name.as_str() == "two").unwrap();
    let mut submission = bench.create(&scope("four"), "four", "small");
    let Effect::Create { second_look, .. } = &mut submission.effect else { panic!("not a create") };
    let three = bench.all(10, None).await.results.remove(0);
    assert_eq!(three.duplicate.map(|duplicate| duplicate.of.id), Some(two.id));
    let confirmed = Some(Confirmation { of: three.id, reason: "a spare".into() });
    *second_look = Some(SecondLook { parameters: [1; 32], since: at(0), askable: true, confirmed });
    assert!(matches!(bench.store.submit(submission).await.unwrap(), Submitted::First(..)));
    let api = |rule| (0, rule, "api".to_owned(), 1);
    let counts = counted(&bench, vec![slot(0), slot(1000)]).await;
    assert_eq!(counts, [api("confirmed"), api("existing"), api("recorded")]);
    // All of them came with one token, and so they are told.
    let (_, sources) = bench.store.duplicates(vec![slot(0), slot(1000)], 10).await.unwrap();
    let told: Vec<_> = sources.iter().map(|one| (one.rule.as_str(), one.token_label.as_str())).collect();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|(_, token)| *token == "ci"), "{told:?}");
    assert!(bench.state(one).await == RequestState::Queued);
}

pub(super) async fn creates_of_an_offering_are_read_page_by_page(bench: Bench) {
    for number in 0..5 {
        bench.created(&format!("k-{number}"), &format!("vm-{number}")).await;
    }
    let read = async |after| bench.store.creates_of(&name("vm"), at(0), after, 3).await.unwrap();
    let first = read(None).await;
    let rest = read(first.last().map(|last| (last.created_at, last.id.0))).await;
    let names: Vec<_> = first.iter().chain(&rest).map(|made| made.name.to_string()).collect();
    assert_eq!(names, ["vm-4", "vm-3", "vm-2", "vm-1", "vm-0"]);
    let since = first[1].created_at;
    assert_eq!(bench.store.creates_of(&name("vm"), since, None, 10).await.unwrap().len(), 2);
    assert!(bench.store.creates_of(&name("disk"), at(0), None, 10).await.unwrap().is_empty());
}
