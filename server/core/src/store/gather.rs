//! Questions that wait together are asked together.
//!
//! A look into the database costs mostly the way there and back, not the look: so whoever asks joins a queue, and one
//! statement answers all that waits. Nobody waits for others to come; a question that finds the database idle is asked
//! alone.

use super::{StoreError, StoreResult};
use std::{fmt, sync::Arc};
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many questions may wait before further ones wait to be let in.
const QUEUE: usize = 4096;
/// How many questions one statement answers at the most.
const GROUP: usize = 128;
/// How many groups are asked at once: while one is on its way the next can begin.
const AT_ONCE: usize = 2;

type Waiting<Q, A> = (Q, oneshot::Sender<StoreResult<A>>);

/// The way to whoever answers questions of one kind.
pub(in crate::store) struct Gather<Q, A>(mpsc::Sender<Waiting<Q, A>>);

impl<Q, A> Clone for Gather<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q, A> fmt::Debug for Gather<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gather")
    }
}

impl<Q: Send + 'static, A: Send + 'static> Gather<Q, A> {
    /// Begins to answer. `answer` gives the answers to a group of questions, in their order.
    pub(in crate::store) fn start<F, R>(answer: F) -> Self
    where
        F: Fn(Vec<Q>) -> R + Clone + Send + 'static,
        R: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
    {
        let (queue, questions) = mpsc::channel(QUEUE);
        let questions = Arc::new(Mutex::new(questions));
        for _ in 0..AT_ONCE {
            tokio::spawn(run(answer.clone(), Arc::clone(&questions)));
        }
        Self(queue)
    }

    /// Asks, and waits for the answer.
    pub(in crate::store) async fn ask(&self, question: Q) -> StoreResult<A> {
        let gone = || StoreError::Unavailable("nobody answers any more".into());
        let (reply, answer) = oneshot::channel();
        self.0.send((question, reply)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn run<Q, A, F, R>(answer: F, questions: Arc<Mutex<mpsc::Receiver<Waiting<Q, A>>>>)
where
    F: Fn(Vec<Q>) -> R,
    R: Future<Output = StoreResult<Vec<A>>>,
{
    let mut group = Vec::with_capacity(GROUP);
    loop {
        if questions.lock().await.recv_many(&mut group, GROUP).await == 0 {
            return;
        }
        let (asked, replies): (Vec<Q>, Vec<_>) = group.drain(..).unzip();
        match answer(asked).await {
            // Who asked may be gone; one that is left without an answer hears that nobody answers.
            Ok(answers) => {
                replies.into_iter().zip(answers).for_each(|(reply, answer)| drop(reply.send(Ok(answer))));
            }
            Err(error) => replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone())))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn what_waits_together_is_answered_together_and_each_gets_its_own() {
        let groups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&groups);
        let gather = Gather::start(move |questions: Vec<u32>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::task::yield_now().await;
                if questions.contains(&0) {
                    return Err(StoreError::Unavailable("zero".into()));
                }
                Ok(questions.iter().map(|number| number * 2).collect())
            }
        });
        let asked = (1..=100).map(|number| {
            let gather = gather.clone();
            tokio::spawn(async move { (number, gather.ask(number).await.unwrap()) })
        });
        for answered in asked.collect::<Vec<_>>() {
            let (number, answer) = answered.await.unwrap();
            assert_eq!(answer, number * 2);
        }
        assert!(groups.load(Ordering::Relaxed) < 50, "few groups");
        assert!(gather.ask(0).await.is_err());
        assert_eq!(gather.ask(4).await.unwrap(), 8, "a failed group is forgotten");
    }
}
