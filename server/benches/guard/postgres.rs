//! PostgreSQL by itself: the rows of a submission as the guard writes them, by pgbench at 64 clients, in the portal's own
//! tables, durably.

use crate::{cluster::Cluster, report::Line, server};
use std::{fmt::Write, path::PathBuf, process::Command, time::Duration};
use tempfile::TempDir;

/// Measures `each` submissions a commit.
pub(crate) fn inserts(cluster: &Cluster, what: &str, each: u32, measured: Duration) -> Line {
    let url = cluster.database();
    let folder = TempDir::new().unwrap();
    server::key_file(folder.path());
    let settings = [("KEYTURN_DATABASE_URL".to_owned(), url.clone())];
    let migrated = server::command(folder.path(), &["migrate"], &settings).status().unwrap();
    assert!(migrated.success());
    let script = folder.path().join("script.sql");
    std::fs::write(&script, statements(each)).unwrap();
    let output = Command::new(program())
        .args(["--no-vacuum", "--protocol=prepared", "--client=64", "--jobs=2", "--log"])
        .arg(format!("--time={}", measured.as_secs()))
        .arg(format!("--log-prefix={}", folder.path().join("log").display()))
        .arg(format!("--file={}", script.display()))
        .arg(url)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    let rate =
        told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
    let mut waits: Vec<u64> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log")))
        .flat_map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect::<Vec<u64>>()
        })
        .collect();
    waits.sort_unstable();
    let at = |hundredths: usize| {
        Duration::from_micros(waits[(waits.len() * hundredths / 100).min(waits.len() - 1)])
    };
    Line::told(what, rate.unwrap() * f64::from(each), at(50), at(99))
}

/// The newest pgbench.
fn program() -> PathBuf {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .unwrap()
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            Some((folder.file_name()?.to_str()?.parse().ok()?, folder.join("bin/pgbench")))
        })
        .collect();
    versions.sort();
    versions.pop().unwrap().1
}

/// One transaction with the eight rows of each submission.
fn statements(each: u32) -> String {
    const ROWS: [&str; 8] = [
        "claim (team, principal, key, fingerprint, body_hash, key_version, schema_digest, request, answer_kind, location,
                body, claimed_at)
         SELECT 'bench', uuid(0), 'key-' || n, digest, digest, 1, repeat('0', 64), uuid(n), 'accepted',
                '/api/v1/requests/' || uuid(n), convert_to(repeat('x', 500), 'UTF8'), n",
        "resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at)
         SELECT uuid(n), 'bench', 'fast', 'b-' || n, 'fast', 'creating', '{\"count\":1,\"size\":\"small\"}', uuid(n), n, n",
        "request (id, team, principal, requested_by, channel, action, offering, offering_version, type, name, resource,
                  parameters, labels, correlation_id, state, created_at, updated_at)
         SELECT uuid(n), 'bench', uuid(0), 'bench', 'api', 'create', 'fast', '1', 'fast', 'b-' || n, uuid(n),
                '{\"count\":1,\"size\":\"small\"}', '{}', uuid(n)::text, 'queued', n, n",
        "run (request, attempt, due_at) SELECT uuid(n), 1, n",
        "event (request, seq, attempt, at, entry) SELECT uuid(n), 1, 1, n, '{\"kind\":\"state\",\"state\":\"queued\"}'",
        "submission (id, team, principal, key, request, operation, outcome, channel, sent_by, token_label, address,
                     correlation_id, labels, at)
         SELECT uuid(n), 'bench', uuid(0), 'key-' || n, uuid(n), 'create', 'first', 'api', 'bench', 'bench', '127.0.0.1',
                uuid(n)::text, '{}', n",
        "audit (at, actor, channel, act, team, target)
         SELECT n, 'bench', 'api', 'request_create', 'bench', 'fast/b-' || n",
        "sought (request, text, terms)
         SELECT uuid(n), E'\\nb-' || n || E'\\n' || uuid(n) || E'\\nbench\\nkey-' || n || E'\\n1\\nsmall\\n',
                ' ' || repeat('70', 8) || ' ' || repeat('70', 11) || ' '",
    ];
    let mut script = String::from("\\set from random(1, 1000000000000000000)\nBEGIN;\n");
    for rows in ROWS {
        let rows = rows
            .replace("digest, digest", "decode(repeat('07', 32), 'hex'), decode(repeat('07', 32), 'hex')")
            .replace("uuid(0)", "'00000000-0000-0000-0000-000000000000'::uuid")
            .replace("uuid(n)", "lpad(to_hex(n), 32, '0')::uuid");
        let _ = writeln!(
            script,
            "INSERT INTO {} FROM generate_series(:from::bigint, :from::bigint + {}) AS given (n);",
            rows.split_whitespace().collect::<Vec<_>>().join(" "),
            each - 1
        );
    }
    script.push_str("COMMIT;\n");
    script
}
