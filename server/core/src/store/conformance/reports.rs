//! Reports of work that goes on elsewhere: in any order, of any attempt, more than once, from several servers, and while
//! the database fails.

use super::{
    errands::{WAIT, errand, report, waiting},
    *,
};
use crate::{
    provisioner::Work,
    store::{Back, Errand, ErrandSeal, Report, Taken, Waiting, duplicates::SLOT},
};
use domain::callback::{
    Heard::{self, Applied, EarlierAttempt, Ended, Older, Orphaned},
    Progress::{self, Failed, Running, Succeeded},
};

/// A request whose first attempt goes on elsewhere, with its errand.
async fn gone_elsewhere(bench: &Bench) -> (RequestId, Errand) {
    let id = bench.created("k", "one").await;
    (id, begun(bench, 1).await)
}

/// Takes the run that is due, and leaves it to what it begins elsewhere.
async fn begun(bench: &Bench, attempt: u32) -> Errand {
    let now = bench.now();
    let run = bench.taken("w", now).await;
    assert_eq!(run.request.view.attempt, attempt);
    let kept = errand(bench, &run, Work::Apply);
    bench.store.begin_errand(run.hold(), kept.clone(), now).await.unwrap();
    bench.store.wait_elsewhere(run.hold(), waiting(), now).await.unwrap();
    kept
}

/// What becomes of a report that was never met before.
async fn heard(bench: &Bench, kept: &Errand, event: &str, sequence: i64, progress: Progress) -> Heard {
    let taken = bench.store.report(report(kept.id, event, sequence, progress, bench.now())).await.unwrap();
    let Taken::In { heard, again: false, .. } = taken else { panic!("{event}: {taken:?}") };
    heard
}

/// The log lines that reports brought into a history.
async fn lines(bench: &Bench, id: RequestId) -> Vec<String> {
    let events = bench.store.events(id, 0, 1000).await.unwrap();
    let line = |entry| if let EventEntry::Log { line } = entry { Some(line) } else { None };
    events.into_iter().filter_map(|event| line(event.entry)).collect()
}

pub(super) async fn reports_out_of_order_never_move_what_is_known_backwards(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    for (event, sequence, progress, expected) in [
        ("three", 3, Running, Applied),
        ("one", 1, Running, Older),
        ("two", 2, Succeeded, Older),
        ("three-again", 3, Running, Older),
        // Of two with one number the first counts, unless only the second brings the end.
        ("three-and-over", 3, Failed, Applied),
        ("three-and-done", 3, Succeeded, Ended),
        ("nine", 9, Succeeded, Ended),
        ("zero", 0, Succeeded, Older),
    ] {
        assert_eq!(heard(&bench, &kept, event, sequence, progress).await, expected, "{event}");
    }
    let known = bench.store.errand(kept.id).await.unwrap().unwrap();
    assert_eq!(known.reported.map(|(progress, _)| progress), Some(Failed));
    assert_eq!(lines(&bench, id).await, ["line of three", "line of three-and-over"]);
    let steps = bench.store.events(id, 0, 1000).await.unwrap();
    let told = |event: &str| format!(", event {event}): ");
    for (event, expected) in [("one", "ignored: older"), ("nine", "ignored: ended"), ("three", "applied")] {
        let said = steps.iter().any(|entry| match &entry.entry {
            EventEntry::Step { step, detail } => {
                step == "callback" && detail.ends_with(&format!("{}{expected}", told(event)))
            }
            _ => false,
        });
        assert!(said, "{event} stands in the history as {expected}");
    }
}

/// A request whose first attempt was reported as failed and whose second has begun, with what each began.
async fn begun_again(bench: &Bench) -> (RequestId, Errand, Errand) {
    let (id, first) = gone_elsewhere(bench).await;
    assert_eq!(heard(bench, &first, "end", 5, Failed).await, Applied);
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    let retry = bench.decision(scope("retry"), Operation::Retry, Effect::Retry(id, ResourceId(bench.id())));
    assert!(matches!(bench.store.submit(retry).await.unwrap(), Submitted::First(..)));
    let second = begun(bench, 2).await;
    (id, first, second)
}

