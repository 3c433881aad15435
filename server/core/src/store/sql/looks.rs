//! The two looks that every call begins with: who asks, and whether the key is known. Many at once, in one statement.

use super::{
    dialect::{Connection, DIGESTS, DbRow, Readers, SCOPES},
    rows::{self, array, hex},
};
use crate::store::{Bearer, Claim, Principal, Scope, StoreError, StoreResult, StoredRequest, gather::Gather};
use domain::{
    id::{PrincipalId, TokenId},
    name::Name,
    role::TeamRole,
};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

/// A claim, and the request that it is bound to as it stands now.
type Claimed = (Claim, Option<StoredRequest>);

/// Where looks are gathered.
#[derive(Debug, Clone)]
pub(in crate::store) struct Looks {
    pub(super) claims: Gather<Scope, StoreResult<Option<Claimed>>>,
    pub(super) bearers: Gather<[u8; 32], StoreResult<Option<Bearer>>>,
}

impl Looks {
    /// Begins to look.
    pub(in crate::store) fn start(readers: &Readers) -> Self {
        let (for_claims, for_bearers) = (readers.clone(), readers.clone());
        Self {
            claims: Gather::start(move |scopes: Vec<Scope>| {
                let readers = for_claims.clone();
                async move {
                    readers.read(scopes, |scopes, connection| Box::pin(claims(connection, scopes))).await
                }
            }),
            bearers: Gather::start(move |digests: Vec<[u8; 32]>| {
                let readers = for_bearers.clone();
                async move {
                    readers.read(digests, |digests, connection| Box::pin(bearers(connection, digests))).await
                }
            }),
        }
    }
}

/// Puts what each row tells to where it was asked for; what no row speaks of is not there. A row that cannot be read is
/// the trouble of whoever asked for it, not of its neighbours.
fn placed<T>(
    asked: usize,
    found: &[DbRow],
    read: impl Fn(&DbRow) -> StoreResult<T>,
) -> StoreResult<Vec<StoreResult<Option<T>>>> {
    let mut places: Vec<StoreResult<Option<T>>> = (0..asked).map(|_| Ok(None)).collect();
    for row in found {
        let place: i64 = row.try_get("place")?;
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| places.get_mut(place)) {
            *slot = read(row).map(Some);
        }
    }
    Ok(places)
}

/// The claims of keys within their full scopes.
pub(super) async fn claims(
    connection: &mut Connection,
    scopes: &[Scope],
) -> StoreResult<Vec<StoreResult<Option<Claimed>>>> {
    let asked: Vec<(&str, String, &str)> = scopes
        .iter()
        .map(|scope| (scope.team.as_str(), hex(scope.principal.0.as_bytes()), scope.key.as_str()))
        .collect();
    let request =
        rows::REQUEST.split(", ").map(|column| format!("r.{column}")).collect::<Vec<_>>().join(", ");
    let found = sqlx::query(AssertSqlSafe(format!(
        "WITH asked AS ({SCOPES})
         SELECT asked.place, {}, {request}
           FROM asked
           JOIN claim AS c ON c.team = asked.team AND c.principal = asked.principal AND c.key = asked.key
           LEFT JOIN request AS r ON r.id = c.request",
        rows::CLAIM
    )))
    .bind(array(&asked)?)
    .fetch_all(connection)
    .await?;
    placed(scopes.len(), &found, |row| {
        let claim = rows::claim(row)?;
        let bound = row.try_get::<Option<Uuid>, _>("id")?.is_some();
        Ok((claim, bound.then(|| rows::request(row)).transpose()?))
    })
}

/// Who shows tokens with these digests, with their teams; also those whose time is over.
pub(super) async fn bearers(
    connection: &mut Connection,
    digests: &[[u8; 32]],
) -> StoreResult<Vec<StoreResult<Option<Bearer>>>> {
    let asked: Vec<String> = digests.iter().map(|digest| hex(digest)).collect();
    let found = sqlx::query(AssertSqlSafe(format!(
        "WITH asked AS ({DIGESTS})
         SELECT asked.place, t.id AS token, t.label, t.expires_at, p.id, p.name, p.role,
                (SELECT string_agg(m.team || ':' || m.role, ',' ORDER BY m.team)
                   FROM member AS m WHERE m.principal = p.id) AS teams
           FROM asked
           JOIN token AS t ON t.digest = asked.digest AND t.revoked_at IS NULL
           JOIN principal AS p ON p.id = t.principal"
    )))
    .bind(array(&asked)?)
    .fetch_all(connection)
    .await?;
    placed(digests.len(), &found, |row| {
        let teams: Option<String> = row.try_get("teams")?;
        Ok(Bearer {
            principal: Principal {
                id: PrincipalId(row.try_get("id")?),
                name: row.try_get("name")?,
                role: rows::parsed(row, "role")?,
                teams: teams.as_deref().map(memberships).transpose()?.unwrap_or_default(),
                password_hash: None,
            },
            token: TokenId(row.try_get("token")?),
            label: row.try_get("label")?,
            expires_at: rows::moment(row, "expires_at")?,
        })
    })
}

/// Reads `team:role,team:role`.
fn memberships(text: &str) -> StoreResult<Vec<(Name, TeamRole)>> {
    let corrupt = || StoreError::Corrupt(format!("memberships: {text}"));
    text.split(',')
        .map(|membership| {
            let (team, role) = membership.split_once(':').ok_or_else(corrupt)?;
            Ok((Name::parse(team).map_err(|_| corrupt())?, role.parse().map_err(|_| corrupt())?))
        })
        .collect()
}
