//! Secret parameters over HTTP: a real program is told them; no table, answer, page, export, event or log holds them.

use super::support::{
    ALPHA, Answer, Cluster, Home, PASSWORD, World,
    browser::{Browser, hidden},
    eventually, fresh,
};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use std::os::unix::fs::PermissionsExt;

const CANARY: &str = "canary-4711-hush";
const OTHER: &str = "kestrel-0815-hush";

const OFFERING: &str = r#"title: Database (for tests)
description: Takes a password.
category: Tests
version: "1"
parameters:
  type: object
  additionalProperties: false
  required: [password]
  properties:
    password: { type: string, minLength: 8, pattern: "^[a-z0-9-]+$", writeOnly: true, title: Password }
    note: { type: string, title: Note }
updates: true
actions:
  turn:
    title: Turn the password
    parameters: { type: object, required: [to], properties: { to: { type: string, writeOnly: true, title: To } } }
    changes: { password: { set: to } }
guard:
  max_tries: 1
  duplicate_window: 1h
outputs:
  secret: [dsn]
provisioner:
  exec: { program: ./provision }
"#;

/// Keeps what it is told beside the database, and says it wherever it can.
const PROGRAM: &str = r#"#!/bin/sh
place="$KEYTURN_STATE_DIR/$KEYTURN_NAME"
case "$1" in
observe)
    if [ -f "$place" ]; then echo '{"state": "before"}'; else echo '{"state": "absent"}'; fi ;;
destroy)
    rm -f "$place" ;;
apply)
    echo "connects with $KEYTURN_PARAM_PASSWORD" >&2
    # So long that its end is cut off, amid the password.
    echo "$(printf '%4086s' | tr ' ' x)$KEYTURN_PARAM_PASSWORD" >&2
    if [ "$KEYTURN_PARAM_NOTE" = fail ] && [ "$KEYTURN_UNDO" != true ]; then
        echo "the password $KEYTURN_PARAM_PASSWORD is refused" >&2
        exit 1
    fi
    printf %s "$KEYTURN_PARAM_PASSWORD" >"$place"
    printf '{"outputs": {"dsn": "db://%s@host", "shown": "user:%s@host"}}' "$KEYTURN_PARAM_PASSWORD" "$KEYTURN_PARAM_PASSWORD" ;;
esac
"#;

fn with_catalog(mut home: Home) -> Home {
    let folder = home.path().join("catalog/db");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("offering.yaml"), OFFERING).unwrap();
    std::fs::write(folder.join("provision"), PROGRAM).unwrap();
    std::fs::set_permissions(folder.join("provision"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let catalog = home.path().join("catalog");
    home.set("KEYTURN_CATALOG", catalog.to_str().unwrap());
    home
}

/// Everything in the database, as text and with bytes in hexadecimal digits.
async fn dump(world: &World) -> Vec<u8> {
    let home = &world.server.home;
    if !home.is_on_postgres() {
        let files = std::fs::read_dir(home.database().parent().unwrap()).unwrap().map(Result::unwrap);
        let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("keyturn.db"));
        return files.flat_map(|file| std::fs::read(file.path()).unwrap()).collect();
    }
    let mut database = home.postgres().await;
    let names = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut database).await.unwrap();
    let mut all = String::new();
    for name in names {
        let rows =
            AssertSqlSafe(format!("SELECT coalesce(string_agg(one::text, ' '), '') FROM \"{name}\" AS one"));
        let rows: String = sqlx::query_scalar(rows).fetch_one(&mut database).await.unwrap();
        all += &rows;
    }
    all.into_bytes()
}

fn holds(all: &[u8], what: &str) -> bool {
    let hex = what.bytes().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
    [what, &hex].iter().any(|what| all.windows(what.len()).any(|window| window == what.as_bytes()))
}

/// What the program was told last.
fn told(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.server.home.path().join("data/offerings/db").join(name)).unwrap_or_default()
}

fn db(name: &str, password: &str, note: &str) -> Value {
    json!({ "offering": "db", "name": name, "parameters": { "password": password, "note": note } })
}

