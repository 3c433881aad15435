//! Steps and chains: who descends from whom.

use super::{
    dialect::{Connection, Database},
    lists,
    rows::{self, REQUEST},
};
use crate::store::{Families, StepRequest, StoreError, StoreResult};
use async_trait::async_trait;
use domain::{
    chain::{ChainEntry, ChainView},
    id::RequestId,
    name::Name,
};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

/// How far up a root is looked for, and how far down one looks for descendants.
const MOST_GENERATIONS: i64 = 20;

#[async_trait]
impl Families for Database {
    async fn steps_of(&self, parent: RequestId) -> StoreResult<Vec<StepRequest>> {
        self.read(parent, |parent, connection| Box::pin(steps_of(connection, *parent))).await
    }

    async fn chain(&self, of: RequestId, most: u32) -> StoreResult<Option<ChainView>> {
        self.snapshot((of, most), |(of, most), connection| Box::pin(chain(connection, *of, *most))).await
    }
}

async fn steps_of(connection: &mut Connection, parent: RequestId) -> StoreResult<Vec<StepRequest>> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT step, {REQUEST} FROM request WHERE parent_id = $1 AND step IS NOT NULL ORDER BY created_at, id",
    )))
    .bind(parent.0)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok(StepRequest { step: row.try_get("step")?, request: rows::request(row)? }))
        .collect()
}

/// The root above a request; itself where it descends from nothing.
async fn root(connection: &mut Connection, of: RequestId) -> StoreResult<Option<Uuid>> {
    Ok(sqlx::query_scalar(
        "WITH RECURSIVE up (id, parent_id, height) AS (
              SELECT id, parent_id, CAST(0 AS BIGINT) FROM request WHERE id = $1
              UNION ALL
              SELECT request.id, request.parent_id, up.height + 1
                FROM up JOIN request ON request.id = up.parent_id WHERE up.height < $2)
         SELECT id FROM up ORDER BY height DESC LIMIT 1",
    )
    .bind(of.0)
    .bind(MOST_GENERATIONS)
    .fetch_optional(connection)
    .await?)
}

async fn chain(connection: &mut Connection, of: RequestId, most: u32) -> StoreResult<Option<ChainView>> {
    let Some(root) = root(connection, of).await? else { return Ok(None) };
    // Both databases walk down generation by generation, and stop once enough was found.
    let rows = sqlx::query(
        "WITH RECURSIVE down (id, depth) AS (
              SELECT id, CAST(0 AS BIGINT) FROM request WHERE id = $1
              UNION ALL
              SELECT request.id, down.depth + 1
                FROM down JOIN request ON request.parent_id = down.id WHERE down.depth < $2),
              found AS (SELECT id, depth FROM down LIMIT $3)
         SELECT found.depth, request.id, request.parent_id, request.step, request.team, request.offering, request.type,
                request.name, request.action, request.state
           FROM found JOIN request ON request.id = found.id
          ORDER BY found.depth, request.created_at, request.id",
    )
    .bind(root)
    .bind(MOST_GENERATIONS)
    .bind(i64::from(most) + 1)
    .fetch_all(&mut *connection)
    .await?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut view = ChainView { results: Vec::new(), more: rows.len() > most };
    for row in rows.iter().take(most) {
        view.results.push(entry(row)?);
    }
    if !view.results.iter().any(|one| one.id == of) {
        // Among very many relatives the one that is asked about is not left out; it stands below the root.
        let Some(request) = lists::request(connection, of).await? else { return Ok(None) };
        let request = request.view;
        view.results.pop();
        view.results.push(ChainEntry {
            id: request.id,
            parent_id: Some(RequestId(root)),
            step: None,
            depth: 1,
            team: request.team,
            offering: request.offering,
            resource_type: request.resource_type,
            name: request.name,
            action: request.action,
            state: request.state,
            not_begun: Vec::new(),
        });
    }
    Ok(Some(view.as_a_tree()))
}

fn entry(row: &super::dialect::DbRow) -> StoreResult<ChainEntry> {
    let name = |column: &str| -> StoreResult<Name> {
        let text: String = row.try_get(column)?;
        Name::parse(&text).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
    };
    let state: String = row.try_get("state")?;
    Ok(ChainEntry {
        id: RequestId(row.try_get("id")?),
        parent_id: row.try_get::<Option<Uuid>, _>("parent_id")?.map(RequestId),
        step: row.try_get("step")?,
        depth: rows::number(row, "depth")?,
        team: name("team")?,
        offering: name("offering")?,
        resource_type: name("type")?,
        name: name("name")?,
        action: row.try_get("action")?,
        state: state.parse().map_err(|error| StoreError::Corrupt(format!("state: {error}")))?,
        not_begun: Vec::new(),
    })
}
