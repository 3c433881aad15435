//! Work that goes on elsewhere: runs that wait for it.

use super::*;
use crate::store::Waiting;

const WAIT: Duration = Duration::from_secs(60);

fn waiting() -> Waiting {
    Waiting { meant: Intent::Apply, wait: WAIT, turned: None, entry: None }
}

pub(super) async fn a_run_waits_for_work_elsewhere_and_is_woken(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    assert_eq!(run.waited, None);
    let hold = run.hold();
    let lost = Hold { fence: hold.fence + 1, ..hold };
    assert_eq!(bench.store.wait_elsewhere(lost, waiting(), now).await.unwrap(), Held::Lost);
    let held = bench.store.wait_elsewhere(hold, waiting(), now).await.unwrap();
    assert_eq!(held, Held::Yes(Intent::Apply));
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
