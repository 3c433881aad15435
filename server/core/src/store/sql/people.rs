//! Principals, teams, tokens and sessions.

use super::{
    dialect::{self, Connection, DbRow, SKIP_LOCKED},
    exactly_one,
    rows::{moment, moment_if_any, name, parsed, text},
};
use crate::store::{Made, NewPrincipal, Principal, StoreResult};
use domain::{
    id::{PrincipalId, TokenId},
    name::Name,
    time::Moment,
    view::TokenView,
};
use sqlx::{AssertSqlSafe, Row};

/// How exact a token's last use is.
const LAST_USE_MILLIS: i64 = 60_000;

pub(super) async fn by_name(connection: &mut Connection, name: &str) -> StoreResult<Option<Principal>> {
    let row = sqlx::query("SELECT id, name, role, password_hash FROM principal WHERE name = $1")
        .bind(text(name))
        .fetch_optional(&mut *connection)
        .await?;
    with_teams(connection, row).await
}

pub(super) async fn by_id(connection: &mut Connection, id: PrincipalId) -> StoreResult<Option<Principal>> {
    let row = sqlx::query("SELECT id, name, role, password_hash FROM principal WHERE id = $1")
        .bind(id.0)
        .fetch_optional(&mut *connection)
        .await?;
    with_teams(connection, row).await
}

async fn with_teams(connection: &mut Connection, row: Option<DbRow>) -> StoreResult<Option<Principal>> {
    let Some(row) = row else { return Ok(None) };
    let id = PrincipalId(row.try_get("id")?);
    let teams = sqlx::query("SELECT team, role FROM member WHERE principal = $1 ORDER BY team")
        .bind(id.0)
        .fetch_all(connection)
        .await?;
    Ok(Some(Principal {
        id,
        name: row.try_get("name")?,
        role: parsed(&row, "role")?,
        teams: teams
            .iter()
            .map(|row| Ok((name(row, "team")?, parsed(row, "role")?)))
            .collect::<StoreResult<_>>()?,
        password_hash: row.try_get("password_hash")?,
    }))
}

pub(super) async fn add(
    connection: &mut Connection,
    principal: &NewPrincipal,
    now: Moment,
) -> StoreResult<Made> {
    if let Some((team, _)) = &principal.team
        && !has_team(connection, team).await?
    {
        return Ok(Made::NoSuchTeam);
    }
    let done = sqlx::query(
        "INSERT INTO principal (id, name, role, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
    )
    .bind(principal.id.0)
    .bind(&principal.name)
    .bind(principal.role.as_str())
    .bind(&principal.password_hash)
    .bind(now.millis())
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(Made::Exists);
    }
    if let Some((team, role)) = &principal.team {
        let done = sqlx::query("INSERT INTO member (team, principal, role) VALUES ($1, $2, $3)")
            .bind(team.as_str())
            .bind(principal.id.0)
            .bind(role.as_str())
            .execute(connection)
            .await?;
        exactly_one(&done, "member")?;
    }
    Ok(Made::New)
}

pub(super) async fn add_team(
    connection: &mut Connection,
    name: &Name,
    limit: Option<u64>,
    now: Moment,
) -> StoreResult<Made> {
    let done = sqlx::query(
        "INSERT INTO team (name, quota, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
    )
    .bind(name.as_str())
    .bind(limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)))
    .bind(now.millis())
    .execute(connection)
    .await?;
    Ok(if done.rows_affected() == 1 { Made::New } else { Made::Exists })
}

pub(super) async fn has_team(connection: &mut Connection, name: &Name) -> StoreResult<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM team WHERE name = $1)")
        .bind(name.as_str())
        .fetch_one(connection)
        .await?)
}

pub(super) async fn set_up(
    connection: &mut Connection,
    principal: &NewPrincipal,
    now: Moment,
) -> StoreResult<Made> {
    // Of two at the same moment the second sees the first.
    dialect::lock(connection, &[b"set_up"]).await?;
    if has_admin(connection).await? {
        return Ok(Made::Exists);
    }
    if let Some((team, _)) = &principal.team {
        // The team may be there already, made from the command line.
        add_team(connection, team, None, now).await?;
    }
    add(connection, principal, now).await
}

