//! The time of day and chance, as parameters: tests move the one and replay the other.

use domain::time::Moment;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

/// Tells the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now, in UTC.
    fn now(&self) -> Moment;
}

/// Makes identifiers and randomness.
pub trait Ids: Send + Sync + std::fmt::Debug {
    /// Fills the bytes with unpredictable ones.
    fn fill(&self, bytes: &mut [u8]);

    /// A fresh UUID of version 7 of the given moment (RFC 9562, 5.7).
    fn uuid(&self, now: Moment) -> Uuid {
        let mut random = [0; 10];
        self.fill(&mut random);
        let millis = u64::try_from(now.millis()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// A random number, uniform over all of `u32`.
    fn random(&self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_le_bytes(bytes)
    }
}

/// How often another clock is looked at to set one by it; the quickest look counts, since it is the most exact.
const LOOKS: u32 = 3;

/// The machine's clock, set by another one where there is one that counts for several machines, and shifted by a fixed
/// time.
#[derive(Debug, Default)]
pub struct SystemClock {
    /// Added to the time, in milliseconds; may be negative.
    offset_millis: i64,
    /// How far the other clock is ahead of the machine's, in milliseconds; may be negative.
    ahead_millis: AtomicI64,
}

impl SystemClock {
    /// The machine's clock, shifted by so many milliseconds.
    #[must_use]
    pub fn shifted(offset_millis: i64) -> Self {
        Self { offset_millis, ahead_millis: AtomicI64::new(0) }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    fn machine() -> i64 {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }

    /// Sets it by another clock, at which `look` looks; by how many milliseconds it is ahead of the machine's, or nothing
    /// where there is no other. What a look's own length leaves open changes nothing.
    pub async fn set_by<E, Look>(&self, look: impl Fn() -> Look) -> Result<Option<i64>, E>
    where
        Look: Future<Output = Result<Option<Moment>, E>>,
    {
        let mut quickest: Option<(i64, i64)> = None;
        for _ in 0..LOOKS {
            let asked = Self::machine();
            let Some(shown) = look().await? else { return Ok(None) };
            let took = (Self::machine() - asked).max(0);
            if quickest.is_none_or(|(least, _)| took < least) {
                quickest = Some((took, shown.millis() - asked - took / 2));
            }
        }
        let known = self.ahead_millis.load(Ordering::Relaxed);
        match quickest {
            Some((took, ahead)) if (ahead - known).abs() > took => {
                self.ahead_millis.store(ahead, Ordering::Relaxed);
                Ok(Some(ahead))
            }
            _ => Ok(Some(known)),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let ahead = self.ahead_millis.load(Ordering::Relaxed);
        Moment::from_millis(Self::machine().saturating_add(ahead).saturating_add(self.offset_millis))
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            // Without randomness neither keys nor tokens can be made, so nothing sensible can go on.
            tracing::error!(%error, "the operating system gives no randomness; stopping");
            std::process::abort();
        }
    }
}

/// A clock that stands until it is moved; for tests.
#[derive(Debug)]
pub struct StandingClock(Mutex<Moment>);

impl StandingClock {
    /// Stands at `moment`.
    #[must_use]
    pub fn at(moment: Moment) -> Self {
        Self(Mutex::new(moment))
    }

    /// Moves on by `span`.
    pub fn advance(&self, span: Duration) {
        let mut moment = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *moment = moment.plus(span);
    }
}

/// A clock that goes on by a second whenever it is looked at; for tests.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct HastyClock(pub(crate) StandingClock);

#[cfg(test)]
impl Clock for HastyClock {
    fn now(&self) -> Moment {
        self.0.advance(Duration::from_secs(1));
        self.0.now()
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Moment {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_clock_is_set_by_the_one_that_counts_and_keeps_its_own_shift() {
        let (hour, minute) = (3_600_000, 60_000);
        let clock = SystemClock::shifted(minute);
        let beside =
            |ahead: i64| (clock.now().millis() - SystemClock::default().now().millis() - ahead).abs();
        assert!(beside(minute) < minute / 2);
        let other = SystemClock::shifted(-hour);
        let set = clock.set_by(|| async { Ok::<_, ()>(Some(other.now())) }).await.unwrap().unwrap();
        assert!((set + hour).abs() < minute / 2, "{set}");
        assert!(beside(minute - hour) < minute / 2);
        // Where it cannot be looked at it goes on as it was set; without another it is the machine's.
        assert_eq!(clock.set_by(|| async { Err("away") }).await, Err("away"));
        assert!(beside(minute - hour) < minute / 2);
        assert_eq!(SystemClock::default().set_by(|| async { Ok::<_, ()>(None) }).await, Ok(None));
    }
}
