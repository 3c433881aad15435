//! Keys that somebody sits on: what comes under them waits, and nothing else does.

use super::{super::StoreError, *};
use sqlx::PgConnection;
use std::time::Instant;

/// Well below what a key that is sat on is waited for, and enough for a busy machine.
const PROMPT: Duration = Duration::from_secs(3);

impl Bench {
    /// Claims a key in a transaction that stays open, as a server does that is slow.
    async fn sit_on(&self, key: &str) -> PgConnection {
        let mut sitting = self.aside().await;
        sqlx::query("BEGIN").execute(&mut sitting).await.unwrap();
        let scope = scope(key);
        sqlx::query(
            "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, answer_kind, body, claimed_at)
             VALUES ($1, $2, $3, decode(repeat('ab', 32), 'hex'), decode(repeat('ab', 32), 'hex'), 1, 'accepted',
                     'the first', 1)",
        )
        .bind(scope.team)
        .bind(scope.principal.0)
        .bind(scope.key.as_str())
        .execute(&mut sitting)
        .await
        .unwrap();
        sitting
    }
}

/// Sends many creates at once: every second under one key, the others each under one of its own.
fn send(bench: &Arc<Bench>, held: &str, many: usize) -> [Vec<tokio::task::JoinHandle<Submitted>>; 2] {
    let mut sent = [Vec::new(), Vec::new()];
    for number in 0..many {
        let own = format!("own-{number}");
        let (key, vm) = if number % 2 == 0 { (held, "wanted") } else { (own.as_str(), own.as_str()) };
        let submission = bench.create(&scope(key), vm, "small");
        let store = Arc::clone(&bench.store);
        sent[number % 2].push(tokio::spawn(async move { store.submit(submission).await.unwrap() }));
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_that_is_sat_on_holds_no_other_up() {
    let bench = Arc::new(Bench::postgres().await);
    let mut sitting = bench.sit_on("held").await;
    let begun = Instant::now();
    let [held, others] = send(&bench, "held", 40);
    for other in others {
        assert!(matches!(other.await.unwrap(), Submitted::First(..)));
    }
    // More come while the key is known to be sat on.
    bench.created("later", "later").await;
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    assert!(held.iter().all(|one| !one.is_finished()), "told before anything was decided");
    assert!(bench.store.key_in_use(&scope("held")).await.unwrap());
    assert!(!bench.store.key_in_use(&scope("later")).await.unwrap());
    // Longer than anything else is waited for.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(held.iter().all(|one| !one.is_finished()), "a repeat waits as long as its caller");
    sqlx::query("ROLLBACK").execute(&mut sitting).await.unwrap();
    // Nothing was claimed, so one of them is the first.
    let mut firsts = 0;
    for one in held {
        match one.await.unwrap() {
            Submitted::First(..) => firsts += 1,
            Submitted::Repeat(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, 1);
    assert!(!bench.store.key_in_use(&scope("held")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_for_a_key_gets_what_was_committed_under_it() {
    let bench = Arc::new(Bench::postgres().await);
    let mut sitting = bench.sit_on("held").await;
    let [held, others] = send(&bench, "held", 8);
    for other in others {
        assert!(matches!(other.await.unwrap(), Submitted::First(..)));
    }
    sqlx::query("COMMIT").execute(&mut sitting).await.unwrap();
    for one in held {
        let Submitted::Repeat(claim) = one.await.unwrap() else { panic!("not a repeat") };
        assert_eq!(&claim.answer.body[..], b"the first");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_of_a_decision_wait_for_it_and_take_no_connection_meanwhile() {
    let bench = Arc::new(Bench::postgres().await);
    let id = bench.created("k", "one").await;
    // Who waits is not told anew within a transaction.
    let (mut sitting, mut looking) = (bench.aside().await, bench.aside().await);
    sqlx::raw_sql("BEGIN; SELECT * FROM request FOR UPDATE").execute(&mut sitting).await.unwrap();
    // The first is decided by another server, which waits for the request.
    let there = bench.place.open().await;
    let cancel = bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id));
    let first = {
        let cancel = cancel.clone();
        tokio::spawn(async move { there.submit(cancel).await })
    };
    bench.waiting(&mut looking, 1).await;
    let repeats: Vec<_> = (0..30)
        .map(|_| {
            let (store, cancel) = (Arc::clone(&bench.store), cancel.clone());
            tokio::spawn(async move { store.submit(cancel).await })
        })
        .collect();
    // There are more repeats than connections.
    for _ in 0..10 {
        let begun = Instant::now();
        assert_eq!(bench.state(id).await, RequestState::Queued);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    assert!(repeats.iter().all(|one| !one.is_finished()));
    sqlx::raw_sql("ROLLBACK").execute(&mut sitting).await.unwrap();
    let mut firsts = 0;
    for one in repeats.into_iter().chain([first]) {
        match one.await.unwrap().unwrap() {
            Submitted::First(..) => firsts += 1,
            Submitted::Repeat(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((firsts, bench.state(id).await), (1, RequestState::Canceled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_sat_on_is_told_as_such_and_its_key_is_not_in_use() {
    let bench = Arc::new(Bench::postgres().await);
    let mut sitting = bench.aside().await;
    sqlx::raw_sql(
        "BEGIN; INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
         VALUES (gen_random_uuid(), 'blue', 'vm', 'one', 'vm', 'creating', '{}', gen_random_uuid(), 1, 1)",
    )
    .execute(&mut sitting)
    .await
    .unwrap();
    let begun = Instant::now();
    let wants = bench.store.submit(bench.create(&scope("wants"), "one", "small"));
    let beside = bench.store.submit(bench.create(&scope("beside"), "two", "small"));
    let (wants, beside) = tokio::join!(wants, beside);
    assert!(matches!(wants, Err(StoreError::Contended(_))), "{wants:?}");
    assert!(matches!(beside, Ok(Submitted::First(..))), "{beside:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(!bench.store.key_in_use(&scope("wants")).await.unwrap());
    sqlx::query("ROLLBACK").execute(&mut sitting).await.unwrap();
    bench.created("wants", "one").await;
}
