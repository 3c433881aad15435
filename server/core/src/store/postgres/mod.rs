//! The store in PostgreSQL, for several servers on one database: creates are grouped, every other write is a transaction
//! of its own, and servers tell each other what changed.
//!
//! Nothing waits without a bound: not for a connection, a lock, a statement or an answer. While the database is away
//! every call is refused soon, and once it is back every call finds it without anybody's help.

mod aside;
mod dialect;
mod groups;
mod news;
#[expect(clippy::duplicate_mod, reason = "the SQL rooms are compiled once for each database")]
#[path = "../sql/mod.rs"]
mod sql;
pub(in crate::store) mod words;

use super::{
    Effect, Scope, StoreError, StoreResult, Submission, Submitted, Turn,
    changes::Changes,
    turn::{self, Keys},
};
use crate::clock::{Ids, SystemIds};
use aside::{Aside, Reply};
use dialect::Connection;
use domain::id::RequestId;
use groups::Groups;
use news::News;
use sql::{Work, decide, looks::Looks};
use sqlx::{
    ConnectOptions, Connection as _, PgPool, Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{fmt, str::FromStr, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// How many connections one server has for everything but creates and news.
const CONNECTIONS: u32 = 16;
/// How long one waits for a connection.
const TURN: Duration = Duration::from_secs(2);
/// How long PostgreSQL works on one statement, and waits for one lock. The second is shorter than a repeat waits for its
/// first, so that a lock that somebody sits on is told as such.
const STATEMENT: Duration = Duration::from_secs(5);
const LOCK: Duration = Duration::from_millis(1500);
/// How long a group of creates waits for a lock, since many wait with it; and how long those wait who were set aside, since
/// they come back.
const GROUPS_LOCK: Duration = Duration::from_millis(300);
const ASIDE_LOCK: Duration = Duration::from_millis(50);
/// How long one that was withdrawn is waited for to be let go of: longer than creates wait for a lock.
const LET_GO: Duration = Duration::from_millis(600);
const LET_GO_TRIES: u32 = 3;
/// How many connections see to what was set aside.
const ASIDE_CONNECTIONS: u32 = 4;
/// How long a transaction may do nothing before PostgreSQL ends it: a server that stopped answering holds no locks.
const IDLE: Duration = Duration::from_secs(10);
/// How long one waits for a whole piece of work, however silent the network is.
const PIECE: Duration = Duration::from_secs(8);
/// How long a server that starts waits for another that brings the tables to this version.
const MIGRATION: Duration = Duration::from_mins(2);
/// How long an idle connection is trusted without asking whether it still stands.
const TRUSTED: Duration = Duration::from_secs(1);
/// How often a piece of work that others got in the way of is tried, and for how long: PostgreSQL takes a second to see
/// that two wait for each other, and one deadlock may follow another.
const TRIES: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(3);

/// The PostgreSQL store.
#[derive(Clone)]
pub struct Postgres {
    readers: Readers,
    looks: Looks,
    groups: Groups,
    aside: Aside,
    /// The submissions on their way through this server.
    keys: Arc<Keys>,
    changes: Arc<Changes>,
    news: News,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options of a connection hold its password.
        f.write_str("Postgres")
    }
}

/// What the database of this address is called, without its password.
fn options(url: &str) -> StoreResult<PgConnectOptions> {
    // The error may quote the address, and with it the password.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::Unavailable("the address is not one of a PostgreSQL database".into()))?;
    Ok(options.application_name("keyturn").statement_cache_capacity(256).disable_statement_logging())
}

fn bounded(options: PgConnectOptions, statement: Duration, lock: Duration) -> PgConnectOptions {
    options.options([
        ("default_transaction_isolation", "read committed".to_owned()),
        ("statement_timeout", statement.as_millis().to_string()),
        ("lock_timeout", lock.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", IDLE.as_millis().to_string()),
        // Every statement here finds few rows by an index. While a table grows faster than its statistics, the planner
        // would rather read all of it: looks took fifteen times as long.
        ("enable_hashjoin", "off".to_owned()),
        ("enable_mergejoin", "off".to_owned()),
        // Nor is one worth the start of further processes: a count of ten thousand took five times as long.
        ("max_parallel_workers_per_gather", "0".to_owned()),
        // Nor a compiler: what is read of many rows ends with the first that are enough.
        ("jit", "off".to_owned()),
    ])
}

fn no_answer() -> StoreError {
    StoreError::Unavailable("the database does not answer".into())
}

/// What is told of a transaction that was taken back since somebody withdrew what he sent. The others' is tried again.
fn withdrawn() -> StoreError {
    StoreError::Contended("it was withdrawn before it was kept".into())
}

/// Commits, unless one of those whose submission it is withdrew it. From here on the outcome is not known until PostgreSQL
/// tells.
async fn commit(transaction: Transaction<'_, sqlx::Postgres>, turns: &[&Turn]) -> StoreResult<()> {
    if !turn::begin_all(turns) {
        transaction.rollback().await?;
        return Err(withdrawn());
    }
    let committed = transaction.commit().await.map_err(StoreError::from);
    if matches!(committed, Err(StoreError::Contended(_))) {
        for turn in turns {
            turn.put_back();
        }
    }
    committed
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the store stopped before this was done".into())
}

/// Connections to work with, made when there is something to do.
fn pool(most: u32, options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(TURN)
        .test_before_acquire(false)
        .before_acquire(|connection, idle| {
            Box::pin(async move {
                if idle.idle_for > TRUSTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}

/// Waits a moment, by chance longer or shorter, longer with every try.
async fn pause(tries: u32) {
    let most = 4_u64 << tries.min(5);
    let chance = u64::from(SystemIds.random()) % most;
    tokio::time::sleep(Duration::from_millis(1 + chance)).await;
}

/// Whether to try once more what others got in the way of.
fn again<T>(result: &StoreResult<T>, tries: u32, begun: Instant) -> bool {
    matches!(result, Err(StoreError::Contended(_))) && tries < TRIES && begun.elapsed() < PATIENCE
}

/// The connections that read, and write what is not grouped.
#[derive(Debug, Clone)]
pub(in crate::store) struct Readers(PgPool);

impl Readers {
    /// Reads.
    pub(in crate::store) async fn read<A: Send + Sync, T>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> StoreResult<T> {
        let mut lent = Lent::of(&self.0).await?;
        let connection = lent.connection()?;
        let read = timeout(PIECE, work(&given, connection)).await;
        lent.answered(read)
    }

    /// Reads with several statements that see the same moment.
    pub(in crate::store) async fn snapshot<A: Send + Sync, T>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> StoreResult<T> {
        let mut lent = Lent::of(&self.0).await?;
        let connection = lent.connection()?;
        let read = timeout(PIECE, async {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let mut transaction = connection.begin_with(begin).await?;
            work(&given, &mut transaction).await
        })
        .await;
        lent.answered(read)
    }
}

impl Postgres {
    /// Connects, and brings the tables to this version. Several servers may do that at once.
    pub async fn open(url: &str) -> StoreResult<Self> {
        let options = options(url)?;
        let mut first = timeout(TURN * 5, bounded(options.clone(), MIGRATION, MIGRATION).connect())
            .await
            .map_err(|_| no_answer())??;
        let (encoding, commits): (String, String) = sqlx::query_as(
            "SELECT current_setting('server_encoding'), current_setting('synchronous_commit')",
        )
        .fetch_one(&mut first)
        .await?;
        if encoding != "UTF8" {
            return Err(StoreError::Unavailable(format!(
                "the database's encoding is {encoding}; make one with ENCODING 'UTF8'"
            )));
        }
        sqlx::migrate!("../../migrations/postgres")
            .run(&mut first)
            .await
            .map_err(|error| StoreError::Unavailable(format!("migrations: {error}")))?;
        sql::folding::fold(&mut first).await?;
        // Nothing waits for its end.
        let _ = timeout(TURN, first.close()).await;
        let mut options = bounded(options, STATEMENT, LOCK);
        if commits == "off" {
            // An answered submission survives a power cut, whatever is good enough for others here.
            options = options.options([("synchronous_commit", "on")]);
        }
        let pool = pool(CONNECTIONS, options.clone());
        let changes = Arc::<Changes>::default();
        let news = News::start(pool.clone(), options.clone(), Arc::clone(&changes));
        let readers = Readers(pool);
        let looks = Looks::start(&readers);
        let waiting =
            |lock: Duration| options.clone().options([("lock_timeout", lock.as_millis().to_string())]);
        let aside = Aside::new(self::pool(ASIDE_CONNECTIONS, waiting(ASIDE_LOCK)));
        let groups = Groups::start(&waiting(GROUPS_LOCK), &aside);
        Ok(Self { readers, looks, groups, aside, keys: Arc::default(), changes, news })
    }

    /// Reads.
    async fn read<A: Send + Sync, T>(&self, given: A, work: Work<A, T>) -> StoreResult<T> {
        self.readers.read(given, work).await
    }

    /// Reads with several statements that see the same moment.
    async fn snapshot<A: Send + Sync, T>(&self, given: A, work: Work<A, T>) -> StoreResult<T> {
        self.readers.snapshot(given, work).await
    }

    /// Where the looks of many are gathered.
    fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Writes in a transaction, or not at all.
    async fn write<A, T>(&self, given: A, work: Work<A, T>) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.write_unless_withdrawn(given, work, &[]).await
    }

    async fn write_unless_withdrawn<A, T>(
        &self,
        given: A,
        work: Work<A, T>,
        turns: &[&Turn],
    ) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let begun = Instant::now();
        let mut tries = 0;
        loop {
            if turns.iter().any(|turn| turn.is_withdrawn()) {
                return Err(withdrawn());
            }
            let written = self.write_once(&given, work, turns).await;
            if !again(&written, tries, begun) {
                return written;
            }
            pause(tries).await;
            tries += 1;
        }
    }

    async fn write_once<A: Send + Sync, T>(
        &self,
        given: &A,
        work: Work<A, T>,
        turns: &[&Turn],
    ) -> StoreResult<T> {
        let mut lent = Lent::of(&self.readers.0).await?;
        let connection = lent.connection()?;
        let written = timeout(PIECE, async {
            let mut transaction = connection.begin().await?;
            let result = work(given, &mut transaction).await?;
            commit(transaction, turns).await?;
            Ok(result)
        })
        .await;
        lent.answered(written)
    }

    /// Has a submission decided.
    async fn decide(&self, submission: Submission) -> StoreResult<Submitted> {
        let (reply, answer) = Reply::new(self.keys.enter(&submission));
        if matches!(submission.effect, Effect::Create { .. }) {
            self.groups.submit(submission, reply)?;
            return answer.await.unwrap_or_else(|_| Err(stopped()));
        }
        let store = self.clone();
        // Of its own, so that who asked may go away without stopping it half-way.
        tokio::spawn(async move {
            let mut tries = 0;
            let decided = loop {
                let given = submission.clone();
                let decided = store
                    .write_unless_withdrawn(
                        given,
                        |submission, connection| Box::pin(decide::one(connection, submission)),
                        &[&submission.turn],
                    )
                    .await;
                // Whoever comes with a key that is being decided about waits for that, as long as anybody waits for the
                // answer.
                if !matches!(decided, Err(StoreError::KeyBusy)) || reply.is_closed() {
                    break decided;
                }
                pause(tries).await;
                tries += 1;
            };
            reply.send(decided);
        });
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Whether a key is being decided about: on this server, or anywhere in a transaction that is open.
    async fn key_in_use(&self, scope: &Scope) -> StoreResult<bool> {
        let begun = Instant::now();
        loop {
            match self.keys.under_way(scope) {
                Some(true) => return Ok(true),
                None => return self.aside.key_in_use(scope).await,
                // The transaction of one that was withdrawn may be open still, but nothing will come of it. Soon it is over,
                // and who holds the key then is somebody else.
                Some(false) if begun.elapsed() < LET_GO => pause(LET_GO_TRIES).await,
                Some(false) => return Ok(false),
            }
        }
    }

    /// Where one hears of changes.
    fn heard(&self) -> &Changes {
        &self.changes
    }

    /// Tells here and on every other server that a request changed, and that there may be work.
    fn tell(&self, request: RequestId) {
        self.changes.changed(request);
        self.changes.work_waits();
        self.news.tell(request);
    }
}

/// A connection of the pool that goes back there only once its piece of work is over. Who asked may go away half-way: the
/// connection then owes an answer or stands in a transaction, and would show the next one an old moment.
struct Lent(Option<PoolConnection<sqlx::Postgres>>);

impl Lent {
    async fn of(pool: &PgPool) -> StoreResult<Self> {
        Ok(Self(Some(pool.acquire().await?)))
    }

    fn connection(&mut self) -> StoreResult<&mut Connection> {
        self.0.as_deref_mut().ok_or_else(no_answer)
    }

    /// What came of the piece of work.
    fn answered<T>(mut self, result: Result<StoreResult<T>, tokio::time::error::Elapsed>) -> StoreResult<T> {
        match result {
            Ok(result) => {
                drop(self.0.take());
                result
            }
            Err(_) => Err(no_answer()),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
