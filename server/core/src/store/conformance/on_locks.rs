//! The order of locks on PostgreSQL: nobody who waits for one holds what its holder may want.

use super::{
    super::{StoreError, StoreResult},
    *,
};
use sqlx::PgConnection;

impl Bench {
    /// A connection of somebody else to the same database.
    pub(super) async fn aside(&self) -> PgConnection {
        let Place::Address(address) = &self.place else { panic!("on PostgreSQL") };
        let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
        options.connect().await.unwrap()
    }

    /// Waits until this many transactions wait for a lock.
    pub(super) async fn waiting(&self, database: &mut PgConnection, many: i64) {
        let look = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock'";
        for _ in 0..1000 {
            let found: i64 = sqlx::query_scalar(look).fetch_one(&mut *database).await.unwrap();
            if found >= many {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody waits for a lock");
    }

    /// Locks a life, as whoever decides about its changes does.
    async fn sit_on_the_life_of(&self, database: &mut PgConnection, request: RequestId) {
        let life = self.store.request(request).await.unwrap().unwrap().resource;
        let mut hash = blake3::Hasher::new();
        for part in [b"life".as_slice(), life.0.as_bytes()] {
            hash.update(&part.len().to_le_bytes()).update(part);
        }
        let mut number = [0; 8];
        hash.finalize_xof().fill(&mut number);
        sqlx::query("BEGIN").execute(&mut *database).await.unwrap();
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(i64::from_le_bytes(number))
            .execute(database)
            .await
            .unwrap();
    }

    /// How many deadlocks there were in this database. Ends every other connection: only then is all of it told.
    async fn deadlocks(&self) -> i64 {
        let mut database = self.aside().await;
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        for _ in 0..1000 {
            let end = format!("SELECT count(pg_terminate_backend(pid)) {others}");
            let left: i64 =
                sqlx::query_scalar(sqlx::AssertSqlSafe(end)).fetch_one(&mut database).await.unwrap();
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sqlx::query_scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .fetch_one(&mut database)
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_create_waits_for_its_life_before_it_takes_anything_else() {
    let bench = Arc::new(Bench::postgres().await);
    let id = bench.created("k", "one").await;
    // Changes were accepted while it is being made.
    let change = bench.change("patch", "one", "update", patch(&json!({ "note": "n" })));
    assert!(matches!(bench.store.submit(change).await.unwrap(), Submitted::Accepted(..)));
    let run = bench.taken("w", bench.now()).await;
    assert_eq!(run.request.view.id, id);
    let (mut sitting, mut looking) = (bench.aside().await, bench.aside().await);
    bench.sit_on_the_life_of(&mut sitting, id).await;
    let ending = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await })
    };
    bench.waiting(&mut looking, 1).await;
    for table in ["request", "run", "resource"] {
        let look = format!("SELECT 1 FROM {table} FOR UPDATE NOWAIT");
        let free = sqlx::query(sqlx::AssertSqlSafe(look)).fetch_all(&mut sitting).await;
        assert!(free.is_ok(), "the end holds a row of {table} while it waits: {free:?}");
    }
    sqlx::query("ROLLBACK").execute(&mut sitting).await.unwrap();
    assert_eq!(ending.await.unwrap(), Held::Yes(Intent::Apply));
    assert_eq!(bench.state(id).await, RequestState::Succeeded);
}

/// Random numbers that are the same at every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_changes_ends_and_sweeps_of_the_same_on_several_servers_meet_no_deadlock() {
    let bench = Arc::new(Bench::postgres().await);
    for came in on_several_servers(&bench, Vec::new()).await {
        came.unwrap();
    }
    assert_eq!(bench.deadlocks().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_of_several_servers_a_team_never_has_more_than_its_limit_and_nothing_deadlocks() {
    const LIMIT: u64 = 2;
    let bench = Arc::new(Bench::postgres().await.limited(LIMIT).await);
    // Whoever sets the limit keeps makers out for a moment, and sees how much they have.
    let setting = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let mut most = 0;
            for _ in 0..60 {
                let entry = super::quotas::setting("blue", bench.now());
                let Ok(uses) = bench.store.set_quota(&name("blue"), Some(LIMIT), entry).await else {
                    continue;
                };
                let uses = uses.unwrap();
                assert!(uses.used <= LIMIT, "{uses}");
                most = most.max(uses.used);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(most > 0, "nothing was ever made");
            Ok(())
        })
    };
    for came in on_several_servers(&bench, vec![setting]).await {
        // All of them want the one team, so on a busy machine somebody may be told to come again.
        assert!(matches!(came, Ok(()) | Err(StoreError::Contended(_))), "{came:?}");
    }
    assert!(bench.used().await <= LIMIT);
    assert_eq!(bench.deadlocks().await, 0);
}

/// Lets many hands at three servers want the same in every way, beside others.
async fn on_several_servers(
    bench: &Arc<Bench>,
    mut hands: Vec<tokio::task::JoinHandle<StoreResult<()>>>,
) -> Vec<StoreResult<()>> {
    let stores = [bench.place.open().await, bench.place.open().await, bench.place.open().await];
    for (place, store) in stores.iter().enumerate() {
        for who in 0..3_u64 {
            let (bench, store) = (Arc::clone(bench), Arc::clone(store));
            let dice = Dice(u64::try_from(place).unwrap() * 10 + who);
            hands.push(tokio::spawn(busy(bench, store, format!("{place}-{who}"), dice)));
        }
        // What was taken is done at once.
        let (bench, store) = (Arc::clone(bench), Arc::clone(store));
        hands.push(tokio::spawn(async move {
            for round in 0..300 {
                if let Some(run) = store.take_run("w", bench.now(), LEASE).await? {
                    let state = match (run.intent, round % 5) {
                        (Intent::Cancel, _) | (_, 0) => RequestState::Failed,
                        _ => RequestState::Succeeded,
                    };
                    let ending = Ending::without_outputs(state, None);
                    store.end_run(run.hold(), ending, bench.now()).await?;
                }
                if round % 20 == 0 {
                    store.retire(bench.now(), Duration::ZERO, 5).await?;
                }
            }
            Ok(())
        }));
    }
    let mut came = Vec::new();
    for hand in hands {
        came.push(hand.await.unwrap());
    }
    came
}

/// Wants four names and what stands there in every way.
async fn busy(bench: Arc<Bench>, store: Arc<dyn Store>, who: String, mut dice: Dice) -> StoreResult<()> {
    let mut last = None;
    for round in 0..40 {
        let key = format!("{who}-{round}");
        let vm = format!("vm-{}", dice.below(4));
        let submission = match (dice.below(6), last) {
            (0 | 1, _) => {
                let mut create = bench.create(&scope(&key), &vm, "small");
                if let Effect::Create { second_look, .. } = &mut create.effect
                    && dice.below(3) == 0
                {
                    let parameters = [u8::try_from(dice.below(2)).unwrap(); 32];
                    // Nobody can be asked, so it goes through.
                    let look = super::super::SecondLook {
                        parameters,
                        since: at(0),
                        askable: false,
                        confirmed: None,
                    };
                    *second_look = Some(look);
                }
                create
            }
            (2, _) => bench.change(&key, &vm, "update", patch(&json!({ "note": round }))),
            (3, _) => bench.change(&key, &vm, "delete", nothing_left()),
            (4, Some(id)) => {
                store.retire_request(id, bench.now(), Duration::ZERO).await?;
                let retry = Effect::Retry(id, ResourceId(bench.id()));
                bench.decision(scope(&key), Operation::Retry, retry)
            }
            (_, Some(id)) => bench.decision(scope(&key), Operation::Cancel, Effect::Cancel(id)),
            (_, None) => continue,
        };
        let repeat = submission.arrived.clone();
        match store.submit(submission).await? {
            Submitted::First(_, Some(id)) | Submitted::Accepted(_, id, _) => last = Some(id),
            _ => {}
        }
        let repeat = Arrived { id: SubmissionId(bench.id()), outcome: SubmissionOutcome::Replayed, ..repeat };
        store.record([repeat].into()).await?;
    }
    Ok(())
}
