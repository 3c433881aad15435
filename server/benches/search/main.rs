//! What a search costs in a long history: whole answers over HTTP, the first page and the total, for each kind of filter.
//!
//! Nothing is judged; what took longer than 50 ms at its 99th percentile is marked. `KEYTURN_BENCH_REQUESTS` is how many
//! requests there are (1,000,000), each with ten submissions; `KEYTURN_BENCH_CALLS` how often each search is made, with
//! other values each time (100); `KEYTURN_BENCH_ONLY` leaves out what is not `sqlite` or not `postgres`.
//! `KEYTURN_BENCH_BUFFERS` is PostgreSQL's `shared_buffers` (1GB: its manual advises a quarter of a machine's memory).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on stops, and its result is what it prints"
)]

#[expect(dead_code, reason = "tests share a cluster; a measurement has one of its own")]
#[path = "../../tests/integration/support/cluster.rs"]
mod cluster;
mod filled;
#[expect(dead_code, reason = "the other measurement uses more of it")]
#[path = "../guard/server.rs"]
mod server;

use cluster::Cluster;
use serde_json::Value;
use server::{Database, PLAIN, Server, SettingUp};
use std::time::{Duration, Instant};

/// What the first page of any search should stay below.
const GOAL: Duration = Duration::from_millis(50);
/// Calls that are not counted, so that what is often read is in memory, as it is in a server that runs.
const WARM_UP: u64 = 5;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The searches, each for the request of a number: the values are those that it was filled with.
fn searches(n: u64, of: u64) -> Vec<(&'static str, String)> {
    let at = |millis: u64| domain::time::Moment::from_millis(i64::try_from(millis).unwrap()).to_string();
    let label = |key: &str, value: String| format!("filters[labels][EQUALS][{key}]={value}");
    let parameter = |name: &str, value: String| format!("filters[parameters][EQUALS][{name}]={value}");
    let (from, key) = (filled::BEGIN + n * filled::STEP, filled::key(n));
    vec![
        ("everything", String::new()),
        ("state, frequent", "filters[state][IN]=SUCCESS".into()),
        ("state, 2 %", "filters[state][EQUALS]=failed".into()),
        ("state, unfinished", "filters[state][IN]=queued,running".into()),
        ("offering, frequent", format!("filters[offering][EQUALS]=off-{}", n % 20)),
        ("offering, rare", "filters[offering][EQUALS]=rare".into()),
        ("name", format!("filters[name][EQUALS]=srv-{}-{n}", n % 7)),
        ("name, its beginning", format!("filters[name][STARTS_WITH]=srv-{}-{}", n % 7, n / 1000)),
        ("name, a part", format!("filters[name][CONTAINS]={}-{n}", n % 7)),
        ("requester", format!("filters[requested_by][EQUALS]=user-{}", n % 500)),
        (
            "requester and state",
            format!("filters[requested_by][EQUALS]=user-{}&filters[state][EQUALS]=failed", n % 500),
        ),
        ("correlation ID", format!("filters[correlation_id][EQUALS]=payment-{}", n / 30)),
        (
            "script's call, found",
            format!(
                "{}&filters[offering][EQUALS]=off-{}&filters[action][EQUALS]=create&filters[state][IN]=SUCCESS&size=1",
                label("system.correlationId", format!("payment-{}", n / 30)),
                n % 20
            ),
        ),
        (
            "script's call, nothing",
            format!(
                "{}&filters[offering][EQUALS]=off-1&filters[action][EQUALS]=create&filters[state][IN]=SUCCESS&size=1",
                label("system.correlationId", format!("never-{n}"))
            ),
        ),
        ("label, frequent", label("env", "prod".into())),
        ("label, rare", label("order", format!("ORD-{}", n / 3))),
        ("parameter, frequent", parameter("size", "small".into())),
        ("parameter, rare", parameter("description", format!("the {} of all", n * 31 % 100_003))),
        (
            "time, an hour",
            format!(
                "filters[created_at][GREATER_THAN_OR_EQUAL_TO]={}&filters[created_at][LESS_THAN]={}",
                at(from),
                at(from + 3_600_000)
            ),
        ),
        (
            "time, the older half",
            format!("filters[created_at][LESS_THAN]={}", at(filled::BEGIN + of / 2 * filled::STEP + n)),
        ),
        (
            "finished in an hour",
            format!(
                "filters[finished_at][GREATER_THAN_OR_EQUAL_TO]={}&filters[finished_at][LESS_THAN]={}",
                at(from),
                at(from + 3_600_000)
            ),
        ),
        ("action", "filters[action][EQUALS]=delete".into()),
        (
            "offering, state and label",
            format!(
                "filters[offering][EQUALS]=off-{}&filters[state][EQUALS]=failed&{}",
                n % 20,
                label("env", "test".into())
            ),
        ),
        (
            "two frequent, never both",
            format!(
                "filters[offering][EQUALS]=off-1&filters[channel][EQUALS]=form&{}",
                label("env", "prod".into())
            ),
        ),
        (
            "two frequent, often both",
            format!(
                "filters[offering][EQUALS]=off-0&filters[channel][EQUALS]=form&{}",
                label("env", "test".into())
            ),
        ),
        ("q, two letters", format!("q={:02x}", n % 256)),
        ("q, two letters, nowhere", "q=zq".into()),
        ("q, a name", format!("q=srv-{}-{n}", n % 7)),
        ("q, a key", format!("q={key}")),
        ("q, frequent", "q=of all".into()),
        ("q, nothing", format!("q=zzz{n}q")),
    ]
}

