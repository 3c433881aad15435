//! What the guard costs: guarded submissions over HTTP beside the bare database doing the same inserts, and beside a bare
//! HTTP endpoint, in one run on one machine and one disk with the same durability.
//!
//! Nothing is judged; the ratios are printed. `KEYTURN_BENCH_SECONDS` is how long each line is measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on stops, and its result is what it prints"
)]

mod bare_sqlite;
mod load;
mod report;
mod server;

use load::{Keys, Seen, load};
use report::{Line, Served};
use server::{Database, Server};
use std::{path::Path, time::Duration};

const WARM_UP: Duration = Duration::from_secs(1);
/// How many keys the repeats go round.
const REPEATED: u64 = 2000;
/// Where the numbers of the storms' keys begin.
const STORMS: u64 = 100_000_000;

/// Measures one kind of load on a portal.
async fn line(what: &str, portal: &Server, keys: Keys, measured: Duration) -> (Line, Seen) {
    let before = portal.processor_time();
    let mut seen = load(portal, keys, WARM_UP, measured).await;
    let used = portal.processor_time() - before;
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

async fn sqlite(measured: Duration) -> Vec<Line> {
    let portal = Server::portal(&Database::Sqlite, "4");
    println!("SQLite: {:.0} ms from start to first answer", portal.cold_start.as_secs_f64() * 1000.0);
    let (new, seen) = line("SQLite, new keys", &portal, Keys::New(0), measured).await;
    idle(&portal).await;
    let (repeats, _) = line("SQLite, repeats", &portal, Keys::Repeated(REPEATED), measured).await;
    let (storm, stormed) = line("SQLite, storms", &portal, Keys::Storm(STORMS), measured).await;
    let made = requests(&portal);
    let sent = seen.sent + stormed.sent.div_ceil(8);
    println!("SQLite: {made} requests of {sent} keys");
    drop(portal);
    let guard_only = Server::portal(&Database::Sqlite, "0");
    let (alone, _) = line("SQLite, new keys, nothing carried out", &guard_only, Keys::New(0), measured).await;
    drop(guard_only);
    let bare = |what: &str, each: u32| {
        Line::of(
            what,
            bare_sqlite::inserts(u64::from(each), &seen.body, WARM_UP, measured),
            each,
            measured,
            None,
        )
    };
    vec![
        new,
        alone,
        repeats,
        storm,
        bare("bare SQLite, one commit each", 1),
        bare("bare SQLite, 16 a commit", 16),
        bare("bare SQLite, 64 a commit", 64),
    ]
}

/// How many requests there are in a portal's file.
fn requests(portal: &Server) -> i64 {
    let connection = rusqlite::Connection::open(portal.file()).unwrap();
    connection.query_row("SELECT count(*) FROM request", [], |row| row.get(0)).unwrap()
}

/// Waits until nothing is left to be carried out.
async fn idle(portal: &Server) {
    let connection = rusqlite::Connection::open(portal.file()).unwrap();
    loop {
        let left: i64 = connection.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
    lines.extend(sqlite(measured).await);
    println!("\nGuarded submissions over HTTP at {} connections\n", load::CONNECTIONS);
    println!("{}", report::table(&lines));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.svg");
    report::chart(&file, "Guarded submissions", &lines);
    println!("chart: {}", file.display());
}
