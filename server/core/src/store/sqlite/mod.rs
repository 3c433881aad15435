//! The store in an embedded SQLite file: one writer that groups what waits into one commit, readers beside it.

mod arrivals;
mod decide;
mod lists;
mod people;
mod rows;
mod runs;
mod submit;
mod writer;

use super::{
    Arrived, AuditEntry, Claim, Ending, Held, Hold, Intent, Made, NewPrincipal, Principal, RequestList, Run,
    Scope, Store, StoreError, StoreResult, StoredRequest, StoredResource, Submission, Submitted,
    changes::Changes,
};
use async_trait::async_trait;
use domain::{
    id::{PrincipalId, RequestId, TokenId},
    name::Name,
    time::Moment,
    view::{EventEntry, EventView, Page, RequestView, ResourceView, SubmissionsView, TokenView},
};
use sqlx::{
    ConnectOptions, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{path::Path, sync::Arc, time::Duration};
use writer::{Work, Writer};

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
    readers: SqlitePool,
    writer: Writer,
    changes: Arc<Changes>,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => {
                Self::Corrupt(error.to_string())
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
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

impl Sqlite {
    /// Opens the file, making it where it is missing, and brings its tables to this version.
    pub async fn open(file: &Path) -> StoreResult<Self> {
        let mut connection = options(file).connect().await?;
        sqlx::migrate!("../../migrations/sqlite")
            .run(&mut connection)
            .await
            .map_err(|error| StoreError::Unavailable(format!("migrations: {error}")))?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READ_TURN)
            .connect_lazy_with(options(file).pragma("query_only", "on"));
        Ok(Self { readers, writer: Writer::start(options(file), connection), changes: Arc::default() })
    }

    async fn write<T: Send + 'static>(&self, work: Work<T>) -> StoreResult<T> {
        self.writer.write(work).await
    }
}

/// Checks that a write met exactly the row it was meant for.
fn exactly_one(done: &sqlx::sqlite::SqliteQueryResult, what: &str) -> StoreResult<()> {
    match done.rows_affected() {
        1 => Ok(()),
        met => Err(StoreError::Corrupt(format!("{what}: {met} rows instead of one"))),
    }
}

async fn write_audit(connection: &mut SqliteConnection, entry: &AuditEntry) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO audit (at, actor, channel, act, team, target, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(entry.at.millis())
    .bind(&entry.actor)
    .bind(entry.channel)
    .bind(entry.act)
    .bind(&entry.team)
    .bind(&entry.target)
    .bind(&entry.detail)
    .execute(connection)
    .await?;
    exactly_one(&done, "audit")
}

#[async_trait]
impl Store for Sqlite {
    fn changes(&self) -> &Changes {
        &self.changes
    }

    async fn claim(&self, scope: &Scope) -> StoreResult<Option<Claim>> {
        submit::claim(&mut *self.readers.acquire().await?, scope).await
    }

    async fn submit(&self, submission: Submission) -> StoreResult<Submitted> {
        let submitted = self.writer.submit(submission).await?;
        if let Submitted::First(_, Some(request)) = &submitted {
            self.changes.changed(*request);
            self.changes.work_waits();
        }
        Ok(submitted)
    }

