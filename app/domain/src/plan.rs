//! What a dry run answers: what a submission would mean and do, before anything is claimed or stored.

use crate::{command::Command, name::Name, problem::RequestLink, view::EarlierRequest};
use serde::{Deserialize, Serialize};

/// What a submission would do now. Another may come first, so it is no promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanView {
    /// Always true: nothing was claimed and nothing was stored.
    pub dry_run: bool,
    /// The validated command: parameters after defaults, labels and correlation ID as sent.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub command: Command,
    /// What would be made.
    pub plan: PlannedChange,
    /// What it would take up.
    pub quota: QuotaEffect,
    /// Earlier requests because of which it would be asked whether it is meant; the newest first.
    pub likely_duplicates: Vec<EarlierRequest>,
}

/// What a submission would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedChange {
    /// Whether it would make something.
    pub outcome: PlannedOutcome,
    /// The same in words.
    pub summary: String,
    /// The team that would own it.
    pub team: Name,
    /// Its type.
    #[serde(rename = "type")]
    pub resource_type: Name,
    /// Its name.
    pub name: Name,
    /// The offering's version.
    pub offering_version: String,
    /// The request that made what is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestLink>,
}

/// Whether a submission would make something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PlannedOutcome {
    /// A new resource would be made.
    Create,
    /// It is there already, just as asked; nothing would be made.
    Existing,
}

/// What a submission would take up of its team's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaEffect {
    /// How much it would add.
    pub cost: u32,
    /// The most that the team may use; null where there is no limit.
    pub limit: Option<u64>,
}
