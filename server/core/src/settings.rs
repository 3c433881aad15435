//! Settings of the portal, and the one rule between them.

use domain::backoff::{BROWSER, BROWSER_RETRY_WINDOW, NOTIFICATION, NOTIFICATION_RETRY_WINDOW};
use domain::view::{GuardView, KeyPolicy, RetrySchedule};
use std::time::Duration;

/// How the guard keeps its promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardSettings {
    /// How long a key is kept after its request's final state.
    pub retention: Duration,
    /// How long a late repeat is still recognised after that.
    pub tombstones: Duration,
    /// The longest time over which any sender of the portal's own retries.
    pub longest_retry: Duration,
    /// How long a repeat waits for its first.
    pub wait: Duration,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            retention: days(7),
            tombstones: days(90),
            longest_retry: Duration::from_hours(76),
            wait: Duration::from_secs(5),
        }
    }
}

fn days(count: u64) -> Duration {
    Duration::from_hours(count * 24)
}

impl GuardSettings {
    /// Refuses settings under which a sender may still retry when its key is forgotten.
    pub fn check(&self) -> Result<(), String> {
        let least = self.longest_retry.max(BROWSER_RETRY_WINDOW).mul_f64(1.1);
        if self.retention < least {
            return Err(format!(
                "keys would be forgotten while a sender may still retry: retention is {} s and must be at least {} s, \
                 the longest retry window and a tenth",
                self.retention.as_secs(),
                least.as_secs_f64().ceil(),
            ));
        }
        if self.tombstones.is_zero() {
            return Err(
                "a late retry would not be recognised: KEYTURN_GUARD_TOMBSTONES must be longer than nothing"
                    .into(),
            );
        }
        Ok(())
    }

    /// How long a notification is sent again before it is given up. Never longer than any sender may retry: the other side
    /// may be a portal like this one, which knows a repeat for as long as that.
    #[must_use]
    pub fn notification_window(&self) -> Duration {
        NOTIFICATION_RETRY_WINDOW.min(self.longest_retry)
    }

    /// The policy as it is published.
    #[must_use]
    pub fn published(&self) -> GuardView {
        GuardView {
            key: KeyPolicy {
                header: "Idempotency-Key".into(),
                min_length: 1,
                max_length: 255,
                characters: "visible ASCII".into(),
            },
            retention_seconds: self.retention.as_secs(),
            tombstone_seconds: self.tombstones.as_secs(),
            wait_seconds: self.wait.as_secs(),
            longest_retry_seconds: self.longest_retry.as_secs(),
            retry_schedules: vec![
                RetrySchedule {
                    sender: "browser".into(),
                    base_millis: millis(BROWSER.base),
                    cap_millis: millis(BROWSER.cap),
                    window_seconds: BROWSER_RETRY_WINDOW.as_secs(),
                },
                RetrySchedule {
                    sender: "notification".into(),
                    base_millis: millis(NOTIFICATION.base),
                    cap_millis: millis(NOTIFICATION.cap),
                    window_seconds: self.notification_window().as_secs(),
                },
            ],
            submissions_kept_per_key: 1000,
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a span as `90d`, `12h`, `30m`, `45s` or `500ms`.
#[must_use]
pub fn read_span(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let count: u64 = count.parse().ok()?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(count)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return None,
    };
    count.checked_mul(seconds).map(Duration::from_secs)
}

/// How the portal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The guard.
    pub guard: GuardSettings,
    /// How many runs are carried out at once.
    pub workers: usize,
    /// How long a worker may be silent before another takes its run over.
    pub lease: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { guard: GuardSettings::default(), workers: 4, lease: Duration::from_secs(30) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_covers_the_longest_retry_and_a_tenth() {
        let good = GuardSettings::default();
        assert!(good.check().is_ok());
        let hour = Duration::from_hours(1);
        let edge = GuardSettings { longest_retry: hour * 10, retention: hour * 11, ..good };
        assert!(edge.check().is_ok());
        assert!(GuardSettings { retention: hour * 10, ..edge }.check().is_err());
        assert!(GuardSettings { tombstones: Duration::ZERO, ..good }.check().is_err());
    }

    #[test]
    fn spans_are_read_with_their_unit() {
        assert_eq!(read_span("90d"), Some(days(90)));
        assert_eq!(read_span("500ms"), Some(Duration::from_millis(500)));
        for bad in ["", "d", "5", "5w", "-5s", "5 s", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(read_span(bad), None, "{bad:?}");
        }
    }
}
