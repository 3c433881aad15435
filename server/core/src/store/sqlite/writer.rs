//! The one writer: takes what waits, does it in one transaction, commits once, and only then answers.
//!
//! Each piece of work stands in a savepoint of its own, so a bad one never fails its neighbours. Grouping is an
//! optimisation and never changes what a submission means.

use super::{
    Connection, StoreError, StoreResult, Submission, Submitted, group,
    sql::{Running, Work},
};
use crate::store::{
    Scope,
    turn::{Keys, UnderWay},
};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// How many pieces of work may wait. A submission beyond that is refused before it is taken in.
const QUEUE: usize = 4096;
/// How many pieces of work one commit holds at the most.
const GROUP: usize = 128;

/// The way to the writer.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Job>,
    keys: Arc<Keys>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

enum Job {
    Submit(Box<Submission>, oneshot::Sender<StoreResult<Submitted>>, UnderWay),
    Work(Box<dyn Piece>),
}

/// Work whose type of result is forgotten: it keeps its result until the commit is known.
trait Piece: Send {
    fn run<'c>(&'c mut self, connection: &'c mut Connection) -> Running<'c, ()>;
    fn tell(self: Box<Self>, fate: StoreResult<()>);
}

struct Kept<A, T> {
    given: A,
    work: Work<A, T>,
    result: Option<T>,
    reply: oneshot::Sender<StoreResult<T>>,
}

impl<A: Send + Sync, T: Send> Piece for Kept<A, T> {
    fn run<'c>(&'c mut self, connection: &'c mut Connection) -> Running<'c, ()> {
        Box::pin(async move {
            self.result = Some((self.work)(&self.given, connection).await?);
            Ok(())
        })
    }

    fn tell(self: Box<Self>, fate: StoreResult<()>) {
        let Self { result, reply, .. } = *self;
        // Who asked may be gone; the work stands all the same.
        let _ = reply.send(fate.and_then(|()| result.ok_or_else(not_run)));
    }
}

fn not_run() -> StoreError {
    StoreError::Unavailable("the writer stopped before this was done".into())
}

fn again(error: &StoreError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

impl Writer {
    /// Starts the writer on an open connection; `options` open another should that one break.
    pub(super) fn start(options: SqliteConnectOptions, connection: Connection) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(run(options, connection, jobs));
        Self { queue, keys: Arc::default() }
    }

    /// Whether a submission with this key is on its way.
    pub(super) fn under_way(&self, scope: &Scope) -> bool {
        self.keys.under_way(scope) == Some(true)
    }

    /// Has a submission decided; refused at once when the queue is full.
    pub(super) async fn submit(&self, submission: Submission) -> StoreResult<Submitted> {
        let (reply, answer) = oneshot::channel();
        let under_way = self.keys.enter(&submission);
        self.queue.try_send(Job::Submit(Box::new(submission), reply, under_way)).map_err(
            |error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Busy,
                mpsc::error::TrySendError::Closed(_) => not_run(),
            },
        )?;
        answer.await.unwrap_or_else(|_| Err(not_run()))
    }

    /// Has a piece of the portal's own work done; waits for its place in the queue.
    pub(super) async fn write<A, T>(&self, given: A, work: Work<A, T>) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let piece = Kept { given, work, result: None, reply };
        self.queue.send(Job::Work(Box::new(piece))).await.map_err(|_| not_run())?;
        answer.await.unwrap_or_else(|_| Err(not_run()))
    }
}

async fn run(options: SqliteConnectOptions, connection: Connection, mut jobs: mpsc::Receiver<Job>) {
    let mut open = Some(connection);
    let mut group = Vec::with_capacity(GROUP);
    while jobs.recv_many(&mut group, GROUP).await > 0 {
        // Nobody waits for what was withdrawn, and it costs nothing.
        group.retain(|job| !job.is_withdrawn());
        if group.is_empty() {
            continue;
        }
        if open.is_none() {
            open = options
                .connect()
                .await
                .inspect_err(|error| tracing::warn!(%error, "cannot open the database"))
                .ok();
        }
        let Some(connection) = open.as_mut() else {
            group
                .drain(..)
                .for_each(|job| job.fail(&StoreError::Unavailable("the database cannot be opened".into())));
            // Nothing else bounds the pace of attempts while the database is away.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if let Err(error) = commit(connection, std::mem::take(&mut group)).await {
            tracing::warn!(%error, "a group of writes was not kept");
            if sqlx::query("ROLLBACK").execute(&mut *connection).await.is_err() {
                // Either SQLite rolled back by itself or the connection is beyond use; a new one is safe in both cases.
                open = None;
            }
        }
    }
}

