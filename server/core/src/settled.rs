//! Claims of requests that succeeded, remembered for their repeats.
//!
//! Nothing about such a claim changes before its retention ends: success is final, and so are the answer, the team and
//! the meaning. So a repeat of it need not ask the database, whichever server made it. Who may see the request is still
//! asked each time; everything that may yet change is not remembered here.

use crate::store::{Claim, Scope, StoredRequest};
use domain::{state::RequestState, time::Moment};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How many claims one generation holds. There are two, and each claim takes a few KiB.
const GENERATION: usize = 2048;
/// The longest answer that is remembered, in bytes.
const LONGEST_ANSWER: usize = 4096;

#[derive(Debug)]
struct Known {
    claim: Claim,
    request: StoredRequest,
    until: Moment,
}

/// The claims that are remembered: those asked for lately, bounded. When the young are as many as there may be, they
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
    /// The claim with its request, if it is remembered and its retention has not ended.
    pub(crate) fn get(&self, scope: &Scope, now: Moment) -> Option<(Claim, StoredRequest)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(scope)?;
        (now < known.until).then(|| (known.claim.clone(), known.request.clone()))
    }

    /// Remembers a claim until its retention ends, if its request has succeeded.
    pub(crate) fn remember(&self, scope: &Scope, claim: &Claim, request: &StoredRequest, until: Moment) {
        if request.view.state != RequestState::Succeeded || claim.answer.body.len() > LONGEST_ANSWER {
            return;
        }
        let known = Arc::new(Known { claim: claim.clone(), request: request.clone(), until });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use domain::{key::SubmissionKey, name::Name};

    /// A claim as the store gives it, with its request in this state, and scopes beside its own.
    async fn claimed(state: RequestState) -> (Vec<Scope>, Claim, StoredRequest) {
        let (house, _fake) = testing::with_fake().await;
        house.send("key-0", &testing::vm("one")).await.unwrap();
        let team = Name::parse("alpha").unwrap().to_string();
        let scopes: Vec<Scope> = (0..10 * GENERATION)
            .map(|number| Scope {
                team: team.clone(),
                principal: house.ann.id,
                key: SubmissionKey::parse(format!("key-{number}").as_bytes()).unwrap(),
            })
            .collect();
        let (claim, request) = house.store.claimed(&scopes[0]).await.unwrap().unwrap();
        let mut request = request.unwrap();
        request.view.state = state;
        (scopes, claim, request)
    }

    #[tokio::test]
    async fn what_may_change_is_not_remembered_and_what_may_not_only_until_its_retention_ends() {
        let settled = Settled::default();
        let (scopes, claim, mut request) = claimed(RequestState::Succeeded).await;
        let until = Moment::from_millis(1000);
        for state in RequestState::ALL.into_iter().filter(|state| *state != RequestState::Succeeded) {
            request.view.state = state;
            settled.remember(&scopes[0], &claim, &request, until);
            assert!(settled.get(&scopes[0], Moment::from_millis(0)).is_none(), "{state}");
        }
        request.view.state = RequestState::Succeeded;
        settled.remember(&scopes[0], &claim, &request, until);
        assert!(settled.get(&scopes[0], Moment::from_millis(999)).is_some());
        assert!(settled.get(&scopes[0], until).is_none());
        assert!(settled.get(&scopes[1], Moment::from_millis(0)).is_none());
    }

    #[tokio::test]
    async fn what_is_asked_for_stays_and_the_rest_is_forgotten_within_bounds() {
        let settled = Settled::default();
        let (scopes, claim, request) = claimed(RequestState::Succeeded).await;
        let (now, until) = (Moment::from_millis(0), Moment::from_millis(1));
        for scope in &scopes {
            settled.remember(scope, &claim, &request, until);
            assert!(settled.get(&scopes[0], now).is_some(), "{scope:?}");
        }
        let held = settled.0.lock().unwrap();
        assert!(held.young.len() + held.old.len() <= 2 * GENERATION);
        assert!(!held.young.contains_key(&scopes[1]) && !held.old.contains_key(&scopes[1]));
    }
}
