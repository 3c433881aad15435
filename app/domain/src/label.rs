//! Labels: `key:value` pairs that a sender puts on a request.

use crate::correlation::{CORRELATION_LABEL, CorrelationId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The label that bears the identity of the event that a request was started by. No descendant inherits it.
pub const EVENT_LABEL: &str = "idempotency.key";
/// The longest label key, in characters.
pub const MAX_LABEL_KEY_LENGTH: usize = 63;
/// The longest label value, in characters.
pub const MAX_LABEL_VALUE_LENGTH: usize = 256;
/// The most labels on one request.
pub const MAX_LABELS: usize = 64;

/// Labels of a request, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

/// The rule that a label broke, with the label's key where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// No colon between key and value.
    #[error("a label is written key:value")]
    NoColon,
    /// The key does not match `[a-z0-9._/-]{1,63}`.
    #[error("a label's key is 1 to 63 of a to z, 0 to 9, '.', '_', '/' and '-'")]
    BadKey,
    /// A `system.` key, which the portal sets itself.
    #[error("labels that begin with system. are set by the portal")]
    Reserved,
    /// More than [`MAX_LABEL_VALUE_LENGTH`] characters, or a control character.
    #[error("a label's value has at most 256 characters and no control characters")]
    BadValue,
    /// The same key with two values.
    #[error("the label is given twice with different values")]
    Contradiction,
    /// What was sent as a correlation ID is none.
    #[error("a correlation ID has 1 to 256 characters, is not blank and has no control characters")]
    BadCorrelation,
    /// One correlation ID among the labels, and another beside them.
    #[error("differs from the label system.correlationId")]
    OtherCorrelation,
    /// More than [`MAX_LABELS`].
    #[error("a request carries at most 64 labels")]
    TooMany,
}

impl Labels {
    /// Adds one label after checking it.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), LabelError> {
        if key.starts_with("system.") {
            return Err(LabelError::Reserved);
        }
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
        if key.is_empty() || key.len() > MAX_LABEL_KEY_LENGTH || !key.bytes().all(allowed) {
            return Err(LabelError::BadKey);
        }
        check_value(value)?;
        if self.0.get(key).is_some_and(|present| present != value) {
            return Err(LabelError::Contradiction);
        }
        self.0.insert(key.to_owned(), value.to_owned());
        if self.0.len() > MAX_LABELS { Err(LabelError::TooMany) } else { Ok(()) }
    }

    /// The labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// These labels of a request together with those that its parent shows, without the ones that stand for the parent
    /// alone: its correlation ID, and the identity of the event that started it. What was sent counts over what is
    /// inherited.
    pub fn inheriting<'p>(
        &self,
        parent: impl IntoIterator<Item = (&'p String, &'p String)>,
    ) -> Result<Self, LabelError> {
        let mut all = self.clone();
        for (key, value) in parent {
            if key != CORRELATION_LABEL && key != EVENT_LABEL && !all.0.contains_key(key) {
                all.add(key, value)?;
            }
        }
        Ok(all)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels as they are shown: with the correlation ID among them.
    #[must_use]
    pub fn shown_with(&self, correlation_id: &str) -> BTreeMap<String, String> {
        let mut shown = self.0.clone();
        shown.insert(CORRELATION_LABEL.to_owned(), correlation_id.to_owned());
        shown
    }
}

/// Labels as somebody sends them: the correlation ID may be among them, or beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentLabels {
    labels: Labels,
    correlation: Option<CorrelationId>,
}

impl SentLabels {
    /// Adds one label after checking it. The one of the correlation ID becomes no label, but the correlation ID.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), LabelError> {
        if key != CORRELATION_LABEL {
            return self.labels.add(key, value);
        }
        let id = CorrelationId::parse(value)?;
        if self.correlation.as_ref().is_some_and(|known| *known != id) {
            return Err(LabelError::Contradiction);
        }
        self.correlation = Some(id);
        Ok(())
    }

    /// Adds the correlation ID that was sent beside the labels.
    pub fn correlate(&mut self, id: &str) -> Result<(), LabelError> {
        if self.correlation.as_ref().is_some_and(|known| known.as_str() != id) {
            return Err(LabelError::OtherCorrelation);
        }
        self.correlation = Some(CorrelationId::parse(id)?);
        Ok(())
    }

    /// The labels of a request, and its correlation ID if one was sent.
    #[must_use]
    pub fn into_parts(self) -> (Labels, Option<CorrelationId>) {
        (self.labels, self.correlation)
    }
}