impl Job {
    fn is_withdrawn(&self) -> bool {
        matches!(self, Self::Submit(submission, ..) if submission.turn.is_withdrawn())
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Submit(_, reply, _) => drop(reply.send(Err(again(error)))),
            Self::Work(piece) => piece.tell(Err(again(error))),
        }
    }
}

/// Does a group in one transaction and answers everyone; the error is that of the whole group.
async fn commit(connection: &mut Connection, group: Vec<Job>) -> StoreResult<()> {
    let mut submissions = Vec::new();
    let mut submitters: Vec<(_, UnderWay)> = Vec::new();
    let mut pieces = Vec::new();
    for job in group {
        match job {
            Job::Submit(submission, reply, under_way) => {
                submissions.push(*submission);
                submitters.push((reply, under_way));
            }
            Job::Work(piece) => pieces.push((piece, Ok(()))),
        }
    }
    let decided = async {
        let mut transaction = Pieces::in_transaction(connection).await?;
        // Until here it may have waited long for another process; from here on it is quick.
        submissions.retain(|one: &Submission| one.turn.begin());
        submitters.retain(|(_, under_way)| !under_way.turn.is_withdrawn());
        let decided = group::group(&mut transaction, submissions).await?;
        for (piece, fate) in &mut pieces {
            *fate = piece.run(transaction.begin().await?).await;
            transaction.end(fate.is_ok()).await?;
        }
        transaction.commit().await?;
        Ok(decided)
    }
    .await;
    match decided {
        Ok(decided) => {
            submitters.into_iter().zip(decided).for_each(|((reply, _), outcome)| drop(reply.send(outcome)));
            for (piece, fate) in pieces {
                piece.tell(fate);
            }
            Ok(())
        }
        Err(error) => {
            for (reply, under_way) in submitters {
                under_way.turn.put_back();
                let _ = reply.send(Err(again(&error)));
            }
            for (piece, _) in pieces {
                piece.tell(Err(again(&error)));
            }
            Err(error)
        }
    }
}

/// The pieces of work in one transaction, each in a savepoint of its own.
///
/// Each statement costs a way to SQLite's thread and back, so a savepoint is opened together with what comes before it.
pub(super) struct Pieces<'c> {
    connection: &'c mut Connection,
    /// Whether the open savepoint holds a piece that is kept.
    kept: bool,
}

impl<'c> Pieces<'c> {
    /// Begins the transaction, and in it a savepoint.
    async fn in_transaction(connection: &'c mut Connection) -> StoreResult<Self> {
        sqlx::query("BEGIN IMMEDIATE; SAVEPOINT piece").execute(&mut *connection).await?;
        Ok(Self { connection, kept: false })
    }

    /// Begins the next piece.
    pub(super) async fn begin(&mut self) -> StoreResult<&mut Connection> {
        if std::mem::take(&mut self.kept) {
            sqlx::query("RELEASE piece; SAVEPOINT piece").execute(&mut *self.connection).await?;
        }
        Ok(self.connection)
    }

    /// Ends a piece, keeping what was done in it or not. Fails where SQLite has given up the whole transaction.
    pub(super) async fn end(&mut self, keep: bool) -> StoreResult<()> {
        self.kept = keep;
        if !keep {
            sqlx::query("ROLLBACK TO piece").execute(&mut *self.connection).await?;
        }
        Ok(())
    }

    /// Commits what was kept; with it the savepoint that is open goes.
    async fn commit(self) -> StoreResult<()> {
        sqlx::query("COMMIT").execute(self.connection).await?;
        Ok(())
    }
}
