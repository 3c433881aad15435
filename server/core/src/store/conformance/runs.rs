//! Runs: leases, fences, ends and decisions.

use super::*;

pub(super) async fn a_run_belongs_to_one_worker_until_its_lease_ends(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    assert_eq!((run.request.view.id, run.request.view.state), (id, RequestState::Running));
    assert!(!run.touched);
    let almost = at(now.plus(LEASE).millis() - 1);
    assert!(bench.store.take_run("w2", almost, LEASE).await.unwrap().is_none());
    // Renewed in time, it stays for another lease.
    assert_eq!(bench.store.renew(run.hold(), almost, LEASE).await.unwrap(), Held::Yes(Intent::Apply));
    assert!(bench.store.take_run("w2", now.plus(LEASE), LEASE).await.unwrap().is_none());
    assert_eq!(bench.store.note(run.hold(), Vec::new(), true, now).await.unwrap(), Held::Yes(Intent::Apply));
    let taken_over = bench.taken("w2", almost.plus(LEASE)).await;
    assert!(taken_over.touched, "the recovery point is known to who takes over");
    assert!(taken_over.fence > run.fence);
}

pub(super) async fn a_worker_that_lost_its_lease_writes_nothing(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let lost = bench.taken("w1", now).await.hold();
    let later = now.plus(LEASE);
    let good = bench.taken("w2", later).await.hold();
    let log = || vec![EventEntry::Log { line: "stale".into() }];
    assert_eq!(bench.store.renew(lost, later, LEASE).await.unwrap(), Held::Lost);
    assert_eq!(bench.store.note(lost, log(), true, later).await.unwrap(), Held::Lost);
    assert_eq!(
        bench.store.give_back(lost, Intent::Apply, Duration::ZERO, true, None, later).await.unwrap(),
        Held::Lost
    );
    assert_eq!(bench.ended(lost, RequestState::Failed, later).await, Held::Lost);
    assert_eq!(bench.state(id).await, RequestState::Running);
    let events = bench.store.events(id, 0, 100).await.unwrap();
    assert!(!events.iter().any(|event| matches!(event.entry, EventEntry::Log { .. })));
    assert_eq!(bench.ended(good, RequestState::Succeeded, later).await, Held::Yes(Intent::Apply));
    assert_eq!(bench.ended(good, RequestState::Failed, later).await, Held::Lost, "an end is written once");
    assert_eq!(bench.state(id).await, RequestState::Succeeded);
}

pub(super) async fn a_run_given_back_waits_for_its_time(bench: Bench) {
    bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    let wait = Duration::from_secs(5);
    let due = now.plus(wait);
    assert_eq!(
        bench.store.give_back(run.hold(), Intent::Apply, wait, true, None, now).await.unwrap(),
        Held::Yes(Intent::Apply)
    );
    // A renewal that was on its way when the run was given back counts no more.
    assert_eq!(bench.store.renew(run.hold(), now, LEASE).await.unwrap(), Held::Lost);
    assert_eq!(bench.store.next_due().await.unwrap(), Some(due));
    assert!(bench.store.take_run("w2", at(due.millis() - 1), LEASE).await.unwrap().is_none());
    assert_eq!(bench.taken("w2", due).await.tries, 1);
}

pub(super) async fn a_failed_create_frees_its_name_and_an_unknown_one_holds_it(bench: Bench) {
    for (number, state) in [RequestState::Failed, RequestState::Canceled].into_iter().enumerate() {
        bench.created(&format!("k-{number}"), "one").await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), state, bench.now()).await;
        assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
    }
    let id = bench.created("unknown", "one").await;
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
    let request = bench.store.request(id).await.unwrap().unwrap().view;
    assert!(request.finished_at.is_none(), "unknown is no end");
    assert!(matches!(
        bench.store.submit(bench.create(&scope("other"), "one", "large")).await.unwrap(),
        Submitted::NameTaken(_)
    ));
}

