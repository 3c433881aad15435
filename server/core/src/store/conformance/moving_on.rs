//! A database with a history of its own is brought to this version's tables: what an earlier server wrote is found as if
//! this one had written it.

use super::*;
use crate::store::duplicates::SLOT;
use sqlx::{AssertSqlSafe, Connection, Row};

/// The tables of before there were searches and counts of duplicates.
const BEFORE: i64 = 3;
/// The tables that hold a history.
const HISTORY: [&str; 3] = ["request", "submission", "claim"];

/// A database with the tables of before, which holds the history of another as its server would have written it.
async fn earlier(of: &Place) -> Place {
    match of {
        Place::Folder(folder) => {
            let file = folder.path().join("keyturn.db");
            let earlier = tempfile::tempdir().unwrap();
            let options = sqlx::sqlite::SqliteConnectOptions::new();
            let options = options.filename(earlier.path().join("keyturn.db")).create_if_missing(true);
            let mut connection = options.connect().await.unwrap();
            sqlx::migrate!("../../migrations/sqlite").run_to(BEFORE, &mut connection).await.unwrap();
            sqlx::query("ATTACH $1 AS later")
                .bind(file.to_str().unwrap())
                .execute(&mut connection)
                .await
                .unwrap();
            for table in HISTORY {
                let known = format!("SELECT group_concat(name, ', ') FROM pragma_table_info('{table}')");
                let known: String =
                    sqlx::query_scalar(AssertSqlSafe(known)).fetch_one(&mut connection).await.unwrap();
                let copy = format!("INSERT INTO main.{table} ({known}) SELECT {known} FROM later.{table}");
                let copied = sqlx::query(AssertSqlSafe(copy)).execute(&mut connection).await.unwrap();
                assert!(copied.rows_affected() > 0, "{table}");
            }
            connection.close().await.unwrap();
            Place::Folder(earlier)
        }
        Place::Address(address) => {
            let earlier = cluster::Cluster::shared().database();
            let connect = async |address: &str| {
                address.parse::<sqlx::postgres::PgConnectOptions>().unwrap().connect().await.unwrap()
            };
            let (mut from, mut to) = (connect(address).await, connect(&earlier).await);
            sqlx::migrate!("../../migrations/postgres").run_to(BEFORE, &mut to).await.unwrap();
            for table in HISTORY {
                let rows = format!("SELECT json_agg(row)::text FROM {table} AS row");
                let rows: String =
                    sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(&mut from).await.unwrap();
                let known =
                    "SELECT string_agg(column_name::text, ', ') AS known FROM information_schema.columns
                              WHERE table_name = $1 AND table_schema = current_schema()";
                let known: String =
                    sqlx::query(known).bind(table).fetch_one(&mut to).await.unwrap().get("known");
                let copy = format!(
                    "INSERT INTO {table} ({known}) OVERRIDING SYSTEM VALUE
                     SELECT {known} FROM json_populate_recordset(NULL::{table}, $1::json)"
                );
                let copied = sqlx::query(AssertSqlSafe(copy)).bind(rows).execute(&mut to).await.unwrap();
                assert!(copied.rows_affected() > 0, "{table}");
            }
            // As if they had been counted one by one.
            let counted = "SELECT setval(pg_get_serial_sequence('claim', 'id'), (SELECT max(id) FROM claim))";
            sqlx::query(counted).execute(&mut to).await.unwrap();
            Place::Address(earlier)
        }
    }
}

pub(super) async fn a_history_of_before_is_found_and_counted(bench: Bench) {
    let mut made = search::some(&bench, 45).await;
    search::send_again(&bench, &mut made).await;
    search::end_some(&bench, &mut made).await;
    // Repeats that were written down, of each kind that is counted, and more of one key than are written down.
    let repeat = |outcome, problem, at| Arrived {
        outcome,
        problem,
        at,
        ..bench.arrived(scope_of("red", 1, "Key-2"), Operation::Create)
    };
    let slot = |number: i64| at(number * i64::try_from(SLOT.as_millis()).unwrap());
    let mut repeats = vec![
        repeat(SubmissionOutcome::Waited, None, slot(3)),
        repeat(SubmissionOutcome::Mismatched, Some("idempotency-key-reused"), slot(4)),
        repeat(SubmissionOutcome::Refused, Some("idempotency-key-expired"), slot(4)),
        repeat(SubmissionOutcome::Refused, Some("suspected-duplicate"), slot(5)),
        repeat(SubmissionOutcome::Refused, Some("invalid-parameters"), slot(5)),
    ];
    repeats.extend((0..1200).map(|_| repeat(SubmissionOutcome::Replayed, None, slot(6))));
    for part in repeats.chunks(400) {
        bench.store.record(part.into()).await.unwrap();
    }
    let edges: Vec<Moment> = (0..10).map(slot).collect();
    let (periods, sources) = bench.store.duplicates(edges.clone(), 10).await.unwrap();
    assert!(periods.iter().map(|period| period.count).sum::<i64>() > 1200, "{periods:?}");

    let earlier = Bench::at(earlier(&bench.place).await).await;
    earlier.next.store(bench.next.load(Ordering::Relaxed), Ordering::Relaxed);
    let (then, sent) = earlier.store.duplicates(edges, 10).await.unwrap();
    let sorted = |mut counts: Vec<String>| {
        counts.sort();
        counts
    };
    let periods_of = |all: &[_]| sorted(all.iter().map(|one| format!("{one:?}")).collect());
    assert_eq!(periods_of(&then), periods_of(&periods));
    assert_eq!(
        sorted(sent.iter().map(|one| format!("{one:?}")).collect()),
        sorted(sources.iter().map(|one| format!("{one:?}")).collect())
    );
    for indexed in [false, true] {
        if indexed {
            while earlier.store.index_words(1000).await.unwrap() > 0 {}
        }
        search::finds_all(&earlier, &made).await;
        search::finds_one(&earlier, &made, &search::SENT_AGAIN).await;
    }
    // What arrives from now on stands beside it.
    search::one_more(&earlier, &mut made, 45).await;
    search::finds_all(&earlier, &made).await;
}
