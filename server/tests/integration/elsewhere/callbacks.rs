//! Callbacks over HTTP: twenty deliveries of each at once, to two servers on one database.

use super::super::support::{Answer, Cluster, Home, Server, World, eventually};
use super::{home, machine, machines::Machines, told};
use domain::time::Moment;
use portal::signature::{SharedSecret, sign_standard};
use serde_json::{Value, json};

const AT_ONCE: usize = 20;

/// The address and the secret that the service was given for a name.
pub(super) async fn callback(machines: &Machines, name: &str) -> (String, SharedSecret) {
    let given = || machines.book().callbacks.get(name).cloned();
    let (url, secret) = eventually("it was called", async || given()).await;
    let path = url.find("/api/v1/").map(|at| url[at..].to_owned()).unwrap();
    (path, SharedSecret::kept(secret).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "a sender signs with the time of its own machine")]
pub(super) fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Moment::from_millis(i64::try_from(since.as_millis()).unwrap())
}

pub(super) async fn deliver(
    base: &str,
    path: &str,
    secret: &SharedSecret,
    event: &str,
    body: &Value,
) -> Answer {
    deliver_at(now(), (base, path), secret, event, body).await
}

async fn deliver_at(
    now: Moment,
    (base, path): (&str, &str),
    secret: &SharedSecret,
    event: &str,
    body: &Value,
) -> Answer {
    let body = body.to_string();
    let call = reqwest::Client::new()
        .post(format!("{base}{path}"))
        .header("content-type", "application/json")
        .header("webhook-id", event)
        .header("webhook-timestamp", now.millis().div_euclid(1000).to_string())
        .header("webhook-signature", sign_standard(secret, event, now, body.as_bytes()))
        .body(body);
    Answer::of(call).await
}

