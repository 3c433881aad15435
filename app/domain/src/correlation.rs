//! The correlation ID: a stable business identifier that groups a request with every request that descends from it.

use crate::label::{LabelError, check_value};
use std::fmt;

/// The label under which a correlation ID is sent and shown.
pub const CORRELATION_LABEL: &str = "system.correlationId";

/// A correlation ID: 1 to 256 characters without control characters, immutable once a request has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CorrelationId(String);

impl CorrelationId {
    /// Checks a correlation ID; the rule is that of a label's value, and it may not be blank.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        if text.trim().is_empty() || check_value(text).is_err() {
            return Err(LabelError::BadCorrelation);
        }
        Ok(Self(text.to_owned()))
    }

    /// The ID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_id_is_a_label_value_and_not_blank() {
        assert!(CorrelationId::parse("payment-ORD-123").is_ok());
        assert!(CorrelationId::parse(" ").is_err());
        assert!(CorrelationId::parse("").is_err());
        assert!(CorrelationId::parse("a\nb").is_err());
        assert!(CorrelationId::parse(&"x".repeat(257)).is_err());
        let told = CorrelationId::parse("").unwrap_err().to_string();
        assert!(told.contains("correlation ID") && told.contains("not blank"), "{told}");
    }
}
