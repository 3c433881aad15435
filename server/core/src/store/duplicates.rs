//! How many duplicates there were, and what they would have been under another policy.

use super::StoreResult;
use async_trait::async_trait;
use domain::{duplicates::Rule, name::Name, time::Moment, view::RequestView};
use std::time::Duration;

/// How finely duplicates are counted: the days of every zone begin at such a moment.
pub const SLOT: Duration = Duration::from_mins(15);

/// The beginning of the slot in which a moment lies, in milliseconds.
#[must_use]
pub fn slot(at: Moment) -> i64 {
    let (at, slot) = (at.millis(), i64::try_from(SLOT.as_millis()).unwrap_or(i64::MAX));
    at - at.rem_euclid(slot)
}

/// How many duplicates of one kind fell into a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodCount {
    /// The period's place among those that were asked for.
    pub place: usize,
    /// What answered them.
    pub rule: Rule,
    /// The door by which they came.
    pub channel: String,
    /// How many.
    pub count: i64,
}

/// How many duplicates of one kind one source sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCount {
    /// What answered them.
    pub rule: Rule,
    /// The door by which they came.
    pub channel: String,
    /// Who sent them.
    pub sent_by: String,
    /// The label of the token they were sent with; empty where there was none.
    pub token_label: String,
    /// How many.
    pub count: i64,
}

/// Counts of duplicates and what they are counted from.
#[async_trait]
pub trait Duplicates {
    /// How many duplicates fell into each of the periods between these moments, which stand in order and at full slots;
    /// and the largest of the sources of all of them, at most `sources` for each place where duplicates are counted.
    async fn duplicates(
        &self,
        edges: Vec<Moment>,
        sources: u32,
    ) -> StoreResult<(Vec<PeriodCount>, Vec<SourceCount>)>;

    /// Creates of an offering since a moment, newest first, after a place, at most `limit`.
    async fn creates_of(
        &self,
        offering: &Name,
        since: Moment,
        after: Option<(Moment, uuid::Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<RequestView>>;
}
