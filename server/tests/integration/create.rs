//! The guard, point by point, for creates.

use super::support::{ALPHA, Answer, Home, World, eventually, fast, fresh, vm};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_key_is_needed_and_a_bad_one_claims_nothing() {
    let world = World::start();
    let body = fast("vm-one", json!({})).to_string();
    let call = || world.ann.call("POST", ALPHA).header("Content-Type", "application/json").body(body.clone());
    Answer::of(call()).await.refused(400, "idempotency-key-missing");
    for missing in ["", "   ", "\"\"", "\"  \""] {
        Answer::of(call().header("Idempotency-Key", missing)).await.refused(400, "idempotency-key-missing");
    }
    let (long, longer, longest) = ("k".repeat(256), "k".repeat(2048), "k".repeat(8000));
    let bad: [&[u8]; 10] = [
        long.as_bytes(),
        longer.as_bytes(),
        longest.as_bytes(),
        b"a b",
        b"a\tb",
        "é".as_bytes(),
        "🔑".as_bytes(),
        b"\xff",
        b"\"open",
        b"\"a\"b\"",
    ];
    for key in bad {
        let answer = Answer::of(call().header("Idempotency-Key", key)).await;
        answer.refused(400, "idempotency-key-invalid");
    }
    let twice = call().header("Idempotency-Key", "a").header("Idempotency-Key", "a");
    Answer::of(twice).await.refused(400, "idempotency-key-invalid");
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_key_is_its_characters_whole_and_in_their_case() {
    let world = World::start();
    let mut number = 0;
    let mut create = async |key: &str| {
        number += 1;
        let body = fast(&format!("vm-{number}"), json!({}));
        world.ann.post(ALPHA, key, &body).await.is(202).id()
    };
    let stem = "k".repeat(254);
    let keys =
        ["AbCdEf01", "aBcDeF01", "../x", "%00", &format!("{stem}a"), &format!("{stem}b"), "-", "a,b", "a;b"];
    let mut ids = Vec::new();
    for key in keys {
        ids.push(create(key).await);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), keys.len());

    let body = fast("quoted", json!({}));
    let first = world.ann.post(ALPHA, "quoted", &body).await.is(202);
    for spelled in ["\"quoted\"", " quoted ", " \"quoted\""] {
        world.ann.post(ALPHA, spelled, &body).await.repeats(&first);
    }
}

#[tokio::test]
async fn a_key_belongs_to_its_team_and_sender() {
    let world = World::start();
    let first = world.ann.post(ALPHA, "same", &fast("one", json!({}))).await.is(202).id();
    let other = world.abe.post(ALPHA, "same", &fast("two", json!({}))).await.is(202).id();
    let beta = world.ben.post("/teams/beta/requests", "same", &fast("one", json!({}))).await.is(202).id();
    assert!(first != other && first != beta && other != beta);
    // An administrator is one sender with a key for each team.
    let alpha = world.ada.post(ALPHA, "same", &fast("three", json!({}))).await.is(202).id();
    let beta = world.ada.post("/teams/beta/requests", "same", &fast("three", json!({}))).await.is(202).id();
    assert_ne!(alpha, beta);
}

