//! Hooks: events of outside systems that ask for something, each at most once. They are signed here by a code path of the
//! test's own.

use super::support::{Answer, Api, Cluster, Home, Server, World, eventually, fresh};
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::UNIX_EPOCH;

pub(super) const HOOKS: &str = "/teams/alpha/hooks";

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

pub(super) fn standard(secret: &str, id: &str, at: i64, body: &str) -> String {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mac = hmac(&key, &[id.as_bytes(), b".", at.to_string().as_bytes(), b".", body.as_bytes()]);
    format!("v1,{}", BASE64_STANDARD.encode(mac))
}

fn github(secret: &str, body: &str) -> String {
    hmac(secret.as_bytes(), &[body.as_bytes()])
        .iter()
        .fold("sha256=".to_owned(), |digits, byte| digits + &format!("{byte:02x}"))
}

fn now() -> i64 {
    i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

/// A hook as its owner made it, and its secret.
#[derive(Clone)]
pub(super) struct Hook {
    pub(super) id: String,
    pub(super) secret: String,
    signature: String,
}

impl Hook {
    fn managed(&self) -> String {
        format!("{HOOKS}/{}", self.id)
    }

    /// A genuine delivery.
    pub(super) fn signed(&self, api: &Api, event: &str, body: &str) -> reqwest::RequestBuilder {
        let call = self.bare(api, body);
        match self.signature.as_str() {
            "standard" => call
                .header("webhook-id", event)
                .header("webhook-timestamp", now())
                .header("webhook-signature", standard(&self.secret, event, now(), body)),
            "github" => call
                .header("X-GitHub-Delivery", event)
                .header("X-GitHub-Event", "push")
                .header("X-Hub-Signature-256", github(&self.secret, body)),
            _ => call.header("Idempotency-Key", event).bearer_auth(&self.secret),
        }
    }

    /// A delivery without identity and signature.
    fn bare(&self, api: &Api, body: &str) -> reqwest::RequestBuilder {
        let address = format!("{}/api/v1/hooks/{}", api.base, self.id);
        api.client.post(address).header("Content-Type", "application/json").body(body.to_owned())
    }

    pub(super) async fn deliver(&self, api: &Api, event: &str, body: &Value) -> Answer {
        Answer::of(self.signed(api, event, &body.to_string())).await
    }
}

pub(super) fn definition(signature: &str) -> Value {
    json!({
        "title": format!("orders by {signature}"), "offering": "fast", "signature": signature,
        "when": "payload.kind != 'noise'",
        "name": "{{ payload.name | lower }}",
        "parameters": { "count": "{{ payload.count | default(1) }}", "note": "order {{ payload.order }}" },
        "labels": { "order": "{{ payload.order }}" },
        "correlation_id": "order-{{ payload.order }}",
        "sample": { "payload": { "kind": "order", "name": "A", "order": 1 } },
    })
}

pub(super) async fn made(owner: &Api, definition: &Value) -> Hook {
    let view = owner.post(HOOKS, &fresh("hook"), definition).await.is(201).json();
    let text = |member: &str| view[member].as_str().unwrap().to_owned();
    Hook { id: text("id"), secret: text("secret"), signature: text("signature") }
}

pub(super) fn order(name: &str, number: u32) -> Value {
    json!({ "kind": "order", "name": name, "order": number, "count": 2 })
}

/// An owner of team alpha.
pub(super) fn owner(world: &World) -> Api {
    world.server.api(&world.server.home.user("olga", "member", Some("alpha:owner"), None))
}

pub(super) async fn deliveries(owner: &Api, hook: &Hook, at_least: usize) -> Vec<Value> {
    eventually("deliveries are listed", async || {
        let page = owner.get(&format!("{}/deliveries", hook.managed())).await.is(200).json();
        Some(page["results"].as_array().unwrap().clone()).filter(|rows| rows.len() >= at_least)
    })
    .await
}

#[tokio::test]
async fn an_event_of_each_kind_asks_once_and_its_repeat_gets_the_first_answer() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    for (number, signature) in (1..).zip(["standard", "github", "bearer"]) {
        let hook = made(&owner, &definition(signature)).await;
        let event = order(&format!("By-{signature}"), number);
        let first = hook.deliver(&nobody, "AbCdEf01", &event).await.is(202);
        let view = first.json();
        assert_eq!(view["name"], format!("by-{signature}"));
        assert_eq!(view["parameters"]["count"], 2);
        assert_eq!(view["parameters"]["note"], format!("order {number}"));
        assert_eq!(view["labels"]["idempotency.key"], "AbCdEf01");
        assert_eq!(view["labels"]["order"], number.to_string());
        assert_eq!(view["correlation_id"], format!("order-{number}"));
        assert_eq!((&view["channel"], &view["team"]), (&json!("hook"), &json!("alpha")));
        assert!(first.header("idempotency-key-expires").is_some() && first.header("location").is_some());
        hook.deliver(&nobody, "AbCdEf01", &event).await.repeats(&first);
        // Another spelling of the identity is another event; of the same thing, which is there.
        let other = hook.deliver(&nobody, "aBcDeF01", &event).await.is(200);
        assert_eq!((other.header("keyturn-outcome"), other.id()), (Some("existing"), first.id()));
        // The same identity with another payload, though it would mean the same.
        let padded = format!("{event} ");
        Answer::of(hook.signed(&nobody, "AbCdEf01", &padded)).await.refused(422, "idempotency-key-reused");
        // Another payload for what is taken.
        let taken =
            json!({ "kind": "order", "name": format!("by-{signature}"), "order": number, "count": 9 });
        hook.deliver(&nobody, "taken", &taken).await.refused(409, "name-taken");
        // An event that does not count is acknowledged, and is no request.
        let noise = hook.deliver(&nobody, "noise", &json!({ "kind": "noise" })).await.is(200).json();
        assert_eq!(noise["outcome"], "ignored");

        let listed = deliveries(&owner, &hook, 6).await;
        let mut outcomes: Vec<_> = listed.iter().map(|one| one["outcome"].as_str().unwrap()).collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["existing", "ignored", "mismatched", "refused", "replayed", "requested"]);
        let requested = listed.iter().find(|one| one["outcome"] == "requested").unwrap();
        assert_eq!(
            (&requested["request_id"], &requested["event_id"]),
            (&first.json()["id"], &json!("AbCdEf01"))
        );
        assert!(requested.get("payload").is_none());
        let path = format!("{}/deliveries/{}", hook.managed(), requested["id"].as_str().unwrap());
        let one = owner.get(&path).await.is(200).json();
        assert_eq!(one["payload"], event.to_string());
        assert!(
            one["headers"].get("x-hub-signature-256").is_none()
                && one["headers"].get("webhook-signature").is_none()
        );
        // The request's own history has the arrivals too.
        let history = eventually("repeats are history", async || {
            let path = format!("/requests/{}/submissions", first.id());
            let all = world.ann.get(&path).await.is(200).json()["results"].as_array().unwrap().clone();
            Some(all).filter(|all| all.len() == 4)
        })
        .await;
        assert!(history.iter().all(|one| one["channel"] == "hook"));
    }
    assert_eq!(world.count().await, 3);
}

