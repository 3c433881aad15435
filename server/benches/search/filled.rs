//! A history of many requests with ten submissions each, written straight into a portal's database: what searches read.

use sqlx::Connection;
use std::path::Path;

/// How many requests one commit holds.
const CHUNK: u64 = 50_000;
/// When the first was accepted, in milliseconds since 1970, and how long after it the next.
pub(crate) const BEGIN: u64 = 1_700_000_000_000;
pub(crate) const STEP: u64 = 1000;

/// The key of a request.
pub(crate) fn key(n: u64) -> String {
    format!("{:016x}-{:08x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15), n)
}

/// What is in every column that a search knows, by the request's number `n`, in SQL that both databases take. Teams are
/// spread among all, so that a team's requests are of every kind.
fn values(requests: u64) -> String {
    format!(
        "CASE n * 7919 % 100003 % 40 WHEN 0 THEN 'bench' ELSE 'team-' || (n * 7919 % 100003 % 40) END AS team, 'user-' || (n % 500) AS requested_by,
         CASE n % 5 WHEN 0 THEN 'form' WHEN 1 THEN 'hook' ELSE 'api' END AS channel,
         CASE n % 10 WHEN 3 THEN 'delete' ELSE 'create' END AS action,
         CASE n % 100000 WHEN 7 THEN 'rare' ELSE 'off-' || (n % 20) END AS offering, 'srv-' || (n % 7) || '-' || n AS name,
         '{{\"count\":' || (n % 9) || ',\"description\":\"the ' || (n * 31 % 100003) || ' of all\",\"size\":\"'
             || CASE n % 3 WHEN 0 THEN 'small' ELSE 'large' END || '\"}}' AS parameters,
         '{{\"env\":\"' || CASE n % 4 WHEN 0 THEN 'test' ELSE 'prod' END || '\",\"order\":\"ORD-' || (n / 3) || '\"}}' AS labels,
         CASE n % 3 WHEN 0 THEN 'payment-' || (n / 30) ELSE 'alone-' || n END AS correlation_id,
         CASE WHEN n > {requests} - 200 THEN 'queued' WHEN n % 50 = 1 THEN 'failed' WHEN n % 5000 = 2 THEN 'canceled'
              ELSE 'succeeded' END AS state,
         {BEGIN} + n * {STEP} AS at, CASE WHEN n > {requests} - 200 THEN NULL ELSE {BEGIN} + n * {STEP} + 60000 END AS ended"
    )
}

/// The words of a request, likewise.
const WORDS: &str = "'
' || name || '
' || id || '
' || requested_by || '
' || key || '
' || correlation_id || '
env:' || CASE n % 4 WHEN 0 THEN 'test' ELSE 'prod' END || '
order:ord-' || (n / 3) || '
' || (n % 9) || '
the ' || (n * 31 % 100003) || ' of all
' || CASE n % 3 WHEN 0 THEN 'small' ELSE 'large' END || '
'";

/// Those of the further key that every nineteenth was asked for by.
const FURTHER: &str = "'
again-' || key || '
'";

/// The terms of a request as the portal writes them, out of the columns and likewise; `{hex}` stands around each.
fn terms(hex: impl Fn(&str) -> String) -> String {
    let terms = [
        "'t=' || team",
        "'o=' || offering",
        "'b=' || requested_by",
        "'c=' || channel",
        "'lenv=' || CASE n % 4 WHEN 0 THEN 'test' ELSE 'prod' END",
        "'lorder=ORD-' || (n / 3)",
        "'pcount=' || (n % 9)",
        "'pdescription=the ' || (n * 31 % 100003) || ' of all'",
        "'psize=' || CASE n % 3 WHEN 0 THEN 'small' ELSE 'large' END",
    ];
    let terms: Vec<String> = terms.into_iter().map(hex).collect();
    format!("' ' || {} || ' '", terms.join(" || ' ' || "))
}

/// They ended long ago, and have been swept since: a server would be busy with that, not with searches.
const REQUEST: &str = "INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version,
                       type, name, resource, parameters, labels, correlation_id, state, created_at, updated_at, finished_at,
                       swept)";
const SUBMISSION: &str =
    "INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by, at)";
const OUTCOME: &str =
    "CASE WHEN turn = 0 THEN 'first' WHEN turn = 1 AND n % 19 = 0 THEN 'existing' ELSE 'replayed' END";

