//! What the resources of teams cost, and how much they may.

use super::{AuditEntry, StoreResult};
use async_trait::async_trait;
use domain::{name::Name, quota::QuotaUse};

/// Quotas of teams. What holds its name takes up its cost, from the claim of the name to the end of the life.
#[async_trait]
pub trait Quotas {
    /// How much of its quota a team uses; nothing where there is no such team.
    async fn quota(&self, team: &Name) -> StoreResult<Option<QuotaUse>>;
    /// The same of those of the teams that have a limit, by name; of the others nothing is counted.
    async fn limits(&self, teams: &[Name]) -> StoreResult<Vec<(Name, QuotaUse)>>;
    /// Sets a team's limit, or none, with an entry in the audit; how much of it is used then, or nothing where there is
    /// no such team. Everything that is made from then on meets it.
    async fn set_quota(
        &self,
        team: &Name,
        limit: Option<u64>,
        entry: AuditEntry,
    ) -> StoreResult<Option<QuotaUse>>;
}
