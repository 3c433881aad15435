//! How many guarded submissions a second, beside the bare database doing the same inserts, from one run on one machine.
//!
//! The server is the real program, asked over HTTP by 64 connections that each wait for their answer. The bare database
//! has the same tables and the same settings and gets the same seven rows a submission through sqlx. Nothing is judged.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on stops, and its result is what it prints"
)]

use serde_json::{Value, json};
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

const CONNECTIONS: u64 = 64;
/// How long each line is measured, after a warm-up.
const MEASURED: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(1);
/// How many keys the repeats go round.
const REPEATED: u64 = 500;

/// One line of the table.
struct Line {
    what: &'static str,
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Line {
    /// From the spans of what was done within `MEASURED`, `each` submissions a span.
    fn of(what: &'static str, mut spans: Vec<Duration>, each: u32) -> Self {
        spans.sort_unstable();
        let at = |hundredths: usize| spans[(spans.len() * hundredths / 100).min(spans.len() - 1)];
        let done = f64::from(u32::try_from(spans.len()).unwrap() * each);
        Self { what, per_second: done / MEASURED.as_secs_f64(), p50: at(50), p99: at(99) }
    }

    fn print(&self) {
        let millis = |span: Duration| span.as_secs_f64() * 1000.0;
        println!(
            "{:<46}{:>10.0}{:>11.2} ms{:>11.2} ms",
            self.what,
            self.per_second,
            millis(self.p50),
            millis(self.p99)
        );
    }
}

/// The real server in a folder of its own.
struct Server {
    child: Child,
    address: String,
    token: String,
    folder: TempDir,
}

impl Server {
    fn start(workers: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let run = |arguments: &[&str]| {
            let output =
                command(folder.path(), workers, arguments).stderr(Stdio::inherit()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["team", "add", "bench"]);
        run(&["user", "add", "bench", "--role", "member", "--team", "bench:member"]);
        let said = run(&["token", "create", "--user", "bench", "--label", "bench", "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        let mut child = command(folder.path(), workers, &["serve", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listens: Value = serde_json::from_str(&line).unwrap();
        let address = listens["listen"].as_str().unwrap().to_owned();
        Self { child, address, token: said["token"].as_str().unwrap().to_owned(), folder }
    }

    /// Submits from every connection for the time of a measurement; the spans, and one answer's body.
    async fn load(&self, number_of: impl Fn(u64) -> u64 + Copy + Send + 'static) -> (Vec<Duration>, String) {
        let count = Arc::new(AtomicU64::new(0));
        let begin = Instant::now() + WARM_UP;
        let end = begin + MEASURED;
        let mut connections = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (count, token) = (Arc::clone(&count), self.token.clone());
            let mut stream = TcpStream::connect(&self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            connections.spawn(async move {
                let (mut spans, mut body) = (Vec::new(), String::new());
                while Instant::now() < end {
                    let call = submission(&token, number_of(count.fetch_add(1, Ordering::Relaxed)));
                    let sent = Instant::now();
                    body = ask(&mut stream, &call).await;
                    let answered = Instant::now();
                    if sent >= begin && answered <= end {
                        spans.push(answered - sent);
                    }
                }
                (spans, body)
            });
        }
        let done = connections.join_all().await;
        let body = done[0].1.clone();
        (done.into_iter().flat_map(|(spans, _)| spans).collect(), body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, workers: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keyturn"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KEYTURN_LISTEN", "127.0.0.1:0")
        .env("KEYTURN_LOG", "warn")
        .env("KEYTURN_WORKERS", workers)
        .env("KEYTURN_CATALOG", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog"));
    command
}

/// A create as it goes over the wire.
fn submission(token: &str, number: u64) -> Vec<u8> {
    let parameters = json!({ "size": "small", "count": number % 100 + 1 });
    let body = json!({ "offering": "fast", "name": format!("bench-{number}"), "parameters": parameters });
    let body = body.to_string();
    format!(
        "POST /api/v1/teams/bench/requests HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nIdempotency-Key: 0190a5d0-0000-7000-8000-{number:012}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends one call and reads its answer to the end; its body.
async fn ask(stream: &mut TcpStream, call: &[u8]) -> String {
    stream.write_all(call).await.unwrap();
    let mut answer = Vec::with_capacity(2048);
    loop {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the server closed the connection");
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("HTTP/1.1 202"), "{text}");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap() {
            return body.to_owned();
        }
    }
}

/// A database with the portal's tables and settings and nothing else.
async fn bare_database(file: &Path) -> SqliteConnection {
    let mut connection = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
        .synchronous(sqlx::sqlite::SqliteSynchronous::Full)
        .foreign_keys(true)
        .statement_cache_capacity(256)
        .connect()
        .await
        .unwrap();
    sqlx::migrate!("../migrations/sqlite").run(&mut connection).await.unwrap();
    connection
}

/// The rows of one submission, as the guard writes them.
async fn insert(connection: &mut SqliteConnection, number: u64, body: &str) {
    let number = i64::try_from(number).unwrap();
    let id = |kind: u64| uuid::Uuid::from_u64_pair(kind, u64::try_from(number).unwrap());
    let (principal, request, resource, submission) = (id(0), id(1), id(2), id(3));
    let (key, name) = (format!("0190a5d0-0000-7000-8000-{number:012}"), format!("bench-{number}"));
    let parameters = r#"{"count":1,"size":"small"}"#;
    let queries = [
        sqlx::query(
            "INSERT INTO claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request,
                                answer_kind, location, body, claimed_at)
             VALUES ('bench', $1, $2, $3, $3, 1, $4, $5, 'accepted', $6, $7, $8)",
        )
        .bind(principal)
        .bind(&key)
        .bind([7_u8; 32].as_slice())
        .bind("0".repeat(64))
        .bind(request)
        .bind(format!("/api/v1/requests/{request}"))
        .bind(body.as_bytes())
        .bind(number),
        sqlx::query(
            "INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
             VALUES ($1, 'bench', 'fast', $2, 'fast', 'creating', $3, $4, $5, $5)",
        )
        .bind(resource)
        .bind(&name)
        .bind(parameters)
        .bind(request)
        .bind(number),
        sqlx::query(
            "INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type,
                                  name, resource, parameters, labels, correlation_id, state, created_at, updated_at)
             VALUES ($1, 'bench', $2, 'bench', 'api', 'create', 'fast', '1', 'fast', $3, $4, $5, '{}', $6, 'queued',
                     $7, $7)",
        )
        .bind(request)
        .bind(principal)
        .bind(&name)
        .bind(resource)
        .bind(parameters)
        .bind(request.to_string())
        .bind(number),
        sqlx::query("INSERT INTO run (request, attempt, due_at) VALUES ($1, 1, $2)").bind(request).bind(number),
        sqlx::query("INSERT INTO event (request, seq, attempt, at, entry) VALUES ($1, 1, 1, $2, $3)")
            .bind(request)
            .bind(number)
            .bind(r#"{"kind":"state","state":"queued"}"#),
        sqlx::query(
            "INSERT INTO submission (id, team, principal, key, request, operation, outcome, channel, sent_by,
                                     token_label, address, correlation_id, labels, at)
             VALUES ($1, 'bench', $2, $3, $4, 'create', 'first', 'api', 'bench', 'bench', '127.0.0.1', $5, '{}', $6)",
        )
        .bind(submission)
        .bind(principal)
        .bind(&key)
        .bind(request)
        .bind(request.to_string())
        .bind(number),
        sqlx::query(
            "INSERT INTO audit (at, actor, channel, act, team, target)
             VALUES ($1, 'bench', 'api', 'request_create', 'bench', $2)",
        )
        .bind(number)
        .bind(format!("fast/{name}")),
    ];
    for query in queries {
        query.execute(&mut *connection).await.unwrap();
    }
}

/// Inserts `each` submissions a commit for the time of a measurement; the span of each commit.
async fn inserts(each: u64, body: &str) -> Vec<Duration> {
    let folder = TempDir::new().unwrap();
    let mut connection = bare_database(&folder.path().join("bare.db")).await;
    let begin = Instant::now() + WARM_UP;
    let end = begin + MEASURED;
    let (mut spans, mut number) = (Vec::new(), 0);
    while Instant::now() < end {
        let before = Instant::now();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await.unwrap();
        for _ in 0..each {
            insert(&mut connection, number, body).await;
            number += 1;
        }
        sqlx::query("COMMIT").execute(&mut connection).await.unwrap();
        let committed = Instant::now();
        if before >= begin && committed <= end {
            spans.push(committed - before);
        }
    }
    spans
}

#[tokio::main]
async fn main() {
    let (working, guard_only) = (Server::start("4"), Server::start("0"));
    let (new, body) = working.load(|number| number).await;
    // The last runs must not weigh on what is measured next.
    idle(&working).await;
    let (repeats, _) = working.load(|number| number % REPEATED).await;
    drop(working);
    let (alone, _) = guard_only.load(|number| number).await;
    drop(guard_only);
    let lines = [
        Line::of("guard, new keys, carried out meanwhile", new, 1),
        Line::of("guard, new keys, no workers", alone, 1),
        Line::of("guard, repeats", repeats, 1),
        Line::of("bare database, one commit each", inserts(1, &body).await, 1),
        Line::of("bare database, 16 a commit (p50, p99 a commit)", inserts(16, &body).await, 16),
    ];
    println!("\nGuarded submissions over HTTP at {CONNECTIONS} connections, beside SQLite through sqlx\n");
    println!("{:<46}{:>10}{:>14}{:>14}", "", "per second", "p50", "p99");
    lines.iter().for_each(Line::print);
    println!();
    for guard in &lines[..3] {
        for bare in &lines[3..] {
            let ratio = guard.per_second / bare.per_second;
            println!(
                "{:<46} is {ratio:.2} x {}",
                guard.what,
                bare.what.split(" (").next().unwrap_or_default()
            );
        }
    }
}

/// Waits until nothing is left to be carried out.
async fn idle(server: &Server) {
    let file = server.folder.path().join("data/keyturn.db");
    let mut connection = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    loop {
        let left: i64 =
            sqlx::query_scalar("SELECT count(*) FROM run").fetch_one(&mut connection).await.unwrap();
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
