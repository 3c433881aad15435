//! A history of many finished keys, written straight into a portal's database: what a busy year leaves behind.

use sqlx::Connection;
use std::path::Path;

/// How many keys one commit holds.
const CHUNK: u64 = 100_000;
/// The terms by which one is found, as the portal writes them; `{hex}` stands around each.
fn terms(hex: impl Fn(&str) -> String) -> String {
    let terms = ["t=bench", "o=fast", "b=bench", "c=api", "pcount=1", "psize=small"];
    let terms: Vec<String> = terms.into_iter().map(|term| hex(&format!("'{term}'"))).collect();
    format!("' ' || {} || ' '", terms.join(" || ' ' || "))
}

/// Fills the file of a portal that is not running with `keys` finished requests of the team `bench`, each with its
/// resource, claim, submission, words and history. They ended over the last five days.
pub(crate) fn sqlite(file: &Path, keys: u64) {
    let connection = rusqlite::Connection::open(file).unwrap();
    // Durability is for what is measured, not for what is set up.
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -4000000; PRAGMA temp_store = MEMORY;")
        .unwrap();
    let principal: Vec<u8> =
        connection.query_row("SELECT id FROM principal LIMIT 1", [], |row| row.get(0)).unwrap();
    let terms = terms(|term| format!("hex({term})"));
    let words = format!(
        "INSERT INTO sought (request, text, terms)
         SELECT request, char(10) || 'filled-' || n || char(10) || lower(hex(request)) || char(10) || 'bench' || char(10)
                         || key || char(10) || '1' || char(10) || 'small' || char(10), {terms}
           FROM new WHERE ?1 IS NOT NULL ORDER BY n"
    );
    let now: i64 = connection.query_row("SELECT unixepoch() * 1000", [], |row| row.get(0)).unwrap();
    let step = (5 * 86_400_000 / i64::try_from(keys).unwrap()).max(1);
    let mut from = 0;
    while from < keys {
        let until = (from + CHUNK).min(keys);
        connection.execute_batch("BEGIN").unwrap();
        connection
            .execute(
                "CREATE TEMP TABLE IF NOT EXISTS new (n INTEGER, at INTEGER, request BLOB, resource BLOB, submission BLOB,
                                                      key TEXT)",
                [],
            )
            .unwrap();
        connection.execute("DELETE FROM new", []).unwrap();
        connection
            .execute(
                "WITH RECURSIVE count(n) AS (VALUES (?1) UNION ALL SELECT n + 1 FROM count WHERE n + 1 < ?2),
                      timed AS (SELECT n, ?3 - 5 * 86400000 + (n * ?4) % (5 * 86400000) AS at FROM count)
                 INSERT INTO new
                 SELECT n, at, unhex(printf('%012x7%03x', at, n % 4096) || hex(randomblob(8))),
                        unhex(printf('%012x7%03x', at, n % 4096) || hex(randomblob(8))),
                        unhex(printf('%012x7%03x', at, n % 4096) || hex(randomblob(8))),
                        lower(hex(randomblob(16)))
                   FROM timed",
                rusqlite::params![i64::try_from(from).unwrap(), i64::try_from(until).unwrap(), now, step],
            )
            .unwrap();
        for statement in [
            "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                                answer_kind, location, body, claimed_at)
             SELECT 'bench', ?1, key, randomblob(32), randomblob(32), 1, 'filled', request, 'accepted',
                    '/api/v1/requests/' || hex(request), CAST(printf('%.*c', 500, 'x') AS BLOB), at FROM new",
            "INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type,
                                  name, resource, parameters, labels, correlation_id, state, created_at, updated_at,
                                  finished_at)
             SELECT request, 'bench', ?1, 'bench', 'api', 'create', 'fast', '1', 'fast', 'filled-' || n, resource,
                    '{\"count\":1,\"size\":\"small\"}', '{}', lower(hex(request)), 'succeeded', at, at, at
               FROM new WHERE ?1 IS NOT NULL",
            "INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
             SELECT resource, 'bench', 'fast', 'filled-' || n, 'fast', 'active', '{\"count\":1,\"size\":\"small\"}',
                    request, at, at FROM new WHERE ?1 IS NOT NULL",
            "INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by, at)
             SELECT submission, 'bench', ?1, key, request, 'create', 'first', 'api', 'bench', at FROM new",
            "INSERT INTO event (request, seq, attempt, at, entry)
             SELECT request, 1, 1, at, '{\"kind\":\"state\",\"state\":\"succeeded\"}' FROM new WHERE ?1 IS NOT NULL",
            words.as_str(),
            "INSERT INTO sought_trigram (rowid, text)
             SELECT id, text FROM sought WHERE id > (SELECT upto FROM sought_upto) AND ?1 IS NOT NULL ORDER BY id",
            "INSERT INTO sought_term (rowid, terms)
             SELECT id, terms FROM sought WHERE id > (SELECT upto FROM sought_upto) AND ?1 IS NOT NULL ORDER BY id",
            "UPDATE sought_upto SET upto = (SELECT max(id) FROM sought) WHERE ?1 IS NOT NULL",
        ] {
            connection.execute(statement, [&principal]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        from = until;
    }
    connection.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    // Or the first commit that is measured waits for all of it.
    std::fs::File::open(file).unwrap().sync_all().unwrap();
}

