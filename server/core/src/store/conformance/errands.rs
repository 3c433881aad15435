//! Work that goes on elsewhere: runs that wait for it.

use super::*;
use crate::{
    provisioner::Work,
    store::{Errand, Report, Taken, Waiting},
};
use domain::{
    callback::{Heard, Progress},
    id::ErrandId,
};

pub(super) const WAIT: Duration = Duration::from_mins(1);

pub(super) fn waiting() -> Waiting {
    Waiting { meant: Intent::Apply, wait: WAIT, turned: None, entry: None, note: None }
}

pub(super) async fn a_run_waits_for_work_elsewhere_and_is_woken(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    assert_eq!(run.waited, None);
    let hold = run.hold();
    let lost = Hold { fence: hold.fence + 1, ..hold };
    assert_eq!(bench.store.wait_elsewhere(lost, waiting(), now).await.unwrap(), Held::Lost);
    let still = bench.store.wait_elsewhere(hold, waiting(), now).await.unwrap();
    assert_eq!(still, Held::Yes(Intent::Apply));
    let due = now.plus(WAIT);
    assert_eq!(bench.store.next_due().await.unwrap(), Some(due));
    // Looked at in time: it waited since the first time, and that is no try.
    let run = bench.taken("w1", due).await;
    assert_eq!((run.tries, run.waited), (0, Some(WAIT)));
    bench.store.wait_elsewhere(run.hold(), waiting(), due).await.unwrap();
    // Woken while it waits, it is due at once.
    bench.store.wake(id, due).await.unwrap();
    let run = bench.taken("w1", due).await;
    // Woken while somebody has it, the lease stays whose it is, and it is due when it is given back.
    bench.store.wake(id, due).await.unwrap();
    assert!(bench.store.take_run("w2", due, LEASE).await.unwrap().is_none());
    bench.store.wait_elsewhere(run.hold(), waiting(), due).await.unwrap();
    let run = bench.taken("w2", due).await;
    // That counts once. A back-off is cut short as well.
    bench.store.wait_elsewhere(run.hold(), waiting(), due).await.unwrap();
    assert!(bench.store.take_run("w1", due, LEASE).await.unwrap().is_none());
    let run = bench.taken("w1", due.plus(WAIT)).await;
    bench.store.wake(id, due).await.unwrap();
    bench.store.give_back(run.hold(), Intent::Apply, WAIT, true, None, due).await.unwrap();
    let run = bench.taken("w2", due).await;
    assert_eq!((run.tries, run.waited), (1, None), "the next try waits anew");
    bench.ended(run.hold(), RequestState::Succeeded, due).await;
    bench.store.wake(id, due).await.unwrap();
    assert_eq!(bench.store.next_due().await.unwrap(), None, "what is over is not woken");
}

pub(super) async fn what_is_given_up_at_the_moment_of_news_is_looked_at_once_more(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    for state in [RequestState::Unknown, RequestState::Failed, RequestState::Canceled] {
        let run = bench.taken("w", now).await;
        bench.store.wake(id, now).await.unwrap();
        bench.ended(run.hold(), state, now).await;
        assert_eq!(bench.state(id).await, RequestState::Running);
    }
    let run = bench.taken("w", now).await;
    bench.store.wake(id, now).await.unwrap();
    bench.ended(run.hold(), RequestState::Succeeded, now).await;
    assert_eq!(bench.state(id).await, RequestState::Succeeded);
}

pub(super) async fn a_run_is_turned_unless_somebody_decided_otherwise(bench: Bench) {
    let now = bench.now();
    for (key, canceled, intent, why) in
        [("k1", false, Intent::Abandon, Some("no room")), ("k2", true, Intent::Cancel, None)]
    {
        let id = bench.created(key, key).await;
        let run = bench.taken("w", now.plus(WAIT)).await;
        bench.store.note(run.hold(), Vec::new(), true, now).await.unwrap();
        if canceled {
            let cancel =
                bench.decision(scope(&format!("cancel-{key}")), Operation::Cancel, Effect::Cancel(id));
            bench.store.submit(cancel).await.unwrap();
        }
        let turned = Some((Intent::Abandon, Some("no room".into())));
        bench.store.wait_elsewhere(run.hold(), Waiting { turned, ..waiting() }, now).await.unwrap();
        let run = bench.taken("w", now.plus(WAIT)).await;
        assert_eq!((run.intent, run.why.as_deref()), (intent, why));
        bench.ended(run.hold(), RequestState::Failed, now).await;
    }
}

pub(super) fn errand(bench: &Bench, run: &Run, work: Work) -> Errand {
    let (request, attempt) = (run.request.view.id, run.request.view.attempt);
    let id = ErrandId(bench.id());
    Errand { id, request, attempt, work, secret: b"sealed".to_vec(), note: None, reported: None }
}

pub(super) fn report(
    errand: ErrandId,
    event: &str,
    sequence: i64,
    progress: Progress,
    now: Moment,
) -> Report {
    Report {
        errand,
        event: event.into(),
        body_hash: [u8::try_from(sequence).unwrap(); 32],
        sequence,
        earlier: false,
        made: None,
        outputs: Object::new(),
        progress,
        entries: vec![EventEntry::Log { line: format!("line of {event}") }],
        outcome: Some(b"sealed outcome".to_vec()),
        at: now,
    }
}