#[tokio::test]
async fn what_means_the_same_repeats_and_what_does_not_is_refused() {
    let world = World::start();
    let body = |parameters: &str| format!(r#"{{"offering":"vm","name":"NAME","parameters":{parameters}}}"#);
    let same = [
        (
            "the order of members",
            r#"{"size":"small","nested":{"a":1,"b":2}}"#,
            r#"{"nested":{"b":2,"a":1},"size":"small"}"#,
        ),
        ("white space", r#"{"size":"small"}"#, "{ \"size\"\t:\r\n\"small\"  }"),
        ("escapes", r#"{"note":"é"}"#, r#"{"note":"\u00e9"}"#),
        ("an explicit null", r#"{"size":"small"}"#, r#"{"size":"small","note":null}"#),
        ("a default spelled out", "{}", r#"{"size":"small","count":1,"seconds":0,"behaviour":"ok"}"#),
        ("1 and 1.0", r#"{"count":1}"#, r#"{"count":1.0}"#),
        ("1 and 1e0", r#"{"count":1}"#, r#"{"count":1e0}"#),
        ("no parameters", "{}", "null"),
    ];
    for (number, (what, one, two)) in same.into_iter().enumerate() {
        let (key, name) = (fresh("same"), format!("same-{number}"));
        let first = world.ann.text(ALPHA, &key, &body(one).replace("NAME", &name)).await.is(202);
        let repeat = world.ann.text(ALPHA, &key, &body(two).replace("NAME", &name)).await;
        assert_eq!(repeat.status, 202, "{what}: {}", repeat.text());
        repeat.repeats(&first);
    }
    let different = [
        ("the order of items", r#"{"tags":["x","y"]}"#, r#"{"tags":["y","x"]}"#, "parameters.tags"),
        (
            "a value deep inside",
            r#"{"nested":{"a":{"b":{"c":1}}}}"#,
            r#"{"nested":{"a":{"b":{"c":2}}}}"#,
            "parameters.nested",
        ),
        (
            "a null inside an array",
            r#"{"nested":{"a":[null]}}"#,
            r#"{"nested":{"a":[]}}"#,
            "parameters.nested",
        ),
        ("a number and a text", r#"{"nested":{"a":1}}"#, r#"{"nested":{"a":"1"}}"#, "parameters.nested"),
        ("another value", r#"{"size":"small"}"#, r#"{"size":"large"}"#, "parameters.size"),
    ];
    for (number, (what, one, two, differs)) in different.into_iter().enumerate() {
        let (key, name) = (fresh("different"), format!("different-{number}"));
        let first = world.ann.text(ALPHA, &key, &body(one).replace("NAME", &name)).await.is(202).id();
        let other = world.ann.text(ALPHA, &key, &body(two).replace("NAME", &name)).await;
        let problem = other.refused(422, "idempotency-key-reused").json();
        assert_eq!(problem["differs"], json!([differs]), "{what}");
        assert_eq!(problem["request"]["id"], json!(first), "{what}");
    }
    // Outside the parameters: name, labels, correlation ID and offering carry meaning.
    let base =
        json!({ "offering": "fast", "name": "base", "labels": {"env": "prod"}, "correlation_id": "c-1" });
    let first = world.ann.post(ALPHA, "base", &base).await.is(202);
    for (member, value) in [
        ("name", json!("other")),
        ("labels", json!({"env": "test"})),
        ("labels", json!({})),
        ("correlation_id", json!("c-2")),
        ("correlation_id", Value::Null),
        ("offering", json!("vm")),
    ] {
        let mut changed = base.clone();
        changed[member] = value;
        world.ann.post(ALPHA, "base", &changed).await.refused(422, "idempotency-key-reused");
    }
    // Labels in the address mean the same as labels in the body.
    let in_address = json!({ "offering": "fast", "name": "base", "correlation_id": "c-1" });
    let call =
        world.ann.call("POST", "/teams/alpha/requests?labels=env:prod").header("Idempotency-Key", "base");
    Answer::of(call.json(&in_address)).await.repeats(&first);
}

#[tokio::test]
async fn numbers_never_collapse() {
    let world = World::start();
    for (number, beyond) in
        ["9007199254740993", "9007199254740992", "1e400", "-1e400", "18446744073709551616"]
            .into_iter()
            .enumerate()
    {
        let body = format!(r#"{{"offering":"vm","name":"big-{number}","parameters":{{"quota":{beyond}}}}}"#);
        world.ann.text(ALPHA, "big", &body).await.refused(400, "invalid-json");
    }
    assert_eq!(world.count().await, 0);
    let body = r#"{"offering":"vm","name":"big","parameters":{"quota":9007199254740991}}"#;
    world.ann.text(ALPHA, "big", body).await.is(202);
}

#[tokio::test]
async fn the_first_answer_says_where_the_request_is_and_how_long_its_key_is_kept() {
    let world = World::start();
    let body = json!({ "offering": "fast", "name": "vm-one", "parameters": { "count": 2 }, "labels": {"env": "prod"} });
    let answer = world.ann.post(ALPHA, "first", &body).await.is(202);
    let (id, request) = (answer.id(), answer.json());
    assert_eq!(answer.header("location"), Some(format!("/api/v1/requests/{id}").as_str()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("idempotency-replayed"), None);
    assert!(answer.header("idempotency-key-expires").unwrap().ends_with('Z'));
    assert_eq!(request["state"], "queued");
    assert_eq!(request["parameters"], json!({ "size": "small", "count": 2 }));
    assert_eq!(request["correlation_id"], json!(id));
    assert_eq!(request["labels"], json!({ "env": "prod", "system.correlationId": id }));
    assert_eq!((&request["requested_by"], &request["channel"]), (&json!("ann"), &json!("api")));
    assert!(!answer.text().contains(": "), "compact: {}", answer.text());
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_the_state_now() {
    let world = World::start();
    let body = fast("vm-one", json!({}));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    world.ann.ended(&first.id()).await;
    for _ in 0..3 {
        let repeat = world.ann.post(ALPHA, "k", &body).await;
        repeat.repeats(&first);
        assert_eq!(repeat.header("keyturn-request-state"), Some("succeeded"));
    }
    assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
}

#[tokio::test]
async fn at_the_same_moment_exactly_one_is_made_and_all_get_its_answer() {
    let world = World::start();
    for round in 0..10 {
        let (key, body) = (fresh("burst"), fast(&format!("burst-{round}"), json!({})));
        let sends = (0..20).map(|_| world.ann.post(ALPHA, &key, &body));
        let answers = futures_util::future::join_all(sends).await;
        let first = answers.iter().find(|answer| answer.header("idempotency-replayed").is_none()).unwrap();
        for answer in &answers {
            assert_eq!(answer.lasting(), first.lasting());
        }
        let firsts = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none()).count();
        assert_eq!(firsts, 1);
    }
    assert_eq!(world.count().await, 10);
}

#[tokio::test]
async fn a_refusal_does_not_use_the_key_up() {
    let world = World::start();
    let key = "again";
    world.ann.text(ALPHA, key, "{").await.refused(400, "invalid-json");
    world
        .ann
        .post(ALPHA, key, &fast("vm-one", json!({ "size": "huge" })))
        .await
        .refused(422, "invalid-parameters");
    world.ann.post(ALPHA, key, &fast("VM", json!({}))).await.refused(422, "invalid-parameters");
    world.ann.post("/teams/beta/requests", key, &fast("vm-one", json!({}))).await.refused(404, "not-found");
    let first = world.ann.post(ALPHA, key, &fast("vm-one", json!({}))).await.is(202);
    world.ann.post(ALPHA, key, &fast("vm-one", json!({}))).await.repeats(&first);
}

#[tokio::test]
async fn a_caller_who_hangs_up_changes_nothing() {
    let world = World::start();
    let body = fast("gone", json!({})).to_string();
    let (host, token) = (world.ann.base.trim_start_matches("http://"), world.ann.token.clone().unwrap());
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let call = format!(
        "POST /api/v1{ALPHA} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: gone\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(call.as_bytes()).await.unwrap();
    drop(stream);
    eventually("the request of a caller who hung up", async || {
        let answer = world.ann.get("/teams/alpha/submissions?key=gone").await;
        (answer.status == 200).then_some(())
    })
    .await;
    let repeat = world.ann.text(ALPHA, "gone", &body).await.is(202);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
}

#[tokio::test]
async fn a_server_that_was_killed_answers_as_before_and_finishes_its_work() {
    let mut world = World::with(&[("KEYTURN_LEASE", "1s")]);
    let body = vm("vm-one", json!({ "seconds": 1 }));
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    eventually("the run begins", async || {
        let state = world.ann.get(&format!("/requests/{}", first.id())).await.json()["state"].clone();
        (state == "running").then_some(())
    })
    .await;
    world.kill();
    world.restart();
    world.ann.post(ALPHA, "k", &body).await.repeats(&first);
    let ended = world.ann.ended(&first.id()).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
}

#[tokio::test]
async fn a_sender_finds_its_own_request_by_its_key() {
    let world = World::start();
    let id = world.ann.post(ALPHA, "mine", &fast("vm-one", json!({}))).await.is(202).id();
    let find = "/teams/alpha/submissions?key=mine";
    assert_eq!(world.ann.get(find).await.is(200).id(), id);
    assert_eq!(world.ann.get("/teams/alpha/submissions?key=%22mine%22").await.is(200).id(), id);
    for other in [&world.abe, &world.vic, &world.ada, &world.ben] {
        other.get(find).await.refused(404, "not-found");
    }
    world.ann.get("/teams/alpha/submissions?key=other").await.refused(404, "not-found");
    world.ann.get("/teams/alpha/submissions?key=a%20b").await.refused(400, "idempotency-key-invalid");
    world.ann.get("/teams/alpha/submissions?key=").await.refused(400, "idempotency-key-missing");
    world.ann.get("/teams/alpha/submissions").await.refused(400, "invalid-query");
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let world = World::at(Home::on_sqlite(&[("KEYTURN_GUARD_WAIT", "30s")]));
    // Another process holds the database's only write lock.
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.server.home.database());
    let mut holder = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
    let body = fast("vm-one", json!({}));
    let answer = world.ann.post(ALPHA, "k", &body).await;
    let answer = answer.refused(503, "store-unavailable");
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    let ready = reqwest::get(format!("{}/readyz", world.server.base)).await.unwrap();
    assert_eq!(ready.status(), 503);
    let alive = reqwest::get(format!("{}/healthz", world.server.base)).await.unwrap();
    assert_eq!(alive.status(), 200);
    sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
    assert_eq!(world.count().await, 0);
    let first = world.ann.post(ALPHA, "k", &body).await.is(202);
    assert_eq!(first.header("idempotency-replayed"), None);
}

#[tokio::test]
async fn every_arrival_is_kept_with_what_became_of_it() {
    let world = World::start();
    let body = json!({ "offering": "fast", "name": "vm-one", "correlation_id": "c-1" });
    let id = world.ann.post(ALPHA, "k", &body).await.is(202).id();
    world.ann.post(ALPHA, "k", &body).await.is(202);
    world.ann.post(ALPHA, "k", &fast("vm-two", json!({}))).await.refused(422, "idempotency-key-reused");
    world.abe.post(ALPHA, "another", &fast("vm-one", json!({}))).await.is(200);
    let path = format!("/requests/{id}/submissions");
    let kept = eventually("four arrivals", async || {
        let kept = world.vic.get(&path).await.is(200).json();
        (kept["total"] == 4).then_some(kept)
    })
    .await;
    let outcomes: Vec<_> = kept["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kept| (kept["outcome"].as_str().unwrap(), kept["sent_by"].as_str().unwrap()))
        .collect();
    for expected in [("first", "ann"), ("replayed", "ann"), ("mismatched", "ann"), ("existing", "abe")] {
        assert!(outcomes.contains(&expected), "{outcomes:?}");
    }
    let first = &kept["results"][0];
    assert_eq!(
        (&first["key"], &first["channel"], &first["token"]),
        (&json!("k"), &json!("api"), &json!("test"))
    );
    assert_eq!((&first["correlation_id"], &first["address"]), (&json!("c-1"), &json!("127.0.0.1")));
}

#[tokio::test]
async fn a_key_that_works_for_long_is_not_taken_from_it() {
    let world = World::with(&[("KEYTURN_LEASE", "1s")]);
    let body = vm("slow", json!({ "seconds": 3 }));
    let sends = (0..20).map(|_| world.ann.post(ALPHA, "slow", &body));
    let answers = futures_util::future::join_all(sends).await;
    let id = answers[0].id();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let late = world.ann.post(ALPHA, "slow", &body).await;
    assert!(answers.iter().chain([&late]).all(|answer| answer.status == 202 && answer.id() == id));
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!((world.count().await, world.resources("alpha").await), (1, 1));
}
