//! The command line, and what stops a start.

use super::support::{ALPHA, Home, Server, World, eventually, fast, vm};
use serde_json::{Value, json};
use std::{os::unix::fs::PermissionsExt, process::Output};

#[track_caller]
fn fails(output: &Output, words: &[&str]) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    text
}

#[test]
fn what_is_set_wrong_stops_the_start_with_its_name() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("KEYTURN_GUARD_RETENTION", "3d", &["KEYTURN_GUARD_RETENTION", "KEYTURN_GUARD_LONGEST_RETRY"]),
        ("KEYTURN_RETENTION", "7d", &["KEYTURN_RETENTION", "no such setting"]),
        ("KEYTURN_DATABASE_URL", "mysql://localhost/keyturn", &["KEYTURN_DATABASE_URL", "postgres://USER"]),
        ("KEYTURN_LEASE", "soon", &["KEYTURN_LEASE"]),
        ("KEYTURN_LOG", "banana", &["KEYTURN_LOG", "target=level"]),
        ("KEYTURN_LOG", "info,hyper", &["KEYTURN_LOG", "target=level"]),
        ("KEYTURN_CATALOG", "no-such-folder", &["KEYTURN_CATALOG", "no folder"]),
        ("KEYTURN_LISTEN", "192.0.2.1:1", &["KEYTURN_LISTEN"]),
        ("KEYTURN_SECRET_KEY_FILE", "/dev/null/key", &["KEYTURN_SECRET_KEY_FILE"]),
    ];
    for (setting, value, words) in cases {
        let home = Home::new(&[(setting, value)]);
        fails(&home.run(&["serve"], ""), words);
    }
    let home = Home::new(&[]);
    std::fs::write(home.path().join("keyturn.toml"), "guard_retention = \"7d\"\nretries = 3\n").unwrap();
    fails(&home.run(&["serve", "--config", "keyturn.toml"], ""), &["retries", "no such setting"]);
    let json = fails(&home.run(&["serve", "--config", "keyturn.toml", "--json"], ""), &[]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["setting"], "retries");
    fails(&home.run(&["serve", "--config", "missing.toml"], ""), &["missing.toml"]);
}

#[test]
fn a_catalog_without_any_offering_is_warned_of_at_the_start() {
    let home = Home::on_sqlite(&[("KEYTURN_CATALOG", "catalog")]);
    std::fs::create_dir_all(home.path().join("catalog/none")).unwrap();
    let server = Server::start(home);
    let log = server.log();
    assert!(
        log.contains("KEYTURN_CATALOG: nothing can be requested") && log.contains("folder=catalog"),
        "{log}"
    );
    let usual = Server::start(Home::on_sqlite(&[]));
    assert!(!usual.log().contains("KEYTURN_CATALOG"), "{}", usual.log());
}

#[test]
fn a_command_line_that_is_not_understood_is_told_as_json_where_that_is_asked_for() {
    let home = Home::on_sqlite(&[]);
    for line in [
        &["--json", "dance"][..],
        &["user", "add", "--json"],
        &["token", "create", "--user", "ann", "--lable", "x", "--json"],
        &["--json"],
    ] {
        let output = home.run(line, "");
        let said = fails(&output, &[]);
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{line:?}: {said}"));
        assert!(said["detail"].as_str().unwrap().contains("Usage"), "{line:?}: {said}");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
    }
    assert!(fails(&home.run(&["dance"], ""), &["Usage"]).starts_with("error"));
    assert!(home.must(&["--help", "--json"], "").contains("Usage"));
}