/// The same in PostgreSQL.
pub(crate) async fn postgres(url: &str, keys: u64) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    // Made again at the end, for they would be the slowest to fill row by row.
    sqlx::raw_sql(
        "SET synchronous_commit = off; SET maintenance_work_mem = '2GB'; DROP INDEX IF EXISTS sought_trigram;
         DROP INDEX sought_term;",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let terms = terms(|term| format!("upper(encode(convert_to({term}, 'UTF8'), 'hex'))"));
    let mut from = 0;
    while from < keys {
        let until = (from + CHUNK).min(keys);
        let id = "lpad(to_hex(at), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')";
        let statement = format!(
            "WITH new AS MATERIALIZED (
                 SELECT n, at, ({id} || left(md5('r' || n), 16))::uuid AS request, ({id} || left(md5('s' || n), 16))::uuid
                        AS resource, ({id} || left(md5('u' || n), 16))::uuid AS submission, md5('k' || n) AS key
                   FROM (SELECT n, floor(extract(epoch FROM now()) * 1000)::bigint - 432000000
                                   + n * 432000000 / {keys} AS at
                           FROM generate_series({from}::bigint, {until}::bigint - 1) AS count (n)) AS timed),
                  who AS (SELECT id FROM principal LIMIT 1),
                  claims AS (
                 INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                                    answer_kind, location, body, claimed_at)
                 SELECT 'bench', who.id, key, decode(md5(key) || md5(key), 'hex'), decode(md5(key) || md5(key), 'hex'), 1,
                        'filled', request, 'accepted', '/api/v1/requests/' || request,
                        convert_to(repeat('x', 500), 'UTF8'), at FROM new, who),
                  requests AS (
                 INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type,
                                      name, resource, parameters, labels, correlation_id, state, created_at, updated_at,
                                      finished_at)
                 SELECT request, 'bench', who.id, 'bench', 'api', 'create', 'fast', '1', 'fast', 'filled-' || n, resource,
                        '{{\"count\":1,\"size\":\"small\"}}', '{{}}', request::text, 'succeeded', at, at, at
                   FROM new, who),
                  resources AS (
                 INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
                 SELECT resource, 'bench', 'fast', 'filled-' || n, 'fast', 'active',
                        '{{\"count\":1,\"size\":\"small\"}}', request, at, at FROM new),
                  submissions AS (
                 INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by, at)
                 SELECT submission, 'bench', who.id, key, request, 'create', 'first', 'api', 'bench', at FROM new, who),
                  words AS (
                 INSERT INTO sought (request, text, terms)
                 SELECT request, E'\\nfilled-' || n || E'\\n' || request || E'\\nbench\\n' || key || E'\\n1\\nsmall\\n', {terms}
                   FROM new ORDER BY n)
             INSERT INTO event (request, seq, attempt, at, entry)
             SELECT request, 1, 1, at, '{{\"kind\":\"state\",\"state\":\"succeeded\"}}' FROM new"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        from = until;
    }
    sqlx::raw_sql(
        "CREATE INDEX sought_term ON sought USING gin (string_to_array(terms, ' '));
         CREATE INDEX sought_trigram ON sought USING gin (text gin_trgm_ops)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    // Each by itself, for they cannot be part of a transaction. What is not on the disk yet would be written while it is
    // measured.
    for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
}
