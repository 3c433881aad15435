//! Who may report: signatures of every shape, and secrets that are exchanged while reports come.

use super::super::support::{Answer, Home, World};
use super::{
    callbacks::{callback, deliver, now},
    home, machine,
    machines::Machines,
};
use domain::time::Moment;
use portal::signature::{SharedSecret, sign_standard};
use reqwest::header::HeaderValue;
use serde_json::json;
use std::{fs, time::Duration};

fn secret(text: &str) -> SharedSecret {
    SharedSecret::kept(text.into()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_shared_secrets_count_while_one_takes_over_from_the_other() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let files = [folder.path().join("old"), folder.path().join("new")];
    let (old, new, next) =
        ("whsec_b2xkIHNlY3JldA==", "whsec_bmV3IHNlY3JldA==", "a plain one, not of the standard");
    fs::write(&files[0], format!("{old}\n")).unwrap();
    fs::write(&files[1], new).unwrap();
    let named = files.each_ref().map(|file| file.to_str().unwrap());
    let offering = Machines::offering(&base)
        .replace(
            "secrets: { token: { file: TOKEN_FILE } }",
            &format!(
                "secrets: {{ token: {{ file: TOKEN_FILE }}, old: {{ file: {} }}, new: {{ file: {} }} }}",
                named[0], named[1]
            ),
        )
        .replace("callback: true", "callback: { secrets: [old, new] }");
    let world = World::at(home(folder.path(), &offering, Home::new));
    let id = world.ann.made(&machine("shared", "callback")).await;
    let (path, own) = callback(&machines, "shared").await;
    let base = &world.server.base;
    let mut sequence = 0;
    let mut send = async |secret: &SharedSecret| {
        sequence += 1;
        let body = json!({ "state": "running", "sequence": sequence });
        deliver(base, &path, secret, &format!("ev-{sequence}"), &body).await
    };
    for genuine in [&own, &secret(old), &secret(new)] {
        assert_eq!(send(genuine).await.is(200).json()["outcome"], "applied");
    }
    send(&secret("whsec_b3RoZXI=")).await.refused(401, "signature-wrong");
    // The old one ends without a start of the server; a third one counts as soon as it is there.
    fs::write(&files[0], next).unwrap();
    send(&secret(old)).await.refused(401, "signature-wrong");
    for genuine in [&own, &secret(next), &secret(new)] {
        send(genuine).await.is(200);
    }
    // One that cannot be read is no secret, and neither is an empty one.
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[1], "").unwrap();
    for gone in [next, new, "whsec_"] {
        send(&secret(gone)).await.refused(401, "signature-wrong");
    }
    // A sender that exchanges its secret signs with both.
    let body = json!({ "state": "succeeded", "sequence": 99 }).to_string();
    let at = now();
    let signatures = [&secret(old), &own].map(|secret| sign_standard(secret, "both", at, body.as_bytes()));
    let both = reqwest::Client::new()
        .post(format!("{base}{path}"))
        .header("content-type", "application/json")
        .header("webhook-id", "both")
        .header("webhook-timestamp", at.millis().div_euclid(1000).to_string())
        .header("webhook-signature", signatures.join(" "));
    Answer::of(both.body(body)).await.is(200);
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let log = world.server.log();
    assert!([old, new, next, own.reveal()].iter().all(|secret| !log.contains(secret)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_of_whatever_shape_is_refused_quickly_and_uses_nothing_up() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let world = World::at(home(folder.path(), &Machines::offering(&base), Home::new));
    let id = world.ann.made(&machine("shapes", "callback")).await;
    let (path, own) = callback(&machines, "shapes").await;
    let address = format!("{}{path}", world.server.base);
    // Escapes in capitals, odd spaces, a number with a point, and a character outside of the basic plane.
    let body =
        "{ \"state\" :\t\"running\",\r\n \"sequence\": 1.0, \"progress\": \"\\u001B \\u001b \u{1f511}\" }";
    let at = now();
    let seconds = |offset: i64| (at.millis().div_euclid(1000) + offset).to_string();
    let right = sign_standard(&own, "ev", at, body.as_bytes());
    let call = |signatures: Vec<HeaderValue>, timestamp: String| {
        let mut call = reqwest::Client::new()
            .post(&address)
            .header("content-type", "application/json")
            .header("webhook-id", "ev")
            .header("webhook-timestamp", timestamp)
            .timeout(Duration::from_secs(10))
            .body(body);
        for signature in signatures {
            call = call.header("webhook-signature", signature);
        }
        call
    };
    let bytes = |bytes: &[u8]| HeaderValue::from_bytes(bytes).unwrap();
    let (hex, wrong) = ("0".repeat(64), format!("v1,{}=", "A".repeat(43)));
    let mut shapes: Vec<Vec<HeaderValue>> = vec![vec![], vec![bytes(right.as_bytes()); 2]];
    let changed = [
        String::new(),
        "x".into(),
        "v1,".into(),
        hex[..63].into(),
        hex.clone(),
        format!("{hex}0"),
        "v1,not hex, not base64".into(),
        wrong.clone(),
        right.replace("v1,", "v2,"),
        right.replace("v1,", ""),
        right[..right.len() - 1].into(),
        format!("{right}="),
        format!("v1,{}", "é".repeat(22)),
        "v1,AAAA ".repeat(1000),
    ];
    shapes.extend(changed.iter().map(|text| vec![bytes(text.as_bytes())]));
    shapes.push(vec![bytes(&[b"v1,".as_slice(), &[0xff; 44]].concat())]);
    for signatures in shapes {
        let shape = format!("{signatures:?}");
        let answer = Answer::of(call(signatures, seconds(0))).await;
        assert_eq!(answer.status, 401, "{shape}");
        answer.refused(401, "signature-wrong");
    }
    for offset in [-3600, 3600, -301] {
        let stale = Moment::from_millis(at.millis() + offset * 1000);
        let genuine = sign_standard(&own, "ev", stale, body.as_bytes());
        let answer = Answer::of(call(vec![bytes(genuine.as_bytes())], seconds(offset))).await;
        answer.refused(401, "signature-wrong");
    }
    // The server lives, the event's ID was not used up, and one good signature among others is enough.
    let first =
        Answer::of(call(vec![bytes(format!("{wrong} {right}").as_bytes())], seconds(0))).await.is(200);
    assert_eq!((first.header("idempotency-replayed"), &first.json()["outcome"]), (None, &json!("applied")));
    assert_eq!(world.ann.get(&format!("/requests/{id}")).await.json()["state"], "running");
    let log = world.server.log();
    assert!(!log.contains(own.reveal()) && !log.contains("panicked"), "{log}");
}
