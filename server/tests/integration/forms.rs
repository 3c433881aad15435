//! The portal in a browser without script.

use super::support::{
    ALPHA, Answer, Home, PASSWORD, Server, World,
    browser::{Browser, hidden, message},
    fast, fresh, vm,
};
use serde_json::json;

#[tokio::test]
async fn the_first_administrator_is_made_by_the_printed_link_once() {
    let server = Server::start(Home::new(&[]));
    let link = server.set_up.clone().unwrap();
    let path = link.strip_prefix(&server.base).unwrap().to_owned();
    let mut browser = Browser::new(&server);
    let page = browser.get(&path).await.is(200);
    let link = hidden(&page, "link");
    let form = |link: &'static str, password: &'static str| {
        [("link", link), ("name", "ada"), ("password", password), ("team", "alpha")]
    };
    browser.post("/setup", &form("wrong", PASSWORD)).await.is(403);
    let link: &'static str = link.leak();
    let short = browser.post("/setup", &form(link, "short")).await.is(422);
    assert_eq!(hidden(&short, "link"), link);
    // A name that somebody has who is no administrator.
    server.home.must(&["user", "add", "ada", "--role", "member"], "");
    let taken = browser.post("/setup", &form(link, PASSWORD)).await.is(422);
    assert!(taken.text().contains("there is a user ada already"), "{}", taken.text());
    let form = |link: &'static str, password: &'static str| {
        [("link", link), ("name", "ida"), ("password", password), ("team", "alpha")]
    };
    let made = browser.post("/setup", &form(link, PASSWORD)).await.is(303);
    assert_eq!(made.header("location"), Some("/"));
    browser.get("/").await.is(200);
    let mut second = Browser::new(&server);
    second.post("/setup", &form(link, PASSWORD)).await.is(403);
}

/// Sends the set-up form of this page.
async fn set_up(browser: &mut Browser, page: &Answer, name: &str, password: &str) -> Answer {
    let (id, link) = (hidden(page, "request_id"), hidden(page, "link"));
    let form =
        [("request_id", &*id), ("link", &link), ("name", name), ("password", password), ("team", "alpha")];
    browser.post("/setup", &form).await
}

#[tokio::test]
async fn the_second_of_two_clicks_on_set_up_is_the_first_and_another_form_is_not() {
    let server = Server::start(Home::new(&[]));
    let link = server.set_up.clone().unwrap();
    let path = link.strip_prefix(&server.base).unwrap().to_owned();
    let mut browser = Browser::new(&server);
    let page = browser.get(&path).await.is(200);
    let mut other = Browser::new(&server);
    let opened_elsewhere = other.get(&path).await.is(200);
    let mut again = Browser::new(&server);
    for clicked in [&mut browser, &mut again] {
        let made = set_up(clicked, &page, "ada", PASSWORD).await.is(303);
        assert_eq!(made.header("location"), Some("/"));
        clicked.get("/tokens").await.is(200);
    }
    set_up(&mut other, &opened_elsewhere, "ada", PASSWORD).await.is(403);
    set_up(&mut other, &page, "eve", PASSWORD).await.is(403);
    set_up(&mut other, &page, "ada", "another password").await.is(401);
}

#[tokio::test]
async fn a_login_makes_a_session_that_script_cannot_read() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    let wrong = browser.post("/login", &[("name", "ann"), ("password", "wrong password")]).await.is(401);
    assert!(wrong.text().contains("Name or password is wrong") && !wrong.text().contains("wrong password"));
    // A user without a password cannot log in at all.
    browser.post("/login", &[("name", "abe"), ("password", "")]).await.is(401);
    let form = [("name", "ann"), ("password", PASSWORD), ("next", "/requests")];
    let first = browser.post("/login", &form).await.is(303);
    assert_eq!(first.header("location"), Some("/requests"));
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let planted = browser.cookie.clone();
    browser.log_in("ann", PASSWORD).await;
    assert_ne!(browser.cookie, planted, "a login begins a session of its own");
    let away = [("name", "ann"), ("password", PASSWORD), ("next", "//evil.example")];
    assert_eq!(browser.post("/login", &away).await.is(303).header("location"), Some("/"));
    browser.get("/requests").await.is(200);
    let named = browser.cookie.clone().unwrap();
    let id = named.split_once('=').unwrap().1;
    for file in ["keyturn.db", "keyturn.db-wal"] {
        let kept = std::fs::read(world.server.home.path().join("data").join(file)).unwrap_or_default();
        assert!(
            !kept.windows(id.len()).any(|window| window == id.as_bytes()),
            "the session's ID is in {file}"
        );
    }
    let old = browser.cookie.clone();
    browser.post("/logout", &[]).await.is(303);
    browser.cookie = old;
    assert_ne!(browser.get("/requests").await.status, 200, "the session is over on the server too");
}

