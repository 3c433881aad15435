//! What every door has in common: the order in which a call is judged, what is refused before anything is looked up, and
//! that refusals are shown with what came of them.

use super::support::{ALPHA, Answer, Api, Home, World, eventually, fast, fresh};
use serde_json::{Value, json};

fn sent(
    api: &Api,
    method: &str,
    path: &str,
    kind: Option<&str>,
    body: &'static str,
) -> reqwest::RequestBuilder {
    let call = api.call(method, path).header("Idempotency-Key", fresh("door")).body(body);
    match kind {
        Some(kind) => call.header("Content-Type", kind),
        None => call,
    }
}

#[tokio::test]
async fn what_was_refused_under_the_key_of_a_request_is_shown_with_it() {
    let world = World::start();
    let shown = async |id: &str, count: usize| {
        let path = format!("/requests/{id}/submissions");
        eventually("every arrival is written down", async || {
            let all = world.ann.get(&path).await.is(200).json();
            Some(all.clone()).filter(|all| all["results"].as_array().unwrap().len() == count)
        })
        .await
    };
    let outcomes = |all: &Value| {
        let rows = all["results"].as_array().unwrap();
        let mut words: Vec<_> = rows.iter().map(|row| row["outcome"].as_str().unwrap().to_owned()).collect();
        words.sort_unstable();
        assert!(rows.iter().all(|row| row["key"] == "mended"), "{all}");
        assert_eq!((&all["total"], &all["only_counted"]), (&json!(rows.len()), &json!(0)), "{all}");
        words
    };
    for _ in 0..2 {
        world.ann.post(ALPHA, "mended", &fast("Mended", json!({}))).await.refused(422, "invalid-parameters");
    }
    // Neither another's arrivals under this key nor the same one's under another.
    world.abe.post(ALPHA, "mended", &fast("Abes", json!({}))).await.refused(422, "invalid-parameters");
    world.ann.post(ALPHA, "other", &fast("Others", json!({}))).await.refused(422, "invalid-parameters");
    let good = fast("mended", json!({}));
    let id = world.ann.post(ALPHA, "mended", &good).await.is(202).id();
    assert_eq!(outcomes(&shown(&id, 3).await), ["first", "refused", "refused"]);
    world.ann.post(ALPHA, "mended", &good).await.is(202);
    world.ann.post(ALPHA, "mended", &fast("bent", json!({}))).await.refused(422, "idempotency-key-reused");
    assert_eq!(outcomes(&shown(&id, 5).await), ["first", "mismatched", "refused", "refused", "replayed"]);
}