/// Splits `key:value` at the first colon.
pub fn split(label: &str) -> Result<(&str, &str), LabelError> {
    label.split_once(':').ok_or(LabelError::NoColon)
}

/// Checks a label's value: at most 256 characters, none of them a control character.
pub fn check_value(value: &str) -> Result<(), LabelError> {
    if value.chars().count() > MAX_LABEL_VALUE_LENGTH || value.chars().any(char::is_control) {
        return Err(LabelError::BadValue);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_their_rules() {
        let mut labels = Labels::default();
        assert_eq!(labels.add("env", "prod"), Ok(()));
        assert_eq!(labels.add("env", "prod"), Ok(()));
        assert_eq!(labels.add("env", "test"), Err(LabelError::Contradiction));
        assert_eq!(labels.add("a.b_c/d-e", "x:y"), Ok(()));
        assert_eq!(labels.add("", "x"), Err(LabelError::BadKey));
        assert_eq!(labels.add("Env", "x"), Err(LabelError::BadKey));
        assert_eq!(labels.add(&"k".repeat(64), "x"), Err(LabelError::BadKey));
        assert_eq!(labels.add("system.owner", "x"), Err(LabelError::Reserved));
        assert_eq!(labels.add("v", "a\u{0}b"), Err(LabelError::BadValue));
        assert_eq!(labels.add("v", &"é".repeat(256)), Ok(()));
        assert_eq!(labels.add("v2", &"é".repeat(257)), Err(LabelError::BadValue));
        assert_eq!(split("a:b:c"), Ok(("a", "b:c")));
        assert_eq!(split("ab"), Err(LabelError::NoColon));
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let mut labels = Labels::default();
        for (key, value) in pairs {
            labels.add(key, value).unwrap();
        }
        labels
    }

    #[test]
    fn the_correlation_id_is_sent_among_the_labels_or_beside_them_and_is_one() {
        let mut sent = SentLabels::default();
        assert_eq!(sent.add("env", "prod"), Ok(()));
        assert_eq!(sent.add(CORRELATION_LABEL, " "), Err(LabelError::BadCorrelation));
        assert_eq!(sent.add(CORRELATION_LABEL, "ORD-1"), Ok(()));
        assert_eq!(sent.add(CORRELATION_LABEL, "ORD-1"), Ok(()));
        assert_eq!(sent.add(CORRELATION_LABEL, "ORD-2"), Err(LabelError::Contradiction));
        assert_eq!(sent.add("system.owner", "x"), Err(LabelError::Reserved));
        assert_eq!(sent.correlate("ORD-2"), Err(LabelError::OtherCorrelation));
        assert_eq!(sent.correlate("ORD-1"), Ok(()));
        assert_eq!(sent.into_parts(), (labels(&[("env", "prod")]), CorrelationId::parse("ORD-1").ok()));
        let mut beside = SentLabels::default();
        assert_eq!(beside.correlate(""), Err(LabelError::BadCorrelation));
        assert_eq!(beside.correlate("ORD-1"), Ok(()));
        assert_eq!(beside.into_parts(), (labels(&[]), CorrelationId::parse("ORD-1").ok()));
    }

    #[test]
    fn a_descendant_inherits_labels_but_not_the_identity_of_the_event() {
        let parent =
            labels(&[("env", "prod"), ("team/owner", "ann"), (EVENT_LABEL, "evt-1")]).shown_with("ORD-1");
        let own = labels(&[("env", "test"), ("step", "one")]);
        let all = own.inheriting(&parent).unwrap();
        assert_eq!(all, labels(&[("env", "test"), ("step", "one"), ("team/owner", "ann")]));
        let event = labels(&[(EVENT_LABEL, "evt-2")]);
        assert_eq!(event.inheriting(&parent).unwrap().iter().count(), 3, "its own identity stays");
    }

    #[test]
    fn what_is_inherited_counts_among_the_most_labels() {
        let numbered = |from: usize| {
            let mut labels = Labels::default();
            (from..from + MAX_LABELS).for_each(|n| labels.add(&format!("k{n}"), "v").unwrap());
            labels
        };
        assert!(Labels::default().inheriting(&numbered(0).shown_with("c")).is_ok());
        assert_eq!(numbered(1).inheriting(&numbered(0).shown_with("c")), Err(LabelError::TooMany));
    }
}
