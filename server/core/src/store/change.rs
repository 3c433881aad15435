//! A change of a resource, as the store is asked to accept it: what is known before, and what is worked out under the
//! resource's lock, on what the resource is at that moment.

use super::StoredResource;
use crate::Error;
use domain::{
    approval::ApprovalNeeded,
    change::{self, Changes},
    id::RequestId,
    label::Labels,
    merge,
    name::Name,
    problem::FieldError,
    view::Object,
};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// A change that wants to be accepted.
#[derive(Debug, Clone)]
pub struct NewChange {
    /// The ID that its request gets.
    pub id: RequestId,
    /// The team whose resource it is.
    pub team: Name,
    /// The resource's type.
    pub kind: Name,
    /// The resource's name.
    pub name: Name,
    /// `update`, `delete`, or the ID of an action.
    pub action: String,
    /// Labels as sent.
    pub labels: Labels,
    /// The correlation ID as sent.
    pub correlation_id: Option<String>,
    /// The request that it descends from.
    pub parent_id: Option<RequestId>,
    /// The digest of the schema under which an action's parameters were understood.
    pub schema_digest: Option<String>,
    /// The secret parameters that it brings, sealed.
    pub hidden: Option<Vec<u8>>,
    /// What it comes to.
    pub plan: Plan,
}

type Planning = dyn Fn(&StoredResource) -> Result<Planned, Error> + Send + Sync;

/// What a change comes to, on the resource as it stands when the change is accepted; or why it does not fit. Of a life
/// that is over or about to end only a delete is asked, which then finds itself done.
#[derive(Clone)]
pub struct Plan(Arc<Planning>);

impl Plan {
    /// A plan by this rule. It is asked while the resource is locked, so it looks at nothing else and is quick.
    pub fn new(rule: impl Fn(&StoredResource) -> Result<Planned, Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    /// What it comes to on this resource.
    pub fn on(&self, resource: &StoredResource) -> Result<Planned, Error> {
        (self.0)(resource)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plan")
    }
}

/// What a change comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// What its request shows as parameters.
    pub parameters: Object,
    /// What an update was sent as.
    pub patch: Option<Object>,
    /// What the resource is meant to be then; nothing for a delete.
    pub desired: Option<Object>,
    /// How that comes from what it was meant to be before.
    pub delta: Option<Delta>,
    /// The offering's version.
    pub offering_version: String,
    /// Whose approval it needs before it is carried out.
    pub approval: Option<ApprovalNeeded>,
}

/// How a change makes what a resource is meant to be out of what it was meant to be before. It is kept, so that a change
/// is worked out again where an earlier one, on which it was based, has been taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// These members differ, as a merge patch.
    Merge(Object),
    /// By an action's rules, on its own parameters.
    Action {
        /// The rules.
        changes: Changes,
        /// Its parameters.
        input: Object,
    },
}

impl Delta {
    /// What the resource is meant to be after the change, on another footing.
    pub fn on(&self, before: &Object) -> Result<Object, Vec<FieldError>> {
        match self {
            Self::Merge(patch) => Ok(merge::merged(before, patch)),
            Self::Action { changes, input } => change::changed(before, changes, input),
        }
    }
}