#[tokio::test]
async fn githubs_ping_is_acknowledged() {
    let world = World::start();
    let hook = made(&owner(&world), &definition("github")).await;
    let body = json!({ "zen": "Design for failure." }).to_string();
    let call =
        hook.bare(&world.nobody(), &body).header("X-GitHub-Event", "ping").header("X-GitHub-Delivery", "p");
    let answer = Answer::of(call.header("X-Hub-Signature-256", github(&hook.secret, &body))).await.is(200);
    assert_eq!(answer.json()["outcome"], "ignored");
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn what_is_signed_is_the_bytes_and_no_bad_signature_uses_an_event_up() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    let bytes =
        "{ \"kind\" : \"order\",\r\n\"name\":\"a\\u002Db\" , \"order\":1.0,\"x\":\"\\u001B \u{1f600}\"}";
    let bad_hex = [
        "",
        "s",
        "sha256=",
        &format!("sha256={}", "0".repeat(63)),
        &format!("sha256={}", "0".repeat(65)),
        &format!("sha256={}", "z".repeat(64)),
        &format!("sha256={}", "0".repeat(64)),
    ]
    .map(str::to_owned);

    let hook = made(&owner, &definition("github")).await;
    for signature in bad_hex {
        let call = hook
            .bare(&nobody, bytes)
            .header("X-GitHub-Delivery", "one")
            .header("X-Hub-Signature-256", &signature);
        Answer::of(call).await.refused(401, "signature-wrong");
    }
    let non_ascii =
        reqwest::header::HeaderValue::from_bytes(&[b"sha256=".as_slice(), &[0xe9; 64]].concat()).unwrap();
    let call =
        hook.bare(&nobody, bytes).header("X-GitHub-Delivery", "one").header("X-Hub-Signature-256", non_ascii);
    Answer::of(call).await.refused(401, "signature-wrong");
    Answer::of(hook.bare(&nobody, bytes).header("X-GitHub-Delivery", "one"))
        .await
        .refused(401, "signature-wrong");
    let twice = hook.signed(&nobody, "one", bytes).header("X-Hub-Signature-256", github(&hook.secret, bytes));
    Answer::of(twice).await.refused(401, "signature-wrong");
    let first = Answer::of(hook.signed(&nobody, "one", bytes)).await.is(202);
    assert_eq!(first.json()["name"], "a-b");

    let hook = made(&owner, &definition("standard")).await;
    let body = order("std", 5).to_string();
    let sent = |at: i64, signature: String| {
        let call = hook.bare(&nobody, &body).header("webhook-id", "ev").header("webhook-timestamp", at);
        Answer::of(call.header("webhook-signature", signature))
    };
    let good = |at| standard(&hook.secret, "ev", at, &body);
    for at in [now() - 3600, now() + 3600] {
        sent(at, good(at)).await.refused(401, "signature-wrong");
    }
    for signature in ["", "v1", "v1,", "v1,AAAA", "v2,AAAA", "v1,é"] {
        sent(now(), signature.to_owned()).await.refused(401, "signature-wrong");
    }
    sent(now() + 1, good(now())).await.refused(401, "signature-wrong");
    let other = hook.bare(&nobody, &body).header("webhook-id", "other").header("webhook-timestamp", now());
    Answer::of(other.header("webhook-signature", good(now()))).await.refused(401, "signature-wrong");
    sent(now(), format!("v1,AAAA {}", good(now()))).await.is(202);

    let hook = made(&owner, &definition("bearer")).await;
    for wrong in [
        "",
        "x",
        &hook.secret[..hook.secret.len() - 1],
        &format!("{}x", hook.secret),
        &hook.secret.to_uppercase(),
    ] {
        let call = hook.bare(&nobody, &body).header("Idempotency-Key", "ev").bearer_auth(wrong);
        Answer::of(call).await.refused(401, "signature-wrong");
    }
    // A token is no signature, and a secret no token.
    let call =
        hook.bare(&nobody, &body).header("Idempotency-Key", "ev").bearer_auth(owner.token.as_ref().unwrap());
    Answer::of(call).await.refused(401, "signature-wrong");
    world.server.api(&hook.secret).get("/me").await.refused(401, "unauthenticated");
    assert_eq!(world.count().await, 2);
    let listed = deliveries(&owner, &hook, 0).await;
    assert!(listed.is_empty(), "nothing that is not genuine is written down: {listed:?}");
    let log = world.server.log();
    assert!(!log.contains("whsec_") && !log.contains(&hook.secret));
}

