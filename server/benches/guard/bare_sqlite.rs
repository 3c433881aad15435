//! SQLite by itself: the rows of a submission as the guard writes them, by prepared statements on one thread, with the
//! portal's own tables and settings.

use crate::load::Seen;
use rusqlite::{Connection, Statement, params};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/sqlite");

/// Opens a database with the portal's tables.
pub(crate) fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
        .unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(MIGRATIONS).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    connection
}

/// Inserts `each` submissions a commit for the time of a measurement; the span of each commit.
pub(crate) fn inserts(each: u64, body: &str, warm_up: Duration, measured: Duration) -> Seen {
    let folder = TempDir::new().unwrap();
    let connection = open(&folder.path().join("bare.db"));
    let mut rows = Rows::prepare(&connection);
    let begin = Instant::now() + warm_up;
    let end = begin + measured;
    let mut seen = Seen::default();
    while Instant::now() < end {
        let before = Instant::now();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..each {
            rows.insert(seen.sent, body);
            seen.sent += 1;
        }
        connection.execute_batch("COMMIT").unwrap();
        let committed = Instant::now();
        if before >= begin && committed <= end {
            seen.spans.push(committed - before);
        }
    }
    seen
}

struct Rows<'c> {
    claim: Statement<'c>,
    resource: Statement<'c>,
    request: Statement<'c>,
    run: Statement<'c>,
    event: Statement<'c>,
    submission: Statement<'c>,
    audit: Statement<'c>,
    sought: Statement<'c>,
}

impl<'c> Rows<'c> {
    fn prepare(connection: &'c Connection) -> Self {
        let prepare = |text| connection.prepare(text).unwrap();
        Self {
            claim: prepare(
                "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                                    answer_kind, location, body, claimed_at)
                 VALUES ('bench', ?1, ?2, ?3, ?3, 1, ?4, ?5, 'accepted', ?6, ?7, ?8)",
            ),
            resource: prepare(
                "INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
                 VALUES (?1, 'bench', 'fast', ?2, 'fast', 'creating', ?3, ?4, ?5, ?5)",
            ),
            request: prepare(
                "INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version,
                                      type, name, resource, parameters, labels, correlation_id, state, created_at,
                                      updated_at)
                 VALUES (?1, 'bench', ?2, 'bench', 'api', 'create', 'fast', '1', 'fast', ?3, ?4, ?5, '{}', ?6, 'queued',
                         ?7, ?7)",
            ),
            run: prepare("INSERT INTO run (request, attempt, due_at) VALUES (?1, 1, ?2)"),
            event: prepare("INSERT INTO event (request, seq, attempt, at, entry) VALUES (?1, 1, 1, ?2, ?3)"),
            submission: prepare(
                "INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by,
                                         token_label, address, correlation_id, labels, at)
                 VALUES (?1, 'bench', ?2, ?3, ?4, 'create', 'first', 'api', 'bench', 'bench', '127.0.0.1', ?5, '{}', ?6)",
            ),
            audit: prepare(
                "INSERT INTO audit (at, actor, channel, act, team, target)
                 VALUES (?1, 'bench', 'api', 'request_create', 'bench', ?2)",
            ),
            sought: prepare("INSERT INTO sought (request, text, terms) VALUES (?1, ?2, ?3)"),
        }
    }

    fn insert(&mut self, number: u64, body: &str) {
        let id = |kind: u64| uuid::Uuid::from_u64_pair(kind, number).into_bytes();
        let (principal, request, resource, submission) = (id(0), id(1), id(2), id(3));
        let correlation = uuid::Uuid::from_bytes(request).to_string();
        let (key, name) = (format!("0190a5d0-0000-7000-8000-{number:012}"), format!("bench-{number}"));
        let parameters = r#"{"count":1,"size":"small"}"#;
        let (hash, digest, at) = ([7_u8; 32], "0".repeat(64), i64::try_from(number).unwrap());
        let location = format!("/api/v1/requests/{correlation}");
        self.claim
            .execute(params![principal, key, hash, digest, request, location, body.as_bytes(), at])
            .unwrap();
        self.resource.execute(params![resource, name, parameters, request, at]).unwrap();
        self.request
            .execute(params![request, principal, name, resource, parameters, correlation, at])
            .unwrap();
        self.run.execute(params![request, at]).unwrap();
        self.event.execute(params![request, at, r#"{"kind":"state","state":"queued"}"#]).unwrap();
        self.submission.execute(params![submission, principal, key, request, correlation, at]).unwrap();
        self.audit.execute(params![at, format!("fast/{name}")]).unwrap();
        let (words, terms) = (
            format!("\n{name}\n{correlation}\nbench\n{key}\n1\nsmall\n"),
            format!(" {} {} ", "70".repeat(8), "70".repeat(11)),
        );
        self.sought.execute(params![request, words, terms]).unwrap();
    }
}