#[test]
fn a_lost_or_foreign_key_stops_the_start() {
    let home = Home::on_sqlite(&[]);
    home.team("alpha");
    let key = home.path().join("data/secret.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(home.path().join("data")).unwrap().permissions().mode() & 0o777, 0o700);
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    fails(&home.run(&["serve"], ""), &["KEYTURN_SECRET_KEY_FILE", "missing"]);
    assert!(!key.exists());
    std::fs::write(&key, format!("{}\n", "ab".repeat(32))).unwrap();
    fails(&home.run(&["serve"], ""), &["KEYTURN_SECRET_KEY_FILE", "another key"]);
    std::fs::write(&key, "short").unwrap();
    fails(&home.run(&["serve"], ""), &["KEYTURN_SECRET_KEY_FILE", "64 hexadecimal"]);
    std::fs::write(&key, kept).unwrap();
    home.team("beta");
}

#[tokio::test]
async fn a_key_is_rotated_beside_a_running_server_and_old_repeats_are_still_known() {
    let mut world = World::at(Home::on_sqlite(&[]));
    let first = world.ann.post(ALPHA, "rotated", &fast("rotated", json!({}))).await.is(202);
    let home = &world.server.home;
    let said: Value = serde_json::from_str(&home.must(&["key", "rotate", "--json"], "")).unwrap();
    assert_eq!(said["version"], 2);
    let key = home.path().join("data/secret.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let versions = home.must(&["key", "list", "--json"], "");
    let known: Value = serde_json::from_str(&versions).unwrap();
    assert_eq!(
        (&known["versions"][0]["current"], &known["versions"][1]["current"]),
        (&false.into(), &true.into())
    );
    let text = std::fs::read_to_string(&key).unwrap();
    let digits = text.lines().map(|line| line.rsplit(' ').next().unwrap());
    assert!(digits.clone().count() == 2 && digits.clone().all(|digits| !versions.contains(digits)));
    world.kill();
    world.restart();
    world.ann.post(ALPHA, "rotated", &fast("rotated", json!({}))).await.repeats(&first);
    let reused = world.ann.post(ALPHA, "rotated", &fast("other", json!({}))).await;
    reused.refused(422, "idempotency-key-reused");
}

#[test]
fn people_and_teams_are_made_with_clear_mistakes() {
    let home = Home::new(&[]);
    let add = |team: &str| home.run(&["user", "add", "ann", "--role", "member", "--team", team], "");
    fails(&add("alpha"), &["keyturn team add alpha"]);
    home.team("alpha");
    assert!(add("alpha:owner").status.success());
    fails(&add("alpha"), &["there is a user ann already"]);
    fails(&home.run(&["team", "add", "alpha"], ""), &["there is a team alpha already"]);
    fails(&home.run(&["team", "add", "Alpha"], ""), &["lower-case"]);
    fails(&home.run(&["user", "add", "bob", "--role", "king"], ""), &["unknown role"]);
    fails(
        &home.run(&["user", "add", "bob", "--role", "admin", "--password-stdin"], "short\n"),
        &["10 characters"],
    );
    fails(&home.run(&["token", "create", "--user", "nobody", "--label", "x"], ""), &["no user"]);
    let failed =
        fails(&home.run(&["token", "create", "--user", "nobody", "--label", "x", "--json"], ""), &[]);
    let problem: Value = serde_json::from_str(&failed).unwrap();
    assert_eq!(problem["type"], "/problems/not-found");
    let token = home.must(&["token", "create", "--user", "ann", "--label", "x", "--expires", "1d"], "");
    assert!(token.starts_with("kt_") && !token.contains(char::is_whitespace), "{token}");
    fails(
        &home.run(&["token", "create", "--user", "ann", "--label", "x", "--expires", "soon"], ""),
        &["90d"],
    );
}

#[tokio::test]
async fn commands_work_beside_a_running_server() {
    let server = Server::start(Home::new(&[]));
    server.home.team("alpha");
    let token = server.home.user("ann", "member", Some("alpha"), None);
    let me = server.api(&token).get("/me").await.is(200).json();
    assert_eq!((&me["name"], &me["teams"][0]["team"]), (&"ann".into(), &"alpha".into()));
}

#[test]
fn a_catalog_is_checked_with_file_and_line() {
    let home = Home::new(&[]);
    let offering = home.path().join("catalog/broken");
    std::fs::create_dir_all(&offering).unwrap();
    std::fs::write(offering.join("offering.yaml"), "title: Broken\nunknown: 1\n").unwrap();
    let output = home.run(&["catalog", "check", "catalog"], "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("broken/offering.yaml:"), "{said}");
    let output = home.run(&["catalog", "check", "catalog", "--json"], "");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said["mistakes"][0]["line"].is_u64() && said["mistakes"][0]["message"].is_string(), "{said}");
    fails(&home.run(&["catalog", "check", "nowhere"], ""), &["nowhere"]);
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/catalog");
    assert!(home.must(&["catalog", "check", good], "").contains("fast, vm"));
}

#[tokio::test]
async fn a_broken_offering_is_disabled_and_the_rest_works() {
    let home = Home::new(&[("KEYTURN_CATALOG", "catalog")]);
    let folder = home.path().join("catalog");
    for (name, text) in [
        ("broken", "title: [\n".to_owned()),
        (
            "fast",
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/catalog/fast/offering.yaml"))
                .unwrap(),
        ),
    ] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        std::fs::write(folder.join(name).join("offering.yaml"), text).unwrap();
    }
    home.team("alpha");
    let ann = home.user("ann", "member", Some("alpha"), None);
    let ada = home.user("ada", "admin", None, None);
    let server = Server::start(home);
    let (ann, ada) = (server.api(&ann), server.api(&ada));
    let seen = ann.get("/offerings/broken").await.is(200).json();
    assert_eq!(seen["available"], false);
    assert!(seen.get("problem").is_none(), "{seen}");
    let reason = ada.get("/offerings/broken").await.is(200).json();
    assert!(reason["problem"].as_str().unwrap().contains("offering.yaml"), "{reason}");
    let body = serde_json::json!({ "offering": "broken", "name": "a" });
    ann.post("/teams/alpha/requests", "k", &body).await.refused(409, "offering-unavailable");
    let body = serde_json::json!({ "offering": "fast", "name": "a" });
    ann.post("/teams/alpha/requests", "k", &body).await.is(202);
}

#[test]
fn migrating_makes_the_database_and_may_be_repeated() {
    let home = Home::on_sqlite(&[]);
    home.must(&["migrate"], "");
    home.must(&["migrate"], "");
    assert!(home.database().exists());
}

#[tokio::test]
async fn a_server_stops_in_good_order_whoever_still_listens() {
    let mut world = World::with(&[("KEYTURN_CLOCK_OFFSET", "-90m")]);
    let id = world.ann.made(&vm("slow", serde_json::json!({ "seconds": 30 }))).await;
    let stream = world.ann.call("GET", &format!("/requests/{id}/events")).send().await.unwrap();
    let waiting = world.ann.call("GET", &format!("/requests/{id}")).header("Prefer", "wait=60").send();
    let waiting = tokio::spawn(waiting);
    // The stream is open and the reader is heard; a call that is still on its way may well be turned away.
    eventually("the waiting reader is heard", async || {
        let metrics = world.ann.root("/metrics").await;
        // The reader, and the one who asks this.
        metrics.text().contains("keyturn_http_requests_in_progress 2").then_some(())
    })
    .await;
    world.server.stop();
    let told = stream.text().await.unwrap();
    assert!(told.contains("event: state"), "{told}");
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    assert!(world.server.ended().success());
    assert!(world.server.log().contains("KEYTURN_CLOCK_OFFSET"), "a shifted clock is told");
}
