//! Approvals as people and scripts meet them: who decides, what a second decision is told, the pages, and the end of the time.

use super::support::{
    ALPHA, Answer, Api, Home, PASSWORD, World,
    browser::{Browser, shown},
    eventually, fresh,
};
use serde_json::{Value, json};

/// An offering that an owner approves.
const GUARDED: &str = "
title: Guarded
description: Takes a second person.
category: Tests
version: '1'
approval: owner
parameters:
  type: object
  additionalProperties: false
  properties:
    size: { enum: [small, large], default: small, title: Size }
provisioner:
  fake: {}
";

/// A world with two owners of team alpha, and with the offering.
struct Guarded {
    world: World,
    olga: Api,
    otto: Api,
}

impl Guarded {
    fn at(home: Home) -> Self {
        let folder = home.path().join("catalog/guarded");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("offering.yaml"), GUARDED).unwrap();
        let world = World::at(home);
        let owner = |name| {
            let token = world.server.home.user(name, "member", Some("alpha:owner"), Some(PASSWORD));
            world.server.api(&token)
        };
        let (olga, otto) = (owner("olga"), owner("otto"));
        Self { world, olga, otto }
    }

    fn start() -> Self {
        Self::at(Home::new(&[("KEYTURN_CATALOG", "catalog")]))
    }

    async fn asked(&self, name: &str) -> String {
        self.world.ann.post(ALPHA, &fresh("ask"), &guarded(name)).await.is(202).id()
    }
}

fn guarded(name: &str) -> Value {
    json!({ "offering": "guarded", "name": name, "parameters": {} })
}

#[tokio::test]
async fn what_needs_approval_waits_until_an_owner_gives_it() {
    let Guarded { world, olga, otto } = Guarded::start();
    let policy = world.ann.get("/offerings/guarded").await.is(200).json()["approval"].clone();
    assert_eq!(policy, json!({ "by": "owner", "timeout_seconds": 604_800, "for": ["create"] }));
    let tried =
        Answer::of(world.ann.call("POST", &format!("{ALPHA}?dry_run=true")).json(&guarded("one"))).await;
    assert_eq!(tried.is(200).json()["plan"]["approval"]["by"], "owner");
    let first = world.ann.post(ALPHA, "ask", &guarded("one")).await.is(202);
    assert_eq!(first.json()["state"], "pending_approval");
    let id = first.id();
    let now = world.ann.get(&format!("/requests/{id}")).await.is(200).json();
    assert_eq!(first.json()["approval"], now["approval"]);
    assert_eq!(now["approval"]["by"], "owner");
    assert!(now["approval"]["expires_at"].is_string() && now["approval"]["verdict"].is_null());
    world.ann.post(ALPHA, "ask", &guarded("one")).await.repeats(&first);
    // By another word for the state.
    let found = olga.get("/requests?filters[state][EQUALS]=PAUSED&size=1").await.is(200).json();
    assert_eq!(found["total"], 1);

    let path = format!("/requests/{id}/approve");
    for (api, status, slug) in [
        (&world.ann, 403, "forbidden"),
        (&world.vic, 403, "forbidden"),
        (&world.ben, 404, "not-found"),
        (&world.nobody(), 401, "unauthenticated"),
    ] {
        api.act(&path, "decide").await.refused(status, slug);
    }
    Answer::of(olga.call("POST", &path)).await.refused(400, "idempotency-key-missing");
    let reject = format!("/requests/{id}/reject");
    olga.post(&reject, "decide", &json!({})).await.refused(422, "invalid-parameters");
    let unsaid = olga.act(&reject, "decide").await.refused(422, "invalid-parameters").json();
    assert_eq!(unsaid["errors"][0]["pointer"], "/reason");
    let decided = olga.act(&path, "decide").await.is(202);
    assert_eq!(decided.json()["approval"]["decided_by"], "olga");
    assert_eq!(decided.json()["approval"]["verdict"], "approved");
    olga.act(&path, "decide").await.repeats(&decided);
    olga.post(&path, "decide", &json!({ "reason": " " })).await.repeats(&decided);
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    for api in [&olga, &otto, &world.ada] {
        let again = api.act(&path, "decide-again").await.is(200);
        assert_eq!(again.header("keyturn-outcome"), Some("existing"));
        api.post(&reject, &fresh("k"), &json!({ "reason": "no" })).await.refused(409, "already-decided");
    }
    assert_eq!(world.resources("alpha").await, 1);
}

