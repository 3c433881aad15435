//! Brakes on guessing: wrong passwords and tokens are counted for each account and each real peer address.

use crate::{Error, Result};
use domain::{problem::ProblemKind, time::Moment};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// How many wrong attempts one source has in a window.
const ALLOWED: u32 = 20;
/// How long the window is.
const WINDOW: Duration = Duration::from_mins(1);
/// How many sources are remembered; beyond that the oldest windows go first.
const REMEMBERED: usize = 10_000;

/// Counts wrong attempts.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<String, (Moment, u32)>>);

impl Throttle {
    /// Refuses a source that was wrong too often within the window.
    pub(crate) fn check(&self, source: &str, now: Moment) -> Result<()> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get(source) {
            Some((since, wrong)) if *wrong >= ALLOWED && now.since(*since) < WINDOW => {
                let wait = WINDOW.saturating_sub(now.since(*since));
                Err(Error::new(ProblemKind::TooManyAttempts, "Too many wrong attempts; wait and try again.")
                    .after(wait))
            }
            _ => Ok(()),
        }
    }

    /// Counts a wrong attempt.
    pub(crate) fn wrong(&self, source: &str, now: Moment) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= REMEMBERED {
            counts.retain(|_, (since, _)| now.since(*since) < WINDOW);
        }
        if counts.len() >= REMEMBERED
            && let Some(oldest) =
                counts.iter().min_by_key(|(_, (since, _))| *since).map(|(name, _)| name.clone())
        {
            counts.remove(&oldest);
        }
        let (since, wrong) = counts.entry(source.to_owned()).or_insert((now, 0));
        if now.since(*since) >= WINDOW {
            (*since, *wrong) = (now, 0);
        }
        *wrong += 1;
    }

    /// Forgets the wrong attempts of a source that proved itself.
    pub(crate) fn right(&self, source: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_is_braked_for_its_source_only_and_for_a_while() {
        let (throttle, start) = (Throttle::default(), Moment::from_millis(0));
        for _ in 0..ALLOWED {
            assert!(throttle.check("a", start).is_ok());
            throttle.wrong("a", start);
        }
        let refused = throttle.check("a", start).unwrap_err();
        assert_eq!(refused.retry_after, Some(WINDOW));
        assert!(throttle.check("b", start).is_ok());
        assert!(throttle.check("a", start.plus(WINDOW)).is_ok());
        throttle.right("a");
        assert!(throttle.check("a", start).is_ok());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let throttle = Throttle::default();
        for number in 0..=REMEMBERED {
            throttle.wrong(&number.to_string(), Moment::from_millis(i64::try_from(number).unwrap()));
        }
        assert!(throttle.0.lock().unwrap().len() <= REMEMBERED);
    }
}