const ONE: &str = "/teams/alpha/resources/db/one";

/// Creates, repeated, contradicted and tried; the first's request.
async fn created(world: &World, answers: &mut Vec<Answer>) -> String {
    let first = world.ann.post(ALPHA, "k", &db("one", CANARY, "x")).await.is(202);
    let id = first.id();
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(told(world, "one"), CANARY);
    world.ann.post(ALPHA, "k", &db("one", CANARY, "x")).await.repeats(&first);
    answers.push(first);
    let dry = format!("{ALPHA}?dry_run=true");
    for (path, key, body, status, problem) in [
        (ALPHA, "k", db("one", OTHER, "x"), 422, "idempotency-key-reused"),
        (ALPHA, "there", db("one", CANARY, "x"), 200, ""),
        (ALPHA, "taken", db("one", OTHER, "x"), 409, "name-taken"),
        (ALPHA, "same", db("two", CANARY, "x"), 409, "suspected-duplicate"),
        (ALPHA, "w", db("two", "Kestrel-0815-hush", "x"), 422, "invalid-parameters"),
        (dry.as_str(), "d", db("two", OTHER, "x"), 200, ""),
    ] {
        let answer = world.ann.post(path, key, &body).await;
        answers.push(if problem.is_empty() { answer.is(status) } else { answer.refused(status, problem) });
    }
    id
}

/// A change that fails and goes back, one that does not, and an action; the requests of the first and the last.
async fn changed(world: &World, answers: &mut Vec<Answer>) -> [String; 2] {
    let etag = world.ann.etag(ONE).await;
    let bad = json!({ "password": OTHER, "note": "fail" });
    let dry = world.ann.call("PATCH", &format!("{ONE}?dry_run=true")).header("If-Match", &etag).json(&bad);
    answers.push(Answer::of(dry).await.is(200));
    let failed = world.ann.patch(ONE, &fresh("p"), &etag, &bad).await.is(202);
    let ended = world.ann.ended(&failed.id()).await;
    assert_eq!(ended["state"], "failed", "{ended}");
    assert_eq!(told(world, "one"), CANARY, "and it is taken back");
    let note = json!({ "note": "y" });
    answers.push(world.ann.patch(ONE, &fresh("p"), &etag, &note).await.refused(412, "precondition-failed"));
    let etag = world.ann.etag(ONE).await;
    let changed = world.ann.patch(ONE, &fresh("p"), &etag, &note).await.is(202);
    assert_eq!(world.ann.ended(&changed.id()).await["state"], "succeeded");
    assert_eq!(told(world, "one"), CANARY);
    let turn = format!("{ONE}/actions/turn");
    let turned = world.ann.post(&turn, &fresh("t"), &json!({ "to": OTHER })).await.is(202);
    assert_eq!(world.ann.ended(&turned.id()).await["state"], "succeeded");
    assert_eq!(told(world, "one"), OTHER);
    let ids = [failed.id(), turned.id()];
    answers.extend([failed, changed, turned]);
    ids
}

/// Whatever the API and the pages show of these requests.
async fn shown(world: &World, requests: &[&String], answers: &mut Vec<Answer>) {
    let mut paths: Vec<String> =
        vec![ONE.into(), "/requests?size=100".into(), "/teams/alpha/submissions?key=k".into()];
    let mut pages = vec![ONE.to_owned(), format!("{ONE}/change"), "/requests".into()];
    for request in requests {
        paths.extend(["", "/submissions", "/chain"].map(|part| format!("/requests/{request}{part}")));
        pages.push(format!("/requests/{request}"));
    }
    for path in &paths {
        answers.push(world.ann.get(path).await.is(200));
    }
    for kind in ["text/csv", "application/x-ndjson"] {
        answers.push(Answer::of(world.ann.call("GET", "/requests").header("Accept", kind)).await.is(200));
    }
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    for path in &pages {
        answers.push(browser.get(path).await.is(200));
    }
    let page = browser.get(ONE).await.text();
    assert!(page.contains("secret, not shown"), "{page}");
    // A form that is refused does not give the password back.
    let form = browser.get("/offerings/db/new").await.is(200);
    assert!(form.text().contains("type=\"password\""));
    let (request_id, sealed) = (hidden(&form, "request_id"), hidden(&form, "sealed"));
    let typed = [
        ("request_id", &*request_id),
        ("sealed", &*sealed),
        ("team", "alpha"),
        ("name", "NO"),
        ("p.password", CANARY),
        ("p.note", "kept"),
    ];
    let again = browser.post("/offerings/db/new", &typed).await.is(422);
    assert!(again.text().contains("kept"));
    // Above the form, and at its field.
    assert_eq!(again.text().matches("Type it again: it was not kept.").count(), 2, "{}", again.text());
    answers.push(again);
    overtaken(world, &mut browser, answers).await;
}