#[tokio::test]
async fn nobody_approves_what_they_asked_for_themselves() {
    let Guarded { world, olga, otto } = Guarded::start();
    let id = olga.post(ALPHA, "ask", &guarded("own")).await.is(202).id();
    let (approve, reject) = (format!("/requests/{id}/approve"), format!("/requests/{id}/reject"));
    olga.act(&approve, "k").await.refused(403, "own-request");
    olga.post(&reject, "k", &json!({ "reason": "no" })).await.refused(403, "own-request");
    // It is one principal, whichever token it shows.
    let other = world.server.api(&world.server.home.token("olga"));
    other.act(&approve, "k-2").await.refused(403, "own-request");
    let page = olga.root("/problems/own-request").await.is(200);
    assert!(page.text().contains("Somebody else has to decide"));
    assert_eq!(olga.get(&format!("/requests/{id}")).await.json()["state"], "pending_approval");
    let body = json!({ "reason": "too expensive" });
    let rejected = otto.post(&reject, "k", &body).await.is(202);
    otto.post(&reject, "k", &json!({ "reason": " too expensive\n" })).await.repeats(&rejected);
    let rejected = rejected.json();
    assert_eq!(
        (&rejected["state"], &rejected["approval"]["reason"]),
        (&json!("rejected"), &json!("too expensive"))
    );
    // Its name is free again, and another may have it.
    olga.post(ALPHA, "ask-again", &guarded("own")).await.is(202);
}