pub(super) async fn a_report_of_an_earlier_attempt_leaves_the_later_one_alone(bench: Bench) {
    let (id, first, second) = begun_again(&bench).await;
    assert_ne!(first.id, second.id);
    for (event, sequence, progress) in [("late", 6, Succeeded), ("later", 7, Failed), ("old", 1, Running)] {
        assert_eq!(heard(&bench, &first, event, sequence, progress).await, EarlierAttempt, "{event}");
    }
    // The same for a report that says of itself that it is of an earlier attempt.
    let told = Report { earlier: true, ..report(second.id, "told", 9, Succeeded, bench.now()) };
    let taken = bench.store.report(told).await.unwrap();
    assert!(matches!(taken, Taken::In { heard: EarlierAttempt, again: false, .. }), "{taken:?}");
    assert_eq!(bench.state(id).await, RequestState::Running);
    assert!(bench.store.take_run("w", bench.now(), LEASE).await.unwrap().is_none(), "nobody was woken");
    assert_eq!(bench.store.errand(second.id).await.unwrap().unwrap().reported, None);
    assert_eq!(heard(&bench, &second, "own", 1, Succeeded).await, Applied);
    bench.taken("w", bench.now()).await;
}

pub(super) async fn a_success_of_any_attempt_of_what_ended_otherwise_is_an_orphan_once(bench: Bench) {
    let (id, first, second) = begun_again(&bench).await;
    assert_eq!(heard(&bench, &second, "own", 5, Failed).await, Applied);
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    for (kept, event, sequence, progress, expected) in [
        (&first, "old", 1, Running, EarlierAttempt),
        (&first, "late", 1, Succeeded, Orphaned),
        (&first, "again", 9, Succeeded, EarlierAttempt),
        (&first, "failed", 10, Failed, EarlierAttempt),
        (&second, "older", 4, Succeeded, Orphaned),
        (&second, "newer", 6, Succeeded, Ended),
        (&second, "lower", 4, Running, Older),
    ] {
        assert_eq!(heard(&bench, kept, event, sequence, progress).await, expected, "{event}");
    }
    assert_eq!(bench.state(id).await, RequestState::Failed);
    let orphans = bench.store.orphans(None, 10).await.unwrap();
    let attempts: HashSet<u32> = orphans.results.iter().map(|orphan| orphan.attempt).collect();
    assert_eq!((orphans.total, attempts), (2, HashSet::from([1, 2])));
}

pub(super) async fn a_success_of_an_earlier_attempt_beside_a_later_one_is_an_orphan_until_it_is_taken_over(
    bench: Bench,
) {
    let (id, first, second) = begun_again(&bench).await;
    let flagged = async || {
        let page = bench.store.orphans(None, 10).await.unwrap();
        page.results.iter().map(|orphan| orphan.callback).collect::<Vec<_>>()
    };
    assert_eq!(heard(&bench, &first, "half", 6, Running).await, EarlierAttempt);
    assert_eq!(flagged().await, []);
    for event in ["late", "later"] {
        assert_eq!(heard(&bench, &first, event, 7, Succeeded).await, EarlierAttempt);
        assert_eq!(flagged().await, [first.id], "{event}");
    }
    // Neither the request nor the flag is moved by what the later attempt reports.
    assert_eq!(heard(&bench, &second, "own", 1, Succeeded).await, Applied);
    assert_eq!((bench.state(id).await, flagged().await), (RequestState::Running, vec![first.id]));
    assert!(bench.store.take_over_orphan(first.id, bench.now()).await.unwrap());
    assert!(!bench.store.take_over_orphan(first.id, bench.now()).await.unwrap());
    assert!(!bench.store.take_over_orphan(second.id, bench.now()).await.unwrap());
    assert_eq!(flagged().await, []);
    // After the later one came to the same, nothing is flagged; to something else, it is.
    let run = bench.taken("w", bench.now()).await;
    let url = |text: &str| Object::from_iter([("url".to_owned(), text.into())]);
    let ending = Ending { outputs: url("x"), ..Ending::without_outputs(RequestState::Succeeded, None) };
    bench.store.end_run(run.hold(), ending, bench.now()).await.unwrap();
    for (event, outputs, expected) in [("same", url("x"), vec![]), ("other", url("y"), vec![second.id])] {
        let told = Report { earlier: true, outputs, ..report(second.id, event, 9, Succeeded, bench.now()) };
        let taken = bench.store.report(told).await.unwrap();
        assert!(matches!(taken, Taken::In { heard: EarlierAttempt, again: false, .. }), "{taken:?}");
        assert_eq!(flagged().await, expected, "{event}");
    }
    assert_eq!(bench.state(id).await, RequestState::Succeeded);
}