#[tokio::test]
async fn without_an_identity_nothing_is_done_and_none_is_made_up() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    let hook = made(&owner, &definition("bearer")).await;
    let body = order("one", 1).to_string();
    for _ in 0..2 {
        let call = hook.bare(&nobody, &body).bearer_auth(&hook.secret);
        let refused = Answer::of(call).await.refused(400, "idempotency-key-missing");
        assert!(refused.text().contains("idempotency-key"), "{}", refused.text());
    }
    let long = "k".repeat(256);
    for bad in ["a b", long.as_str()] {
        let call = hook.bare(&nobody, &body).bearer_auth(&hook.secret).header("Idempotency-Key", bad);
        Answer::of(call).await.refused(400, "idempotency-key-invalid");
    }
    Answer::of(hook.signed(&nobody, "j", "{\"a\":1,\"a\":2}")).await.refused(400, "invalid-json");
    // Two events of one content are two events.
    let mut second: Value = order("one", 1);
    hook.deliver(&nobody, "e-1", &second).await.is(202);
    second["name"] = "two".into();
    hook.deliver(&nobody, "e-2", &second).await.is(202);
    assert_eq!(world.count().await, 2);
    // Every refusal of a genuine event is in the list; the order of checks is that of every door.
    assert_eq!(deliveries(&owner, &hook, 7).await.len(), 7);
    let text = hook.bare(&nobody, &body).header("Content-Type", "text/plain");
    assert_eq!(Answer::of(text).await.status, 415);
    let never = Hook { id: uuid(7), ..hook.clone() };
    never.deliver(&nobody, "e-1", &second).await.refused(404, "not-found");
}

