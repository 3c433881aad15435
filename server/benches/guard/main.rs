//! What the guard costs: guarded submissions over HTTP beside the bare database doing the same inserts, and beside a bare
//! HTTP endpoint, in one run on one machine and one disk with the same durability.
//!
//! Nothing is judged; ratios are printed. `KEYTURN_BENCH_SECONDS` is how long each line is measured (5);
//! `KEYTURN_BENCH_ONLY` leaves out what is not `sqlite` or not `postgres`; `KEYTURN_BENCH_KEYS` measures again with so
//! many finished keys.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on stops, and its result is what it prints"
)]

mod bare_sqlite;
#[expect(dead_code, reason = "tests share a cluster; a measurement has one of its own")]
#[path = "../../tests/integration/support/cluster.rs"]
mod cluster;
mod filled;
mod load;
mod postgres;
mod report;
mod server;

use cluster::Cluster;
use load::{Keys, Seen, load};
use report::{Line, Served};
use server::{Database, PLAIN, Server, SettingUp};
use std::{path::Path, time::Duration};

const WARM_UP: Duration = Duration::from_secs(1);
/// How many keys the repeats go round.
const REPEATED: u64 = 2000;
/// Under these settings the older half of a long history is over.
const SWEPT: [(&str, &str); 2] = [("KEYTURN_GUARD_LONGEST_RETRY", "1h"), ("KEYTURN_GUARD_RETENTION", "60h")];
/// Where the numbers of new keys begin the second time.
const AGAIN: u64 = 50_000_000;
/// Where the numbers of the storms' keys begin.
const STORMS: u64 = 100_000_000;

/// Measures one kind of load on a portal, and what it had sent in all.
async fn line(what: &str, portal: &Server, keys: Keys, measured: Duration) -> (Line, Seen) {
    let before = portal.processor_time();
    let mut seen = load(portal, keys, WARM_UP, measured).await;
    let used = portal.processor_time().saturating_sub(before);
    let served = Served {
        failed: seen.failed,
        refused: seen.refused,
        per_key: None,
        memory: portal.peak_memory(),
        processor: used / u32::try_from(seen.sent.max(1)).unwrap(),
    };
    let spans = std::mem::take(&mut seen.spans);
    (Line::of(what, Seen { spans, ..Seen::default() }, 1, measured, Some(served)), seen)
}

/// The kinds of load on a portal that keeps its rows in this database.
async fn portal(name: &str, database: &Database, measured: Duration) -> (Vec<Line>, String) {
    let portal = Server::portal(database, &PLAIN).await;
    println!("{name}: {:.0} ms from start to first answer", portal.cold_start.as_secs_f64() * 1000.0);
    let (mut new, seen) = line(&format!("{name}, new keys"), &portal, Keys::New(0), measured).await;
    new.executed(portal.requests().await, seen.sent);
    portal.idle().await;
    let (repeats, _) = line(&format!("{name}, repeats"), &portal, Keys::Repeated(REPEATED), measured).await;
    let before = portal.requests().await;
    let (mut storm, stormed) = line(&format!("{name}, storms"), &portal, Keys::Storm(STORMS), measured).await;
    storm.executed(portal.requests().await - before, stormed.sent.div_ceil(8));
    (vec![new, repeats, storm], seen.body)
}

/// The same with a long history, and again while its older half is swept away.
async fn filled(name: &str, database: &Database, keys: u64, measured: Duration) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut portal = Server::portal(database, &SettingUp { keys, ..PLAIN }).await;
    for (kind, from) in [("", 0), (", being swept", AGAIN)] {
        if from == AGAIN {
            portal = portal.again(&SWEPT);
        }
        let what = format!("{name}, {keys} finished keys{kind}");
        let before = portal.unswept().await;
        lines.push(line(&format!("{what}, new keys"), &portal, Keys::New(from), measured).await.0);
        portal.idle().await;
        lines.push(line(&format!("{what}, repeats"), &portal, Keys::Repeated(REPEATED), measured).await.0);
        println!(
            "{what}: {before} claims held their answers before, {} do afterwards",
            portal.unswept().await
        );
    }
    lines
}

async fn ceiling(body: &str, measured: Duration) -> Line {
    let bare = Server::bare(body);
    Line::of("bare HTTP endpoint", load(&bare, Keys::New(0), WARM_UP, measured).await, 1, measured, None)
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(server::BARE) {
        server::serve_bare(arguments.next().unwrap_or_default()).await;
        return;
    }
    let seconds = std::env::var("KEYTURN_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let measured = Duration::from_secs(seconds);
    let mut lines = vec![ceiling(&"x".repeat(500), measured).await];
    let keys: u64 = std::env::var("KEYTURN_BENCH_KEYS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let wanted = std::env::var("KEYTURN_BENCH_ONLY").unwrap_or_default();
    if wanted != "postgres" {
        let (portal, body) = portal("SQLite", &Database::Sqlite, measured).await;
        lines.extend(portal);
        for (what, each) in [("one commit each", 1), ("16 a commit", 16), ("64 a commit", 64)] {
            let seen = bare_sqlite::inserts(u64::from(each), &body, WARM_UP, measured);
            lines.push(Line::of(&format!("bare SQLite, {what}"), seen, each, measured, None));
        }
        if keys > 0 {
            lines.extend(filled("SQLite", &Database::Sqlite, keys, measured).await);
        }
    }
    if wanted != "sqlite" {
        let cluster = Cluster::start(&["--durable"]);
        let database = Database::Postgres(cluster.database());
        lines.extend(portal("PostgreSQL", &database, measured).await.0);
        for (what, each) in [("one commit each", 1), ("16 a commit", 16)] {
            let what = format!("pgbench at 64 clients, {what}");
            lines.push(postgres::inserts(&cluster, &what, each, measured));
        }
        if keys > 0 {
            let database = Database::Postgres(cluster.database());
            lines.extend(filled("PostgreSQL", &database, keys, measured).await);
        }
    }
    println!("\nGuarded submissions over HTTP at {} connections\n", load::CONNECTIONS);
    println!("{}", report::table(&lines));
    let named = |what: &str| lines.iter().find(|line| line.what == what);
    for (one, other) in [
        ("SQLite, new keys", "bare SQLite, one commit each"),
        ("SQLite, new keys", "bare SQLite, 16 a commit"),
        ("SQLite, repeats", "bare HTTP endpoint"),
        ("SQLite, storms", "SQLite, new keys"),
        ("PostgreSQL, new keys", "pgbench at 64 clients, one commit each"),
        ("PostgreSQL, repeats", "bare HTTP endpoint"),
        ("PostgreSQL, storms", "PostgreSQL, new keys"),
    ] {
        if let (Some(one), Some(other)) = (named(one), named(other)) {
            println!("{}", one.beside(other));
        }
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.svg");
    report::chart(&file, "Guarded submissions", &lines);
    println!("chart: {}", file.display());
}
