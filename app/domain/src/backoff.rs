//! Waiting between tries: exponential back-off with full jitter, and the published schedules.

use crate::time::Moment;
use std::time::Duration;

/// A retry schedule: before try `n` one waits a random time between nothing and `base * 2^n`, at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The upper bound of the first wait.
    pub base: Duration,
    /// The upper bound of every wait.
    pub cap: Duration,
}

/// How the browser's form retries a submission without an answer, within [`BROWSER_RETRY_WINDOW`].
pub const BROWSER: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(8) };

/// How long the browser's form goes on by itself before it says that the outcome is not known yet.
pub const BROWSER_RETRY_WINDOW: Duration = Duration::from_mins(1);

/// How notifications are sent again that did not arrive, within [`NOTIFICATION_RETRY_WINDOW`].
pub const NOTIFICATION: Backoff = Backoff { base: Duration::from_secs(10), cap: Duration::from_hours(12) };

/// How long a notification is sent again before it is given up.
pub const NOTIFICATION_RETRY_WINDOW: Duration = Duration::from_hours(72);

/// The longest time that anybody is waited for; what is asked for beyond it is as good as never.
const NEVER: Duration = Duration::from_hours(365 * 24);

/// How long the header `Retry-After` asks to wait (RFC 9110, 10.2.3): so many seconds, or until a time, which is counted
/// from `now`. Nothing where it says neither, or where it names a time and nobody knows what time it is.
#[must_use]
pub fn retry_after(text: &str, now: Option<Moment>) -> Option<Duration> {
    let text = text.trim();
    let asked = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => Moment::read_http(text)?.since(now?),
    };
    Some(asked.min(NEVER))
}

impl Backoff {
    /// The wait before try `attempt` (0 is the first retry); `random` is uniform over all of `u32`.
    #[must_use]
    pub fn wait(self, attempt: u32, random: u32) -> Duration {
        let ceiling = self.base.saturating_mul(2_u32.saturating_pow(attempt.min(31))).min(self.cap);
        ceiling.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_wait_is_jittered_and_bounded(attempt: u32, random: u32) {
            let wait = BROWSER.wait(attempt, random);
            prop_assert!(wait <= BROWSER.cap);
            prop_assert!(BROWSER.wait(attempt, 0).is_zero());
            prop_assert!(BROWSER.wait(attempt, u32::MAX) >= wait);
        }
    }

    #[test]
    fn the_time_to_wait_is_a_number_of_seconds_or_a_time() {
        let now = Moment::read_http("Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:51:00 GMT"), Some(83));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0), "a time that is over");
        assert_eq!(seconds("18446744073709551615"), Some(NEVER.as_secs()));
        assert_eq!(seconds("Fri, 31 Dec 9999 23:59:59 GMT"), Some(NEVER.as_secs()));
        for other in ["", "-1", "1.5", "soon"] {
            assert_eq!(seconds(other), None, "{other}");
        }
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:51:00 GMT", None), None);
    }

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let millis: Vec<_> = (0..6).map(|n| BROWSER.wait(n, u32::MAX).as_millis()).collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 8000]);
    }
}