#[tokio::test]
async fn an_event_is_judged_by_its_signature_then_by_its_identity_at_hooks_of_each_kind() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    for signature in ["standard", "github", "bearer"] {
        let hook = made(&owner, &definition(signature)).await;
        let body = order(&format!("by-{signature}"), 1).to_string();
        Answer::of(hook.bare(&nobody, &body)).await.refused(401, "signature-wrong");
        let header = match signature {
            "standard" => "webhook-id",
            "github" => "x-github-delivery",
            _ => "idempotency-key",
        };
        let signed = |at: i64| {
            let call = hook.bare(&nobody, &body);
            match signature {
                "standard" => call
                    .header("webhook-timestamp", at)
                    .header("webhook-signature", standard(&hook.secret, "", at, &body)),
                "github" => call.header("X-Hub-Signature-256", github(&hook.secret, &body)),
                _ => call.bearer_auth(&hook.secret),
            }
        };
        let refused = Answer::of(signed(now())).await.refused(400, "idempotency-key-missing");
        assert!(refused.text().contains(header), "{}", refused.text());
        Answer::of(signed(now()).header(header, "a").header(header, "a"))
            .await
            .refused(400, "idempotency-key-invalid");
        let id = hook.deliver(&nobody, "one", &order(&format!("by-{signature}"), 1)).await.is(202).id();
        // Only the header Idempotency-Key knows two spellings of one identity.
        let quoted = hook.deliver(&nobody, "\"one\"", &order(&format!("by-{signature}"), 1)).await;
        if signature == "bearer" {
            let again = quoted.is(202);
            assert_eq!((again.id(), again.header("idempotency-replayed")), (id, Some("true")));
        } else {
            let other = quoted.is(200);
            assert_eq!(other.header("keyturn-outcome"), Some("existing"));
            // Of GitHub's the two without an identity were genuine as well.
            let listed = deliveries(&owner, &hook, if signature == "github" { 4 } else { 2 }).await;
            assert!(listed.iter().any(|one| one["event_id"] == "\"one\""), "{listed:?}");
        }
    }
    // What is stale is so with and without an ID.
    let hook = made(&owner, &definition("standard")).await;
    let call = hook.bare(&nobody, "{}").header("webhook-timestamp", now() - 3600);
    Answer::of(call.header("webhook-signature", "v1,AAAA")).await.refused(401, "signature-wrong");
}

fn uuid(number: u128) -> String {
    format!("{:08x}-0000-7000-8000-{number:012x}", 0x0190_0000)
}

