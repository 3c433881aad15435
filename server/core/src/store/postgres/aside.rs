//! Creates that met a lock which somebody sits on: they wait here, where they hold nobody else up.
//!
//! There is one place for each key, so that all that come under it are decided together once the lock is free. They are
//! tried again and again, each time without waiting long, as long as somebody waits for the answer: how long that is, the
//! guard decides.

use super::{Connection, Lent, PIECE, again, commit, dialect, no_answer, pause, sql::submit, stopped};
use crate::store::{Scope, StoreError, StoreResult, Submission, Submitted, Turn, turn::UnderWay};
use sqlx::{Connection as _, PgPool};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

/// A create whose sender waits for the answer.
pub(super) struct Waiting {
    pub(super) submission: Submission,
    pub(super) reply: Reply,
}

/// Where the answer goes. As long as it is there, its submission is on its way.
pub(super) struct Reply {
    sender: oneshot::Sender<StoreResult<Submitted>>,
    under_way: UnderWay,
}

impl Reply {
    pub(super) fn new(under_way: UnderWay) -> (Self, oneshot::Receiver<StoreResult<Submitted>>) {
        let (sender, answer) = oneshot::channel();
        (Self { sender, under_way }, answer)
    }

    /// Who asked may be gone; what was decided stands all the same.
    pub(super) fn send(self, outcome: StoreResult<Submitted>) {
        drop(self.under_way);
        let _ = self.sender.send(outcome);
    }

    /// Whether nobody waits any more.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.under_way.turn.is_withdrawn()
    }
}

/// The places.
#[derive(Clone)]
pub(super) struct Aside {
    /// Few connections of their own, which do not wait long for a lock.
    pool: PgPool,
    places: Arc<Mutex<HashMap<Scope, Vec<Waiting>>>>,
}