#[tokio::test]
async fn a_form_sent_again_after_the_catalog_changed_is_still_a_repeat() {
    let home = Home::new(&[("KEYTURN_CATALOG", "catalog")]);
    let folder = home.path().join("catalog/fast");
    std::fs::create_dir_all(&folder).unwrap();
    let sheet = include_str!("../catalog/fast/offering.yaml");
    std::fs::write(folder.join("offering.yaml"), sheet).unwrap();
    let mut world = World::at(home);
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let id = hidden(&browser.get("/offerings/fast/new").await.is(200), "request_id");
    let form = [("request_id", id.as_str()), ("team", "alpha"), ("name", "vm-one"), ("p.count", "3")];
    let first = browser.post("/offerings/fast/new", &form).await.is(303);
    world.kill();
    // Gone from the catalog, and with it the types of its fields.
    std::fs::remove_dir_all(&folder).unwrap();
    world.restart();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let again = browser.post("/offerings/fast/new", &form).await.is(303);
    let place = first.header("location").unwrap();
    assert_eq!(again.header("location").unwrap(), format!("{place}?repeat=1"));
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn a_double_click_makes_one_request() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = browser.get("/offerings/fast/new").await.is(200);
    let (id, sealed) = (hidden(&page, "request_id"), hidden(&page, "sealed"));
    let form = [
        ("request_id", id.as_str()),
        ("sealed", &sealed),
        ("team", "alpha"),
        ("name", "vm-one"),
        ("labels", "env:prod\r\n"),
        ("p.count", "3"),
        ("p.size", "large"),
    ];
    let first = browser.post("/offerings/fast/new", &form).await.is(303);
    let second = browser.post("/offerings/fast/new", &form).await.is(303);
    let place = first.header("location").unwrap();
    assert!(place.starts_with("/requests/"), "{place}");
    assert_eq!(second.header("location").unwrap(), format!("{place}?repeat=1"));
    let request = world.ann.get(place).await.is(200).json();
    assert_eq!(request["parameters"], json!({ "count": 3, "size": "large" }));
    assert_eq!((&request["channel"], &request["labels"]["env"]), (&json!("form"), &json!("prod")));
    assert_eq!(world.count().await, 1);
    browser.get(place).await.is(200);
    // The form and the API share one guard: the same key by another door is the same submission.
    let body = json!({ "offering": "fast", "name": "vm-one", "parameters": { "size": "large", "count": 3.0 }, "labels": { "env": "prod" } });
    let repeat = world.ann.post(ALPHA, &id, &body).await.is(202);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    // Another form for what is there is told so.
    let page = browser.get("/offerings/fast/new").await.is(200);
    let other = hidden(&page, "request_id");
    assert_ne!(other, id);
    let mut form = form;
    form[0].1 = &other;
    let existing = browser.post("/offerings/fast/new", &form).await.is(303);
    assert_eq!(existing.header("location").unwrap(), format!("{place}?existing=1"));
}

#[tokio::test]
async fn a_refusal_keeps_what_was_typed_and_the_same_id() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = browser.get("/offerings/fast/new").await.is(200);
    let id = hidden(&page, "request_id");
    let form = |name: &'static str, count: &'static str| {
        [
            ("request_id", id.clone()),
            ("team", "alpha".into()),
            ("name", name.into()),
            ("p.count", count.into()),
        ]
    };
    let send = async |browser: &mut Browser, form: [(&str, String); 4]| {
        let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
        browser.post("/offerings/fast/new", &form).await
    };
    let refused = send(&mut browser, form("Bad <b>name", "7")).await.is(422);
    assert_eq!(hidden(&refused, "request_id"), id);
    assert_eq!(hidden(&refused, "p.count"), "7");
    assert!(!refused.text().contains("Bad <b>name"), "markup is text");
    let refused = send(&mut browser, form("vm-one", "0")).await.is(422);
    assert_eq!(hidden(&refused, "name"), "vm-one");
    // Without script reading goes on at the reasons, each of which leads to its field; a fresh form has none.
    let shown = refused.text();
    let summary = shown.split("id=\"form-summary\"").nth(1).unwrap();
    assert!(summary.split('>').next().unwrap().contains("autofocus"), "{shown}");
    let way = summary.split("href=\"#").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(shown.contains(&format!(" id=\"{way}\"")), "{way}: {shown}");
    assert!(!page.text().contains("autofocus"));
    send(&mut browser, form("vm-one", "7")).await.is(303);
    // Edited after it was taken in: the choice is offered, and nothing is made.
    let choice = send(&mut browser, form("vm-two", "7")).await.is(422);
    assert_eq!(hidden(&choice, "name"), "vm-two");
    assert_eq!(world.count().await, 1);
    let mut anew = form("vm-two", "7").to_vec();
    anew.push(("fresh_id", "a-fresh-id".into()));
    let anew: Vec<(&str, &str)> = anew.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post("/offerings/fast/new", &anew).await.is(303);
    assert_eq!(world.count().await, 2);
}

