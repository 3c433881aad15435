//! What a dry run answers: what a submission would mean and do, before anything is claimed or stored.

use crate::{
    approval::ApprovalNeeded,
    command::Command,
    name::Name,
    problem::RequestLink,
    view::{EarlierRequest, Object},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a submission would do now. Another may come first, so it is no promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanView {
    /// Always true: nothing was claimed and nothing was stored.
    pub dry_run: bool,
    /// The validated command: parameters after defaults, of an update its patch; labels and correlation ID as sent.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub command: Command,
    /// What would be done.
    pub plan: PlannedChange,
    /// What it would take up, or give back.
    pub quota: QuotaEffect,
    /// Earlier requests because of which it would be asked whether it is meant; the newest first.
    pub likely_duplicates: Vec<EarlierRequest>,
}

/// What a submission would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedChange {
    /// What it would come to.
    pub outcome: PlannedOutcome,
    /// The same in words.
    pub summary: String,
    /// The team that owns it, or would.
    pub team: Name,
    /// Its type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// Its name.
    pub name: Name,
    /// The offering's version.
    pub offering_version: String,
    /// Who would have to approve it before anything is done; absent where nobody would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNeeded>,
    /// The request that made or deleted it already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestLink>,
    /// Which of the resource's parameters would change.
    #[serde(default)]
    pub changes: Vec<PlannedParameter>,
    /// What would be done, in this order as far as there is one: by the offering's own provisioner in one step, or by the
    /// steps that the offering is made of.
    #[serde(default)]
    pub steps: Vec<PlannedStep>,
    /// Requests about the resource that are not at their end: a change is carried out after these, a delete stops them.
    #[serde(default)]
    pub open_requests: Vec<RequestLink>,
}

/// A parameter that would change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedParameter {
    /// Its name.
    pub name: String,
    /// Its value now; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value then; absent where it would have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Which of the parameters differ, by their names.
#[must_use]
pub fn differing(before: &Object, after: &Object) -> Vec<PlannedParameter> {
    let mut names: Vec<&String> =
        before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)).collect();
    names.sort();
    names.dedup();
    let told = |name: &String| PlannedParameter {
        name: name.clone(),
        before: before.get(name).cloned(),
        after: after.get(name).cloned(),
    };
    names.into_iter().map(told).collect()
}

/// One step of what would be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedStep {
    /// The step's ID in its offering; where the offering is not made of others, the action.
    pub step: String,
    /// `create`, `update`, `delete`, `cancel`, or the ID of an action; `existing` where nothing would be done.
    pub action: String,
    /// What is asked for.
    pub offering: Name,
    /// The resource's type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// The resource's name; absent while it depends on what is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Its parameters as far as they are known; after defaults where all are.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: Object,
    /// The names of parameters that depend on what an earlier step answers, or on the request's own ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The steps that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Who would have to approve this step before it is done; absent where nobody would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNeeded>,
    /// Why it would be refused, as far as that can be told now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it is made of itself.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Self>,
}

/// What a submission would come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PlannedOutcome {
    /// A new resource would be made.
    Create,
    /// A resource would be changed.
    Update,
    /// A resource would be removed.
    Delete,
    /// Something would be done with a resource.
    Action,
    /// It is there, or gone, already, just as asked; nothing would be done.
    Existing,
}

/// What a submission would take up of its team's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaEffect {
    /// How much it would add, with all that it is made of; below zero where it gives back.
    pub cost: i64,
    /// What the team uses now; null where there is no limit, since then nobody counts.
    pub used: Option<u64>,
    /// The most that the team may use; null where there is no limit.
    pub limit: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_told_by_name_with_both_values() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let (before, after) =
            (object(json!({ "a": 1, "b": 2, "c": 3 })), object(json!({ "d": 4, "c": 5, "b": 2 })));
        let told = serde_json::to_value(differing(&before, &after)).unwrap();
        assert_eq!(
            told,
            json!([{ "name": "a", "before": 1 }, { "name": "c", "before": 3, "after": 5 }, { "name": "d", "after": 4 }])
        );
        assert_eq!(differing(&after, &after), []);
    }
}
