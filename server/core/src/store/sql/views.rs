//! Saved views.

use super::{
    dialect::{self, Connection, Database, DbRow},
    exactly_one, rows,
};
use crate::store::{
    StoreResult,
    views::{NewView, Saved, Views},
};
use async_trait::async_trait;
use domain::{
    id::{PrincipalId, ViewId},
    name::Name,
    saved::SavedView,
};
use sqlx::Row as _;

/// The most views of others that one page shows.
const SHARED: i64 = 200;

async fn save(connection: &mut Connection, view: &NewView, most: u32) -> StoreResult<Saved> {
    // Two of the same person are counted one after the other.
    dialect::lock(connection, &[b"views", view.principal.0.as_bytes()]).await?;
    let team = view.team.as_ref().map(Name::as_str);
    let standing =
        sqlx::query("SELECT filter, team FROM saved_view WHERE principal = $1 AND page = $2 AND name = $3")
            .bind(view.principal.0)
            .bind(&view.page)
            .bind(rows::text(&view.name))
            .fetch_optional(&mut *connection)
            .await?;
    if let Some(row) = standing {
        let same = row.try_get::<String, _>("filter")? == rows::text(&view.filter)
            && row.try_get::<Option<String>, _>("team")?.as_deref() == team;
        return match (same, view.replace) {
            (true, _) => Ok(Saved::Replaced),
            (false, true) => replace(connection, view).await,
            (false, false) => Ok(Saved::Exists),
        };
    }
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM saved_view WHERE principal = $1")
        .bind(view.principal.0)
        .fetch_one(&mut *connection)
        .await?;
    if count >= i64::from(most) {
        return Ok(Saved::TooMany);
    }
    let done = sqlx::query(
        "INSERT INTO saved_view (id, principal, page, name, filter, team, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(view.id.0)
    .bind(view.principal.0)
    .bind(&view.page)
    .bind(rows::text(&view.name))
    .bind(rows::text(&view.filter))
    .bind(team)
    .bind(view.at.millis())
    .execute(connection)
    .await?;
    exactly_one(&done, "saved_view")?;
    Ok(Saved::New)
}

/// Puts a view in the place of the one of its name.
async fn replace(connection: &mut Connection, view: &NewView) -> StoreResult<Saved> {
    let done = sqlx::query(
        "UPDATE saved_view SET filter = $1, team = $2 WHERE principal = $3 AND page = $4 AND name = $5",
    )
    .bind(rows::text(&view.filter))
    .bind(view.team.as_ref().map(Name::as_str))
    .bind(view.principal.0)
    .bind(&view.page)
    .bind(rows::text(&view.name))
    .execute(connection)
    .await?;
    exactly_one(&done, "saved_view")?;
    Ok(Saved::Replaced)
}

async fn views(
    connection: &mut Connection,
    principal: PrincipalId,
    page: &str,
    team: Option<&str>,
) -> StoreResult<Vec<SavedView>> {
    let own = sqlx::query(
        "SELECT id, name, filter, team, CAST(NULL AS TEXT) AS sender FROM saved_view
          WHERE principal = $1 AND page = $2 ORDER BY name",
    )
    .bind(principal.0)
    .bind(page)
    .fetch_all(&mut *connection)
    .await?;
    let shared = sqlx::query(
        "SELECT v.id AS id, v.name AS name, v.filter AS filter, v.team AS team, p.name AS sender
           FROM saved_view AS v JOIN principal AS p ON p.id = v.principal
          WHERE v.team = $1 AND v.page = $2 AND v.principal <> $3 ORDER BY v.name, p.name LIMIT $4",
    )
    .bind(team)
    .bind(page)
    .bind(principal.0)
    .bind(SHARED)
    .fetch_all(connection)
    .await?;
    own.iter().chain(&shared).map(view).collect()
}

fn view(row: &DbRow) -> StoreResult<SavedView> {
    Ok(SavedView {
        id: ViewId(row.try_get("id")?),
        name: row.try_get("name")?,
        filter: row.try_get("filter")?,
        shared: row.try_get::<Option<String>, _>("team")?.is_some(),
        by: row.try_get("sender")?,
    })
}

#[async_trait]
impl Views for Database {
    async fn save_view(&self, view: NewView, most: u32) -> StoreResult<Saved> {
        self.write((view, most), |(view, most), connection| Box::pin(save(connection, view, *most))).await
    }

    async fn views(
        &self,
        principal: PrincipalId,
        page: &str,
        team: Option<&Name>,
    ) -> StoreResult<Vec<SavedView>> {
        self.snapshot((principal, page, team), |(principal, page, team), connection| {
            Box::pin(views(connection, *principal, page, team.map(Name::as_str)))
        })
        .await
    }

    async fn remove_view(&self, principal: PrincipalId, id: ViewId) -> StoreResult<bool> {
        self.write((principal, id), |(principal, id), connection| {
            Box::pin(async move {
                let done = sqlx::query("DELETE FROM saved_view WHERE id = $1 AND principal = $2")
                    .bind(id.0)
                    .bind(principal.0)
                    .execute(connection)
                    .await?;
                Ok(done.rows_affected() > 0)
            })
        })
        .await
    }
}