#[tokio::test]
async fn a_session_that_ended_loses_nothing_and_runs_nothing() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = browser.get("/offerings/fast/new").await.is(200);
    let (id, sealed) = (hidden(&page, "request_id"), hidden(&page, "sealed"));
    let form = [
        ("request_id", id.as_str()),
        ("sealed", &sealed),
        ("team", "alpha"),
        ("name", "kept-name"),
        ("p.note", "kept-note"),
        ("p.count", "9"),
    ];
    browser.post("/logout", &[]).await.is(303);
    let login = async |browser: &mut Browser, name: &str| {
        browser.cookie = None;
        let sent = browser.post("/offerings/fast/new", &form).await.is(303);
        let place = sent.header("location").unwrap().to_owned();
        assert!(place.starts_with("/login?next="), "{place}");
        let page = browser.get(&place).await.is(200);
        assert!(!page.text().contains("kept-note"));
        let (waiting, next) = (hidden(&page, "sealed"), hidden(&page, "next"));
        // A mistyped password does not lose it either.
        let again = [("name", name), ("password", "mistyped"), ("sealed", &waiting), ("next", &next)];
        let again = browser.post("/login", &again).await.is(401);
        let waiting = hidden(&again, "sealed");
        let right = [("name", name), ("password", PASSWORD), ("sealed", &waiting), ("next", &next)];
        let place = browser.post("/login", &right).await.is(303);
        browser.get(place.header("location").unwrap()).await
    };
    // Somebody else sees nothing of it.
    let other = login(&mut browser, "ben").await.is(200);
    assert!(!other.text().contains("kept-note") && !other.text().contains("kept-name"));
    assert_eq!(world.count().await, 0);
    // The one who filled it in finds it, under the same ID.
    let back = login(&mut browser, "ann").await.is(200);
    assert_eq!((hidden(&back, "request_id"), hidden(&back, "name")), (id.clone(), "kept-name".to_owned()));
    assert_eq!(hidden(&back, "p.count"), "9");
    assert_eq!(world.count().await, 0);
    let sent = browser.post("/offerings/fast/new", &form).await.is(303);
    assert_eq!(
        browser.post("/offerings/fast/new", &form).await.is(303).header("location").unwrap(),
        format!("{}?repeat=1", sent.header("location").unwrap())
    );
    assert_eq!(world.count().await, 1);
    // A form that ann opened is not sent as ben.
    let mut ben = Browser::new(&world.server);
    ben.log_in("ben", PASSWORD).await;
    let sent = ben.post("/offerings/fast/new", &form).await.is(303);
    assert_eq!(sent.header("location"), Some("/offerings/fast/new"));
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn a_form_behind_the_login_outlives_loading_that_page_again_until_somebody_logs_in() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let page = browser.get("/offerings/fast/new").await.is(200);
    let (id, sealed) = (hidden(&page, "request_id"), hidden(&page, "sealed"));
    let form = [("request_id", &*id), ("sealed", &*sealed), ("team", "alpha"), ("name", "kept-name")];
    let waits = |page: &Answer| page.text().contains("name=\"sealed\"");
    let ended = async |browser: &mut Browser| {
        browser.cookie = None;
        let sent = browser.post("/offerings/fast/new?send", &form).await.is(303);
        sent.header("location").unwrap().to_owned()
    };
    let place = ended(&mut browser).await;
    for _ in 0..2 {
        assert!(waits(&browser.get(&place).await.is(200)), "the first look, and the one after it");
    }
    browser.post("/login", &[("name", "ann"), ("password", "mistyped")]).await.is(401);
    let page = browser.get("/login").await.is(200);
    let (waiting, next) = (hidden(&page, "sealed"), hidden(&page, "next"));
    let right = [("name", "ann"), ("password", PASSWORD), ("sealed", &*waiting), ("next", &*next)];
    let back = browser.post("/login", &right).await.is(303);
    let back = browser.get(back.header("location").unwrap()).await.is(200);
    assert_eq!((hidden(&back, "request_id"), hidden(&back, "name")), (id.clone(), "kept-name".to_owned()));
    assert!(!waits(&browser.get("/login").await.is(200)), "it waits no longer");
    // Who logs in elsewhere meanwhile finds it in its place; somebody else finds nothing.
    for (name, found) in [("ben", ""), ("ann", "kept-name")] {
        ended(&mut browser).await;
        browser.log_in(name, PASSWORD).await;
        assert!(!waits(&browser.get("/login").await.is(200)));
        let page = browser.get("/offerings/fast/new").await.is(200);
        assert_eq!((hidden(&page, "request_id") == id, &*hidden(&page, "name")), (name == "ann", found));
    }
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn all_that_is_wrong_with_a_form_is_told_at_once_each_at_its_field() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let form = [
        ("request_id", "k-1"),
        ("team", "alpha"),
        ("name", "Bad name"),
        ("labels", "no colon\r\nenv:prod\r\nsystem.owner:me"),
        ("p.count", "0"),
        ("p.size", "huge"),
    ];
    let page = browser.post("/offerings/fast/new", &form).await.is(422);
    let told = |field: &str| message(&page, field);
    assert!(told("name").contains("lower-case"), "{}", told("name"));
    assert!(told("labels").contains("no colon: ") && told("labels").contains("system.owner:me: "));
    assert!(told("p-count").contains('1'), "{}", told("p-count"));
    assert!(!told("p-size").is_empty());
    assert_eq!(told("p-note"), "");
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_correlation_id_among_the_labels_of_a_form_is_the_requests_own() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let labels = "env:prod\r\nsystem.correlationId: Q-1";
    let form = |beside: &'static str| {
        let own = [("request_id", "k-1"), ("team", "alpha"), ("name", "vm-one"), ("labels", labels)];
        [&own[..], &[("correlation_id", beside)]].concat()
    };
    let page = browser.post("/offerings/fast/new", &form("Q-2")).await.is(422);
    assert_eq!(message(&page, "correlation-id"), "differs from the label system.correlationId");
    assert_eq!(message(&page, "labels"), "");
    let made = browser.post("/offerings/fast/new", &form("")).await.is(303);
    let request = world.ann.get(made.header("location").unwrap()).await.is(200).json();
    assert_eq!(request["correlation_id"], "Q-1");
    assert_eq!(request["labels"], json!({ "env": "prod", "system.correlationId": "Q-1" }));
    // However it is written it means the same: a repeat, by the form and by the API.
    browser.post("/offerings/fast/new", &form("Q-1")).await.is(303);
    let body = fast("vm-one", json!({}));
    let by_address = format!("{ALPHA}?labels=env:prod&labels=system.correlationId:Q-1");
    let repeat = world.ann.post(&by_address, "k-1", &body).await.is(202);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn steps_on_a_request_and_tokens_work_by_form() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    let id = world.ann.made(&vm("vm-one", json!({ "seconds": 60 }))).await;
    let page = format!("/requests/{id}");
    let cancel = format!("{page}/cancel");
    let key = fresh("cancel");
    let nobody = browser.post(&cancel, &[("request_id", &key)]).await.is(303);
    assert!(nobody.header("location").unwrap().starts_with("/login?next="));
    browser.log_in("ann", PASSWORD).await;
    let done = browser.post(&cancel, &[("request_id", &key)]).await.is(303);
    assert_eq!(done.header("location"), Some(page.as_str()));
    assert!(browser.get(&page).await.is(200).text().contains("Cancellation was asked for."));
    assert!(
        !browser.get(&page).await.is(200).text().contains("Cancellation was asked for."),
        "it is said once"
    );
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");

    browser.post("/tokens", &[("request_id", "make"), ("label", "mine"), ("expires", "7d")]).await.is(303);
    let shown = browser.get("/tokens").await.is(200).text();
    let token: String =
        shown[shown.find("kt_").unwrap()..].chars().take_while(|c| *c != '<' && *c != '"').collect();
    assert_eq!(world.server.api(&token).get("/me").await.is(200).json()["name"], "ann");
    assert!(!browser.get("/tokens").await.is(200).text().contains(&token), "it is shown once");
    let tokens = world.ann.get("/tokens").await.json();
    let made = tokens["results"].as_array().unwrap().iter().find(|token| token["label"] == "mine").unwrap();
    let revoke = format!("/tokens/{}/revoke", made["id"].as_str().unwrap());
    browser.post(&revoke, &[("request_id", "end")]).await.is(303);
    world.server.api(&token).get("/me").await.refused(401, "unauthenticated");
    // A form without its hidden ID is refused like any other submission without a key.
    browser.post(&cancel, &[]).await.is(303);
    assert!(browser.get(&page).await.text().contains("Idempotency-Key"));
    let none = browser.post("/offerings/fast/new", &[("team", "alpha"), ("name", "x")]).await;
    assert_eq!(none.status, 400);
    world.ann.post(ALPHA, &fresh("k"), &fast("x", json!({}))).await.is(202);
}