#[tokio::test]
async fn an_event_that_was_refused_works_once_the_hook_is_mended() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    let hook = made(&owner, &definition("standard")).await;
    let event = json!({ "kind": "order", "title": "one", "order": 1 });
    let refused = hook.deliver(&nobody, "ev", &event).await.refused(422, "hook-mapping-failed");
    let errors = refused.json()["errors"].as_array().unwrap().clone();
    assert_eq!(errors[0]["pointer"], "/name", "{}", refused.text());
    assert!(errors[0]["detail"].as_str().unwrap().contains("payload.name"), "{}", refused.text());
    let etag = owner.etag(&hook.managed()).await;
    let patch = json!({ "name": "{{ payload.title }}", "sample": null });
    owner.patch(&hook.managed(), "mend", "\"7\"", &patch).await.refused(412, "precondition-failed");
    let mended = owner.patch(&hook.managed(), "mend", &etag, &patch).await.is(200);
    assert_eq!(mended.json()["version"], 2);
    owner.patch(&hook.managed(), "mend", &etag, &patch).await.repeats_without_state(&mended);
    hook.deliver(&nobody, "ev", &event).await.is(202);
    // What the schema refuses is told as any other refusal.
    let wrong = json!({ "kind": "order", "title": "two", "order": 2, "count": "many" });
    hook.deliver(&nobody, "wrong", &wrong).await.refused(422, "invalid-parameters");
    hook.deliver(&nobody, "name", &json!({ "kind": "order", "title": "No Name", "order": 2 }))
        .await
        .refused(422, "invalid-parameters");
    assert_eq!(world.count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_deliveries_at_once_on_two_servers_make_one_request() {
    let world = World::at(Home::on_postgres(Cluster::shared(), &[]));
    let other = Server::start(world.server.home.beside(&[]));
    let hook = made(&owner(&world), &definition("standard")).await;
    for round in 0..3 {
        let (event, body) = (fresh("both"), order(&format!("both-{round}"), round));
        let sends = (0..20).map(|number| {
            let base = [&world.server.base, &other.base][number % 2];
            let (api, hook) = (Api::new(base, None), hook.clone());
            let (event, body) = (event.clone(), body.clone());
            tokio::spawn(async move { hook.deliver(&api, &event, &body).await })
        });
        let mut answers = Vec::new();
        for send in sends.collect::<Vec<_>>() {
            answers.push(send.await.unwrap().is(202));
        }
        assert!(answers.iter().all(|answer| answer.lasting() == answers[0].lasting()));
        let firsts = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none());
        assert_eq!(firsts.count(), 1);
    }
    assert_eq!(world.count().await, 3);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_two_count_while_it_is_rotated() {
    let world = World::at(Home::on_sqlite(&[]));
    let (owner, nobody) = (owner(&world), world.nobody());
    let first = owner.post(HOOKS, "make", &definition("standard")).await.is(201);
    let repeat = owner.post(HOOKS, "make", &definition("standard")).await.is(201);
    assert_eq!((repeat.header("idempotency-replayed"), repeat.id()), (Some("true"), first.id()));
    assert!(
        repeat.json().get("secret").is_none() && repeat.text().contains("shown once"),
        "{}",
        repeat.text()
    );
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    let old = Hook { id: first.id(), secret, signature: "standard".into() };
    for shown in [owner.get(HOOKS).await, owner.get(&old.managed()).await] {
        assert!(!shown.text().contains(&old.secret) && !shown.text().contains("whsec_"));
    }

    let rotate = format!("{}/rotate", old.managed());
    let body = json!({ "old_secret_ends_after": "1h" });
    let rotated = owner.post(&rotate, "turn", &body).await.is(200).json();
    let new = Hook { secret: rotated["secret"].as_str().unwrap().to_owned(), ..old.clone() };
    assert!(rotated["old_secret_ends_at"].is_string() && new.secret != old.secret);
    assert!(owner.post(&rotate, "turn", &body).await.is(200).json().get("secret").is_none());
    owner.post(&rotate, "again", &body).await.refused(409, "already-decided");
    old.deliver(&nobody, "a", &order("a", 1)).await.is(202);
    new.deliver(&nobody, "b", &order("b", 2)).await.is(202);
    // The repeat of an event is one, whichever secret signs it.
    assert_eq!(
        new.deliver(&nobody, "a", &order("a", 1)).await.is(202).header("idempotency-replayed"),
        Some("true")
    );
    owner.act(&format!("{}/end-old-secret", old.managed()), "end").await.is(200);
    old.deliver(&nobody, "c", &order("c", 3)).await.refused(401, "signature-wrong");
    new.deliver(&nobody, "c", &order("c", 3)).await.is(202);
    // One that ends at once.
    let now = json!({ "old_secret_ends_after": "0s" });
    let last = owner.post(&rotate, "now", &now).await.is(200).json();
    new.deliver(&nobody, "d", &order("d", 4)).await.refused(401, "signature-wrong");
    let last = Hook { secret: last["secret"].as_str().unwrap().to_owned(), ..old.clone() };
    last.deliver(&nobody, "d", &order("d", 4)).await.is(202);

    // Neither secrets nor payloads lie on the disk in the clear, and a new version of the portal's key takes them over.
    deliveries(&owner, &last, 5).await;
    for file in ["keyturn.db", "keyturn.db-wal"] {
        let bytes = std::fs::read(world.server.home.path().join("data").join(file)).unwrap();
        for text in ["whsec_", "\"order\":4"] {
            assert!(!bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text} in {file}");
        }
    }

    // A removed hook says so, and its list is gone.
    owner.delete(&last.managed(), "remove").await.is(204);
    last.deliver(&nobody, "d", &order("d", 4)).await.refused(410, "hook-removed");
    owner.get(&last.managed()).await.refused(404, "not-found");
    assert_eq!(owner.get(HOOKS).await.is(200).json()["total"], 0);
    owner.delete(&last.managed(), "remove").await.is(204);
    let gone = owner.delete(&last.managed(), "other").await.is(200);
    assert_eq!(gone.header("keyturn-outcome"), Some("existing"));
    assert!(gone.json()["removed_at"].is_string() && gone.json()["id"] == last.id, "{}", gone.text());
}

#[tokio::test]
async fn owners_change_hooks_members_see_them_and_others_do_not() {
    let world = World::start();
    let owner = owner(&world);
    let hook = made(&owner, &definition("bearer")).await;
    for api in [&world.ann, &world.vic] {
        let listed = api.get(HOOKS).await.is(200).json();
        assert_eq!(listed["results"][0]["id"], hook.id);
        assert!(listed["results"][0].get("sample").is_none());
        assert!(api.get(&hook.managed()).await.is(200).json().get("sample").is_none());
        let refused = api.post(HOOKS, "k", &definition("bearer")).await.refused(403, "forbidden");
        let is_member = api.token == world.ann.token;
        assert_eq!(refused.text().contains("Only owners of team alpha"), is_member, "{}", refused.text());
        api.patch(&hook.managed(), "k", "\"1\"", &json!({ "title": "x" })).await.refused(403, "forbidden");
        api.act(&format!("{}/rotate", hook.managed()), "k").await.refused(403, "forbidden");
        api.delete(&hook.managed(), "k").await.refused(403, "forbidden");
        api.get(&format!("{}/deliveries", hook.managed())).await.refused(403, "forbidden");
        let test = json!({ "payload": {} });
        api.post(&format!("{}/test", hook.managed()), "k", &test).await.refused(403, "forbidden");
    }
    assert!(owner.get(&hook.managed()).await.is(200).json()["sample"].is_object());
    world.ben.get(HOOKS).await.refused(404, "not-found");
    world.ben.get(&hook.managed()).await.refused(404, "not-found");
    let keyless = owner.call("POST", HOOKS).json(&definition("bearer"));
    Answer::of(keyless).await.refused(400, "idempotency-key-missing");
}

#[tokio::test]
async fn a_mapping_is_checked_before_it_is_kept() {
    let world = World::start();
    let owner = owner(&world);
    let refused = async |change: Value, pointer: &str, says: &str| {
        let mut body = definition("standard");
        change.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = owner.post(HOOKS, "bad", &body).await.refused(422, "invalid-parameters");
        let errors = answer.json()["errors"].as_array().unwrap().clone();
        let found = errors.iter().find(|error| error["pointer"] == pointer);
        let detail =
            found.unwrap_or_else(|| panic!("{}", answer.text()))["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(says), "{detail}");
    };
    refused(json!({ "offering": "none" }), "/offering", "no offering").await;
    refused(json!({ "signature": "none" }), "/signature", "standard, github or bearer").await;
    refused(json!({ "identity": "Authorization" }), "/identity", "header").await;
    refused(json!({ "title": "" }), "/title", "what the hook is for").await;
    refused(json!({ "name": "{{ payload.name " }), "/name", "}}").await;
    refused(json!({ "when": "payload.kind = 1" }), "/when", "").await;
    refused(json!({ "parameters": { "colour": "red" } }), "/parameters", "\"colour\" is not a parameter")
        .await;
    refused(
        json!({ "parameters": { "count": "{{ payload.none }}" } }),
        "/parameters/count",
        "with the sample",
    )
    .await;
    refused(
        json!({ "parameters": { "count": "x{{ payload.order }}" } }),
        "/parameters/count",
        "with the sample",
    )
    .await;
    refused(json!({ "labels": { "system.x": "y" } }), "/labels", "system.").await;
    refused(json!({ "labels": { "idempotency.key": "y" } }), "/labels", "identity").await;
    owner.post(HOOKS, "bad", &json!({ "unknown": 1 })).await.refused(400, "invalid-json");
    // None of that has used the key up.
    owner.post(HOOKS, "bad", &definition("standard")).await.is(201);
}

#[tokio::test]
async fn a_test_event_shows_what_it_would_do_and_is_sent_when_asked() {
    let world = World::start();
    let owner = owner(&world);
    for signature in ["standard", "github", "bearer"] {
        let hook = made(&owner, &definition(signature)).await;
        let test = format!("{}/test", hook.managed());
        let before = world.count().await;
        let payload = order(&format!("test-{signature}"), 1);
        let dry =
            Answer::of(owner.call("POST", &test).json(&json!({ "payload": payload }))).await.is(200).json();
        assert_eq!((&dry["dry_run"], &dry["counts"]), (&json!(true), &json!(true)));
        assert_eq!(dry["plan"]["command"]["parameters"]["count"], 2);
        assert_eq!(dry["plan"]["plan"]["outcome"], "create");
        let ignored = owner.post(&test, "k", &json!({ "payload": { "kind": "noise" } })).await.is(200).json();
        assert_eq!(ignored["counts"], false);
        owner
            .post(&test, "k", &json!({ "payload": { "kind": "order" } }))
            .await
            .refused(422, "hook-mapping-failed");
        assert_eq!(world.count().await, before, "nothing was made");
        assert!(deliveries(&owner, &hook, 0).await.is_empty());

        let real = json!({ "payload": payload, "send": true });
        Answer::of(owner.call("POST", &test).json(&real)).await.refused(400, "idempotency-key-missing");
        let sent = owner.post(&test, "test-1", &real).await.is(202);
        assert_eq!(sent.json()["labels"]["idempotency.key"], "test-1");
        owner.post(&test, "test-1", &real).await.repeats(&sent);
        assert_eq!(world.count().await, before + 1);
        assert_eq!(deliveries(&owner, &hook, 2).await.len(), 2);
    }
}

#[tokio::test]
async fn guesses_at_a_secret_are_braked_by_address_and_genuine_events_get_in() {
    let world = World::start();
    let (owner, nobody) = (owner(&world), world.nobody());
    let hook = made(&owner, &definition("bearer")).await;
    let mut braked = 0;
    for number in 0..150 {
        let call =
            hook.bare(&nobody, "{}").header("Idempotency-Key", "e").bearer_auth(format!("guess-{number}"));
        let answer = Answer::of(call.header("X-Forwarded-For", format!("10.0.0.{number}"))).await;
        match answer.status {
            401 => {}
            429 => {
                assert!(answer.header("retry-after").is_some());
                braked += 1;
            }
            other => panic!("{other}: {}", answer.text()),
        }
    }
    assert!(braked >= 40, "{braked}");
    hook.deliver(&nobody, "e", &order("e", 1)).await.is(202);
}
