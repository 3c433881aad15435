//! Creates of several callers, decided together: each of a few connections takes what waits, does it in one transaction,
//! and answers after the commit. Grouping is an optimisation and never changes what a submission means.

use super::{Connection, PIECE, TRUSTED, TURN, again, no_answer, pause, sql::submit};
use crate::store::{StoreError, StoreResult, Submission, Submitted};
use sqlx::{ConnectOptions, Connection as _, postgres::PgConnectOptions};
use std::sync::Arc;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout},
};

/// How many submissions may wait. One beyond that is refused before it is taken in.
const QUEUE: usize = 4096;
/// How many submissions one commit holds at the most.
const GROUP: usize = 128;
/// How many groups are under way at once.
const AT_ONCE: usize = 3;

/// The way to the groups.
#[derive(Clone)]
pub(super) struct Groups(mpsc::Sender<Waiting>);

struct Waiting {
    submission: Submission,
    reply: oneshot::Sender<StoreResult<Submitted>>,
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the store stopped before this was done".into())
}

impl Groups {
    /// Starts to take groups; their connections are made when there is something to do.
    pub(super) fn start(options: &PgConnectOptions) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..AT_ONCE {
            let group = Grouping { options: options.clone(), open: None, used: Instant::now() };
            tokio::spawn(group.run(Arc::clone(&waiting)));
        }
        Self(queue)
    }

    /// Has a create decided; refused at once when the queue is full.
    pub(super) async fn submit(&self, submission: Submission) -> StoreResult<Submitted> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(Waiting { submission, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => stopped(),
        })?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

/// One connection that takes group after group.
struct Grouping {
    options: PgConnectOptions,
    open: Option<Connection>,
    used: Instant,
}

impl Grouping {
    async fn run(mut self, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
        let mut group = Vec::with_capacity(GROUP);
        while waiting.lock().await.recv_many(&mut group, GROUP).await > 0 {
            let (submissions, replies): (Vec<_>, Vec<_>) =
                group.drain(..).map(|one: Waiting| (one.submission, one.reply)).unzip();
            let outcomes = self.decide(&submissions).await;
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // Who asked may be gone; what was decided stands all the same.
                let _ = reply.send(outcome);
            }
        }
    }

    /// Decides a group. If that fails its members are decided one by one, so that one bad submission never fails its
    /// neighbours.
    async fn decide(&mut self, submissions: &[Submission]) -> Vec<StoreResult<Submitted>> {
        let mut outcomes = Vec::with_capacity(submissions.len());
        if submissions.len() > 1 {
            match self.attempt(submissions).await {
                Ok(decided) => return decided.into_iter().map(Ok).collect(),
                Err(error) => tracing::debug!(%error, "a group is decided one by one"),
            }
        }
        let begun = Instant::now();
        for one in submissions {
            // What has waited too long is told so; its key is free for the next try.
            let outcome = if begun.elapsed() < PIECE { self.alone(one).await } else { Err(no_answer()) };
            outcomes.push(outcome);
        }
        outcomes
    }

    async fn alone(&mut self, one: &Submission) -> StoreResult<Submitted> {
        let begun = Instant::now();
        let mut tries = 0;
        loop {
            let decided = self.attempt(std::slice::from_ref(one)).await;
            if !again(&decided, tries, begun) {
                return decided?.into_iter().next().ok_or_else(stopped);
            }
            pause(tries).await;
            tries += 1;
        }
    }

    async fn attempt(&mut self, submissions: &[Submission]) -> StoreResult<Vec<Submitted>> {
        let connection = self.connected().await?;
        let decided = timeout(PIECE, async {
            let mut transaction = connection.begin().await?;
            let decided = submit::create(&mut transaction, submissions).await?;
            transaction.commit().await?;
            Ok(decided)
        })
        .await
        .unwrap_or_else(|_| Err(no_answer()));
        self.used = Instant::now();
        if matches!(decided, Err(StoreError::Unavailable(_))) {
            // Whether it is of further use is not worth a guess.
            self.open = None;
        }
        decided
    }

    /// A connection that stands.
    async fn connected(&mut self) -> StoreResult<&mut Connection> {
        if let Some(open) = &mut self.open
            && self.used.elapsed() > TRUSTED
            && !matches!(timeout(TURN, open.ping()).await, Ok(Ok(())))
        {
            self.open = None;
        }
        if self.open.is_none() {
            let opened = timeout(TURN, self.options.connect()).await.map_err(|_| no_answer())?;
            self.open = Some(opened?);
        }
        self.open.as_mut().ok_or_else(no_answer)
    }
}
