//! What SQLite calls things and where it differs. The SQL rooms are written against these words only.

pub(in crate::store) use super::{Readers, Sqlite as Database, words};

use super::super::StoreResult;
use domain::id::RequestId;

pub(in crate::store) type Db = sqlx::Sqlite;
pub(in crate::store) type Connection = sqlx::SqliteConnection;
pub(in crate::store) type DbRow = sqlx::sqlite::SqliteRow;
pub(in crate::store) type Done = sqlx::sqlite::SqliteQueryResult;

/// Stands at the end of a look on which a change is decided. The writer holds SQLite's only write lock anyway.
pub(in crate::store) const FOR_UPDATE: &str = "";
/// Stands at the end of a look for rows that any one of several servers may take.
pub(in crate::store) const SKIP_LOCKED: &str = "";
/// Which runs were begun, in the words of the index that finds them.
pub(in crate::store) const BEGUN: &str = "touched = 1 OR owner IS NOT NULL";

/// The moment by which deadlines are reckoned, where `now` is the parameter or column with the server's own. All
/// processes on one file share one clock.
pub(in crate::store) fn clock(now: &str) -> String {
    now.to_owned()
}

/// What the database's clock shows, in milliseconds.
pub(in crate::store) const TIME: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// Whether deadlines are reckoned by the servers' own clocks.
pub(in crate::store) const CLOCKS_ARE_SERVERS: bool = true;

/// Whether statements that change something may stand in another's WITH; SQLite has one for each table.
pub(in crate::store) const CHANGES_STAND_IN_WITH: bool = false;

/// The rows of a group of creates, out of a JSON array as parameter 1. As JSONB an element is parsed once; as text it
/// would be for each of its members.
pub(in crate::store) const CREATES: &str = "
    SELECT value ->> 'team' AS team, unhex(value ->> 'principal') AS principal, value ->> 'key' AS key,
           unhex(value ->> 'fingerprint') AS fingerprint, unhex(value ->> 'body_hash') AS body_hash,
           value ->> 'key_version' AS key_version, value ->> 'schema_digest' AS schema_digest,
           value ->> 'cost' AS cost,
           value ->> 'kind' AS kind, value ->> 'location' AS location, CAST(value ->> 'body' AS BLOB) AS body,
           unhex(value ->> 'request') AS request, unhex(value ->> 'resource') AS resource,
           value ->> 'requested_by' AS requested_by, value ->> 'channel' AS channel, value ->> 'action' AS action,
           value ->> 'offering' AS offering, value ->> 'version' AS version, value ->> 'type' AS type,
           value ->> 'name' AS name, value ->> 'parameters' AS parameters, value ->> 'labels' AS labels,
           value ->> 'correlation_id' AS correlation_id, unhex(value ->> 'parent') AS parent,
           value ->> 'state' AS state, value ->> 'entry' AS entry, value ->> 'at' AS at,
           unhex(value ->> 'submission') AS submission, value ->> 'operation' AS operation,
           value ->> 'token_label' AS token_label, value ->> 'address' AS address,
           value ->> 'command' AS command, value ->> 'step' AS step, value ->> 'sought' AS sought,
           value ->> 'terms' AS terms
      FROM jsonb_each($1)";

/// Scopes, out of a JSON array of `[team, principal, key]` or `[team, principal, key, count]` as parameter 1, and their
/// places from 0.
pub(in crate::store) const SCOPES: &str = "
    SELECT key AS place, value ->> 0 AS team, unhex(value ->> 1) AS principal, value ->> 2 AS key, value ->> 3 AS count
      FROM jsonb_each($1)";

/// Digests, out of a JSON array of hexadecimal texts as parameter 1, and their places from 0.
pub(in crate::store) const DIGESTS: &str = "SELECT key AS place, unhex(value) AS digest FROM json_each($1)";

/// The rows of a group of arrivals, out of a JSON array as parameter 1.
pub(in crate::store) const ARRIVALS: &str = "
    SELECT unhex(value ->> 'id') AS id, value ->> 'team' AS team, unhex(value ->> 'principal') AS principal,
           value ->> 'key' AS key, unhex(value ->> 'request') AS request, value ->> 'operation' AS operation,
           value ->> 'outcome' AS outcome, value ->> 'problem' AS problem, value ->> 'channel' AS channel,
           value ->> 'sent_by' AS sent_by, value ->> 'token_label' AS token_label, value ->> 'address' AS address,
           value ->> 'correlation_id' AS correlation_id, value ->> 'labels' AS labels, value ->> 'at' AS at
      FROM jsonb_each($1)";

/// The elements of a JSON array as parameter 1: their texts, and their places from 0.
pub(in crate::store) const ELEMENTS: &str = "SELECT key AS place, value AS element FROM json_each($1)";

/// Lets nobody else decide about the same until the end of the transaction; the writer's lock is that already.
#[expect(clippy::unused_async, reason = "PostgreSQL has to ask for it")]
pub(in crate::store) async fn lock(_: &mut Connection, _: &[&[u8]]) -> StoreResult<()> {
    Ok(())
}

/// The same if nobody else decides about it at this moment; whether it is so.
#[expect(clippy::unused_async, reason = "PostgreSQL has to ask for it")]
pub(in crate::store) async fn lock_if_free(_: &mut Connection, _: &[&[u8]]) -> StoreResult<bool> {
    Ok(true)
}

/// Lets nobody else take of the quotas of these teams until the end of the transaction; the writer's lock is that already.
#[expect(clippy::unused_async, reason = "PostgreSQL has to ask for it")]
pub(in crate::store) async fn lock_teams(_: &mut Connection, _: &[&str]) -> StoreResult<()> {
    Ok(())
}

/// Lets nobody make a resource until the end of the transaction; the writer's lock is that already.
#[expect(clippy::unused_async, reason = "PostgreSQL has to ask for it")]
pub(in crate::store) async fn keep_makers_out(_: &mut Connection) -> StoreResult<()> {
    Ok(())
}

/// Lets nobody else change the request or its run until the end of the transaction; the writer's lock is that already.
#[expect(clippy::unused_async, reason = "PostgreSQL has to ask for it")]
pub(in crate::store) async fn lock_request(_: &mut Connection, _: RequestId) -> StoreResult<()> {
    Ok(())
}
