//! What only PostgreSQL has to promise: several stores on one database, and a database that goes away.

use super::{
    super::{StoreError, StoreResult},
    cluster::Cluster,
    *,
};
use std::time::Instant;

/// Long enough for whatever must come, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn what_one_store_commits_another_hears() {
    let bench = Bench::postgres().await;
    let there = bench.place.open().await;
    // The listener may not be there yet, and once it is it wakes everybody: so not every one has to be heard, and one
    // that was heard proves nothing.
    let mut heard = 0;
    for number in 0..20 {
        let create = bench.create(&scope(&format!("k-{number}")), &format!("vm-{number}"), "small");
        let id = create.arrived.request.unwrap();
        let mut listener = there.changes().listen();
        bench.store.submit(create).await.unwrap();
        let begun = Instant::now();
        listener.change_of(id, Duration::from_millis(500)).await;
        heard += usize::from(begun.elapsed() < Duration::from_millis(400));
    }
    assert!(heard >= 10, "{heard} of 20");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_decide_the_same_at_once_agree() {
    let bench = Arc::new(Bench::postgres().await);
    let stores: Vec<_> = vec![bench.place.open().await, bench.place.open().await, bench.place.open().await];
    let ids: Vec<RequestId> = queued(&bench, 12).await;
    let mut tasks = Vec::new();
    for (number, id) in ids.iter().copied().enumerate() {
        for (place, store) in stores.iter().enumerate() {
            // One cancels, one takes, one cancels under the same key; creates want the name and the key as well.
            let key = format!("c-{number}-{}", place % 2);
            let cancel = bench.decision(scope(&key), Operation::Cancel, Effect::Cancel(id));
            let create = bench.create(&scope(&key), &format!("vm-{}", (number + place) % 12), "small");
            let (cancelling, creating) = (Arc::clone(store), Arc::clone(store));
            tasks.push(tokio::spawn(async move { cancelling.submit(cancel).await.map(|_| ()) }));
            tasks.push(tokio::spawn(async move { creating.submit(create).await.map(|_| ()) }));
            let (taking, now) = (Arc::clone(store), bench.now());
            tasks.push(tokio::spawn(async move {
                while let Some(run) = taking.take_run("w", now, LEASE).await? {
                    taking.note(run.hold(), Vec::new(), true, now).await?;
                    // One that is to be stopped is undone; else it would be given back for that again and again.
                    let undone = run.intent == Intent::Cancel;
                    let state = if undone { RequestState::Failed } else { RequestState::Succeeded };
                    let ending = Ending::without_outputs(state, None);
                    taking.end_run(run.hold(), ending, now).await?;
                }
                Ok(())
            }));
        }
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    // Whatever is still to be undone is undone by one of them.
    while let Some(run) = bench.store.take_run("w", bench.now(), LEASE).await.unwrap() {
        let state = if run.intent == Intent::Cancel { RequestState::Failed } else { RequestState::Succeeded };
        bench.ended(run.hold(), state, bench.now()).await;
    }
    for id in ids {
        let state = bench.state(id).await;
        assert!(matches!(state, RequestState::Succeeded | RequestState::Canceled), "{state}");
        let events = bench.store.events(id, 0, 1000).await.unwrap();
        let places: Vec<i64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(places, (1..).take(places.len()).collect::<Vec<i64>>(), "a history without holes");
    }
}

/// Works on whatever is due until nothing is.
async fn carry_out(store: &dyn Store, now: Moment) -> StoreResult<()> {
    while let Some(run) = store.take_run("w", now, LEASE).await? {
        store.note(run.hold(), Vec::new(), true, now).await?;
        let stopped = run.intent == Intent::Cancel;
        let state = if stopped { RequestState::Canceled } else { RequestState::Succeeded };
        store.end_run(run.hold(), Ending::without_outputs(state, None), now).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_lives_of_one_name_are_decided_alike_by_many_servers() {
    let bench = Arc::new(Bench::postgres().await);
    let stores: Vec<_> = vec![bench.place.open().await, bench.place.open().await, bench.place.open().await];
    let mut tasks = Vec::new();
    for round in 0..12 {
        for (place, store) in stores.iter().enumerate() {
            let key = |what: &str| format!("{what}-{round}-{place}");
            let submissions = [
                bench.create(&scope(&key("create")), "one", "small"),
                bench.change(&key("patch"), "one", "update", patch(&json!({ "note": round }))),
                bench.change(&key("delete"), "one", "delete", nothing_left()),
                bench.change(&format!("delete-{round}"), "one", "delete", nothing_left()),
            ];
            for submission in submissions {
                let store = Arc::clone(store);
                tasks.push(tokio::spawn(async move {
                    let submitted = store.submit(submission).await?;
                    if let Submitted::Accepted(_, id, _) = submitted
                        && round % 3 == 0
                    {
                        let cancel = Effect::Cancel(id);
                        return Ok(Some((store, cancel)));
                    }
                    Ok(None)
                }));
            }
            let (store, now) = (Arc::clone(store), bench.now());
            tasks.push(tokio::spawn(async move { carry_out(store.as_ref(), now).await.map(|()| None) }));
        }
    }
    let mut cancels = 0;
    for task in tasks {
        let done: StoreResult<Option<(Arc<dyn Store>, Effect)>> = task.await.unwrap();
        if let Some((store, cancel)) = done.unwrap() {
            cancels += 1;
            let cancel = bench.decision(scope(&format!("cancel-{cancels}")), Operation::Cancel, cancel);
            store.submit(cancel).await.unwrap();
        }
    }
    carry_out(bench.store.as_ref(), bench.now()).await.unwrap();
    let all = bench.all(1000, None).await.results;
    let mut ended_by = HashSet::new();
    for view in &all {
        assert!(view.state.is_final(), "{} is left {}", view.action, view.state);
        let life = bench.store.request(view.id).await.unwrap().unwrap().resource;
        if view.action == "delete" && view.state == RequestState::Succeeded {
            assert!(ended_by.insert(life), "a life was torn down twice");
        }
    }
    for life in &ended_by {
        assert_eq!(bench.store.life(*life).await.unwrap().unwrap().view.state, "gone");
    }
    if let Some(living) = bench.store.resource(&name("blue"), "vm", "one").await.unwrap() {
        assert_eq!(living.view.state, "active");
        assert_eq!(living.applied.as_ref(), Some(&living.view.parameters));
    }
    assert!(all.len() > 1 && !ended_by.is_empty());
}

async fn queued(bench: &Bench, count: usize) -> Vec<RequestId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(bench.created(&format!("k-{number}"), &format!("vm-{number}")).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_to_one_of_many_workers_and_busy_ones_hold_up_nobody() {
    let bench = Arc::new(Bench::postgres().await);
    queued(&bench, 30).await;
    let stores = [bench.place.open().await, bench.place.open().await];
    let now = bench.now();
    let takers: Vec<_> = (0..10)
        .map(|number| {
            let store = Arc::clone(&stores[number % 2]);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while let Some(run) = store.take_run(&format!("w{number}"), now, LEASE).await.unwrap() {
                    taken.push(run.request.view.id);
                }
                taken
            })
        })
        .collect();
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(taker.await.unwrap());
    }
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 30);
    assert_eq!(taken.len(), 30, "each is taken once");
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_go_by_the_databases_clock_whatever_a_server_says() {
    let store = Place::Address(Cluster::shared().database()).open().await;
    let bench =
        Bench { store: Arc::clone(&store), next: AtomicU64::new(1), place: Place::Address(String::new()) };
    bench.created("k", "one").await;
    // To a server whose clock stands in 1970 it is due, and to one far ahead it is held.
    let run = store.take_run("w1", at(0), LEASE).await.unwrap().expect("due at once");
    let ahead = at(8_000_000_000_000);
    assert!(store.take_run("w2", ahead, LEASE).await.unwrap().is_none());
    assert_eq!(store.renew(run.hold(), at(0), Duration::ZERO).await.unwrap(), Held::Yes(Intent::Apply));
    let again = store.take_run("w2", at(0), LEASE).await.unwrap().expect("its lease ended");
    store.give_back(again.hold(), Intent::Apply, LEASE, true, None, ahead).await.unwrap();
    assert!(store.take_run("w3", ahead, LEASE).await.unwrap().is_none(), "it waits, whoever asks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_is_told_soon_and_found_again() {
    let cluster = Cluster::start(&["--durable"]);
    let bench = Bench::at(Place::Address(cluster.database())).await;
    let id = bench.created("before", "before").await;
    for round in 0..2 {
        assert_eq!(cluster.ask("stop"), "stopped");
        let begun = Instant::now();
        let refused = bench.store.submit(bench.create(&scope("away"), "away", "small")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let cancel = bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id));
        assert!(matches!(bench.store.submit(cancel).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(bench.store.request(id).await, Err(StoreError::Unavailable(_))));
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        assert_eq!(cluster.ask("start"), "started");
        let begun = Instant::now();
        let key = format!("after-{round}");
        while bench.store.submit(bench.create(&scope(&key), &key, "small")).await.is_err() {
            assert!(begun.elapsed() < SOON);
        }
        assert_eq!(bench.state(id).await, RequestState::Queued);
    }
    assert_eq!(bench.all(10, None).await.total, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_somebody_sits_on_is_waited_for_with_a_bound() {
    let bench = Bench::postgres().await;
    let Place::Address(address) = &bench.place else { panic!() };
    let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
    let mut sitting = options.connect().await.unwrap();
    let id = bench.created("k", "one").await;
    sqlx::raw_sql("BEGIN; SELECT * FROM request FOR UPDATE").execute(&mut sitting).await.unwrap();
    let begun = Instant::now();
    let cancel = bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id));
    let refused = bench.store.submit(cancel.clone()).await;
    assert!(matches!(refused, Err(StoreError::Contended(_))), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // Others go on meanwhile, and look for work elsewhere.
    bench.created("other", "two").await;
    assert_ne!(bench.taken("w", bench.now()).await.request.view.id, id);
    sqlx::raw_sql("ROLLBACK").execute(&mut sitting).await.unwrap();
    assert!(matches!(bench.store.submit(cancel).await.unwrap(), Submitted::First(..)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_half_way_leaves_no_transaction_behind() {
    let bench = Bench::postgres().await;
    bench.created("k", "vm-one").await;
    for round in 0..1000_u64 {
        // Now at its first statement, now at its last.
        let patience = Duration::from_micros(round * 7 % 2000);
        let _ = tokio::time::timeout(patience, bench.all(5, None)).await;
    }
    let Place::Address(address) = &bench.place else { panic!("on PostgreSQL") };
    let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
    let mut database = options.connect().await.unwrap();
    // PostgreSQL ends them by itself after ten seconds; before that, whoever got the connection next would see that moment.
    let begun = Instant::now();
    loop {
        let open = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        let open: i64 = sqlx::query_scalar(open).fetch_one(&mut database).await.unwrap();
        if open == 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(4), "{open} transactions were left open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