pub(super) async fn success_shows_outputs_and_keeps_secrets_sealed(bench: Bench) {
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    let ending = Ending {
        state: RequestState::Succeeded,
        reason: None,
        outputs: object(&json!({ "url": "x" })),
        secret_names: vec!["password".into()],
        secrets: Some(b"sealed".to_vec()),
        scrubbed: vec!["hunter\"2".into()],
        expiry: None,
        leaves: false,
    };
    let log = vec![EventEntry::Log { line: "made with hunter\"2".into() }];
    bench.store.note(run.hold(), log, false, bench.now()).await.unwrap();
    bench.store.end_run(run.hold(), ending, bench.now()).await.unwrap();
    let request = bench.store.request(id).await.unwrap().unwrap().view;
    assert_eq!(
        (request.outputs, request.secret_outputs),
        (object(&json!({ "url": "x" })), vec!["password".into()])
    );
    assert!(request.finished_at.is_some());
    let resource = bench.store.resource(&name("blue"), "vm", "one").await.unwrap().unwrap();
    assert_eq!(
        (resource.view.state.as_str(), resource.secrets.as_deref()),
        ("active", Some(b"sealed".as_slice()))
    );
    assert_eq!(bench.store.next_due().await.unwrap(), None, "nothing is left to do");
    let history = bench.store.events(id, 0, 100).await.unwrap();
    assert!(history.iter().any(|event| event.entry == EventEntry::Log { line: "made with ***".into() }));
}

pub(super) async fn canceling_before_the_start_ends_it_at_once(bench: Bench) {
    let id = bench.created("k", "one").await;
    let cancel = |key: &str| bench.decision(scope(key), Operation::Cancel, Effect::Cancel(id));
    let Submitted::First(answer, Some(_)) = bench.store.submit(cancel("c1")).await.unwrap() else { panic!() };
    assert_eq!(answer.kind, AnswerKind::Accepted);
    assert_eq!(bench.state(id).await, RequestState::Canceled);
    assert!(bench.store.take_run("w", bench.now(), LEASE).await.unwrap().is_none());
    assert!(matches!(bench.store.submit(cancel("c1")).await.unwrap(), Submitted::Repeat(_)));
    let Submitted::Existing(answer, _) = bench.store.submit(cancel("c2")).await.unwrap() else { panic!() };
    assert_eq!(answer.kind, AnswerKind::Done);
}

pub(super) async fn canceling_a_started_run_tells_its_worker(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w", now).await;
    bench.store.note(run.hold(), Vec::new(), true, now).await.unwrap();
    bench.store.submit(bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id))).await.unwrap();
    assert_eq!(bench.state(id).await, RequestState::Running, "until its worker has stopped it");
    assert_eq!(bench.store.renew(run.hold(), now, LEASE).await.unwrap(), Held::Yes(Intent::Cancel));
    // Given back meanwhile, it does not wait for a back-off.
    bench.store.give_back(run.hold(), Intent::Apply, LEASE, true, None, now).await.unwrap();
    let again = bench.taken("w", now).await;
    assert_eq!(again.intent, Intent::Cancel);
    // Once that is what is being done, a wait is a wait.
    let later = now.plus(LEASE);
    bench.store.give_back(again.hold(), Intent::Cancel, LEASE, true, None, now).await.unwrap();
    assert_eq!(bench.store.next_due().await.unwrap(), Some(later));
    let again = bench.taken("w", later).await;
    // A stop that was promised is kept, even where the work was done a moment before.
    assert_eq!(bench.ended(again.hold(), RequestState::Succeeded, later).await, Held::Yes(Intent::Cancel));
    assert_eq!(bench.state(id).await, RequestState::Running);
    let undoing = bench.taken("w", later).await;
    assert_eq!((undoing.intent, undoing.touched), (Intent::Cancel, true));
    bench.ended(undoing.hold(), RequestState::Failed, later).await;
    assert_eq!(bench.state(id).await, RequestState::Canceled);

    let done = bench.created("done", "two").await;
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    let late = bench.decision(scope("c2"), Operation::Cancel, Effect::Cancel(done));
    let late = bench.store.submit(late).await.unwrap();
    assert!(matches!(late, Submitted::Undecidable(RequestState::Succeeded)));
    assert!(bench.claim("c2").await.is_none());
}

