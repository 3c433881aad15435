//! First answers of creates that succeeded, remembered for repeats that say the same in the same bytes.
//!
//! Nothing about such an answer changes before its retention ends: success is final, and so are the answer, the team and
//! the meaning. So a repeat of it need not ask the database, whichever server made it, and what was understood once need
//! not be understood again. Who may see the request is still asked each time. What is said in other words is not decided
//! here; it may mean the same.

use crate::{Answered, store::Scope};
use domain::{state::RequestState, time::Moment};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How many answers one generation holds. There are two, and each answer takes a KiB or two.
const GENERATION: usize = 2048;
/// The longest answer that is remembered, in bytes.
const LONGEST_ANSWER: usize = 4096;

/// What a sender said, byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told([u8; 32]);

impl Told {
    /// What was said by a body and by the labels of the address.
    pub(crate) fn of(body: &[u8], labels: &[String]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in labels.iter().map(String::as_bytes).chain([body]) {
            // With its length, so that no two lists of parts are one text.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

#[derive(Debug)]
struct Known {
    told: Told,
    answered: Answered,
    until: Moment,
}

/// The answers that are remembered: those asked for lately, bounded. When the young are as many as there may be, they
/// become the old, and the old ones before them are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Scope, Arc<Known>>,
    old: HashMap<Scope, Arc<Known>>,
}

impl Generations {
    fn get(&mut self, scope: &Scope) -> Option<Arc<Known>> {
        if let Some(known) = self.young.get(scope) {
            return Some(Arc::clone(known));
        }
        let (scope, known) = self.old.remove_entry(scope)?;
        self.insert(scope, Arc::clone(&known));
        Some(known)
    }

    fn insert(&mut self, scope: Scope, known: Arc<Known>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(scope, known);
    }
}

impl Settled {
    /// The first answer again, if it is remembered for what was told and its retention has not ended.
    pub(crate) fn answer(&self, scope: &Scope, told: Told, now: Moment) -> Option<Answered> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(scope)?;
        (known.told == told && now < known.until).then(|| known.answered.clone())
    }

    /// Remembers what a repeat is answered until its retention ends, if its request has succeeded.
    pub(crate) fn remember(&self, scope: &Scope, told: Told, answered: &Answered) {
        let Some(until) = answered.expires else { return };
        let succeeded = answered.state == Some(RequestState::Succeeded);
        if !answered.replayed || !succeeded || answered.answer.body.len() > LONGEST_ANSWER {
            return;
        }
        let known = Arc::new(Known { told, answered: answered.clone(), until });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;
    use domain::{id::PrincipalId, key::SubmissionKey};
    use uuid::Uuid;

    const SENT: &[u8] = b"{\"name\":\"one\"}";

    fn scope(number: usize) -> Scope {
        let key = SubmissionKey::parse(format!("key-{number}").as_bytes()).unwrap();
        Scope { team: "alpha".into(), principal: PrincipalId(Uuid::nil()), key }
    }

    /// A repeat's answer, with its request in this state.
    fn answered(state: RequestState, expires: i64) -> Answered {
        Answered {
            answer: Answer::empty(),
            replayed: true,
            existing: false,
            state: Some(state),
            expires: Some(Moment::from_millis(expires)),
            request_id: None,
        }
    }

    #[test]
    fn what_may_change_is_not_remembered_and_what_may_not_only_until_its_retention_ends() {
        let (settled, scope, told) = (Settled::default(), scope(0), Told::of(SENT, &[]));
        for state in RequestState::ALL.into_iter().filter(|state| *state != RequestState::Succeeded) {
            settled.remember(&scope, told, &answered(state, 1000));
            assert!(settled.answer(&scope, told, Moment::from_millis(0)).is_none(), "{state}");
        }
        settled.remember(&scope, told, &answered(RequestState::Succeeded, 1000));
        assert!(settled.answer(&scope, told, Moment::from_millis(999)).is_some());
        assert!(settled.answer(&scope, told, Moment::from_millis(1000)).is_none());
        assert!(settled.answer(&self::scope(1), told, Moment::from_millis(0)).is_none());
    }

    #[test]
    fn other_words_are_never_answered_from_memory() {
        let (settled, scope) = (Settled::default(), scope(0));
        let labels = ["a:b".to_owned(), "c:d".to_owned()];
        settled.remember(&scope, Told::of(SENT, &labels), &answered(RequestState::Succeeded, 1));
        let answered = |body: &[u8], labels: &[String]| {
            settled.answer(&scope, Told::of(body, labels), Moment::from_millis(0))
        };
        assert!(answered(SENT, &labels).is_some());
        assert!(answered(b"{\"name\":\"two\"}", &labels).is_none());
        for other in [&labels[..1], &["a:bc:d".to_owned()], &[]] {
            assert!(answered(SENT, other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten_within_bounds() {
        let (settled, told, now) = (Settled::default(), Told::of(SENT, &[]), Moment::from_millis(0));
        for number in 0..10 * GENERATION {
            settled.remember(&scope(number), told, &answered(RequestState::Succeeded, 1));
            assert!(settled.answer(&scope(0), told, now).is_some(), "{number}");
        }
        let held = settled.0.lock().unwrap();
        assert!(held.young.len() + held.old.len() <= 2 * GENERATION);
        assert!(!held.young.contains_key(&scope(1)) && !held.old.contains_key(&scope(1)));
    }
}
