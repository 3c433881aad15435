//! Creates of several callers, decided together: each of a few connections takes what waits, does it in one transaction,
//! and answers after the commit. Grouping is an optimisation and never changes what a submission means.
//!
//! A group waits for locks of others for a moment only. What meets one that is held longer is set aside with whatever else
//! comes under its key, and its neighbours go on; see `aside`.

use super::{
    Connection, PIECE, TRUSTED, TURN,
    aside::{Aside, Reply, Waiting},
    commit, no_answer,
    sql::submit,
    stopped,
};
use crate::store::{StoreError, StoreResult, Submission, Submitted, Turn};
use sqlx::{ConnectOptions, Connection as _, postgres::PgConnectOptions};
use std::sync::Arc;
use tokio::{
    sync::{Mutex, mpsc},
    time::{Instant, timeout},
};

/// How many submissions may wait. One beyond that is refused before it is taken in.
const QUEUE: usize = 4096;
/// How many submissions one commit holds at the most.
const GROUP: usize = 128;
/// How many groups are under way at once.
const AT_ONCE: usize = 3;
/// The beginning of a transaction for one member of a group that could not be decided together: its neighbours have
/// waited already.
const BEGIN_FOR_ONE: &str = "BEGIN; SET LOCAL lock_timeout = '50ms'";

/// The way to the groups.
#[derive(Clone)]
pub(super) struct Groups(mpsc::Sender<Waiting>);

impl Groups {
    /// Starts to take groups; their connections are made when there is something to do. Those wait for locks as long as
    /// `options` say.
    pub(super) fn start(options: &PgConnectOptions, aside: &Aside) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..AT_ONCE {
            let (options, aside) = (options.clone(), aside.clone());
            let group = Grouping { options, open: None, used: Instant::now(), aside };
            tokio::spawn(group.run(Arc::clone(&waiting)));
        }
        Self(queue)
    }

    /// Has a create decided; refused at once when the queue is full.
    pub(super) fn submit(&self, submission: Submission, reply: Reply) -> StoreResult<()> {
        self.0.try_send(Waiting { submission, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => stopped(),
        })
    }
}

/// One connection that takes group after group.
struct Grouping {
    options: PgConnectOptions,
    open: Option<Connection>,
    used: Instant,
    aside: Aside,
}

impl Grouping {
    async fn run(mut self, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
        let mut group = Vec::with_capacity(GROUP);
        while waiting.lock().await.recv_many(&mut group, GROUP).await > 0 {
            // What is under a key that somebody sits on waits there.
            group = self.aside.join(group);
            // Nobody waits for what was withdrawn, and it costs nothing.
            group.retain(|one| !one.submission.turn.is_withdrawn());
            let (submissions, replies): (Vec<_>, Vec<_>) =
                group.drain(..).map(|one| (one.submission, one.reply)).unzip();
            if submissions.is_empty() {
                continue;
            }
            match self.attempt(&submissions, "BEGIN").await {
                Ok(decided) => {
                    for (reply, outcome) in replies.into_iter().zip(decided) {
                        reply.send(Ok(outcome));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a group is decided one by one");
                    let members = submissions.into_iter().zip(replies);
                    let members = members.map(|(submission, reply)| Waiting { submission, reply });
                    self.one_by_one(members.collect(), &error).await;
                }
            }
        }
    }

    /// Decides the members of a group that failed one by one, so that one bad submission never fails its neighbours.
    /// Those that meet a lock are set aside.
    async fn one_by_one(&mut self, members: Vec<Waiting>, error: &StoreError) {
        if let [_] = members.as_slice()
            && !matches!(error, StoreError::Contended(_))
        {
            // There is nobody else that it could be the fault of.
            for one in members {
                one.reply.send(Err(error.clone()));
            }
            return;
        }
        let begun = Instant::now();
        for one in members {
            if one.submission.turn.is_withdrawn() {
                continue;
            }
            // One before it may have been set aside under the same key.
            let Some(one) = self.aside.join(vec![one]).pop() else { continue };
            let outcome = if begun.elapsed() < PIECE {
                self.attempt(std::slice::from_ref(&one.submission), BEGIN_FOR_ONE).await
            } else {
                // What has waited too long is told so; its key is free for the next try.
                Err(no_answer())
            };
            let outcome = match outcome {
                Ok(decided) => decided.into_iter().next().ok_or_else(stopped),
                Err(StoreError::Contended(_)) => {
                    self.aside.set(one);
                    continue;
                }
                Err(error) => Err(error),
            };
            one.reply.send(outcome);
        }
    }

    async fn attempt(
        &mut self,
        submissions: &[Submission],
        begin: &'static str,
    ) -> StoreResult<Vec<Submitted>> {
        let connection = self.connected().await?;
        let decided = timeout(PIECE, async {
            let mut transaction = connection.begin_with(begin).await?;
            let decided = submit::create(&mut transaction, submissions).await?;
            let turns: Vec<&Turn> = submissions.iter().map(|one| &one.turn).collect();
            commit(transaction, &turns).await?;
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
