//! What the resources of teams cost. No counter could drift: where a team has a limit, what holds its name is summed up,
//! under the lock of the team's row, so that of many at the same moment each sees those before it. Where it has none,
//! nothing is locked and nothing summed up.

use super::{
    dialect::{self, Connection, Database},
    exactly_one, write_audit,
};
use crate::store::{AuditEntry, StoreError, StoreResult, quotas::Quotas};
use async_trait::async_trait;
use domain::{
    name::Name,
    quota::{QuotaShort, QuotaUse},
};
use sqlx::Row as _;
use std::collections::{BTreeMap, HashMap, btree_map::Entry};
use uuid::Uuid;

/// Which teams a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Those that have a limit.
    Limited,
    /// Whatever there is.
    All,
}

/// How much a team uses.
async fn of(connection: &mut Connection, team: &str, which: Of) -> StoreResult<Option<QuotaUse>> {
    let found = sqlx::query(
        "SELECT quota,
                (SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM resource
                  WHERE resource.team = team.name AND ended_at IS NULL) AS used
           FROM team WHERE name = $1 AND ($2 OR quota IS NOT NULL)",
    )
    .bind(team)
    .bind(which == Of::All)
    .fetch_optional(connection)
    .await?;
    let Some(row) = found else { return Ok(None) };
    let count = |number: i64| {
        u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("team {team}: a quota below zero")))
    };
    Ok(Some(QuotaUse {
        used: count(row.try_get("used")?)?,
        limit: row.try_get::<Option<i64>, _>("quota")?.map(count).transpose()?,
    }))
}

/// Something that has got its name and now wants its share of its team's quota.
pub(super) struct Wants<'a> {
    pub(super) team: &'a str,
    pub(super) request: Uuid,
    pub(super) cost: u32,
}

/// Which of these have no place in their teams' quotas. They come in the order of their arrival, their rows are written, and
/// the rows of their teams are locked.
pub(super) async fn short(
    connection: &mut Connection,
    these: &[Wants<'_>],
) -> StoreResult<HashMap<Uuid, QuotaShort>> {
    let mut room: BTreeMap<&str, QuotaUse> = BTreeMap::new();
    for one in these {
        if let Entry::Vacant(place) = room.entry(one.team) {
            let mut team =
                of(connection, one.team, Of::Limited).await?.unwrap_or(QuotaUse { used: 0, limit: None });
            let own = these.iter().filter(|other| other.team == one.team).map(|other| u64::from(other.cost));
            team.used = team.used.saturating_sub(own.sum());
            place.insert(team);
        }
    }
    let mut refused = HashMap::new();
    for one in these {
        if let Some(team) = room.get_mut(one.team)
            && let Err(short) = team.take(one.cost.into())
        {
            refused.insert(one.request, short);
        }
    }
    Ok(refused)
}

/// Why so much would have no place in a team's quota just now, without a lock.
pub(super) async fn lacking(
    connection: &mut Connection,
    team: &str,
    cost: u32,
) -> StoreResult<Option<QuotaShort>> {
    let team = of(connection, team, Of::Limited).await?;
    Ok(team.and_then(|mut team| team.take(cost.into()).err()))
}

async fn set(
    connection: &mut Connection,
    team: &Name,
    limit: Option<u64>,
    entry: &AuditEntry,
) -> StoreResult<Option<QuotaUse>> {
    // Whoever is in the middle of making something for a team without a limit has not looked at this one.
    dialect::keep_makers_out(connection).await?;
    let done = sqlx::query("UPDATE team SET quota = $1 WHERE name = $2")
        .bind(limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)))
        .bind(team.as_str())
        .execute(&mut *connection)
        .await?;
    if done.rows_affected() == 0 {
        return Ok(None);
    }
    exactly_one(&done, "team")?;
    write_audit(connection, entry).await?;
    of(connection, team.as_str(), Of::All).await
}

#[async_trait]
impl Quotas for Database {
    async fn quota(&self, team: &Name) -> StoreResult<Option<QuotaUse>> {
        self.read(team, |team, connection| Box::pin(of(connection, team.as_str(), Of::All))).await
    }

    async fn limits(&self, teams: &[Name]) -> StoreResult<Vec<(Name, QuotaUse)>> {
        self.read(teams, |teams, connection| {
            Box::pin(async move {
                let mut found = Vec::new();
                for team in *teams {
                    if let Some(uses) = of(connection, team.as_str(), Of::Limited).await? {
                        found.push((team.clone(), uses));
                    }
                }
                found.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
                Ok(found)
            })
        })
        .await
    }

    async fn set_quota(
        &self,
        team: &Name,
        limit: Option<u64>,
        entry: AuditEntry,
    ) -> StoreResult<Option<QuotaUse>> {
        self.write((team.clone(), limit, entry), |(team, limit, entry), connection| {
            Box::pin(set(connection, team, *limit, entry))
        })
        .await
    }
}