impl Aside {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool, places: Arc::default() }
    }

    fn places(&self) -> MutexGuard<'_, HashMap<Scope, Vec<Waiting>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what comes under a key that has its place here; the others are given back.
    pub(super) fn join(&self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        let mut places = self.places();
        if places.is_empty() {
            return waiting;
        }
        let mut others = Vec::with_capacity(waiting.len());
        for one in waiting {
            match places.get_mut(&one.submission.arrived.scope) {
                Some(place) => place.push(one),
                None => others.push(one),
            }
        }
        others
    }

    /// Sets one aside.
    pub(super) fn set(&self, one: Waiting) {
        let scope = one.submission.arrived.scope.clone();
        match self.places().entry(scope.clone()) {
            // Whoever sees to the place takes it from there.
            Entry::Occupied(mut place) => place.get_mut().push(one),
            Entry::Vacant(place) => {
                place.insert(vec![one]);
                tokio::spawn(self.clone().see_to(scope));
            }
        }
    }

    /// Sees to the place of a key until nobody waits there.
    async fn see_to(self, scope: Scope) {
        let (mut begun, mut tries, mut was_free) = (Instant::now(), 0, false);
        let mut here = Vec::new();
        while self.gather(&scope, &mut here) {
            let (submissions, replies): (Vec<_>, Vec<_>) =
                here.drain(..).map(|one: Waiting| (one.submission, one.reply)).unzip();
            let outcome = self.attempt(&submissions).await;
            let soon_again = again(&outcome, tries, begun);
            // Only what is met while nobody sits on the key is told: that is something else.
            if soon_again || (contended(&outcome) && !was_free) {
                let back = submissions.into_iter().zip(replies);
                here.extend(back.map(|(submission, reply)| Waiting { submission, reply }));
                was_free = !soon_again && !self.may_be_in_use(&scope).await;
                pause(tries).await;
                tries += 1;
                continue;
            }
            self.tell(submissions, replies, outcome).await;
            (begun, tries, was_free) = (Instant::now(), 0, false);
        }
    }

    /// Adds those who came meanwhile and lets go of those who wait no more; whether anybody is left. Where nobody is, the
    /// place is given up.
    fn gather(&self, scope: &Scope, here: &mut Vec<Waiting>) -> bool {
        let mut places = self.places();
        here.append(places.entry(scope.clone()).or_default());
        here.retain(|one| !one.reply.is_closed());
        if here.is_empty() {
            places.remove(scope);
        }
        !here.is_empty()
    }

    async fn attempt(&self, submissions: &[Submission]) -> StoreResult<Vec<Submitted>> {
        let mut lent = Lent::of(&self.pool).await?;
        let connection = lent.connection()?;
        let decided = timeout(PIECE, async {
            let mut transaction = connection.begin().await?;
            let decided = submit::create(&mut transaction, submissions).await?;
            let turns: Vec<&Turn> = submissions.iter().map(|one| &one.turn).collect();
            commit(transaction, &turns).await?;
            Ok(decided)
        })
        .await;
        lent.answered(decided)
    }

    /// Whether somebody may be about to claim the key. Where that cannot be told, one goes on waiting: for how long, the
    /// guard decides.
    async fn may_be_in_use(&self, scope: &Scope) -> bool {
        self.key_in_use(scope).await.unwrap_or(true)
    }

    /// Whether the key is being claimed in a transaction that is open. Asked for by trying to, and taking that back.
    pub(super) async fn key_in_use(&self, scope: &Scope) -> StoreResult<bool> {
        let mut lent = Lent::of(&self.pool).await?;
        let connection = lent.connection()?;
        let tried = timeout(PIECE, async {
            let mut transaction = connection.begin().await?;
            let in_use = if !dialect::lock_if_free(&mut transaction, &submit::key(scope)).await? {
                Ok(true)
            } else if contended(&take_part(&mut transaction).await) {
                // Whoever keeps everybody out of the table lets nobody claim this key either.
                Ok(false)
            } else {
                match try_claim(&mut transaction, scope).await {
                    Err(StoreError::Contended(_)) => Ok(true),
                    tried => tried.map(|()| false),
                }
            };
            transaction.rollback().await?;
            in_use
        })
        .await;
        lent.answered(tried)
    }

    async fn tell(
        &self,
        submissions: Vec<Submission>,
        replies: Vec<Reply>,
        outcome: StoreResult<Vec<Submitted>>,
    ) {
        match outcome {
            Ok(decided) => {
                for (reply, outcome) in replies.into_iter().zip(decided) {
                    reply.send(Ok(outcome));
                }
            }
            Err(error) if submissions.len() == 1 || matches!(error, StoreError::Contended(_)) => {
                for reply in replies {
                    reply.send(Err(error.clone()));
                }
            }
            // It may be the fault of one of them; the others are not to suffer for it.
            Err(_) => {
                let begun = Instant::now();
                for (submission, reply) in submissions.into_iter().zip(replies) {
                    let alone = if begun.elapsed() < PIECE {
                        self.attempt(std::slice::from_ref(&submission)).await
                    } else {
                        Err(no_answer())
                    };
                    reply.send(alone.and_then(|decided| decided.into_iter().next().ok_or_else(stopped)));
                }
            }
        }
    }
}

/// Joins those who may change claims.
async fn take_part(connection: &mut Connection) -> StoreResult<()> {
    sqlx::query("LOCK TABLE claim IN ROW EXCLUSIVE MODE").execute(connection).await?;
    Ok(())
}

/// Claims a key for nothing, in a transaction that is taken back. Where it is claimed already, nothing is met.
async fn try_claim(connection: &mut Connection, scope: &Scope) -> StoreResult<()> {
    sqlx::query(
        "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, answer_kind, body, claimed_at)
         VALUES ($1, $2, $3, '', '', 0, 'done', '', 0) ON CONFLICT (team, principal, key) DO NOTHING",
    )
    .bind(&scope.team)
    .bind(scope.principal.0)
    .bind(scope.key.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

fn contended<T>(result: &StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::Contended(_)))
}