/// Makes each search often, and prints how long its answers took.
async fn measure(name: &str, portal: &Server, requests: u64) {
    let calls = number("KEYTURN_BENCH_CALLS", 100);
    let client = reqwest::Client::new();
    let token = portal.head().split("Bearer ").nth(1).unwrap().split('\r').next().unwrap().to_owned();
    let base = format!("http://{}/api/v1", portal.address());
    println!("\n{name}: {requests} requests, {} submissions\n", requests * 10);
    println!("{:<28}{:>10}{:>10}{:>10}{:>12}", "", "p50 ms", "p99 ms", "total", "");
    for scope in ["requests", "teams/bench/requests"] {
        for place in 0..searches(1, requests).len() {
            let (mut spans, mut what, mut total) = (Vec::new(), "", Value::Null);
            for call in 0..calls + WARM_UP {
                // Spread over the whole history, and nothing twice.
                let n =
                    1 + (call * 7_919 * (requests / 10_000).max(1) * 3) % requests.max(2).saturating_sub(1);
                let (this, query) = searches(n, requests).swap_remove(place);
                what = this;
                let begun = Instant::now();
                let answer =
                    client.get(format!("{base}/{scope}?{query}")).bearer_auth(&token).send().await.unwrap();
                let status = answer.status();
                let body = answer.bytes().await.unwrap();
                if call >= WARM_UP {
                    spans.push(begun.elapsed());
                }
                assert!(status.is_success(), "{query}: {}", String::from_utf8_lossy(&body));
                total = serde_json::from_slice::<Value>(&body).unwrap()["total"].clone();
            }
            // What was filled in must be there, or something else is measured.
            let everywhere = ["name", "label, rare", "parameter, rare", "q, a name", "q, a key"];
            let anywhere = [
                "label, frequent",
                "parameter, frequent",
                "two frequent, often both",
                "q, frequent",
                "action",
            ];
            let there = scope == "requests" && everywhere.contains(&what) || anywhere.contains(&what);
            assert!(!there || total.as_i64().is_some_and(|n| n > 0), "{scope}, {what}: nothing was found");
            spans.sort_unstable();
            let at = |hundredths: usize| spans[(spans.len() * hundredths / 100).min(spans.len() - 1)];
            let millis = |span: Duration| span.as_secs_f64() * 1000.0;
            let scope = if scope == "requests" { "" } else { "team, " };
            println!(
                "{:<28}{:>10.1}{:>10.1}{:>10}{:>12}",
                format!("{scope}{what}"),
                millis(at(50)),
                millis(at(99)),
                total.to_string(),
                if at(99) > GOAL { "above" } else { "" }
            );
        }
    }
}

#[tokio::main]
async fn main() {
    let requests = number("KEYTURN_BENCH_REQUESTS", 1_000_000);
    let wanted = std::env::var("KEYTURN_BENCH_ONLY").unwrap_or_default();
    let setting_up = SettingUp { keys: requests, ..PLAIN };
    if wanted != "postgres" {
        let portal = Server::portal(&Database::Sqlite, &setting_up).await;
        measure("SQLite", &portal, requests).await;
    }
    if wanted != "sqlite" {
        let buffers = std::env::var("KEYTURN_BENCH_BUFFERS").unwrap_or_else(|_| "1GB".to_owned());
        println!("\nPostgreSQL has shared_buffers = {buffers}");
        let cluster = Cluster::start(&[&format!("--buffers={buffers}")]);
        let portal = Server::portal(&Database::Postgres(cluster.database()), &setting_up).await;
        measure("PostgreSQL", &portal, requests).await;
    }
}
