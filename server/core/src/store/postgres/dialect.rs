//! What PostgreSQL calls things and where it differs. The SQL rooms are written against these words only.

pub(in crate::store) use super::{Postgres as Database, Readers, words};

use crate::store::StoreResult;
use domain::id::RequestId;

pub(in crate::store) type Db = sqlx::Postgres;
pub(in crate::store) type Connection = sqlx::PgConnection;
pub(in crate::store) type DbRow = sqlx::postgres::PgRow;
pub(in crate::store) type Done = sqlx::postgres::PgQueryResult;

/// Stands at the end of a look on which a change is decided.
pub(in crate::store) const FOR_UPDATE: &str = " FOR UPDATE";
/// Stands at the end of a look for rows that any one of several servers may take.
pub(in crate::store) const SKIP_LOCKED: &str = " FOR UPDATE SKIP LOCKED";
/// Which runs were begun, in the words of the index that finds them.
pub(in crate::store) const BEGUN: &str = "touched OR owner IS NOT NULL";

/// The moment by which deadlines are reckoned, where `now` is the parameter or column with the server's own. Servers'
/// clocks may differ, so it is the database's.
pub(in crate::store) fn clock(now: &str) -> String {
    format!("keyturn_now({now})")
}

/// What the database's clock shows, in milliseconds.
pub(in crate::store) const TIME: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";

/// Whether deadlines are reckoned by the servers' own clocks.
pub(in crate::store) const CLOCKS_ARE_SERVERS: bool = false;

/// Whether statements that change something may stand in another's WITH. Then one carries a whole group.
pub(in crate::store) const CHANGES_STAND_IN_WITH: bool = true;

/// The rows of a group of creates, out of a JSON array as parameter 1.
pub(in crate::store) const CREATES: &str = "
    SELECT team, principal, key, decode(fingerprint, 'hex') AS fingerprint, decode(body_hash, 'hex') AS body_hash,
           key_version, schema_digest, cost, kind, location, convert_to(body, 'UTF8') AS body, request, resource,
           requested_by, channel, action, offering, version, type, name, parameters, labels, correlation_id, parent,
           state, entry, at, place, submission, operation, token_label, address, command, step, sought, terms
      FROM json_to_recordset($1::json) AS given (
           team TEXT, principal UUID, key TEXT, fingerprint TEXT, body_hash TEXT, key_version BIGINT,
           schema_digest TEXT, cost BIGINT, kind TEXT, location TEXT, body TEXT, request UUID, resource UUID, requested_by TEXT,
           channel TEXT, action TEXT, offering TEXT, version TEXT, type TEXT, name TEXT, parameters TEXT, labels TEXT,
           correlation_id TEXT, parent UUID, state TEXT, entry TEXT, at BIGINT, place BIGINT, submission UUID, operation TEXT,
           token_label TEXT, address TEXT, command TEXT, step TEXT, sought TEXT, terms TEXT)";

/// Scopes, out of a JSON array of `[team, principal, key]` or `[team, principal, key, count]` as parameter 1, and their
/// places from 0.
pub(in crate::store) const SCOPES: &str = "
    SELECT nth - 1 AS place, value ->> 0 AS team, (value ->> 1)::uuid AS principal, value ->> 2 AS key,
           (value ->> 3)::bigint AS count
      FROM json_array_elements($1::json) WITH ORDINALITY AS given (value, nth)";

/// Digests, out of a JSON array of hexadecimal texts as parameter 1, and their places from 0.
pub(in crate::store) const DIGESTS: &str = "
    SELECT nth - 1 AS place, decode(digest, 'hex') AS digest
      FROM json_array_elements_text($1::json) WITH ORDINALITY AS given (digest, nth)";

/// The rows of a group of arrivals, out of a JSON array as parameter 1.
pub(in crate::store) const ARRIVALS: &str = "
    SELECT id, team, principal, key, request, operation, outcome, problem, channel, sent_by, token_label, address,
           correlation_id, labels, at
      FROM json_to_recordset($1::json) AS given (
           id UUID, team TEXT, principal UUID, key TEXT, request UUID, operation TEXT, outcome TEXT, problem TEXT,
           channel TEXT, sent_by TEXT, token_label TEXT, address TEXT, correlation_id TEXT, labels TEXT, at BIGINT)";

/// The elements of a JSON array as parameter 1: their texts, and their places from 0.
pub(in crate::store) const ELEMENTS: &str = "
    SELECT nth - 1 AS place, given.element::text AS element
      FROM json_array_elements($1::json) WITH ORDINALITY AS given (element, nth)";

/// The number by which PostgreSQL knows a lock.
fn number(what: &[&[u8]]) -> i64 {
    let mut hash = blake3::Hasher::new();
    for part in what {
        hash.update(&part.len().to_le_bytes()).update(part);
    }
    let mut number = [0; 8];
    hash.finalize_xof().fill(&mut number);
    i64::from_le_bytes(number)
}

/// Lets nobody else decide about the same until the end of the transaction.
pub(in crate::store) async fn lock(connection: &mut Connection, what: &[&[u8]]) -> StoreResult<()> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(number(what)).execute(connection).await?;
    Ok(())
}

/// The same if nobody else decides about it at this moment; whether it is so.
pub(in crate::store) async fn lock_if_free(connection: &mut Connection, what: &[&[u8]]) -> StoreResult<bool> {
    let text = "SELECT pg_try_advisory_xact_lock($1)";
    Ok(sqlx::query_scalar(text).bind(number(what)).fetch_one(connection).await?)
}

/// Lets nobody else take of the quotas of those of these teams that have a limit, until the end of the transaction.
pub(in crate::store) async fn lock_teams(connection: &mut Connection, teams: &[&str]) -> StoreResult<()> {
    // Whoever sets a limit keeps makers out and then wants the row, so a maker comes in first.
    sqlx::query(
        "WITH maker AS (DELETE FROM resource WHERE false)
         SELECT name FROM team WHERE name = ANY($1) AND quota IS NOT NULL ORDER BY name FOR NO KEY UPDATE",
    )
    .bind(teams)
    .execute(connection)
    .await?;
    Ok(())
}

/// Waits until nobody is in the middle of making a resource, and lets nobody begin until the end of the transaction.
pub(in crate::store) async fn keep_makers_out(connection: &mut Connection) -> StoreResult<()> {
    sqlx::query("LOCK TABLE resource IN SHARE MODE").execute(connection).await?;
    Ok(())
}

/// Lets nobody else change the request or its run until the end of the transaction.
pub(in crate::store) async fn lock_request(connection: &mut Connection, id: RequestId) -> StoreResult<()> {
    // One that is not there cannot be changed by anybody.
    sqlx::query("SELECT id FROM request WHERE id = $1 FOR UPDATE").bind(id.0).execute(connection).await?;
    Ok(())
}
