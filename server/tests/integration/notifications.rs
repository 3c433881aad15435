//! Notifications by the API: made once for each key, with a secret that is shown once, delivered and signed, sent again by
//! hand under the same ID.

use super::support::{ALPHA, Answer, Home, World, eventually, fast};
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::time::Moment;
use hmac::{Hmac, KeyInit, Mac};
use portal::clock::{Clock, SystemClock};
use serde_json::{Value, json};
use sha2::Sha256;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const TOLD: &str = "/teams/alpha/notifications";

/// Headers and body of a delivery.
type Got = (BTreeMap<String, String>, String);

/// Another system, which takes whatever it is told.
async fn receiver() -> (String, Arc<Mutex<Vec<Got>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/in?token=hush", listener.local_addr().unwrap().port());
    let got = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut text, mut piece) = (String::new(), [0; 4096]);
            while let Ok(read @ 1..) = stream.read(&mut piece).await {
                text.push_str(&String::from_utf8_lossy(&piece[..read]));
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                let headers: BTreeMap<String, String> =
                    lines.map(|(name, value)| (name.to_lowercase(), value.into())).collect();
                if body.len() >= headers["content-length"].parse::<usize>().unwrap() {
                    kept.lock().unwrap().push((headers, body.to_owned()));
                    break;
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    (url, got)
}

/// Signed here by a code path of the test's own.
fn signature(secret: &str, headers: &BTreeMap<String, String>, body: &str) -> String {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.{body}", headers["webhook-id"], headers["webhook-timestamp"]).as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

async fn delivered(world: &World, path: &str, tries: u64) -> Value {
    let path = format!("{path}/deliveries");
    eventually("it is delivered", async || {
        let page = world.ada.get(&path).await.is(200).json();
        let newest = page["results"][0].clone();
        (newest["tries"].as_u64() >= Some(tries)).then_some(newest)
    })
    .await
}

#[tokio::test]
async fn a_notification_is_made_once_told_signed_and_sent_again_by_hand() {
    let (url, got) = receiver().await;
    let world = World::at(Home::on_sqlite(&[("KEYTURN_OUTBOUND_ALLOW", "127.0.0.1")]));
    let body = json!({ "label": "ops", "url": url, "events": ["request.succeeded", "request.failed"] });
    let first = world.ada.post(TOLD, "make", &body).await.is(201);
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    let repeat = world.ada.post(TOLD, "make", &body).await.is(201);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert!(repeat.id() == first.id() && repeat.json().get("secret").is_none(), "{}", repeat.text());
    assert_eq!(world.ada.get(TOLD).await.is(200).json()["total"], 1);
    let path = format!("{TOLD}/{}", first.id());

    let id = world.ann.made(&fast("vm-one", json!({}))).await;
    world.ann.ended(&id).await;
    let delivery = delivered(&world, &path, 1).await;
    assert_eq!((&delivery["state"], &delivery["request_id"]), (&json!("delivered"), &json!(id)));
    let (headers, sent) = got.lock().unwrap()[0].clone();
    assert_eq!(headers["webhook-signature"], signature(&secret, &headers, &sent));
    assert_eq!(json!(headers["webhook-id"]), delivery["id"]);

    let resend = format!("{path}/deliveries/{}/resend", headers["webhook-id"]);
    world.ada.act(&resend, "again").await.is(202);
    delivered(&world, &path, 2).await;
    world.ada.act(&resend, "again").await.is(202);
    let all = got.lock().unwrap().clone();
    assert_eq!(all.len(), 2, "once for each key");
    assert!(all[1].0["webhook-id"] == headers["webhook-id"] && all[1].1 == sent);

    // Owners only, and nothing of it in any log or on the disk in clear.
    world.ann.get(TOLD).await.refused(403, "forbidden");
    world.ann.post(TOLD, "mine", &body).await.refused(403, "forbidden");
    world.ben.get(&path).await.refused(404, "not-found");
    let keyless = Answer::of(world.ada.call("POST", TOLD).json(&body)).await;
    keyless.refused(400, "idempotency-key-missing");
    for place in ["http://169.254.169.254/latest", "http://127.0.0.2/", "http://[::1]/"] {
        let body = json!({ "label": "x", "url": place, "events": ["request.failed"] });
        world.ada.post(TOLD, "elsewhere", &body).await.refused(422, "invalid-parameters");
    }
    for file in ["keyturn.db", "keyturn.db-wal"] {
        let bytes = std::fs::read(world.server.home.path().join("data").join(file)).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    assert!(!world.server.log().contains(&secret) && !world.server.log().contains("token=hush"));

    // Changed, tried out and removed.
    let change = json!({ "label": "night", "events": ["request.failed"], "enabled": false });
    let call = world.ada.call("PATCH", &path).header("Idempotency-Key", "change").json(&change);
    let changed = Answer::of(call).await.is(200).json();
    assert_eq!(
        (&changed["label"], &changed["disabled_reason"]),
        (&json!("night"), &json!("switched off by ada"))
    );
    world.ada.act(&format!("{path}/ping"), "ping").await.refused(409, "already-decided");
    let on = world.ada.call("PATCH", &path).header("Idempotency-Key", "on").json(&json!({ "enabled": true }));
    Answer::of(on).await.is(200);
    world.ada.act(&format!("{path}/ping"), "ping").await.is(202);
    let ping = eventually("the ping arrives", async || got.lock().unwrap().get(2).cloned()).await;
    assert_eq!(serde_json::from_str::<Value>(&ping.1).unwrap()["type"], "ping");
    world.ada.act(&format!("{path}/rotate"), "rotate").await.is(200);
    world.ada.delete(&path, "end").await.is(204);
    world.ada.delete(&path, "end").await.is(204);
    let gone = world.ada.delete(&path, "other").await.is(200);
    assert_eq!(gone.header("keyturn-outcome"), Some("existing"));
    assert!(gone.json()["removed_at"].is_string(), "{}", gone.text());
    world.ada.delete(&path, "other").await.repeats_without_state(&gone);
    let never = format!("{TOLD}/01900000-0000-7000-8000-000000000000");
    world.ada.delete(&never, "never").await.refused(404, "not-found");
    world.ada.get(&path).await.refused(404, "not-found");
}

const DAY: i64 = 86_400_000;

/// Starts the server again with its clock moved to this moment.
fn start_at(world: &mut World, millis: i64) {
    world.kill();
    let offset = millis - SystemClock::default().now().millis();
    world.server.home.set("KEYTURN_CLOCK_OFFSET", &format!("{offset}ms"));
    world.restart();
}

fn millis(shown: &Value) -> i64 {
    serde_json::from_value::<Moment>(shown.clone()).unwrap().millis()
}

#[tokio::test]
async fn a_certificate_that_ends_soon_is_told_of_once_and_again_when_it_was_extended() {
    let (url, got) = receiver().await;
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog");
    let mut world =
        World::at(Home::on_sqlite(&[("KEYTURN_OUTBOUND_ALLOW", "127.0.0.1"), ("KEYTURN_CATALOG", samples)]));
    let body = json!({ "label": "ops", "url": url, "events": ["resource.expiring"] });
    let secret =
        world.ada.post(TOLD, "make", &body).await.is(201).json()["secret"].as_str().unwrap().to_owned();
    let body = json!({ "offering": "tls-certificate", "name": "web",
        "parameters": { "dns_names": ["www.example.org"], "days": 20 } });
    let made = world.ann.post(ALPHA, "web", &body).await.is(202).id();
    assert_eq!(world.ann.ended(&made).await["state"], "succeeded");
    let path = "/teams/alpha/resources/tls-certificate/web";
    let mut before = 0;
    for round in 1..=2 {
        let resource = world.ann.get(path).await.is(200).json();
        let end = millis(&resource["expires_at"]);
        assert_eq!(end, millis(&resource["outputs"]["not_after"]), "as the certificate itself says");
        assert!(end > before);
        before = end;
        // From a few seconds before the moment on: it is told at the moment or soon after, and not before.
        start_at(&mut world, end - 14 * DAY - 3000);
        let (headers, sent) =
            eventually("it is told", async || got.lock().unwrap().get(round - 1).cloned()).await;
        assert_eq!(headers["webhook-signature"], signature(&secret, &headers, &sent));
        let said: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(said["type"], "resource.expiring");
        assert_eq!(said["data"]["resource"]["expires_at"], resource["expires_at"]);
        let after = millis(&said["timestamp"]) - (end - 14 * DAY);
        assert!((0..60_000).contains(&after), "{after} ms after its moment");
        // Once, also when the server starts anew and time goes on.
        start_at(&mut world, end + DAY);
        let ping =
            format!("{TOLD}/{}/ping", world.ada.get(TOLD).await.json()["results"][0]["id"].as_str().unwrap());
        world.ada.act(&ping, &format!("ping-{round}")).await.is(202);
        eventually("the ping arrives", async || (got.lock().unwrap().len() == round + 1).then_some(())).await;
        let ping = got.lock().unwrap().remove(round);
        assert_eq!(serde_json::from_str::<Value>(&ping.1).unwrap()["type"], "ping");
        assert_eq!(world.ann.get(path).await.is(200).json()["state"], "active", "nothing is removed by that");
        let extended = world
            .ann
            .post(&format!("{path}/actions/extend"), &format!("more-{round}"), &json!({ "days": 20 }))
            .await;
        world.ann.ended(&extended.is(202).id()).await;
    }
    let ids: Vec<String> = got.lock().unwrap().iter().map(|one| one.0["webhook-id"].clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
}