pub(super) async fn an_errand_is_kept_once_for_its_work_and_only_by_who_holds_the_run(bench: Bench) {
    bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    let first = errand(&bench, &run, Work::Apply);
    let kept = bench.store.begin_errand(run.hold(), first.clone(), now).await.unwrap().unwrap();
    assert_eq!((kept.id, kept.reported.is_none()), (first.id, true));
    let second = errand(&bench, &run, Work::Apply);
    let kept = bench.store.begin_errand(run.hold(), second, now).await.unwrap().unwrap();
    assert_eq!(kept.id, first.id, "the other side knows the first one");
    let other = errand(&bench, &run, Work::Destroy);
    let kept = bench.store.begin_errand(run.hold(), other.clone(), now).await.unwrap().unwrap();
    assert_eq!(kept.id, other.id);
    assert_eq!(bench.store.errands_of(first.request, 1).await.unwrap().len(), 2);
    let note = Some((first.id, b"sealed note".to_vec()));
    bench.store.wait_elsewhere(run.hold(), Waiting { note, ..waiting() }, now).await.unwrap();
    let kept = bench.store.errand(first.id).await.unwrap().unwrap();
    assert_eq!(kept.note.as_deref(), Some(b"sealed note".as_slice()));
    let lost = errand(&bench, &run, Work::Undo);
    assert!(bench.store.begin_errand(run.hold(), lost, now).await.unwrap().is_none());
}

pub(super) async fn a_report_is_taken_in_once_with_its_effect(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    let kept = errand(&bench, &run, Work::Apply);
    bench.store.begin_errand(run.hold(), kept.clone(), now).await.unwrap();
    bench.store.wait_elsewhere(run.hold(), waiting(), now).await.unwrap();
    let twenty = (0..20).map(|_| {
        let (store, kept) = (Arc::clone(&bench.store), kept.id);
        tokio::spawn(
            async move { store.report(report(kept, "ev", 1, Progress::Succeeded, now)).await.unwrap() },
        )
    });
    let mut firsts = 0;
    for taken in twenty.collect::<Vec<_>>() {
        match taken.await.unwrap() {
            Taken::In { heard: Heard::Applied, again, .. } => firsts += u32::from(!again),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, 1, "parallel deliveries make one change");
    let lines = bench.store.events(id, 0, 100).await.unwrap();
    let lines = lines.iter().filter(|event| matches!(event.entry, EventEntry::Log { .. })).count();
    assert_eq!(lines, 1);
    let taken = bench.store.report(report(kept.id, "ev", 2, Progress::Failed, now)).await.unwrap();
    assert_eq!(taken, Taken::Reused);
    let known = bench.store.errand(kept.id).await.unwrap().unwrap();
    assert_eq!(known.reported, Some((Progress::Succeeded, Some(b"sealed outcome".to_vec()))));
    // It woke the run.
    let run = bench.taken("w2", now).await;
    bench.ended(run.hold(), RequestState::Succeeded, now).await;
    let late = bench.store.report(report(kept.id, "late", 9, Progress::Failed, now)).await.unwrap();
    assert_eq!(late, Taken::In { heard: Heard::Ended, at: now, again: false });
    let nobody = report(ErrandId(bench.id()), "ev", 1, Progress::Running, now);
    assert_eq!(bench.store.report(nobody).await.unwrap(), Taken::Missing);
    let needed = bench.store.key_use().await.unwrap();
    assert_eq!(needed[&1].secrets, 2, "the secret and the outcome");
}

pub(super) async fn a_success_after_another_end_is_an_orphan(bench: Bench) {
    let now = bench.now();
    for (key, work) in [("one", Work::Apply), ("two", Work::Destroy), ("three", Work::Apply)] {
        bench.created(key, key).await;
        let run = bench.taken("w1", now.plus(WAIT)).await;
        let kept = errand(&bench, &run, work);
        bench.store.begin_errand(run.hold(), kept.clone(), now).await.unwrap();
        bench.ended(run.hold(), RequestState::Failed, now).await;
        let heard = bench.store.report(report(kept.id, "ev", 1, Progress::Succeeded, now)).await.unwrap();
        let expected = if work == Work::Apply { Heard::Orphaned } else { Heard::Ended };
        assert_eq!(heard, Taken::In { heard: expected, at: now, again: false });
    }
    let orphans = bench.store.orphans(None, 10).await.unwrap();
    let names: Vec<&str> = orphans.results.iter().map(|orphan| orphan.request.name.as_str()).collect();
    assert_eq!((names, orphans.total, orphans.next), (vec!["three", "one"], 2, None));
    let first = bench.store.orphans(None, 1).await.unwrap();
    assert_eq!((first.results.as_slice(), first.total), (&orphans.results[..1], 2));
    let place = crate::store::cursor::read(&first.next.unwrap());
    let rest = bench.store.orphans(place, 1).await.unwrap();
    assert_eq!((rest.results.as_slice(), rest.next), (&orphans.results[1..], None));
    assert_eq!(bench.store.sweep_errands(now.plus(WAIT), WAIT, 2).await.unwrap(), 2);
    assert_eq!(bench.store.sweep_errands(now.plus(WAIT), WAIT, 2).await.unwrap(), 1);
    assert_eq!(bench.store.orphans(None, 10).await.unwrap().results, []);
}
