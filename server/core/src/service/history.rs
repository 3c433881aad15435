//! Arrivals on their way into the history. They wait here, bounded, so that no answer waits for them; what finds no place
//! is counted by its key and its source, so that the history falls behind in detail and not in numbers.

use crate::store::{Arrived, Scope, Tally, duplicates::slot};
use domain::{duplicates::Rule, submission::Channel};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, PoisonError},
};
use tokio::sync::mpsc;

/// How many repeats and refusals may wait to be written down.
pub(super) const WAITING: usize = 10_000;
/// How many counts may wait.
const COUNTS: usize = 10_000;

/// What arrivals have in common that are counted as one: the key, the rule that answered, the source and the time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Alike {
    scope: Scope,
    rule: Option<Rule>,
    channel: Channel,
    sent_by: String,
    token_label: Option<String>,
    slot: i64,
}

impl Alike {
    fn of(arrived: &Arrived) -> Self {
        Self {
            scope: arrived.scope.clone(),
            rule: Rule::of(arrived.outcome, arrived.problem),
            channel: arrived.channel,
            sent_by: arrived.sent_by.clone(),
            token_label: arrived.token_label.clone(),
            slot: slot(arrived.at),
        }
    }
}

/// The arrivals that wait.
#[derive(Debug)]
pub(crate) struct History {
    sender: mpsc::Sender<Arrived>,
    receiver: Mutex<Option<mpsc::Receiver<Arrived>>>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    tallies: HashMap<Alike, Tally>,
    left_out: u64,
}

impl Counts {
    fn add(&mut self, tally: Tally) {
        let room = self.tallies.len() < COUNTS;
        match self.tallies.entry(Alike::of(&tally.arrived)) {
            Entry::Occupied(mut met) => met.get_mut().count += tally.count,
            Entry::Vacant(free) if room => drop(free.insert(tally)),
            Entry::Vacant(_) => self.left_out += tally.count,
        }
    }
}

impl Default for History {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver: Mutex::new(Some(receiver)), counts: Mutex::default() }
    }
}

impl History {
    /// Leaves an arrival to be written down, or where too many wait to be counted.
    pub(super) fn put(&self, arrived: Arrived) {
        if let Err(mpsc::error::TrySendError::Full(arrived) | mpsc::error::TrySendError::Closed(arrived)) =
            self.sender.try_send(arrived)
        {
            self.only_count([Tally { arrived, count: 1 }]);
        }
    }

    /// Leaves arrivals to be counted.
    pub(crate) fn only_count(&self, tallies: impl IntoIterator<Item = Tally>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.into_iter().for_each(|tally| counts.add(tally));
    }

    /// Takes what is to be counted, and how many arrivals there was no place for even there.
    pub(crate) fn take_counts(&self) -> (Vec<Tally>, u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Counts { tallies, left_out } = std::mem::take(&mut *counts);
        (tallies.into_values().collect(), left_out)
    }

    /// Takes what waits to be written down; only the first caller gets it.
    pub(crate) fn take_waiting(&self) -> Option<mpsc::Receiver<Arrived>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        id::{PrincipalId, SubmissionId},
        key::SubmissionKey,
        submission::SubmissionOutcome,
        time::Moment,
    };
    use uuid::Uuid;

    fn arrived(key: usize, outcome: SubmissionOutcome) -> Arrived {
        let key = SubmissionKey::parse(format!("key-{key}").as_bytes()).unwrap();
        Arrived {
            id: SubmissionId(Uuid::nil()),
            scope: Scope { team: "alpha".into(), principal: PrincipalId(Uuid::nil()), key },
            request: None,
            operation: "create",
            outcome,
            problem: None,
            channel: Channel::Api,
            sent_by: "ann".into(),
            token_label: None,
            address: None,
            correlation_id: None,
            labels: "{}".into(),
            at: Moment::from_millis(0),
        }
    }

    #[test]
    fn what_finds_no_place_is_counted_by_key_and_rule_within_bounds() {
        use SubmissionOutcome::{Replayed, Waited};
        let history = History::default();
        for _ in 0..WAITING + 3 {
            history.put(arrived(1, Replayed));
        }
        history.put(arrived(1, Waited));
        history.put(arrived(2, Replayed));
        let (tallies, left_out) = history.take_counts();
        let mut counts: Vec<_> = tallies.iter().map(|tally| tally.count).collect();
        counts.sort_unstable();
        assert_eq!((counts, left_out), (vec![1, 1, 3], 0));
        // Given back, they are counted with those that came meanwhile.
        history.put(arrived(1, Replayed));
        history.only_count(tallies);
        assert_eq!(history.take_counts().0.iter().map(|tally| tally.count).sum::<u64>(), 6);

        for key in 0..COUNTS + 3 {
            history.put(arrived(key, Replayed));
        }
        history.put(arrived(0, Replayed));
        let (tallies, left_out) = history.take_counts();
        assert_eq!((tallies.len(), left_out), (COUNTS, 3), "of keys without end some are told, not kept");
        assert!(history.take_counts().0.is_empty());
    }
}
