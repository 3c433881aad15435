//! Bad input: each kind gets a clear problem of its own, and nothing is claimed or made.

use super::{
    hooks,
    support::{ALPHA, Answer, World, fast},
};
use serde_json::json;

#[tokio::test]
async fn a_body_is_json_of_the_known_shape() {
    let world = World::start();
    let table: &[(&str, u16, &str)] = &[
        ("", 400, "invalid-json"),
        ("{", 400, "invalid-json"),
        ("null", 400, "invalid-json"),
        ("[]", 400, "invalid-json"),
        ("\"text\"", 400, "invalid-json"),
        ("{} {}", 400, "invalid-json"),
        (r#"{"offering":"fast","name":"a","size":"small"}"#, 400, "invalid-json"),
        (r#"{"offering":"fast","name":"a","name":"b"}"#, 400, "invalid-json"),
        (
            r#"{"offering":"fast","name":"a","parameters":{"size":"small","size":"large"}}"#,
            400,
            "invalid-json",
        ),
        (
            r#"{"offering":"fast","name":"a","parameters":{"size":"small","siz\u0065":"large"}}"#,
            400,
            "invalid-json",
        ),
        ("{\"offering\":\"fast\",\"name\":\"a\u{0}\"}", 400, "invalid-json"),
        (r#"{"offering":"fast","name":"\ud800"}"#, 400, "invalid-json"),
        (r#"{"name":"a"}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast"}"#, 422, "invalid-parameters"),
        (r#"{"offering":7,"name":"a"}"#, 422, "invalid-parameters"),
        (r#"{"offering":"nothing","name":"a"}"#, 422, "unknown-offering"),
        (r#"{"offering":"fast","name":["a"]}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parameters":[]}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parameters":{"count":"1"}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parameters":{"count":0}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parameters":{"count":1.5}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parameters":{"colour":"red"}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","labels":{"Env":"x"}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","labels":{"system.owner":"x"}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","labels":{"env":1}}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","labels":"env:prod"}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","correlation_id":""}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","correlation_id":"a\nb"}"#, 422, "invalid-parameters"),
        (r#"{"offering":"fast","name":"a","parent_id":"x"}"#, 422, "invalid-parameters"),
    ];
    for (body, status, slug) in table {
        let answer = world.ann.text(ALPHA, "k", body).await;
        assert_eq!(answer.status, *status, "{body}: {}", answer.text());
        answer.refused(*status, slug);
    }
    let deep = "[".repeat(100_000);
    world.ann.text(ALPHA, "k", &deep).await.refused(400, "invalid-json");
    assert_eq!(world.count().await, 0);
    world.ann.post(ALPHA, "k", &fast("a", json!({}))).await.is(202);
}

#[tokio::test]
async fn an_event_may_hold_numbers_beyond_what_json_carries_where_its_hook_reads_none() {
    let world = World::start();
    let owner = hooks::owner(&world);
    let hook = hooks::made(&owner, &hooks::definition("github")).await;
    let nobody = world.nobody();
    let event = |id: &str, order: &str| {
        format!(r#"{{"kind":"order","name":"big","sender":{{"id":{id}}},"list":[1e400],"order":{order}}}"#)
    };
    let one = event("9007199254740993", "7");
    let first = Answer::of(hook.signed(&nobody, "one", &one)).await.is(202);
    assert_eq!(first.json()["parameters"]["note"], "order 7");
    Answer::of(hook.signed(&nobody, "one", &one)).await.repeats(&first);
    // To a double the other body would be the same.
    let other = event("9007199254740992", "7");
    Answer::of(hook.signed(&nobody, "one", &other)).await.refused(422, "idempotency-key-reused");
    // What the hook reads is refused as everywhere, with what helps.
    let read = event("1", "9007199254740993");
    let refused = Answer::of(hook.signed(&nobody, "two", &read)).await.refused(422, "hook-mapping-failed");
    assert!(refused.text().contains("send it as a string"), "{}", refused.text());
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn every_value_that_does_not_fit_is_named_at_its_place() {
    let world = World::start();
    let body = json!({ "offering": "fast", "name": "No", "parameters": { "count": 0, "size": "huge" } });
    let problem = world.ann.post(ALPHA, "k", &body).await.refused(422, "invalid-parameters").json();
    let places: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    for place in ["/name", "/parameters/count", "/parameters/size"] {
        assert!(places.contains(&place), "{problem}");
    }
}

#[tokio::test]
async fn a_correlation_id_that_is_none_is_told_by_its_own_rule() {
    let world = World::start();
    let rule = "a correlation ID has 1 to 256 characters, is not blank and has no control characters";
    let sent = |body: serde_json::Value| {
        let mut whole = fast("a", json!({}));
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        whole
    };
    for (address, body, place) in [
        (ALPHA.to_owned(), json!({ "correlation_id": "" }), "/correlation_id"),
        (ALPHA.to_owned(), json!({ "correlation_id": "  " }), "/correlation_id"),
        (ALPHA.to_owned(), json!({ "labels": { "system.correlationId": "" } }), "/labels"),
        (format!("{ALPHA}?labels=system.correlationId:"), json!({}), "/labels"),
    ] {
        let problem =
            world.ann.post(&address, "k", &sent(body)).await.refused(422, "invalid-parameters").json();
        assert_eq!(problem["errors"], json!([{ "pointer": place, "detail": rule }]));
    }
}

#[tokio::test]
async fn a_body_has_a_type_and_a_limit() {
    let world = World::start();
    let body = fast("a", json!({})).to_string();
    let call = |kind: Option<&str>, body: String| {
        let call = world.ann.call("POST", ALPHA).header("Idempotency-Key", "k").body(body);
        match kind {
            Some(kind) => call.header("Content-Type", kind),
            None => call,
        }
    };
    for kind in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonp")]
    {
        Answer::of(call(kind, body.clone())).await.refused(415, "unsupported-media-type");
    }
    let compressed = call(Some("application/json"), body.clone()).header("Content-Encoding", "gzip");
    Answer::of(compressed).await.refused(415, "unsupported-media-type");

    let note = "x".repeat(1 << 20);
    let large = fast("a", json!({ "note": note })).to_string();
    Answer::of(call(Some("application/json"), large.clone())).await.refused(413, "body-too-large");
    // Before anybody is asked who they are.
    let unknown = world.nobody().call("POST", ALPHA).header("Content-Type", "application/json").body(large);
    Answer::of(unknown).await.refused(413, "body-too-large");
    assert_eq!(world.count().await, 0);

    Answer::of(call(Some("application/json; charset=utf-8"), body)).await.is(202);
}

#[tokio::test]
async fn what_is_hostile_is_text_and_nothing_else() {
    let world = World::start();
    let hostile = [
        "<script>alert(1)</script>",
        "'; DROP TABLE requests; --",
        "\u{202e}txt.exe",
        "a\u{1b}[31mb\u{7f}",
        "{{7*7}}${7*7}%n%s",
        "😀 \u{fffd} \u{ffff}",
    ];
    for (number, text) in hostile.into_iter().enumerate() {
        let body = fast(&format!("hostile-{number}"), json!({ "note": text }));
        let id = world.ann.post(ALPHA, &format!("hostile-{number}"), &body).await.is(202).id();
        assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["parameters"]["note"], text);
    }
    let nul = fast("hostile", json!({ "note": "a\u{0}b" }));
    world.ann.post(ALPHA, "nul", &nul).await.refused(422, "invalid-parameters");
    for text in hostile.into_iter().chain(["a\u{0}b"]) {
        // In every place where a text may stand, the answer is a problem or nothing found, never a fault.
        let encoded = encoded(text);
        for path in [
            format!("/requests/{encoded}"),
            format!("/teams/{encoded}/requests"),
            format!("/teams/alpha/resources/{encoded}/{encoded}"),
            format!("/offerings/{encoded}"),
            format!("/requests?cursor={encoded}"),
            format!("/requests?filters[name][EQUALS]={encoded}"),
            format!("/teams/alpha/submissions?key={encoded}"),
        ] {
            let answer = world.ann.get(&path).await;
            assert!(answer.status < 500, "{path}: {}", answer.text());
        }
    }
    for raw in
        ["/requests/%ff", "/requests/%", "/requests/%zz", "/requests/..%2f..%2fx", "/teams/%00/requests"]
    {
        let answer = world.ann.get(raw).await;
        assert!((400..500).contains(&answer.status), "{raw}: {}", answer.status);
    }
}

#[tokio::test]
async fn an_address_is_understood_in_whole_or_refused() {
    let world = World::start();
    let id = world.ann.made(&fast("a", json!({}))).await;
    let unknown = [
        "/requests?sort=name".to_owned(),
        "/requests?size=0".to_owned(),
        "/requests?size=1001".to_owned(),
        "/requests?size=ten".to_owned(),
        "/requests?size=1&size=2".to_owned(),
        "/requests?cursor=nonsense".to_owned(),
        "/requests?filters[colour][EQUALS]=red".to_owned(),
        "/requests?filters[state][EQUALS]=done".to_owned(),
        format!("/requests/{id}?expand=all"),
        "/offerings?x=1".to_owned(),
        "/teams/alpha/resources?size=x".to_owned(),
    ];
    for path in unknown {
        world.ann.get(&path).await.refused(400, "invalid-query");
    }
    let create = |query: &str| {
        let call = world.ann.call("POST", &format!("{ALPHA}?{query}")).header("Idempotency-Key", "q");
        Answer::of(call.json(&fast("b", json!({}))))
    };
    create("dry_run=yes").await.refused(400, "invalid-query");
    create("colour=red").await.refused(400, "invalid-query");
    create("labels=nocolon").await.refused(422, "invalid-parameters");
    create("labels=env:prod&labels=tier:one").await.is(202);

    world.ann.get("/nothing").await.refused(404, "not-found");
    world.ann.get("").await.refused(404, "not-found");
    let wrong = Answer::of(world.ann.call("DELETE", &format!("/requests/{id}"))).await;
    assert!(wrong.header("allow").unwrap().contains("GET"));
    wrong.refused(405, "method-not-allowed");
    let head = Answer::of(world.ann.call("HEAD", &format!("/requests/{id}"))).await.is(200);
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn another_teams_things_are_not_told_from_nothing() {
    let world = World::start();
    let id = world.ann.made(&fast("a", json!({}))).await;
    world.ann.ended(&id).await;
    for path in [
        format!("/requests/{id}"),
        format!("/requests/{id}/events"),
        format!("/requests/{id}/submissions"),
        "/teams/alpha/requests".to_owned(),
        "/teams/alpha/resources".to_owned(),
        "/teams/alpha/resources/fast/a".to_owned(),
        "/teams/alpha/submissions?key=k".to_owned(),
    ] {
        let hidden = world.ben.get(&path).await.refused(404, "not-found");
        let nothing = world.ben.get(&path.replace("alpha", "gamma").replace(&id[..8], "00000000")).await;
        assert_eq!(hidden.text(), nothing.text(), "{path}");
    }
    world.ben.post(ALPHA, "k", &fast("b", json!({}))).await.refused(404, "not-found");
    // Who sees but may not change is told so.
    world.vic.get(&format!("/requests/{id}")).await.is(200);
    world.vic.post(ALPHA, "k", &fast("b", json!({}))).await.refused(403, "forbidden");
    world.vic.act(&format!("/requests/{id}/cancel"), "k").await.refused(403, "forbidden");
}

/// Every byte of a text, percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().flat_map(|byte| ['%', digit(byte >> 4), digit(byte & 15)]).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap()
}
