//! What becomes of a request, and what a person may decide about it.

use super::support::{
    ALPHA, Answer, Home, PASSWORD, World,
    browser::{Browser, hidden, shown},
    eventually, fast, fresh, vm,
};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_reader_may_wait_for_the_end_and_no_longer_than_asked() {
    let world = World::start();
    let id = world.ann.made(&vm("slow", json!({ "seconds": 2 }))).await;
    let began = Instant::now();
    let early = Answer::of(world.ann.call("GET", &format!("/requests/{id}")).header("Prefer", "wait=1"))
        .await
        .is(200);
    assert!(began.elapsed() >= Duration::from_millis(900));
    assert_eq!(early.header("preference-applied"), Some("wait=1"));
    assert_ne!(early.json()["state"], "succeeded");
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "succeeded");
    assert!(ended["finished_at"].is_string());
}

#[tokio::test]
async fn canceling_stops_it_and_canceling_again_is_no_mistake() {
    let world = World::start();
    let id = world.ann.made(&vm("slow", json!({ "seconds": 60 }))).await;
    let path = format!("/requests/{id}/cancel");
    let keyless = Answer::of(world.ann.call("POST", &path)).await;
    keyless.refused(400, "idempotency-key-missing");
    let first = world.ann.act(&path, "stop").await;
    assert!(matches!(first.status, 200 | 202), "{}", first.text());
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");
    world.ann.act(&path, "stop").await.repeats(&first);
    let again = world.ann.act(&path, "stop again").await;
    again.refused(400, "idempotency-key-invalid");
    let again = world.ann.act(&path, "stop-again").await.is(200);
    assert_eq!(again.header("keyturn-outcome"), Some("existing"));
    // What has succeeded cannot be canceled.
    let done = world.ann.made(&fast("done", json!({}))).await;
    world.ann.ended(&done).await;
    world.ann.act(&format!("/requests/{done}/cancel"), &fresh("k")).await.refused(409, "already-decided");
}