pub(super) async fn has_admin(connection: &mut Connection) -> StoreResult<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM principal WHERE role = 'admin')")
        .fetch_one(connection)
        .await?)
}

pub(super) async fn tokens(
    connection: &mut Connection,
    principal: PrincipalId,
) -> StoreResult<Vec<TokenView>> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {TOKEN} FROM token WHERE principal = $1 ORDER BY created_at DESC, id DESC LIMIT 1000"
    )))
    .bind(principal.0)
    .fetch_all(connection)
    .await?;
    rows.iter().map(shown_token).collect()
}

/// One of a principal's tokens; `end` is what stands at the end of the look.
pub(super) async fn token(
    connection: &mut Connection,
    principal: PrincipalId,
    id: TokenId,
    end: &str,
) -> StoreResult<Option<TokenView>> {
    let look = format!("SELECT {TOKEN} FROM token WHERE id = $1 AND principal = $2{end}");
    let row =
        sqlx::query(AssertSqlSafe(look)).bind(id.0).bind(principal.0).fetch_optional(connection).await?;
    row.as_ref().map(shown_token).transpose()
}

/// The columns of a token that are shown.
const TOKEN: &str = "id, label, created_at, expires_at, last_used_at, revoked_at";

fn shown_token(row: &DbRow) -> StoreResult<TokenView> {
    Ok(TokenView {
        id: TokenId(row.try_get("id")?),
        label: row.try_get("label")?,
        created_at: moment(row, "created_at")?,
        expires_at: moment(row, "expires_at")?,
        last_used_at: moment_if_any(row, "last_used_at")?,
        revoked_at: moment_if_any(row, "revoked_at")?,
        token: None,
        note: None,
    })
}

pub(super) async fn add_token(
    connection: &mut Connection,
    principal: PrincipalId,
    token: &TokenView,
    digest: [u8; 32],
) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO token (id, principal, label, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(token.id.0)
    .bind(principal.0)
    .bind(&token.label)
    .bind(digest.as_slice())
    .bind(token.created_at.millis())
    .bind(token.expires_at.millis())
    .execute(connection)
    .await?;
    exactly_one(&done, "token")
}

pub(super) async fn tokens_used(
    connection: &mut Connection,
    tokens: &[TokenId],
    now: Moment,
) -> StoreResult<()> {
    for token in tokens {
        // To the minute: a busy script should not cost a write a call. A token may have been removed meanwhile.
        sqlx::query(
            "UPDATE token SET last_used_at = $1 WHERE id = $2 AND coalesce(last_used_at, 0) <= $1 - $3",
        )
        .bind(now.millis())
        .bind(token.0)
        .bind(LAST_USE_MILLIS)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(super) async fn session(
    connection: &mut Connection,
    id: &str,
    now: Moment,
) -> StoreResult<Option<Vec<u8>>> {
    Ok(sqlx::query_scalar("SELECT data FROM session WHERE id = $1 AND expires_at > $2")
        .bind(text(id))
        .bind(now.millis())
        .fetch_optional(connection)
        .await?)
}

pub(super) async fn save_session(
    connection: &mut Connection,
    id: &str,
    data: &[u8],
    expires: Moment,
    fresh: bool,
) -> StoreResult<bool> {
    let statement = if fresh {
        "INSERT INTO session (id, data, expires_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING"
    } else {
        "INSERT INTO session (id, data, expires_at) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at"
    };
    let done = sqlx::query(statement).bind(id).bind(data).bind(expires.millis()).execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn delete_session(connection: &mut Connection, id: &str) -> StoreResult<()> {
    // Ending a session that is over already is no error.
    sqlx::query("DELETE FROM session WHERE id = $1").bind(id).execute(connection).await?;
    Ok(())
}

pub(super) async fn sweep_sessions(connection: &mut Connection, now: Moment, limit: u32) -> StoreResult<u64> {
    let done = sqlx::query(AssertSqlSafe(format!(
        "DELETE FROM session
          WHERE id IN (SELECT id FROM session WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2{SKIP_LOCKED})",
    )))
    .bind(now.millis())
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}