pub(super) async fn a_report_that_fails_half_way_is_not_seen(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    let done = || report(kept.id, "ev", 1, Succeeded, bench.now());
    let before = bench.store.events(id, 0, 1000).await.unwrap().len();
    // The report is written before the run is woken, and the run cannot be.
    bench.sql("ALTER TABLE run RENAME TO run_away").await;
    bench.store.report(done()).await.unwrap_err();
    bench.sql("ALTER TABLE run_away RENAME TO run").await;
    assert_eq!(bench.store.errand(kept.id).await.unwrap().unwrap().reported, None);
    assert_eq!(bench.store.events(id, 0, 1000).await.unwrap().len(), before);
    // The same report, sent again, is the first that is taken in.
    let taken = bench.store.report(done()).await.unwrap();
    assert!(matches!(taken, Taken::In { heard: Applied, again: false, .. }), "{taken:?}");
    bench.taken("w", bench.now()).await;
}

pub(super) async fn of_reports_that_come_to_two_servers_at_once_each_is_taken_in_once(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    let stores = [Arc::clone(&bench.store), bench.place.open().await];
    let now = bench.now();
    for (event, sequence, progress) in [("one", 1, Running), ("two", 2, Running), ("end", 3, Succeeded)] {
        let twenty = (0..20).map(|number| {
            let (store, kept) = (Arc::clone(&stores[number % 2]), kept.id);
            tokio::spawn(
                async move { store.report(report(kept, event, sequence, progress, now)).await.unwrap() },
            )
        });
        let mut firsts = 0;
        for taken in twenty.collect::<Vec<_>>() {
            match taken.await.unwrap() {
                Taken::In { heard: Applied, again, .. } => firsts += u32::from(!again),
                other => panic!("{event}: {other:?}"),
            }
        }
        assert_eq!(firsts, 1, "{event}");
    }
    // Two different ends at the same moment: one of them counts, for everybody.
    let ends = (0..20).map(|number| {
        let (store, kept) = (Arc::clone(&stores[number % 2]), kept.id);
        let progress = if number % 4 < 2 { Succeeded } else { Failed };
        tokio::spawn(async move {
            store.report(report(kept, &format!("end-{number}"), 4, progress, now)).await.unwrap()
        })
    });
    for taken in ends.collect::<Vec<_>>() {
        let taken = taken.await.unwrap();
        assert!(matches!(taken, Taken::In { heard: Ended, again: false, .. }), "{taken:?}");
    }
    assert_eq!(lines(&bench, id).await, ["line of one", "line of two", "line of end"]);
    let counted = bench.store.duplicates(vec![at(0), at(1 << 50)], 10).await.unwrap().1;
    assert_eq!(counted.iter().map(|source| source.count).sum::<i64>(), 3 * 19);
}

pub(super) async fn reports_that_come_again_are_counted_as_duplicates(bench: Bench) {
    let (_, kept) = gone_elsewhere(&bench).await;
    let slot = |number| at(number * i64::try_from(SLOT.as_millis()).unwrap());
    let send = async |event, sequence, when| {
        bench.store.report(report(kept.id, event, sequence, Running, when)).await.unwrap()
    };
    let edges = || vec![slot(100), slot(101), slot(102)];
    send("one", 1, slot(100)).await;
    send("two", 2, slot(100)).await;
    assert_eq!(bench.store.duplicates(edges(), 10).await.unwrap().0, [], "what comes first is none");
    for (event, sequence, when) in [("one", 1, 100), ("two", 2, 100), ("one", 1, 101), ("one", 7, 101)] {
        send(event, sequence, slot(when)).await;
    }
    let (periods, sources) = bench.store.duplicates(edges(), 10).await.unwrap();
    let mut periods: Vec<_> = periods
        .into_iter()
        .map(|period| (period.place, period.rule.as_str(), period.channel, period.count))
        .collect();
    periods.sort();
    let callback = |place, rule, count| (place, rule, "callback".to_owned(), count);
    assert_eq!(
        periods,
        [callback(0, "replayed", 2), callback(1, "mismatched", 1), callback(1, "replayed", 1)]
    );
    assert!(sources.iter().all(|source| source.sent_by == "service of vm"), "{sources:?}");
}

