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
    let (now, body) = (now(), body.to_string());
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
    let unsigned = reqwest::Client::new().post(format!("{base}{path}")).json(&done);
    Answer::of(unsigned).await.refused(400, "idempotency-key-missing");
    let nowhere = "/api/v1/callbacks/0190aaaa-0000-7000-8000-000000000000";
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
