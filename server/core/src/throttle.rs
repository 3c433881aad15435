//! Brakes on guessing: attempts are counted for each account and each real peer address, whatever a client says of itself.
//!
//! Somebody else's guesses must not keep the owner of an account out. So an account under attack refuses those who were
//! wrong about it themselves, and lets a first attempt from another address through.

use crate::{Error, Result};
use domain::{problem::ProblemKind, time::Moment};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How many attempts at one account one peer has in a window.
const OF_A_PEER_AT_AN_ACCOUNT: u32 = 10;
/// How many attempts at one account all peers have together, before each has only one.
const AT_AN_ACCOUNT: u32 = 20;
/// How many attempts one peer has at all accounts together, or with wrong tokens or links.
const OF_A_PEER: u32 = 100;
/// How long the window is.
const WINDOW: Duration = Duration::from_mins(1);
/// How many counts are remembered; beyond that the oldest windows go first.
const REMEMBERED: usize = 10_000;
/// The longest part of a name that is counted by; nobody has a longer one.
const COUNTED_NAME: usize = 64;

type Counts = HashMap<Counted, (Moment, u32)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Account(String),
    Pair(String, Option<IpAddr>),
    Peer(Option<IpAddr>),
    Guesses(Option<IpAddr>),
}

/// Counts attempts within a window.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Counts>);

fn too_many(wait: Duration) -> Error {
    Error::new(ProblemKind::TooManyAttempts, "Too many wrong attempts; wait and try again.").after(wait)
}

fn short(name: &str) -> String {
    name.chars().take(COUNTED_NAME).collect()
}

impl Throttle {
    /// Counts an attempt to log in, before the password is looked at; refuses it when there were too many.
    pub(crate) fn log_in(&self, name: &str, peer: Option<IpAddr>, now: Moment) -> Result<()> {
        let mut counts = self.counts();
        let pair = Counted::Pair(short(name), peer);
        let account = Counted::Account(short(name));
        let own = within(&counts, &pair, now);
        let limits = [
            (&pair, own >= OF_A_PEER_AT_AN_ACCOUNT),
            (&account, own > 0 && within(&counts, &account, now) >= AT_AN_ACCOUNT),
            (&Counted::Peer(peer), within(&counts, &Counted::Peer(peer), now) >= OF_A_PEER),
        ];
        if let Some((counted, _)) = limits.into_iter().find(|(_, over)| *over) {
            return Err(too_many(left(&counts, counted, now)));
        }
        for counted in [pair, account, Counted::Peer(peer)] {
            count(&mut counts, counted, now);
        }
        Ok(())
    }

    /// Takes an attempt back that turned out to be good.
    pub(crate) fn logged_in(&self, name: &str, peer: Option<IpAddr>) {
        let mut counts = self.counts();
        counts.remove(&Counted::Pair(short(name), peer));
        for counted in [Counted::Account(short(name)), Counted::Peer(peer)] {
            if let Some((_, attempts)) = counts.get_mut(&counted) {
                *attempts = attempts.saturating_sub(1);
            }
        }
    }

    /// Counts a wrong token or link; refuses to say more than that when there were too many.
    pub(crate) fn wrong_guess(&self, peer: Option<IpAddr>, now: Moment) -> Result<()> {
        let mut counts = self.counts();
        let counted = Counted::Guesses(peer);
        if within(&counts, &counted, now) >= OF_A_PEER {
            return Err(too_many(left(&counts, &counted, now)));
        }
        count(&mut counts, counted, now);
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn within(counts: &Counts, counted: &Counted, now: Moment) -> u32 {
    counts.get(counted).filter(|(since, _)| now.since(*since) < WINDOW).map_or(0, |(_, attempts)| *attempts)
}

fn left(counts: &Counts, counted: &Counted, now: Moment) -> Duration {
    counts.get(counted).map_or(WINDOW, |(since, _)| WINDOW.saturating_sub(now.since(*since)))
}

fn count(counts: &mut Counts, counted: Counted, now: Moment) {
    if counts.len() >= REMEMBERED {
        counts.retain(|_, (since, _)| now.since(*since) < WINDOW);
    }
    if counts.len() >= REMEMBERED
        && let Some(oldest) =
            counts.iter().min_by_key(|(_, (since, _))| *since).map(|(counted, _)| counted.clone())
    {
        counts.remove(&oldest);
    }
    let (since, attempts) = counts.entry(counted).or_insert((now, 0));
    if now.since(*since) >= WINDOW {
        (*since, *attempts) = (now, 0);
    }
    *attempts += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const START: Moment = Moment::from_millis(0);

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    #[test]
    fn a_guesser_is_stopped_for_a_while_and_only_at_that_account() {
        let throttle = Throttle::default();
        for _ in 0..OF_A_PEER_AT_AN_ACCOUNT {
            throttle.log_in("ann", Some(peer(1)), START).unwrap();
        }
        assert_eq!(throttle.log_in("ann", Some(peer(1)), START).unwrap_err().retry_after, Some(WINDOW));
        assert!(throttle.log_in("ben", Some(peer(1)), START).is_ok());
        assert!(throttle.log_in("ann", Some(peer(1)), START.plus(WINDOW)).is_ok());
    }

    #[test]
    fn the_owner_gets_in_from_elsewhere_while_many_guess() {
        let throttle = Throttle::default();
        for last in 1..=40 {
            for _ in 0..OF_A_PEER_AT_AN_ACCOUNT {
                let _ = throttle.log_in("ann", Some(peer(last)), START);
            }
        }
        assert!(throttle.log_in("ann", Some(peer(99)), START).is_ok());
        assert!(
            throttle.log_in("ann", Some(peer(99)), START).is_err(),
            "a second guess is one too many by now"
        );
    }

    #[test]
    fn a_good_attempt_is_not_held_against_anybody() {
        let throttle = Throttle::default();
        for _ in 0..3 * OF_A_PEER {
            throttle.log_in("ann", Some(peer(1)), START).unwrap();
            throttle.logged_in("ann", Some(peer(1)));
        }
    }

    #[test]
    fn one_peer_cannot_go_through_all_accounts() {
        let throttle = Throttle::default();
        let refused =
            (0..200).filter(|n| throttle.log_in(&n.to_string(), Some(peer(1)), START).is_err()).count();
        assert_eq!(refused, 100);
        let refused = (0..200).filter(|_| throttle.wrong_guess(Some(peer(1)), START).is_err()).count();
        assert_eq!(refused, 100);
        assert!(throttle.wrong_guess(Some(peer(2)), START).is_ok());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let throttle = Throttle::default();
        for number in 0..=REMEMBERED {
            let now = Moment::from_millis(i64::try_from(number).unwrap());
            let _ = throttle.log_in(&number.to_string(), None, now);
        }
        assert!(throttle.0.lock().unwrap().len() <= REMEMBERED);
    }
}