pub(super) async fn who_reported_too_often_may_still_report_the_end(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    assert_eq!(heard(&bench, &kept, "first", 1, Running).await, Applied);
    bench.sql("UPDATE errand SET events = 10000").await;
    let send = async |event, sequence, progress| {
        bench.store.report(report(kept.id, event, sequence, progress, bench.now())).await.unwrap()
    };
    assert_eq!(send("more", 2, Running).await, Taken::Full);
    assert_eq!(send("older", 0, Succeeded).await, Taken::Full);
    assert!(matches!(send("first", 1, Running).await, Taken::In { heard: Applied, again: true, .. }));
    assert_eq!(lines(&bench, id).await, ["line of first"]);
    assert_eq!(heard(&bench, &kept, "end", 3, Succeeded).await, Applied);
    assert_eq!(send("another", 4, Failed).await, Taken::Full);
    bench.taken("w", bench.now()).await;
}

pub(super) async fn an_orphan_is_kept_a_retention_after_it_was_reported(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    bench.store.wake(id, bench.now()).await.unwrap();
    let run = bench.taken("w", bench.now()).await;
    let end = bench.now();
    bench.ended(run.hold(), RequestState::Failed, end).await;
    let day = Duration::from_hours(24);
    let late = end.plus(day / 2);
    let taken = bench.store.report(report(kept.id, "late", 1, Succeeded, late)).await.unwrap();
    assert!(matches!(taken, Taken::In { heard: Heard::Orphaned, .. }), "{taken:?}");
    assert_eq!(bench.store.sweep_errands(end.plus(day), day, 10).await.unwrap(), 0);
    assert_eq!(bench.store.orphans(None, 10).await.unwrap().total, 1);
    assert_eq!(bench.store.sweep_errands(late.plus(day), day, 10).await.unwrap(), 1);
    assert_eq!(bench.store.orphans(None, 10).await.unwrap().total, 0);
}

pub(super) async fn what_is_sealed_of_errands_is_found_and_sealed_anew(bench: Bench) {
    bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w", now).await;
    let old = |what: &str| [b"kt\0\0\0\x01", what.as_bytes()].concat();
    let kept = Errand { secret: old("secret"), ..errand(&bench, &run, Work::Apply) };
    bench.store.begin_errand(run.hold(), kept.clone(), now).await.unwrap();
    let noted = Waiting { note: Some((kept.id, old("note"))), ..waiting() };
    bench.store.wait_elsewhere(run.hold(), noted, now).await.unwrap();
    let told = Report { outcome: Some(old("report")), ..report(kept.id, "ev", 1, Succeeded, now) };
    bench.store.report(told).await.unwrap();
    let secrets = async |version| {
        let needed = bench.store.key_use().await.unwrap();
        needed.get(&version).copied().unwrap_or_default().secrets
    };
    assert_eq!((secrets(1).await, secrets(2).await), (3, 0));
    let new = b"kt\0\0\0\x02";
    let found = bench.store.errands_sealed_otherwise(new, 10).await.unwrap();
    let all = [
        (ErrandSeal::Secret(kept.id), old("secret")),
        (ErrandSeal::Note(kept.id), old("note")),
        (ErrandSeal::Report(kept.id), old("report")),
    ];
    assert_eq!(found, all);
    assert!(bench.store.errands_sealed_otherwise(b"kt\0\0\0\x01", 10).await.unwrap().is_empty());
    // One that is sealed with a newer version than this is found as well.
    assert_eq!(bench.store.errands_sealed_otherwise(b"kt\0\0\0\x00", 10).await.unwrap().len(), 3);
    for (seal, before) in found {
        let after = [new.as_slice(), &before[6..]].concat();
        let wrong = bench.store.reseal_errand(seal, b"other".to_vec(), after.clone()).await.unwrap();
        assert!(!wrong, "it was changed meanwhile");
        assert!(bench.store.reseal_errand(seal, before, after).await.unwrap());
    }
    assert!(bench.store.errands_sealed_otherwise(new, 10).await.unwrap().is_empty());
    assert_eq!((secrets(1).await, secrets(2).await), (0, 3));
    let known = bench.store.errand(kept.id).await.unwrap().unwrap();
    let as_new = |what: &str| [new, what.as_bytes()].concat();
    assert_eq!((known.secret, known.note), (as_new("secret"), Some(as_new("note"))));
    assert_eq!(known.reported, Some((Succeeded, Some(as_new("report")))));
}

