//! The words of a search: which fields there are, and how they are compared.

use std::{fmt::Display, str::FromStr};

/// What a request can be searched by, besides labels, parameters and free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Where it stands.
    State,
    /// The catalog entry.
    Offering,
    /// The resource's type.
    Type,
    /// The resource's name.
    Name,
    /// What it does to the resource.
    Action,
    /// Who asked.
    RequestedBy,
    /// The door by which it came.
    Channel,
    /// What it is grouped by.
    CorrelationId,
    /// The request that it descends from.
    ParentId,
    /// When it was accepted.
    CreatedAt,
    /// When it came to its end.
    FinishedAt,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// Is this.
    Equals,
    /// Is not this; what has no such field is not this either.
    NotEquals,
    /// Is one of these.
    In,
    /// Is none of these.
    NotIn,
    /// Holds this.
    Contains,
    /// Begins with this.
    StartsWith,
    /// Is this or comes after it; texts in the order of their bytes.
    GreaterThanOrEqualTo,
    /// Comes before this.
    LessThan,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 11] = [
        Self::State,
        Self::Offering,
        Self::Type,
        Self::Name,
        Self::Action,
        Self::RequestedBy,
        Self::Channel,
        Self::CorrelationId,
        Self::ParentId,
        Self::CreatedAt,
        Self::FinishedAt,
    ];

    /// The field's word, as in the request's JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Offering => "offering",
            Self::Type => "type",
            Self::Name => "name",
            Self::Action => "action",
            Self::RequestedBy => "requested_by",
            Self::Channel => "channel",
            Self::CorrelationId => "correlation_id",
            Self::ParentId => "parent_id",
            Self::CreatedAt => "created_at",
            Self::FinishedAt => "finished_at",
        }
    }

    /// Whether it holds a time.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::CreatedAt | Self::FinishedAt)
    }

    /// The parameter of an address that compares the field.
    #[must_use]
    pub fn compared(self, operator: Operator) -> String {
        format!("filters[{self}][{operator}]")
    }
}

impl Operator {
    /// Every operator.
    pub const ALL: [Self; 8] = [
        Self::Equals,
        Self::NotEquals,
        Self::In,
        Self::NotIn,
        Self::Contains,
        Self::StartsWith,
        Self::GreaterThanOrEqualTo,
        Self::LessThan,
    ];

    /// The operator's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equals => "EQUALS",
            Self::NotEquals => "NOT_EQUALS",
            Self::In => "IN",
            Self::NotIn => "NOT_IN",
            Self::Contains => "CONTAINS",
            Self::StartsWith => "STARTS_WITH",
            Self::GreaterThanOrEqualTo => "GREATER_THAN_OR_EQUAL_TO",
            Self::LessThan => "LESS_THAN",
        }
    }

    /// Whether it takes several values with commas between.
    #[must_use]
    pub fn takes_several(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }

    /// Whether it holds between a text and one value.
    pub(super) fn holds(self, text: &str, value: &str) -> bool {
        match self {
            Self::Equals | Self::In => text == value,
            Self::NotEquals | Self::NotIn => text != value,
            Self::Contains => text.contains(value),
            Self::StartsWith => text.starts_with(value),
            Self::GreaterThanOrEqualTo => text >= value,
            Self::LessThan => text < value,
        }
    }
}

macro_rules! words {
    ($($kind:ident)*) => {$(
        impl Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $kind {
            type Err = ();
            fn from_str(word: &str) -> Result<Self, ()> {
                Self::ALL.into_iter().find(|known| known.as_str() == word).ok_or(())
            }
        }
    )*};
}

words! { Field Operator }

/// Words with commas between.
pub(super) fn list(words: &[impl Display]) -> String {
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
