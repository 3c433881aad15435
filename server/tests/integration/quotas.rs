//! Quotas of teams: set by the command line beside a running server, met at every door, and shown.

use super::{
    hooks,
    support::{ALPHA, Answer, World, browser::Browser, browser::hidden, eventually, fast, fresh},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// Sets the limit of team alpha; what the command says.
fn limited(world: &World, limit: &str) -> Value {
    let said = world.server.home.must(&["team", "quota", "alpha", limit, "--json"], "");
    serde_json::from_str(&said).unwrap()
}

#[tokio::test]
async fn a_limit_refuses_what_has_no_place_and_the_same_key_runs_once_there_is_room() {
    let world = World::start();
    assert_eq!(limited(&world, "2"), json!({ "team": "alpha", "quota": { "used": 0, "limit": 2 } }));
    for name in ["one", "two"] {
        let id = world.ann.made(&fast(name, json!({}))).await;
        world.ann.ended(&id).await;
    }
    let refused = world.ann.post(ALPHA, "k", &fast("three", json!({}))).await;
    let problem = refused.refused(409, "quota-exceeded").json();
    assert_eq!(problem["quota"], json!({ "used": 2, "limit": 2, "asked": 1 }));
    assert!(problem["detail"].as_str().unwrap().contains("uses 2 of its quota of 2"), "{problem}");
    assert_eq!((world.count().await, world.resources("alpha").await), (2, 2));
    world.nobody().root("/problems/quota-exceeded").await.is(200);

    // A dry run meets it too; where there is room it tells how much.
    let dry = async |name: &str| {
        let call = world.ann.call("POST", &format!("{ALPHA}?dry_run=true"));
        Answer::of(call.header("Content-Type", "application/json").body(fast(name, json!({})).to_string()))
            .await
    };
    dry("three").await.refused(409, "quota-exceeded");
    assert_eq!(dry("two").await.is(200).json()["quota"], json!({ "cost": 0, "used": 2, "limit": 2 }));

    let deleted = world.ann.delete("/teams/alpha/resources/fast/one", &fresh("delete")).await.is(202).id();
    world.ann.ended(&deleted).await;
    assert_eq!(dry("three").await.is(200).json()["quota"], json!({ "cost": 1, "used": 1, "limit": 2 }));
    let made = world.ann.post(ALPHA, "k", &fast("three", json!({}))).await.is(202);
    let history = eventually("the refusal is history", async || {
        let path = format!("/requests/{}/submissions", made.id());
        let all = world.ann.get(&path).await.is(200).json()["results"].as_array().unwrap().clone();
        Some(all).filter(|all| all.len() == 2)
    })
    .await;
    let refusal = history.iter().find(|one| one["outcome"] == "refused").unwrap();
    assert_eq!(refusal["problem"], "quota-exceeded");
    // Another team has its own.
    world.ben.post("/teams/beta/requests", "k", &fast("three", json!({}))).await.is(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_at_once_as_many_are_made_as_fit() {
    let world = World::start();
    limited(&world, "10");
    let sends = (0..64).map(|number| {
        let api = world.ann.clone();
        async move { api.post(ALPHA, &format!("k-{number}"), &fast(&format!("vm-{number}"), json!({}))).await }
    });
    let answers: Vec<_> = stream::iter(sends).buffer_unordered(64).collect().await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 202);
    assert_eq!((made.len(), refused.len()), (10, 54));
    for one in refused {
        one.refused(409, "quota-exceeded");
    }
    assert_eq!((world.count().await, world.resources("alpha").await), (10, 10));
}

#[tokio::test]
async fn an_event_without_a_place_is_recorded_as_refused_and_asks_once_it_comes_again() {
    let world = World::start();
    let (owner, nobody) = (hooks::owner(&world), world.nobody());
    let hook = hooks::made(&owner, &hooks::definition("standard")).await;
    limited(&world, "0");
    hook.deliver(&nobody, "event", &hooks::order("one", 1)).await.refused(409, "quota-exceeded");
    let listed = hooks::deliveries(&owner, &hook, 1).await;
    assert_eq!((&listed[0]["outcome"], &listed[0]["problem"]), (&json!("refused"), &json!("quota-exceeded")));
    limited(&world, "none");
    hook.deliver(&nobody, "event", &hooks::order("one", 1)).await.is(202);
}

#[tokio::test]
async fn pages_tell_how_much_of_a_quota_is_used() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", super::support::PASSWORD).await;
    let list = browser.get("/teams/alpha/resources").await.is(200).text();
    let form = browser.get("/offerings/fast/new").await.is(200).text();
    assert!(!list.contains("of its quota") && !form.contains("of its quota"), "there is no limit");
    limited(&world, "1");
    world.ann.made(&fast("one", json!({}))).await;
    let list = browser.get("/teams/alpha/resources").await.is(200);
    assert!(plain(&list).contains("The team uses 1 of 1 of its quota."), "{}", plain(&list));
    let form = browser.get("/offerings/fast/new").await.is(200);
    assert!(plain(&form).contains("Team alpha uses 1 of 1 of its quota."), "{}", plain(&form));
    // A refused form keeps its ID and what was typed.
    let id = hidden(&form, "request_id");
    let sent = [("request_id", id.as_str()), ("team", "alpha"), ("name", "two")];
    let refused = browser.post("/offerings/fast/new", &sent).await.is(409);
    assert!(plain(&refused).contains("uses 1 of its quota of 1"), "{}", plain(&refused));
    assert_eq!((hidden(&refused, "request_id"), hidden(&refused, "name")), (id.clone(), "two".to_owned()));
    limited(&world, "2");
    browser.post("/offerings/fast/new", &sent).await.is(303);
}

/// A page's text without the marks that stand between its parts.
fn plain(page: &Answer) -> String {
    page.text().replace("<!>", "").replace("<!---->", "")
}

#[test]
fn the_command_line_tells_and_sets_quotas() {
    let home = super::support::Home::new(&[]);
    let said = home.must(&["team", "add", "alpha", "--quota", "3"], "");
    assert!(said.contains("Team alpha is there, and uses 0 of 3 of its quota."), "{said}");
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&home.must(arguments, "")).unwrap() };
    let quota =
        |used: u64, limit: Value| json!({ "team": "alpha", "quota": { "used": used, "limit": limit } });
    assert_eq!(json(&["team", "quota", "alpha", "--json"]), quota(0, json!(3)));
    assert_eq!(json(&["team", "quota", "alpha", "7", "--json"]), quota(0, json!(7)));
    assert_eq!(json(&["team", "quota", "alpha", "none", "--json"]), quota(0, Value::Null));
    assert!(home.must(&["team", "quota", "alpha"], "").contains("Team alpha uses 0, without a limit."));
    assert_eq!(
        json(&["team", "add", "beta", "--quota", "0", "--json"]),
        json!({ "team": "beta", "quota": { "used": 0, "limit": 0 } })
    );
    assert_eq!(json(&["team", "add", "gamma", "--json"]), json!({ "team": "gamma" }));
    let fails = |arguments: &[&str], words: &str| {
        let output = home.run(arguments, "");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(words), "{text}");
    };
    fails(&["team", "quota", "nowhere", "1"], "keyturn team add nowhere");
    fails(&["team", "quota", "alpha", "many"], "whole number");
    fails(&["team", "quota", "alpha", "1.5"], "whole number");
    fails(&["team", "quota", "alpha", "99999999999999"], "at most");
}