#[tokio::test]
async fn a_body_that_is_not_needed_is_read_like_any_other() {
    let world = World::start();
    let token = world.ann.post("/tokens", "t", &json!({ "label": "x" })).await.is(201).id();
    let hook = json!({
        "title": "x", "offering": "fast", "signature": "bearer", "name": "a", "parameters": {},
    });
    let owner = world.server.api(&world.server.home.user("olga", "member", Some("alpha:owner"), None));
    let hook = owner.post("/teams/alpha/hooks", "h", &hook).await.is(201).id();
    let told = json!({ "label": "x", "url": "https://example.com/", "events": ["request.failed"] });
    let told = owner.post("/teams/alpha/notifications", "n", &told).await.is(201).id();
    let id = world.ann.made(&super::support::vm("vm-one", json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let reveal = "/teams/alpha/resources/vm/vm-one/secrets/password/reveal";
    let doors = [
        (&world.ann, "DELETE", format!("/tokens/{token}")),
        (&owner, "DELETE", format!("/teams/alpha/hooks/{hook}")),
        (&owner, "DELETE", format!("/teams/alpha/notifications/{told}")),
        (&world.ann, "POST", reveal.to_owned()),
    ];
    let json = Some("application/json");
    for (who, method, path) in &doors {
        for body in ["{bad", "[]", "{\"more\":1}", "{\"a\":1,\"a\":1}"] {
            Answer::of(sent(who, method, path, json, body)).await.refused(400, "invalid-json");
        }
        for kind in [None, Some("text/plain")] {
            Answer::of(sent(who, method, path, kind, "{}")).await.refused(415, "unsupported-media-type");
        }
        let nobody = world.nobody();
        Answer::of(sent(&nobody, method, path, json, "{bad")).await.refused(401, "unauthenticated");
    }
    for (who, method, path) in &doors {
        let answer = Answer::of(sent(who, method, path, json, "{}")).await;
        assert!([200, 204].contains(&answer.status), "{path}: {}", answer.text());
    }
    // The key comes before the body.
    let keyless =
        world.ann.call("DELETE", &doors[0].2).header("Content-Type", "application/json").body("{bad");
    Answer::of(keyless).await.refused(400, "idempotency-key-missing");
}

#[tokio::test]
async fn an_address_that_is_no_text_is_judged_in_the_usual_order() {
    let world = World::start();
    let (nobody, json) = (world.nobody(), Some("application/json"));
    for (method, path) in [
        ("POST", "/teams/%FF/requests"),
        ("DELETE", "/teams/alpha/resources/fast/%ff"),
        ("POST", "/requests/%C3/cancel"),
    ] {
        Answer::of(sent(&world.ann, method, path, Some("text/plain"), "{}")).await.is(415);
        Answer::of(sent(&nobody, method, path, json, "{}")).await.refused(401, "unauthenticated");
        let keyless = world.ann.call(method, path).header("Content-Type", "application/json").body("{}");
        Answer::of(keyless).await.refused(400, "idempotency-key-missing");
        Answer::of(sent(&world.ann, method, path, json, "{}")).await.refused(404, "not-found");
    }
    nobody.get("/teams/%FF/requests").await.refused(401, "unauthenticated");
    world.ann.get("/teams/%FF/requests").await.refused(404, "not-found");
    for path in [
        "/requests?filters[name][EQUALS]=%ff",
        "/teams/alpha/requests?q=%C3",
        "/teams/alpha/submissions?key=%ff",
        "/teams/alpha/resources?cursor=%ff",
        "/offerings?%ff",
    ] {
        nobody.get(path).await.refused(401, "unauthenticated");
        let refused = world.ann.get(path).await.refused(400, "invalid-query");
        assert!(refused.text().contains("UTF-8"), "{}", refused.text());
    }
    let labelled = sent(
        &world.ann,
        "POST",
        "/teams/alpha/requests?labels=a:%ff",
        json,
        r#"{"offering":"fast","name":"a"}"#,
    );
    Answer::of(labelled).await.refused(400, "invalid-query");
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_token_counts_only_where_it_is_said_to_be_one() {
    let world = World::start();
    let token = world.ann.token.clone().unwrap();
    for header in
        [token.clone(), format!("Token {token}"), format!("Basic {token}"), format!("Bearer{token}")]
    {
        let call = world.nobody().call("GET", "/me").header("Authorization", &header);
        Answer::of(call).await.refused(401, "unauthenticated");
    }
    world.ann.get("/me").await.is(200);
}

#[tokio::test]
async fn a_confirmation_of_another_shape_is_another_body_whatever_its_key() {
    let world = World::start();
    let first = world.ann.post(ALPHA, "k", &fast("a", json!({}))).await.is(202);
    for shape in [json!(true), json!("yes"), json!([]), json!({ "of": "x", "reason": "y", "more": 1 })] {
        let mut body = fast("a", json!({}));
        body["confirm_duplicate"] = shape;
        for key in ["k", "fresh"] {
            world.ann.post(ALPHA, key, &body).await.refused(400, "invalid-json");
        }
    }
    // What it holds is part of no meaning.
    let mut body = fast("a", json!({}));
    body["confirm_duplicate"] = json!({ "of": "x", "reason": "y" });
    world.ann.post(ALPHA, "k", &body).await.repeats(&first);
}

#[tokio::test]
async fn no_search_finds_what_is_not_there_or_misses_a_state_by_its_word() {
    let world = World::start();
    let id = world.ann.made(&fast("a", json!({}))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let total = async |query: &str| {
        world.ann.get(&format!("/teams/alpha/requests?{query}")).await.is(200).json()["total"].clone()
    };
    for query in ["[STARTS_WITH]=-", "[LESS_THAN]=0", "[CONTAINS]=-", "[GREATER_THAN_OR_EQUAL_TO]=-"] {
        assert_eq!(total(&format!("filters[parent_id]{query}")).await, 0, "{query}");
    }
    for query in ["[STARTS_WITH]=SUCCESS", "[CONTAINS]=success", "[STARTS_WITH]=SUCC", "[CONTAINS]=eed"] {
        assert_eq!(total(&format!("filters[state]{query}")).await, 1, "{query}");
    }
    assert_eq!(total("filters[state][STARTS_WITH]=KILL").await, 0);
    let mut child = fast("b", json!({}));
    child["parent_id"] = json!(id);
    world.ann.made(&child).await;
    assert_eq!(total(&format!("filters[parent_id][STARTS_WITH]={}", &id[..13])).await, 1);
}

#[tokio::test]
async fn a_number_that_would_become_another_is_refused_with_what_to_do() {
    let world = World::start();
    for number in
        ["9007199254740991.4", "4503599627370497.5", "4503599627370497.6", "1e400", "-1e400", "1e-400"]
    {
        let body = format!(r#"{{"offering":"fast","name":"a","parameters":{{"count":{number}}}}}"#);
        let refused = world.ann.text(ALPHA, "k", &body).await.refused(400, "invalid-json");
        assert!(refused.text().contains("as a string"), "{number}: {}", refused.text());
    }
    let spelled =
        |number: &str| format!(r#"{{"offering":"fast","name":"a","parameters":{{"count":{number}}}}}"#);
    let first = world.ann.text(ALPHA, "k", &spelled("2")).await.is(202);
    for same in ["2.0", "2e0", "0.2e1", "200E-2"] {
        world.ann.text(ALPHA, "k", &spelled(same)).await.repeats(&first);
    }
}

#[tokio::test]
async fn a_repeat_by_who_may_no_longer_see_is_written_down_whatever_it_was_for() {
    let world = World::at(Home::on_sqlite(&[("KEYTURN_WORKERS", "0")]));
    let owner = world.server.api(&world.server.home.user("olga", "member", Some("alpha:owner"), None));
    let database = || rusqlite::Connection::open(world.server.home.database()).unwrap();
    let id = world.ann.made(&fast("a", json!({}))).await;
    let cancel = format!("/requests/{id}/cancel");
    let stopped = world.ann.act(&cancel, "stop").await;
    assert!([200, 202].contains(&stopped.status), "{}", stopped.text());
    let hook = json!({
        "title": "x", "offering": "fast", "signature": "bearer", "name": "a", "parameters": {},
    });
    owner.post("/teams/alpha/hooks", "hook", &hook).await.is(201);
    database().execute("DELETE FROM member WHERE team = 'alpha'", ()).unwrap();
    // A key of theirs that was never accepted leaves nothing.
    world.ann.act(&cancel, "never").await.refused(404, "not-found");
    owner.post("/teams/alpha/hooks", "never", &hook).await.refused(404, "not-found");
    world.ann.act(&cancel, "stop").await.refused(404, "not-found");
    owner.post("/teams/alpha/hooks", "hook", &hook).await.refused(404, "not-found");
    let kept = eventually("both are written down", async || {
        let database = database();
        let mut rows = database
            .prepare("SELECT key, operation, outcome, problem FROM submission WHERE problem IS NOT NULL ORDER BY key")
            .unwrap();
        let rows = rows.query_map((), |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).unwrap();
        let rows: Vec<[String; 4]> = rows.map(Result::unwrap).collect();
        Some(rows).filter(|rows| rows.len() == 2)
    })
    .await;
    assert_eq!(kept[0], ["hook", "hook_create", "refused", "not-found"]);
    assert_eq!(kept[1], ["stop", "cancel", "refused", "not-found"]);
    let shown = world.ada.get(&format!("/requests/{id}/submissions")).await.is(200).json();
    assert_eq!(shown["total"], 3, "{shown}");
}

#[tokio::test]
async fn a_hooks_null_is_as_good_as_nothing_and_a_change_is_judged_before_it_is_in_time() {
    let world = World::start();
    let owner = world.server.api(&world.server.home.user("olga", "member", Some("alpha:owner"), None));
    let hooks = "/teams/alpha/hooks";
    let mut hook = json!({
        "title": "x", "offering": "fast", "signature": "bearer", "name": "a", "parameters": {},
        "sample": { "payload": { "a": null } },
    });
    let made = owner.post(hooks, "hook", &hook).await.is(201).json();
    for (member, null) in [
        ("identity", json!(null)),
        ("when", json!(null)),
        ("labels", json!(null)),
        ("parameters", json!({ "note": null })),
    ] {
        hook[member] = null;
        let again = owner.post(hooks, "hook", &hook).await.is(201);
        assert_eq!(
            (again.header("idempotency-replayed"), again.json()["id"] == made["id"]),
            (Some("true"), true)
        );
    }
    // Inside of a sample a null is a value.
    hook["sample"]["payload"] = json!({});
    owner.post(hooks, "hook", &hook).await.refused(422, "idempotency-key-reused");
    let path = format!("{hooks}/{}", made["id"].as_str().unwrap());
    for version in ["nonsense", "\"7\""] {
        let bad = json!({ "offering": "none" });
        owner.patch(&path, "patch", version, &bad).await.refused(422, "invalid-parameters");
        let good = json!({ "title": "y" });
        owner.patch(&path, "patch", version, &good).await.refused(412, "precondition-failed");
    }
    owner.patch(&path, "patch", "\"1\"", &json!({ "title": "y" })).await.is(200);
}
