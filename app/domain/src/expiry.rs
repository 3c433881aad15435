//! Ends of resources. The portal removes nothing by itself when one comes; it tells of it beforehand.

use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a resource ends, and how long before that somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// When.
    pub end: End,
    /// How long before.
    pub warn: Duration,
}

/// The end of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At this moment, as whoever made it says.
    At(Moment),
    /// So long after it was made.
    After(Duration),
}

/// How near the end of a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// Nobody needs to be told yet.
    Far,
    /// It is time to do something about it.
    Near,
    /// It has come.
    Past,
}

impl Nearness {
    /// How near `end` is now, where one is told of it so long before.
    #[must_use]
    pub fn of(end: Moment, warn: Duration, now: Moment) -> Self {
        let left = end.millis() - now.millis();
        if left <= 0 {
            Self::Past
        } else if u128::from(left.unsigned_abs()) <= warn.as_millis() {
            Self::Near
        } else {
            Self::Far
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_near_from_the_warning_on() {
        let now = Moment::from_millis(1_000_000);
        let warn = Duration::from_millis(500);
        for (left, near) in [
            (501, Nearness::Far),
            (500, Nearness::Near),
            (1, Nearness::Near),
            (0, Nearness::Past),
            (-1, Nearness::Past),
        ] {
            assert_eq!(Nearness::of(Moment::from_millis(now.millis() + left), warn, now), near, "{left}");
        }
    }
}
