//! Quotas: how much the resources of a team may cost together, and how much of that they do.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The highest limit that a team can have.
pub const HIGHEST_LIMIT: u64 = 1_000_000_000_000;

/// How much of its quota a team uses: what everything costs together that holds its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaUse {
    /// What is used.
    pub used: u64,
    /// The most that may be; null where there is no limit.
    pub limit: Option<u64>,
}

impl QuotaUse {
    /// Takes so much more, or tells what is lacking. What costs nothing always has its place, and a limit that was set
    /// below what is used refuses only what is new.
    pub fn take(&mut self, asked: u64) -> Result<(), QuotaShort> {
        let used = self.used.saturating_add(asked);
        match self.limit {
            Some(limit) if asked > 0 && used > limit => Err(QuotaShort { used: self.used, limit, asked }),
            _ => {
                self.used = used;
                Ok(())
            }
        }
    }
}

impl fmt::Display for QuotaUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Some(limit) => write!(f, "uses {} of {limit}", self.used),
            None => write!(f, "uses {}, without a limit", self.used),
        }
    }
}

/// Why something has no place in a team's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaShort {
    /// What the team uses.
    pub used: u64,
    /// The most that it may use.
    pub limit: u64,
    /// What was asked for on top.
    pub asked: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_to_the_last_is_taken_and_no_more() {
        let mut room = QuotaUse { used: 7, limit: Some(10) };
        assert_eq!(room.take(4), Err(QuotaShort { used: 7, limit: 10, asked: 4 }));
        assert_eq!((room.take(3), room.take(0), room.used), (Ok(()), Ok(()), 10));
        assert!(room.take(1).is_err() && room.take(u64::MAX).is_err());
        assert_eq!(room.to_string(), "uses 10 of 10");
    }

    #[test]
    fn without_a_limit_everything_fits_and_beyond_a_lowered_one_only_what_costs_nothing() {
        let mut free = QuotaUse { used: 7, limit: None };
        assert_eq!((free.take(1_000_000), free.used), (Ok(()), 1_000_007));
        assert_eq!(free.to_string(), "uses 1000007, without a limit");
        let mut lowered = QuotaUse { used: 7, limit: Some(5) };
        assert!(lowered.take(0).is_ok() && lowered.take(1).is_err());
    }
}