pub(super) async fn a_failure_that_leaves_something_does_not_outrun_a_stop(bench: Bench) {
    let failed = Ending::without_outputs(RequestState::Failed, Some("a step failed".into()));
    let leaving = Ending { leaves: true, ..failed };
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.submit(bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id))).await.unwrap();
    let held = bench.store.end_run(run.hold(), leaving.clone(), bench.now()).await.unwrap();
    assert_eq!(held, Held::Yes(Intent::Cancel));
    assert_eq!(bench.state(id).await, RequestState::Running, "until what is left is taken away");
    let undoing = bench.taken("w", bench.now()).await;
    assert_eq!(undoing.intent, Intent::Cancel);
    bench.ended(undoing.hold(), RequestState::Canceled, bench.now()).await;
    assert_eq!(bench.state(id).await, RequestState::Canceled);

    // Where nobody stopped it, it is at its end, and its name is free.
    let id = bench.created("k2", "one").await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.end_run(run.hold(), leaving, bench.now()).await.unwrap();
    assert_eq!(bench.state(id).await, RequestState::Failed);
    bench.created("k3", "one").await;
}

pub(super) async fn what_was_begun_is_taken_before_what_was_not(bench: Bench) {
    let begun = bench.created("begun", "begun").await;
    let now = bench.now();
    bench.taken("w1", now).await;
    bench.created("fresh", "fresh").await;
    let next = bench.taken("w2", now.plus(LEASE)).await;
    assert_eq!(next.request.view.id, begun, "though its lease ended after the other was queued");
}

pub(super) async fn a_retry_opens_the_next_attempt_and_reserves_the_name_again(bench: Bench) {
    let id = bench.created("k", "one").await;
    let retry =
        |key: &str| bench.decision(scope(key), Operation::Retry, Effect::Retry(id, ResourceId(bench.id())));
    assert!(matches!(
        bench.store.submit(retry("early")).await.unwrap(),
        Submitted::Undecidable(RequestState::Queued)
    ));
    let now = bench.now();
    let old = bench.taken("w", now).await.hold();
    bench.ended(old, RequestState::Failed, now).await;
    bench.created("other", "one").await;
    assert!(matches!(bench.store.submit(retry("r1")).await.unwrap(), Submitted::NameTaken(_)));
    let other = bench.taken("w", bench.now()).await;
    bench.ended(other.hold(), RequestState::Failed, bench.now()).await;
    assert!(matches!(bench.store.submit(retry("r1")).await.unwrap(), Submitted::First(..)));
    let request = bench.store.request(id).await.unwrap().unwrap();
    assert_eq!((request.view.state, request.view.attempt), (RequestState::Queued, 2));
    let run = bench.taken("w", bench.now()).await;
    assert!(run.touched, "what the first attempt left is looked at first");
    assert!(run.insisted, "and where nobody can look it is made all the same");
    assert_eq!(
        bench.ended(old, RequestState::Succeeded, now).await,
        Held::Lost,
        "an earlier attempt says nothing"
    );
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_some());
}

pub(super) async fn an_unknown_outcome_is_resolved_once(bench: Bench) {
    let mut holds = HashSet::new();
    for (resolution, intent) in [
        (Resolution::Adopt, Intent::Adopt),
        (Resolution::Retry, Intent::Apply),
        (Resolution::Abandon, Intent::Abandon),
    ] {
        let word = resolution.as_str();
        let id = bench.created(word, word).await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
        let resolve = |key: &str, forced: Option<String>| {
            let effect = Effect::Resolve { request: id, resolution, forced, reason: None };
            bench.decision(scope(key), Operation::Resolve, effect)
        };
        let key = format!("r-{word}");
        assert!(matches!(bench.store.submit(resolve(&key, None)).await.unwrap(), Submitted::First(..)));
        assert!(matches!(bench.store.submit(resolve(&key, None)).await.unwrap(), Submitted::Repeat(_)));
        // The same decision by another key is there already; another one comes too late.
        assert!(matches!(
            bench.store.submit(resolve(&format!("{key}-2"), None)).await.unwrap(),
            Submitted::Existing(_, same) if same == id
        ));
        let all = [Resolution::Adopt, Resolution::Retry, Resolution::Abandon];
        for other in all.into_iter().filter(|other| *other != resolution) {
            let effect = Effect::Resolve { request: id, resolution: other, forced: None, reason: None };
            let other = bench.decision(scope(&format!("{key}-{other:?}")), Operation::Resolve, effect);
            assert!(matches!(
                bench.store.submit(other).await.unwrap(),
                Submitted::Undecidable(RequestState::Queued)
            ));
        }
        // Nor is it canceled, unless it was to be tried again: what is tried may be stopped.
        if resolution != Resolution::Retry {
            let cancel = bench.decision(scope(&format!("{key}-c")), Operation::Cancel, Effect::Cancel(id));
            assert!(matches!(bench.store.submit(cancel).await.unwrap(), Submitted::TooLate(_)));
        }
        let by_force = resolve(&format!("{key}-f"), Some("it takes too long".into()));
        assert!(matches!(
            bench.store.submit(by_force).await.unwrap(),
            Submitted::Undecidable(RequestState::Queued)
        ));
        let run = bench.taken("w", bench.now()).await;
        assert_eq!((run.intent, run.touched), (intent, true));
        bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
        let forced = resolve(&format!("{key}-3"), Some("the machine is gone".into()));
        assert!(matches!(bench.store.submit(forced).await.unwrap(), Submitted::First(..)));
        assert_eq!(bench.state(id).await, RequestState::Failed);
        assert!(bench.store.resource(&name("blue"), "vm", word).await.unwrap().is_none());
        holds.insert(run.fence);
    }
}