/// Fills the file of a portal that is not running. Whoever asks becomes an administrator, who sees everything.
pub(crate) fn sqlite(file: &Path, requests: u64) {
    let connection = rusqlite::Connection::open(file).unwrap();
    // Durability is for what is measured, not for what is set up.
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000; PRAGMA temp_store = MEMORY;
                        UPDATE principal SET role = 'admin';",
        )
        .unwrap();
    let hex = |term: &str| format!("hex({term})");
    let terms = terms(hex);
    let values = values(requests);
    let mut from = 1;
    while from <= requests {
        let until = (from + CHUNK).min(requests + 1);
        let keys: Vec<String> = (from..until).map(|n| format!("[{n},\"{}\"]", key(n))).collect();
        connection.execute_batch("BEGIN; DROP TABLE IF EXISTS temp.new;").unwrap();
        connection
            .execute(
                &format!(
                    "CREATE TEMP TABLE new AS
                     SELECT unhex(printf('%012x7%03x', at, n % 4096) || hex(randomblob(8))) AS id, *
                       FROM (SELECT n, key, {values} FROM (SELECT value ->> 0 AS n, value ->> 1 AS key FROM json_each(?1)))"
                ),
                [format!("[{}]", keys.join(","))],
            )
            .unwrap();
        for statement in [
            format!(
                "{REQUEST} SELECT id, team, (SELECT id FROM principal), requested_by, channel, action, offering, '1', offering,
                        name, randomblob(16), parameters, labels, correlation_id, state, at, at, ended,
                        ended IS NOT NULL FROM new"
            ),
            format!(
                "{SUBMISSION} SELECT unhex(printf('%012x7%03x', at + turn, n % 4096) || hex(randomblob(8))), team,
                        (SELECT id FROM principal), key, id, 'create', {OUTCOME}, 'api', requested_by, at + turn
                   FROM new, (SELECT value AS turn FROM json_each('[0,1,2,3,4,5,6,7,8,9]')) ORDER BY n"
            ),
            format!(
                "INSERT INTO sought (request, text, terms) SELECT request, {WORDS}, {terms}
                   FROM (SELECT new.*, new.id AS request FROM new) AS new ORDER BY n"
            )
            .replace(
                "|| id ||",
                "|| lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-'
                          || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) ||",
            ),
            format!(
                "INSERT INTO sought (request, text, terms) SELECT id, {FURTHER}, {terms} || {} || ' '
                   FROM new WHERE n % 19 = 0 ORDER BY n",
                hex("'k='")
            ),
            "INSERT INTO sought_trigram (rowid, text)
             SELECT id, text FROM sought WHERE id > (SELECT upto FROM sought_upto) ORDER BY id"
                .to_owned(),
            "INSERT INTO sought_term (rowid, terms)
             SELECT id, terms FROM sought WHERE id > (SELECT upto FROM sought_upto) ORDER BY id"
                .to_owned(),
            "UPDATE sought_upto SET upto = (SELECT max(id) FROM sought)".to_owned(),
        ] {
            connection.execute(&statement, []).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        from = until;
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

/// The same in PostgreSQL.
pub(crate) async fn postgres(url: &str, requests: u64) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    // Made again at the end, for they would be the slowest to fill row by row.
    sqlx::raw_sql(
        "SET synchronous_commit = off; SET maintenance_work_mem = '512MB'; UPDATE principal SET role = 'admin';
         DROP INDEX IF EXISTS sought_trigram; DROP INDEX sought_term;",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let hex = |term: &str| format!("upper(encode(convert_to({term}, 'UTF8'), 'hex'))");
    let (terms, further) = (terms(hex), hex("'k='"));
    let values = values(requests);
    let id = |at: &str, salt: &str| {
        format!(
            "(lpad(to_hex({at}), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || left(md5('{salt}' || n || {at}), 16))::uuid"
        )
    };
    let (of_request, of_submission) = (id("at", "r"), id("at + turn", "s"));
    let mut from = 1;
    while from <= requests {
        let until = (from + CHUNK).min(requests + 1);
        let keys: Vec<String> = (from..until).map(key).collect();
        let statement = format!(
            "WITH new AS MATERIALIZED (
                 SELECT {of_request} AS id, * FROM (SELECT n, key, {values}
                   FROM (SELECT {from} + place - 1 AS n, key FROM unnest($1::text[]) WITH ORDINALITY AS k (key, place)) AS k)
                        AS new),
                  who AS (SELECT id AS principal FROM principal LIMIT 1),
                  requests AS (
                 {REQUEST} SELECT id, team, principal, requested_by, channel, action, offering, '1', offering, name, id,
                                  parameters, labels, correlation_id, state, at, at, ended, ended IS NOT NULL
                             FROM new, who),
                  submissions AS (
                 {SUBMISSION} SELECT {of_submission}, team, principal, key, id, 'create', {OUTCOME}, 'api', requested_by,
                                     at + turn FROM new, who, generate_series(0, 9) AS turns (turn))
             INSERT INTO sought (request, text, terms)
             SELECT id, {WORDS}, {terms} FROM new
              UNION ALL SELECT id, {FURTHER}, {terms} || {further} || ' ' FROM new WHERE n % 19 = 0"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(keys).execute(&mut connection).await.unwrap();
        from = until;
    }
    sqlx::raw_sql(
        "CREATE INDEX sought_term ON sought USING gin (string_to_array(terms, ' '));
         CREATE INDEX sought_trigram ON sought USING gin (text gin_trgm_ops)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    // By itself, for it cannot be part of a transaction.
    sqlx::query("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
}