fn on_postgres(settings: &[(&str, &str)]) -> Home {
    Home::on_postgres(Cluster::shared(), settings)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_deliveries_at_once_to_two_servers_one_changes_something() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let world = World::at(home(folder.path(), &Machines::offering(&base), on_postgres));
    let other = Server::start(world.server.home.beside(&[]));
    let id = world.ann.made(&machine("raced", "callback")).await;
    let (path, secret) = callback(&machines, "raced").await;
    let reports = [
        ("ev-1", json!({ "state": "running", "sequence": 1, "log": ["the first line"] })),
        ("ev-2", json!({ "state": "progress", "sequence": 2, "progress": "half way" })),
        ("ev-0", json!({ "state": "running", "sequence": 0, "log": ["too late"] })),
        ("ev-3", json!({ "state": "succeeded", "sequence": 3, "outputs": { "address": "raced.test" } })),
        ("ev-4", json!({ "state": "failed", "sequence": 4, "error": "after the end" })),
    ];
    for (event, body) in &reports {
        let sends = (0..AT_ONCE).map(|number| {
            let base = [&world.server.base, &other.base][number % 2].clone();
            let (path, secret, body) = (path.clone(), secret.clone(), body.clone());
            let event = (*event).to_owned();
            tokio::spawn(async move { deliver(&base, &path, &secret, &event, &body).await })
        });
        let mut answers = Vec::new();
        for send in sends.collect::<Vec<_>>() {
            answers.push(send.await.unwrap().is(200));
        }
        let firsts = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none()).count();
        assert_eq!(firsts, 1, "{event}");
        assert!(answers.iter().all(|answer| answer.body == answers[0].body), "{event}: one answer for all");
    }
    let ended = world.ann.ended(&id).await;
    assert_eq!(
        (&ended["state"], &ended["outputs"]),
        (&json!("succeeded"), &json!({ "address": "raced.test" }))
    );
    let history = told(&world, &id).await;
    assert_eq!(history.matches("\"callback\"").count(), reports.len(), "{history}");
    assert_eq!(history.matches("the first line").count(), 1);
    assert!(history.contains("event ev-0): ignored: older") && !history.contains("too late"));
    assert!(history.contains("event ev-4): ignored: ended"));
    assert_eq!(machines.made("raced"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_needs_no_login_but_its_signature() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let world = World::at(home(folder.path(), &Machines::offering(&base), Home::new));
    let id = world.ann.made(&machine("signed", "callback")).await;
    let (path, secret) = callback(&machines, "signed").await;
    let (base, done) = (&world.server.base, json!({ "state": "succeeded", "sequence": 1 }));
    let wrong = SharedSecret::kept("whsec_b3RoZXI=".into()).unwrap();
    deliver(base, &path, &wrong, "ev", &done).await.refused(401, "signature-wrong");
    let unsigned = |path: &str| reqwest::Client::new().post(format!("{base}{path}")).json(&done);
    Answer::of(unsigned(&path)).await.refused(401, "signature-wrong");
    Answer::of(unsigned(&path).header("webhook-id", "ev")).await.refused(401, "signature-wrong");
    let nowhere = "/api/v1/callbacks/0190aaaa-0000-7000-8000-000000000000";
    Answer::of(unsigned(nowhere)).await.refused(404, "not-found");
    // Without an ID there is nothing that a signature could be checked against, unless it is stale already.
    let nameless = |at: i64| {
        let call = unsigned(&path).header("webhook-timestamp", at).header("webhook-signature", "v1,AAAA");
        Answer::of(call)
    };
    let seconds = now().millis().div_euclid(1000);
    nameless(seconds).await.refused(400, "idempotency-key-missing");
    nameless(seconds - 3600).await.refused(401, "signature-wrong");
    deliver(base, nowhere, &secret, "ev", &done).await.refused(404, "not-found");
    let form = reqwest::Client::new().post(format!("{base}{path}")).form(&[("state", "succeeded")]);
    Answer::of(form).await.refused(415, "unsupported-media-type");
    deliver(base, &path, &secret, "ev", &json!({ "state": "done" })).await.refused(422, "invalid-parameters");
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["state"], "running");
    let first = deliver(base, &path, &secret, "ev", &done).await.is(200);
    let other = json!({ "state": "succeeded", "sequence": 2 });
    deliver(base, &path, &secret, "ev", &other).await.refused(422, "idempotency-key-reused");
    let repeat = deliver(base, &path, &secret, "ev", &done).await.is(200);
    assert_eq!((repeat.header("idempotency-replayed"), &repeat.body), (Some("true"), &first.body));
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert!(!world.server.log().contains(secret.reveal()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_is_over_is_told_from_one_that_never_was_and_its_orphan_stays() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let mut world = World::at(home(folder.path(), &Machines::offering(&base), Home::on_sqlite));
    let id = world.ann.made(&machine("over", "callback")).await;
    let (path, secret) = callback(&machines, "over").await;
    machines.book().things.insert("alpha/over".to_owned(), json!({ "owner": id, "done": [] }));
    world.ann.act(&format!("/requests/{id}/cancel"), "cancel").await;
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");
    let done = json!({ "state": "succeeded", "sequence": 1 });
    let late = deliver(&world.server.base, &path, &secret, "late", &done).await.is(200);
    assert_eq!(late.json()["outcome"], "orphaned");
    for (days, status, slug) in [(6, 200, ""), (8, 410, "idempotency-key-expired"), (98, 404, "not-found")] {
        world.server.home.set("KEYTURN_CLOCK_OFFSET", &format!("{days}d"));
        world.kill();
        world.restart();
        let at = now().plus(std::time::Duration::from_hours(days * 24));
        let there = (world.server.base.clone(), path.clone());
        let again = async || deliver_at(at, (&there.0, &there.1), &secret, "late", &done).await;
        eventually("what is over is swept", async || (again().await.status == status).then_some(())).await;
        let orphans = if days < 90 { world.ada.get("/orphans").await.is(200).json() } else { json!([]) };
        match status {
            200 => again().await.repeats_without_state(&late),
            _ => drop(again().await.refused(status, slug)),
        }
        if days < 90 {
            assert_eq!(orphans["results"][0]["request"]["id"], id, "{days}: {orphans}");
            let wrong = SharedSecret::kept("whsec_b3RoZXI=".into()).unwrap();
            let guess = deliver_at(at, (&there.0, &there.1), &wrong, "late", &done).await;
            guess.refused(401, "signature-wrong");
        }
    }
}