pub(super) async fn a_persons_word_to_try_again_is_used_up_by_what_is_begun(bench: Bench) {
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    assert!(!run.insisted);
    bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
    let effect = Effect::Resolve { request: id, resolution: Resolution::Retry, forced: None, reason: None };
    bench.store.submit(bench.decision(scope("r"), Operation::Resolve, effect)).await.unwrap();
    let now = bench.now();
    let run = bench.taken("w", now).await;
    assert!(run.insisted && run.touched);
    let store = &bench.store;
    store.give_back(run.hold(), Intent::Apply, Duration::ZERO, false, None, now).await.unwrap();
    let run = bench.taken("w", now).await;
    assert!(run.insisted, "given back is not begun");
    store.note(run.hold(), Vec::new(), true, now).await.unwrap();
    let later = now.plus(LEASE);
    let after = bench.taken("w", later).await;
    assert!(!after.insisted && after.touched, "also where its holder died");
    // What was not begun after all uses nothing up; but who lost the hold says nothing any more.
    assert_eq!(store.take_point_back(run.hold(), true, true).await.unwrap(), Held::Lost);
    store.take_point_back(after.hold(), true, true).await.unwrap();
    assert!(bench.taken("w", later.plus(LEASE)).await.insisted);
}

pub(super) async fn a_run_that_its_holder_does_not_know_is_passed_on(bench: Bench) {
    bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w", now).await;
    assert_eq!(run.lacked, None);
    let passed = bench.store.pass_on(run.hold(), Duration::ZERO, None, now).await.unwrap();
    assert_eq!(passed, Held::Yes(Intent::Apply));
    assert_eq!(bench.store.pass_on(run.hold(), Duration::ZERO, None, now).await.unwrap(), Held::Lost);
    let again = bench.taken("w", bench.now()).await;
    assert!(again.lacked.is_some() && !again.touched && again.tries == 0);
    bench.store.note(again.hold(), Vec::new(), true, now).await.unwrap();
    let other = bench.taken("w", bench.now().plus(LEASE)).await;
    assert_eq!(other.lacked, None, "who begins it knows it");
}

pub(super) async fn earlier_holds_never_fit_a_run_that_was_queued_again(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let lost = bench.taken("w1", now).await.hold();
    let successor = bench.taken("w2", now.plus(LEASE)).await.hold();
    bench.ended(successor, RequestState::Unknown, now.plus(LEASE)).await;
    let effect = Effect::Resolve { request: id, resolution: Resolution::Retry, forced: None, reason: None };
    bench.store.submit(bench.decision(scope("r"), Operation::Resolve, effect)).await.unwrap();
    bench.taken("w3", bench.now()).await;
    for stale in [lost, successor] {
        assert_eq!(bench.ended(stale, RequestState::Failed, bench.now()).await, Held::Lost);
    }
    assert_eq!(bench.state(id).await, RequestState::Running);
}
