//! The store in an embedded SQLite file: one writer that groups what waits into one commit, readers beside it.

mod dialect;
mod group;
#[expect(clippy::duplicate_mod, reason = "the SQL rooms are compiled once for each database")]
#[path = "../sql/mod.rs"]
mod sql;
pub(in crate::store) mod words;
mod writer;

use super::{Scope, StoreError, StoreResult, Submission, Submitted, changes::Changes};
use dialect::Connection;
use domain::id::RequestId;
use sql::{Work, looks::Looks};
use sqlx::{
    ConnectOptions, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{path::Path, sync::Arc, time::Duration};
use writer::Writer;

/// How many reads run at once.
const READERS: u32 = 4;
/// How long one waits for another process that writes the same file. Shorter than a repeat waits for its first, so that
/// a locked file is told as such.
const BUSY: Duration = Duration::from_secs(2);
/// How long a read waits for its turn.
const READ_TURN: Duration = Duration::from_secs(5);

/// The SQLite store.
#[derive(Debug, Clone)]
pub struct Sqlite {
    readers: Readers,
    looks: Looks,
    writer: Writer,
    changes: Arc<Changes>,
}

fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // An answered submission survives a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .foreign_keys(true)
        .statement_cache_capacity(256)
        .disable_statement_logging()
}

/// The connections that read.
#[derive(Debug, Clone)]
pub(in crate::store) struct Readers(SqlitePool);

impl Readers {
    /// Reads.
    pub(in crate::store) async fn read<A: Send + Sync, T>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> StoreResult<T> {
        let mut connection = self.0.acquire().await?;
        work(&given, &mut connection).await
    }

    /// Reads with several statements that see the same moment.
    pub(in crate::store) async fn snapshot<A: Send + Sync, T>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> StoreResult<T> {
        let mut transaction = self.0.begin().await?;
        work(&given, &mut transaction).await
    }
}

impl Sqlite {
    /// Opens the file, making it where it is missing, and brings its tables to this version.
    pub async fn open(file: &Path) -> StoreResult<Self> {
        let mut connection = options(file).connect().await?;
        sqlx::migrate!("../../migrations/sqlite")
            .run(&mut connection)
            .await
            .map_err(|error| StoreError::Unavailable(format!("migrations: {error}")))?;
        sql::folding::fold(&mut connection).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READ_TURN)
            // A file does not hang up.
            .test_before_acquire(false)
            .connect_lazy_with(options(file).pragma("query_only", "on"));
        let readers = Readers(readers);
        let looks = Looks::start(&readers);
        Ok(Self { readers, looks, writer: Writer::start(options(file), connection), changes: Arc::default() })
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
        self.writer.write(given, work).await
    }

    /// Has a submission decided.
    async fn decide(&self, submission: Submission) -> StoreResult<Submitted> {
        self.writer.submit(submission).await
    }

    /// Whether a submission with this key is on its way through the writer.
    #[expect(clippy::unused_async, reason = "PostgreSQL has to look")]
    async fn key_in_use(&self, scope: &Scope) -> StoreResult<bool> {
        Ok(self.writer.under_way(scope))
    }

    /// Where one hears of changes.
    fn heard(&self) -> &Changes {
        &self.changes
    }

    /// Tells that a request changed, and that there may be work.
    fn tell(&self, request: RequestId) {
        self.changes.changed(request);
        self.changes.work_waits();
    }
}