/// A form to change it that somebody else's change of the secret has overtaken.
async fn overtaken(world: &World, browser: &mut Browser, answers: &mut Vec<Answer>) {
    let address = format!("{ONE}/change");
    let form = browser.get(&address).await.is(200);
    let own = ["request_id", "sealed", "etag", "base"];
    let own = own.map(|name| (name, hidden(&form, name).replace("&quot;", "\"").replace("&amp;", "&")));
    let patch = json!({ "password": CANARY });
    let theirs = world.ann.patch(ONE, &fresh("p"), &world.ann.etag(ONE).await, &patch).await.is(202);
    assert_eq!(world.ann.ended(&theirs.id()).await["state"], "succeeded");
    let own = own.iter().map(|(name, value)| (*name, value.as_str()));
    let typed: Vec<_> = own.chain([("p.password", OTHER), ("p.note", "kept too")]).collect();
    let page = browser.post(&address, &typed).await.is(412);
    let text = page.text();
    for told in ["secret, changed since", "a new one", "kept too", "Type it again: it was not kept."] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let turn =
        world.ann.post(&format!("{ONE}/actions/turn"), &fresh("t"), &json!({ "to": OTHER })).await.is(202);
    assert_eq!(world.ann.ended(&turn.id()).await["state"], "succeeded");
    answers.extend([form, theirs, page]);
}

async fn nothing_holds_a_secret(home: Home) {
    let world = World::at(with_catalog(home));
    let mut answers = Vec::new();
    let id = created(&world, &mut answers).await;
    let [failed, turned] = changed(&world, &mut answers).await;
    shown(&world, &[&id, &failed, &turned], &mut answers).await;
    for answer in &answers {
        for secret in [CANARY, OTHER, "Kestrel-0815", "xcan", "xkest"] {
            assert!(!answer.text().contains(secret), "{}", answer.text());
        }
    }
    let reveal = world.ann.act(&format!("{ONE}/secrets/dsn/reveal"), &fresh("r")).await.is(200);
    assert!(reveal.text().contains(OTHER), "what the offering calls a secret output is whole");
    // Repeats are written a little later.
    eventually("the repeats are written", async || {
        let total = world.ann.get(&format!("/requests/{id}/submissions")).await.json()["total"].as_i64();
        total.filter(|total| *total >= 3)
    })
    .await;
    let (all, log) = (dump(&world).await, world.server.log());
    assert!(holds(&all, "secret:"), "the dump shows what is kept");
    assert!(holds(&all, "xx***…"), "and a line that was cut amid a secret");
    for secret in [CANARY, OTHER, "Kestrel-0815", "xcan", "xkest"] {
        assert!(!holds(&all, secret), "{secret} is in the database");
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    for secret in [CANARY, OTHER] {
        for path in ["/requests?q=", "/requests?filters[parameters][EQUALS][password]="] {
            let found = world.ann.get(&format!("{path}{secret}")).await.is(200).json();
            assert_eq!(found["total"], 0, "{found}");
        }
    }
}

#[tokio::test]
async fn nothing_on_sqlite_holds_a_secret() {
    nothing_holds_a_secret(Home::on_sqlite(&[])).await;
}

#[tokio::test]
async fn nothing_on_postgresql_holds_a_secret() {
    nothing_holds_a_secret(Home::on_postgres(Cluster::shared(), &[])).await;
}