    async fn record(&self, arrivals: Vec<Arrived>) -> StoreResult<()> {
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                for arrived in &arrivals {
                    arrivals::record(connection, arrived).await?;
                }
                Ok(())
            })
        }))
        .await
    }

    async fn keep_schema(&self, digest: &str, schema: &str) -> StoreResult<()> {
        let (digest, schema) = (digest.to_owned(), schema.to_owned());
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                sqlx::query("INSERT INTO offering_schema (digest, schema) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING")
                    .bind(digest)
                    .bind(schema)
                    .execute(connection)
                    .await?;
                Ok(())
            })
        }))
        .await
    }

    async fn schema(&self, digest: &str) -> StoreResult<Option<String>> {
        Ok(sqlx::query_scalar("SELECT schema FROM offering_schema WHERE digest = $1")
            .bind(digest)
            .fetch_optional(&self.readers)
            .await?)
    }

    async fn request(&self, id: RequestId) -> StoreResult<Option<StoredRequest>> {
        lists::request(&mut *self.readers.acquire().await?, id).await
    }

    async fn requests(&self, list: RequestList) -> StoreResult<Page<RequestView>> {
        // One transaction, so that rows and counts are of the same moment.
        lists::requests(&mut *self.readers.begin().await?, &list).await
    }

    async fn events(&self, request: RequestId, after: i64, limit: u32) -> StoreResult<Vec<EventView>> {
        lists::events(&mut *self.readers.acquire().await?, request, after, limit).await
    }

    async fn submissions(&self, request: RequestId) -> StoreResult<SubmissionsView> {
        // As above: what is counted and not shown would else be what came in between.
        arrivals::of_request(&mut *self.readers.begin().await?, request).await
    }

    async fn resources(
        &self,
        team: &Name,
        after: Option<(Moment, uuid::Uuid)>,
        size: u32,
    ) -> StoreResult<Page<ResourceView>> {
        lists::resources(&mut *self.readers.begin().await?, team, after, size).await
    }

    async fn resource(&self, team: &Name, kind: &str, name: &str) -> StoreResult<Option<StoredResource>> {
        lists::resource(&mut *self.readers.acquire().await?, team.as_str(), kind, name).await
    }

    async fn take_run(&self, owner: &str, now: Moment, lease: Duration) -> StoreResult<Option<Run>> {
        // Most looks find nothing; those should not cost a commit.
        if self.next_due().await?.is_none_or(|due| due > now) {
            return Ok(None);
        }
        let owner = owner.to_owned();
        let run = self
            .write(Box::new(move |connection| {
                Box::pin(async move { runs::take(connection, &owner, now, lease).await })
            }))
            .await?;
        if let Some(run) = &run {
            self.changes.changed(run.request.view.id);
            // One wake-up may stand for many runs: pass it on.
            self.changes.work_waits();
        }
        Ok(run)
    }

    async fn renew(&self, hold: Hold, until: Moment) -> StoreResult<Held> {
        self.write(Box::new(move |connection| {
            Box::pin(async move { runs::renew(connection, hold, until).await })
        }))
        .await
    }

    async fn note(
        &self,
        hold: Hold,
        entries: Vec<EventEntry>,
        touched: bool,
        now: Moment,
    ) -> StoreResult<Held> {
        let still = self
            .write(Box::new(move |connection| {
                Box::pin(async move { runs::note(connection, hold, &entries, touched, now).await })
            }))
            .await?;
        self.changes.changed(hold.request);
        Ok(still)
    }

    async fn give_back(
        &self,
        hold: Hold,
        meant: Intent,
        due: Moment,
        failed_try: bool,
        entry: Option<EventEntry>,
        now: Moment,
    ) -> StoreResult<Held> {
        let still = self
            .write(Box::new(move |connection| {
                Box::pin(async move {
                    runs::give_back(connection, (hold, meant), due, failed_try, entry, now).await
                })
            }))
            .await?;
        self.changes.changed(hold.request);
        self.changes.work_waits();
        Ok(still)
    }

    async fn end_run(&self, hold: Hold, ending: Ending, now: Moment) -> StoreResult<Held> {
        let still = self
            .write(Box::new(move |connection| {
                Box::pin(async move { runs::end(connection, hold, &ending, now).await })
            }))
            .await?;
        self.changes.changed(hold.request);
        self.changes.work_waits();
        Ok(still)
    }

    async fn next_due(&self) -> StoreResult<Option<Moment>> {
        let due: Option<i64> =
            sqlx::query_scalar("SELECT min(due_at) FROM run").fetch_one(&self.readers).await?;
        Ok(due.map(Moment::from_millis))
    }

    async fn principal_by_name(&self, name: &str) -> StoreResult<Option<Principal>> {
        people::by_name(&mut *self.readers.acquire().await?, name).await
    }

    async fn principal(&self, id: PrincipalId) -> StoreResult<Option<Principal>> {
        people::by_id(&mut *self.readers.acquire().await?, id).await
    }

    async fn add_principal(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made> {
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::add(connection, &principal, now).await })
        }))
        .await
    }

    async fn add_team(&self, name: &Name, now: Moment) -> StoreResult<Made> {
        let name = name.clone();
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::add_team(connection, &name, now).await })
        }))
        .await
    }

    async fn has_team(&self, name: &Name) -> StoreResult<bool> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM team WHERE name = $1)")
            .bind(name.as_str())
            .fetch_one(&self.readers)
            .await?)
    }

    async fn set_up(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made> {
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::set_up(connection, &principal, now).await })
        }))
        .await
    }

    async fn has_admin(&self) -> StoreResult<bool> {
        people::has_admin(&mut *self.readers.acquire().await?).await
    }

    async fn token(
        &self,
        digest: [u8; 32],
        now: Moment,
    ) -> StoreResult<Option<(PrincipalId, TokenId, String)>> {
        people::token(&mut *self.readers.acquire().await?, digest, now).await
    }

    async fn tokens(&self, principal: PrincipalId) -> StoreResult<Vec<TokenView>> {
        people::tokens(&mut *self.readers.acquire().await?, principal).await
    }

    async fn add_token(&self, principal: PrincipalId, token: TokenView, digest: [u8; 32]) -> StoreResult<()> {
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::add_token(connection, principal, &token, digest).await })
        }))
        .await
    }

    async fn tokens_used(&self, tokens: Vec<TokenId>, now: Moment) -> StoreResult<()> {
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::tokens_used(connection, &tokens, now).await })
        }))
        .await
    }

    async fn session(&self, id: &str, now: Moment) -> StoreResult<Option<Vec<u8>>> {
        Ok(sqlx::query_scalar("SELECT data FROM session WHERE id = $1 AND expires_at > $2")
            .bind(id)
            .bind(now.millis())
            .fetch_optional(&self.readers)
            .await?)
    }

    async fn save_session(&self, id: &str, data: Vec<u8>, expires: Moment, fresh: bool) -> StoreResult<bool> {
        let id = id.to_owned();
        self.write(Box::new(move |connection| {
            Box::pin(async move { people::save_session(connection, &id, &data, expires, fresh).await })
        }))
        .await
    }

    async fn delete_session(&self, id: &str) -> StoreResult<()> {
        let id = id.to_owned();
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                // Ending a session that is over already is no error.
                sqlx::query("DELETE FROM session WHERE id = $1").bind(id).execute(connection).await?;
                Ok(())
            })
        }))
        .await
    }

    async fn sweep_sessions(&self, now: Moment, limit: u32) -> StoreResult<u64> {
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                let done = sqlx::query(
                    "DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at <= $1 LIMIT $2)",
                )
                .bind(now.millis())
                .bind(limit)
                .execute(connection)
                .await?;
                Ok(done.rows_affected())
            })
        }))
        .await
    }

    async fn setting(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        Ok(sqlx::query_scalar("SELECT value FROM setting WHERE name = $1")
            .bind(name)
            .fetch_optional(&self.readers)
            .await?)
    }

    async fn set_once(&self, name: &str, value: Vec<u8>) -> StoreResult<Vec<u8>> {
        let name = name.to_owned();
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                sqlx::query(
                    "INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
                )
                .bind(&name)
                .bind(value)
                .execute(&mut *connection)
                .await?;
                Ok(sqlx::query_scalar("SELECT value FROM setting WHERE name = $1")
                    .bind(&name)
                    .fetch_one(connection)
                    .await?)
            })
        }))
        .await
    }

    async fn audit(&self, entry: AuditEntry) -> StoreResult<()> {
        self.write(Box::new(move |connection| Box::pin(async move { write_audit(connection, &entry).await })))
            .await
    }

    async fn probe(&self, now: Moment) -> StoreResult<()> {
        self.write(Box::new(move |connection| {
            Box::pin(async move {
                let done = sqlx::query(
                    "INSERT INTO setting (name, value) VALUES ('probe', CAST($1 AS BLOB))
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                )
                .bind(now.millis().to_string())
                .execute(connection)
                .await?;
                exactly_one(&done, "probe")
            })
        }))
        .await
    }
}
