//! Ends of resources. The portal removes nothing by itself when one comes; it tells of it beforehand.

use crate::time::Moment;
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
