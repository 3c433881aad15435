//! Creates of teams with a limit: a place in the quota is asked for once key and name are got.

use super::super::{dialect::Connection, quotas, rows::array};
use super::{NewRow, with_new, write_rest};
use crate::store::{StoreError, StoreResult};
use domain::quota::QuotaShort;
use sqlx::AssertSqlSafe;
use std::collections::HashMap;
use uuid::Uuid;

/// Goes on with those that have got their names in teams with a limit: who has a place in the quota too is written, who has
/// none gives its key and its name back.
pub(super) async fn within_quotas(
    connection: &mut Connection,
    mut these: Vec<&NewRow<'_>>,
) -> StoreResult<HashMap<Uuid, QuotaShort>> {
    these.sort_by_key(|row| row.place);
    let wants: Vec<quotas::Wants<'_>> =
        these.iter().map(|row| quotas::Wants { team: row.team, request: row.id, cost: row.cost }).collect();
    let short = quotas::short(connection, &wants).await?;
    let (losers, winners): (Vec<_>, Vec<_>) = these.into_iter().partition(|row| short.contains_key(&row.id));
    if !losers.is_empty() {
        let rows = array(&losers)?;
        for (what, statement) in [
            ("resource", "DELETE FROM resource WHERE id IN (SELECT resource FROM new)"),
            (
                "claim",
                "DELETE FROM claim WHERE (team, principal, key) IN (SELECT team, principal, key FROM new)",
            ),
        ] {
            let statement = AssertSqlSafe(with_new(statement));
            let met = sqlx::query(statement).bind(&rows).execute(&mut *connection).await?.rows_affected();
            if usize::try_from(met).ok() != Some(losers.len()) {
                return Err(StoreError::Corrupt(format!("{what}: {met} rows instead of {}", losers.len())));
            }
        }
    }
    write_rest(connection, &winners).await?;
    Ok(short)
}