pub(super) async fn with_taking_back_the_end_of_what_was_begun_counts_no_more(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    let now = bench.now();
    let run = bench.taken("w", now.plus(WAIT)).await;
    let back = || errand(&bench, &run, Work::Destroy);
    let lost = Hold { fence: run.fence + 1, ..run.hold() };
    let why = || Some("it answered 409".to_owned());
    assert!(matches!(bench.store.begin_back(lost, back(), why(), now).await.unwrap(), Back::Lost));
    let taken = bench.store.begin_back(run.hold(), back(), why(), now).await.unwrap();
    let Back::Begun(removal, Intent::Abandon) = taken else { panic!("{taken:?}") };
    assert_eq!(heard(&bench, &kept, "running", 1, Running).await, Ended);
    assert_eq!(heard(&bench, &kept, "late", 2, Succeeded).await, Orphaned);
    assert_eq!(heard(&bench, &kept, "later", 3, Succeeded).await, Ended);
    assert_eq!(bench.store.orphans(None, 10).await.unwrap().total, 1);
    // Whoever takes it next goes on with that, and is not woken by what changes nothing.
    let still = Waiting { meant: Intent::Abandon, ..waiting() };
    bench.store.wait_elsewhere(run.hold(), still, now).await.unwrap();
    assert!(bench.store.take_run("w", now, LEASE).await.unwrap().is_none());
    assert_eq!(heard(&bench, &removal, "gone", 1, Succeeded).await, Applied);
    let run = bench.taken("w", bench.now()).await;
    assert_eq!((run.intent, run.why.as_deref()), (Intent::Abandon, Some("it answered 409")));
    bench.ended(run.hold(), RequestState::Failed, now).await;
    assert_eq!(bench.state(id).await, RequestState::Failed);
    assert_eq!(bench.store.orphans(None, 10).await.unwrap().total, 1);
}

pub(super) async fn what_was_reported_as_made_is_taken_back_only_by_decision(bench: Bench) {
    let (id, kept) = gone_elsewhere(&bench).await;
    let now = bench.now();
    assert_eq!(heard(&bench, &kept, "done", 1, Succeeded).await, Applied);
    let run = bench.taken("w", bench.now()).await;
    let back = || errand(&bench, &run, Work::Destroy);
    let taken = bench.store.begin_back(run.hold(), back(), Some("no".into()), now).await.unwrap();
    assert!(matches!(taken, Back::Stands), "{taken:?}");
    assert_eq!(bench.store.errands_of(id, 1).await.unwrap().len(), 1);
    bench.store.submit(bench.decision(scope("cancel"), Operation::Cancel, Effect::Cancel(id))).await.unwrap();
    let taken = bench.store.begin_back(run.hold(), back(), Some("no".into()), now).await.unwrap();
    assert!(matches!(taken, Back::Begun(_, Intent::Cancel)), "{taken:?}");
    // Nobody can tell any more; then the removal is reported, which ends it.
    let known = bench.store.errands_of(id, 1).await.unwrap();
    let removal = known.iter().find(|errand| errand.work == Work::Destroy).unwrap().clone();
    bench.ended(run.hold(), RequestState::Unknown, now).await;
    assert_eq!(heard(&bench, &removal, "gone", 1, Succeeded).await, Applied);
    assert_eq!(bench.taken("w", bench.now()).await.intent, Intent::Abandon);
}
