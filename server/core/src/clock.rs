//! The time of day and chance, as parameters: tests move the one and replay the other.

use domain::time::Moment;
use std::{sync::Mutex, time::Duration};
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

/// The machine's clock, shifted by a fixed time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock {
    /// Added to the machine's time, in milliseconds; may be negative.
    pub offset_millis: i64,
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    fn now(&self) -> Moment {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Moment::from_millis(millis.saturating_add(self.offset_millis))
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