#[tokio::test]
async fn of_twenty_decisions_at_once_exactly_one_is_taken() {
    let set = Guarded::start();
    for round in 0..3 {
        let id = set.asked(&format!("raced-{round}")).await;
        let mut tasks = Vec::new();
        for number in 0..20 {
            let api = if number % 2 == 0 { set.olga.clone() } else { set.otto.clone() };
            let (word, body) = if number % 4 < 2 {
                ("approve", json!({}))
            } else {
                ("reject", json!({ "reason": format!("no {number}") }))
            };
            let path = format!("/requests/{id}/{word}");
            tasks.push(tokio::spawn(async move {
                let answer = api.post(&path, &format!("race-{round}-{number}"), &body).await;
                (word, answer.status, answer.header("keyturn-outcome").map(str::to_owned))
            }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.unwrap());
        }
        let firsts: Vec<_> = all.iter().filter(|(_, status, _)| *status == 202).collect();
        assert_eq!(firsts.len(), 1, "{all:?}");
        let winner = firsts[0].0;
        for (word, status, outcome) in &all {
            match (*status, outcome.as_deref()) {
                (202, None) => {}
                (200, Some("existing")) => assert_eq!(*word, winner),
                (409, None) => assert_ne!(*word, winner),
                other => panic!("{word}: {other:?}"),
            }
        }
        let end = set.world.ann.ended(&id).await;
        assert_eq!(end["state"], if winner == "approve" { "succeeded" } else { "rejected" });
    }
}

#[tokio::test]
async fn what_nobody_decides_about_ends_by_itself_also_after_a_restart() {
    // On PostgreSQL the time is the database's, which no setting of a server moves.
    let mut set = Guarded::at(Home::on_sqlite(&[("KEYTURN_CATALOG", "catalog")]));
    let id = set.asked("forgotten").await;
    set.world.kill();
    set.world.server.home.set("KEYTURN_CLOCK_OFFSET", "8d");
    set.world.restart();
    let ended = eventually("it is rejected", async || {
        let now = set.world.ann.get(&format!("/requests/{id}")).await.json();
        (now["state"] == "rejected").then_some(now)
    })
    .await;
    assert_eq!(ended["approval"]["verdict"], "timed_out");
    assert!(ended["approval"]["decided_by"].is_null());
    assert!(ended["reason"].as_str().unwrap().contains("in time"), "{ended}");
    set.world.ann.post(ALPHA, "again", &guarded("forgotten")).await.is(202);
}

/// The hidden ID of the form that is posted to this address.
fn key_of(page: &Answer, action: &str) -> String {
    let text = page.text();
    let form = text.split("<form").find(|form| form.contains(&format!("action=\"{action}\"")));
    let form = form.unwrap_or_else(|| panic!("no form for {action}: {text}"));
    let input = form.split("<input").find(|input| input.contains("name=\"request_id\"")).unwrap();
    input.split_once(" value=\"").unwrap().1.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn pages_show_who_decides_and_let_them_without_script() {
    let set = Guarded::start();
    let (id, other) = (set.asked("shown").await, set.asked("other").await);
    let (path, approve) = (format!("/requests/{id}"), format!("/requests/{id}/approve"));
    let mut browsers = Vec::new();
    for name in ["olga", "ann"] {
        let mut browser = Browser::new(&set.world.server);
        browser.log_in(name, PASSWORD).await;
        browsers.push(browser);
    }
    let [olga, ann] = &mut browsers[..] else { panic!("two") };
    // Who asked is told who decides, and gets no form for it.
    let page = ann.get(&path).await.is(200);
    let seen = shown(&page);
    assert!(seen.contains("once an owner of the team or an administrator has approved it"), "{seen}");
    assert!(!seen.contains(&format!("action=\"{approve}\"")));
    assert!(!shown(&ann.get("/").await).contains("Waiting for your decision"));

    let home = shown(&olga.get("/").await.is(200));
    assert!(home.contains("Waiting for your decision"));
    for id in [&id, &other] {
        assert!(home.contains(&format!("href=\"/requests/{id}\"")), "{home}");
    }
    let page = olga.get(&path).await.is(200);
    let key = key_of(&page, &approve);
    let fields = [("request_id", key.as_str()), ("reason", "fine")];
    // A double click is one decision.
    for _ in 0..2 {
        let answer = olga.post(&approve, &fields).await.is(303);
        assert_eq!(answer.header("location"), Some(path.as_str()));
    }
    let page = shown(&olga.get(&path).await.is(200));
    assert!(page.contains("You approved it.") && page.contains("Approved by olga"), "{page}");
    assert_eq!(set.world.ann.ended(&id).await["approval"]["reason"], "fine");

    // To reject takes a reason, also where a browser does not ask for it.
    let (path, reject) = (format!("/requests/{other}"), format!("/requests/{other}/reject"));
    let key = key_of(&olga.get(&path).await.is(200), &reject);
    olga.post(&reject, &[("request_id", key.as_str()), ("reason", " ")]).await.is(303);
    assert!(shown(&olga.get(&path).await.is(200)).contains("say why it is rejected"));
    olga.post(&reject, &[("request_id", key.as_str()), ("reason", "<b>no</b>")]).await.is(303);
    let page = shown(&ann.get(&path).await.is(200));
    assert!(
        page.contains("olga rejected it: &lt;b&gt;no&lt;/b&gt;") && !page.contains("<b>no</b>"),
        "{page}"
    );
    assert!(page.contains("Nothing was made, and its name is free again."), "{page}");
    // By the schema's title, with the name for who writes a script.
    assert!(page.contains("<dt>Size <code>size</code></dt>"), "{page}");
    assert!(!shown(&olga.get("/").await).contains("Waiting for your decision"));
}

#[tokio::test]
async fn a_file_of_requests_names_who_decided_when_how_and_why() {
    let set = Guarded::start();
    let (yes, no) = (set.asked("yes").await, set.asked("no").await);
    set.asked("open").await;
    let decide = async |id: &str, how: &str, body: Value| {
        set.olga.post(&format!("/requests/{id}/{how}"), &fresh(how), &body).await.is(202);
        let ended = set.world.ann.ended(id).await;
        ended["approval"]["decided_at"].as_str().unwrap().to_owned()
    };
    let approved_at = decide(&yes, "approve", json!({})).await;
    let rejected_at = decide(&no, "reject", json!({ "reason": "=1+1, too big" })).await;
    let csv = set.world.ann.get("/requests?format=csv").await.is(200).text();
    let lines: Vec<&str> = csv.split("\r\n").collect();
    let ends = [
        ",\"decision\",\"decided_by\",\"decided_at\",\"decision_reason\"".to_owned(),
        ",\"\",\"\",\"\",\"\"".to_owned(),
        format!(",\"rejected\",\"olga\",\"{rejected_at}\",\"'=1+1, too big\""),
        format!(",\"approved\",\"olga\",\"{approved_at}\",\"\""),
    ];
    for (line, end) in lines.iter().zip(&ends) {
        assert!(line.ends_with(end), "{end} in {csv}");
    }
}