#[tokio::test]
async fn a_failed_request_opens_its_next_attempt() {
    let world = World::start();
    let id = world.ann.made(&vm("vm-one", json!({ "behaviour": "fail" }))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "failed");
    let path = format!("/requests/{id}/retry");
    let first = world.ann.act(&path, "retry").await;
    assert!(matches!(first.status, 200 | 202), "{}", first.text());
    assert_eq!(first.json()["attempt"], 2);
    world.ann.act(&path, "retry").await.repeats(&first);
    eventually("the second attempt fails as well", async || {
        let now = world.ann.get(&format!("/requests/{id}")).await.json();
        (now["state"] == "failed" && now["attempt"] == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_nobody_can_tell_is_for_a_person_to_decide() {
    let world = World::start();
    for (resolution, end) in [("adopt", "succeeded"), ("abandon", "failed")] {
        let name = format!("vm-{resolution}");
        let id = world.ann.made(&vm(&name, json!({ "behaviour": "observe-unknown" }))).await;
        eventually("nobody can tell", async || {
            let state = world.ann.get(&format!("/requests/{id}")).await.json()["state"].clone();
            (state == "unknown").then_some(())
        })
        .await;
        // It holds its name meanwhile.
        world.abe.post(ALPHA, &fresh("k"), &vm(&name, json!({}))).await.refused(409, "name-taken");
        let path = format!("/requests/{id}/resolve");
        world
            .ann
            .post(&path, &fresh("k"), &json!({ "resolution": "guess" }))
            .await
            .refused(422, "invalid-parameters");
        world
            .ann
            .post(&path, &fresh("k"), &json!({ "decision": "adopt" }))
            .await
            .refused(400, "invalid-json");
        world
            .vic
            .post(&path, &fresh("k"), &json!({ "resolution": resolution }))
            .await
            .refused(403, "forbidden");
        std::fs::write(state_of(&world, "vm").join("mended"), "").unwrap();
        let first = world.ann.post(&path, "decide", &json!({ "resolution": resolution })).await;
        // The same key for another request is another meaning.
        if resolution == "abandon" {
            first.refused(422, "idempotency-key-reused");
            world.ann.post(&path, "decide-2", &json!({ "resolution": resolution })).await;
        } else {
            assert!(matches!(first.status, 200 | 202), "{}", first.text());
            // What goes without saying may be said.
            let said = json!({ "resolution": resolution, "force": false, "reason": " " });
            world.ann.post(&path, "decide", &said).await.repeats(&first);
            let otherwise = json!({ "resolution": "retry" });
            world.ann.post(&path, "decide", &otherwise).await.refused(422, "idempotency-key-reused");
        }
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], end, "{resolution}");
        // Who decided stands in the history, and of what was abandoned in its reason.
        let mut browser = Browser::new(&world.server);
        browser.log_in("ann", PASSWORD).await;
        let page = shown(&browser.get(&format!("/requests/{id}")).await.is(200));
        assert!(page.contains(&format!("{resolution}, by ann")), "{page}");
        if resolution == "abandon" {
            assert_eq!(ended["reason"], "abandoned by ann");
        }
        std::fs::remove_file(state_of(&world, "vm").join("mended")).unwrap();
    }
}

#[tokio::test]
async fn who_decides_in_the_browser_says_why_and_only_an_administrator_may_close_by_force() {
    let home = Home::new(&[]);
    home.user("root", "admin", None, Some(PASSWORD));
    let world = World::at(home);
    let (mut ann, mut root) = (Browser::new(&world.server), Browser::new(&world.server));
    ann.log_in("ann", PASSWORD).await;
    root.log_in("root", PASSWORD).await;
    let decided = async |browser: &mut Browser, name: &str, form: &[(&str, &str)]| {
        let id = world.ann.made(&vm(name, json!({ "behaviour": "observe-unknown" }))).await;
        let path = format!("/requests/{id}");
        eventually("nobody can tell", async || {
            (world.ann.get(&path).await.json()["state"] == "unknown").then_some(())
        })
        .await;
        let open = browser.get(&path).await.is(200);
        let form: Vec<_> = [("request_id", hidden(&open, "request_id"))]
            .into_iter()
            .chain(form.iter().map(|(name, value)| (*name, (*value).to_owned())))
            .collect();
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        browser.post(&format!("{path}/resolve"), &form).await.is(303);
        (world.ann.get(&path).await.json(), shown(&browser.get(&path).await.is(200)), shown(&open))
    };
    let by_force = [("resolution", "abandon"), ("force", "true"), ("reason", "The rack burned.")];
    let (request, page, open) = decided(&mut ann, "vm-one", &by_force).await;
    assert_eq!(request["state"], "unknown");
    assert!(page.contains("Only an administrator may close a request by force."), "{page}");
    assert!(!open.contains("Close it by force") && open.contains("How you know"), "{open}");
    let (request, page, open) = decided(&mut root, "vm-two", &by_force).await;
    assert_eq!((&request["state"], &request["reason"]), (&json!("failed"), &json!("The rack burned.")));
    assert!(open.contains("Close it by force") && page.contains("The rack burned."), "{page}");
    let seen = [("resolution", "adopt"), ("reason", "I saw it.")];
    let (_, page, _) = decided(&mut ann, "vm-three", &seen).await;
    assert!(page.contains("adopt, by ann: I saw it."), "{page}");
}

#[tokio::test]
async fn a_program_that_cannot_be_looked_at_runs_again_at_a_persons_word_and_once() {
    let world = World::start();
    let deeds = || -> Vec<String> {
        let ledger = std::fs::read_to_string(state_of(&world, "vm").join("ledger")).unwrap();
        ledger.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let decided = async |id: &str, resolution: &str| {
        let path = format!("/requests/{id}");
        eventually("nobody can tell", async || {
            (world.ann.get(&path).await.json()["state"] == "unknown").then_some(())
        })
        .await;
        let before = deeds();
        let decision = json!({ "resolution": resolution });
        world.ann.post(&format!("{path}/resolve"), &fresh("k"), &decision).await.is(202);
        before
    };
    let made = world.ann.made(&vm("blind", json!({ "behaviour": "observe-unknown" }))).await;
    assert_eq!(decided(&made, "retry").await, ["apply"]);
    assert_eq!(decided(&made, "retry").await, ["apply", "again"]);
    assert_eq!(decided(&made, "adopt").await, ["apply", "again", "again"]);
    world.ann.ended(&made).await;
    // A change of it is as dark.
    let one = "/teams/alpha/resources/vm/blind";
    let version = world.ann.etag(one).await;
    let patch = world.ann.patch(one, &fresh("k"), &version, &json!({ "count": 2 })).await.is(202);
    let changed = patch.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(decided(&changed, "retry").await[3..], ["change"]);
    assert_eq!(decided(&changed, "retry").await[3..], ["change", "again"]);
    assert_eq!(decided(&changed, "abandon").await[3..], ["change", "again", "again"]);
    world.ann.ended(&changed).await;
    assert_eq!(deeds()[3..], ["change", "again", "again", "undo"]);
}

fn state_of(world: &World, offering: &str) -> std::path::PathBuf {
    world.server.home.path().join("data/offerings").join(offering)
}

#[tokio::test]
async fn a_secret_output_is_shown_to_who_may_see_it_and_nowhere_else() {
    let world = World::at(Home::on_sqlite(&[]));
    let id = world.ann.made(&vm("vm-one", json!({}))).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["secret_outputs"], json!(["password"]));
    let secret = format!("secret-of-{id}");
    let path = "/teams/alpha/resources/vm/vm-one/secrets/password/reveal";
    let shown = Answer::of(world.ann.call("POST", path)).await.is(200);
    assert_eq!(shown.json()["value"], json!(secret));
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    for (api, status, slug) in [
        (&world.vic, 403, "forbidden"),
        (&world.ben, 404, "not-found"),
        (&world.nobody(), 401, "unauthenticated"),
    ] {
        Answer::of(api.call("POST", path)).await.refused(status, slug);
    }
    let other = path.replace("password", "address");
    Answer::of(world.ann.call("POST", &other)).await.refused(404, "not-found");
    for seen in [
        format!("/requests/{id}"),
        format!("/requests/{id}/events"),
        format!("/requests/{id}/submissions"),
        "/teams/alpha/resources/vm/vm-one".to_owned(),
        "/requests".to_owned(),
    ] {
        assert!(!world.ann.get(&seen).await.is(200).text().contains(&secret), "{seen}");
    }
    for file in ["keyturn.db", "keyturn.db-wal"] {
        let bytes = std::fs::read(world.server.home.path().join("data").join(file)).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
}

#[tokio::test]
async fn a_resource_is_listed_and_has_a_version() {
    let world = World::start();
    let id = world.ann.made(&fast("vm-one", json!({}))).await;
    world.ann.ended(&id).await;
    let one = world.vic.get("/teams/alpha/resources/fast/vm-one").await.is(200);
    let etag = one.header("etag").unwrap();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    assert_eq!(one.json()["created_by"]["id"], json!(id));
    assert_eq!(world.resources("alpha").await, 1);
    world.ann.get("/teams/alpha/resources/fast/vm-two").await.refused(404, "not-found");
}

#[tokio::test]
async fn a_list_is_whole_page_by_page_while_rows_arrive() {
    let world = World::start();
    for number in 0..12 {
        world.ann.made(&fast(&format!("vm-{number}"), json!({}))).await;
    }
    world.ben.post("/teams/beta/requests", "k", &fast("of-beta", json!({}))).await.is(202);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.ann.get(&format!("/requests?size=5{cursor}")).await.is(200).json();
        seen.extend(
            page["results"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
        world.ann.made(&fast(&format!("late-{}", seen.len()), json!({}))).await;
    }
    let expected: Vec<String> = (0..12).rev().map(|number| format!("vm-{number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(world.count().await, 15);
    assert_eq!(world.ben.get("/requests").await.json()["total"], 1);
    let filtered =
        world.ada.get("/requests?filters[name][EQUALS]=vm-3&filters[offering][EQUALS]=fast&size=1").await;
    assert!(filtered.is(200).text().contains("\"total\":1"));
}

#[tokio::test]
async fn the_catalog_shows_what_can_be_asked_for() {
    let world = World::start();
    let all = world.ann.get("/offerings").await.is(200).json();
    assert_eq!(all["total"], 3);
    let one = world.ann.get("/offerings/vm").await.is(200).json();
    assert_eq!(one["parameters"]["type"], "object");
    assert_eq!(one["guard"]["max_tries"], 3);
    world.ann.get("/offerings/nothing").await.refused(404, "not-found");
    let guard = world.nobody().get("/guard").await.is(200).json();
    assert_eq!((&guard["retention_seconds"], &guard["key"]["max_length"]), (&json!(604_800), &json!(255)));
}

/// How many of a server's children live: the guards of its programs.
fn programs_of(server: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    // A process number, the program's name in brackets, the state, the parent.
    stats
        .filter_map(|stat| {
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut words = rest.split(' ');
            let lives = words.next()? != "Z";
            (lives && words.next()?.parse::<u32>().ok()? == server).then_some(())
        })
        .count()
}

fn signal(server: u32, signal: &str) {
    assert!(
        std::process::Command::new("kill").args([signal, &server.to_string()]).status().unwrap().success()
    );
}

#[tokio::test]
async fn the_program_of_a_server_that_stands_still_does_not_run_past_its_lease() {
    let world = World::with(&[("KEYTURN_LEASE", "4s")]);
    let id = world.ann.made(&vm("one", json!({ "seconds": 60 }))).await;
    let server = world.server.pid();
    eventually("the program begins", async || (programs_of(server) > 0).then_some(())).await;
    signal(server, "-STOP");
    eventually("the program ends", async || (programs_of(server) == 0).then_some(())).await;
    signal(server, "-CONT");
    eventually("it is taken up again", async || (programs_of(server) > 0).then_some(())).await;
    let state = world.ann.get(&format!("/requests/{id}")).await.is(200).json()["state"].clone();
    assert_eq!(state, "running");
    world.ann.act(&format!("/requests/{id}/cancel"), "stop").await;
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");
}
