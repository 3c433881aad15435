//! The second layer: what a create says about itself where its offering asks about the same intention under another key.

use domain::{id::RequestId, time::Moment};

/// By what a create is told from an earlier one that may mean the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondLook {
    /// The hash of its parameters after defaults.
    pub parameters: [u8; 32],
    /// Earlier requests count if they came after this.
    pub since: Moment,
    /// Whether its sender can be asked.
    pub askable: bool,
    /// What its sender answered.
    pub confirmed: Option<Confirmation>,
}

/// An earlier request is known, and another is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// The earlier request.
    pub of: RequestId,
    /// Why another is wanted.
    pub reason: String,
}
