//! The crash campaign: a load of submissions with retries while the server is killed again and again.

use super::{Dice, programs_of};
use crate::support::{ALPHA, Answer, Api, SOON, World, eventually, vm};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::{
    collections::HashMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How often the server is killed at least.
const KILLS: u32 = 42;
/// How many send at once.
const SENDERS: u64 = 12;
/// How long a sender goes on with one submission that gets no answer, or one request that comes to no end.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long all that was accepted may take to come to its end once the server stays up.
const BOUND: Duration = Duration::from_mins(1);

/// What is told of one key: its body, and its first answer.
struct Told {
    key: String,
    body: Value,
    first: Answer,
}

/// One who submits, and repeats until there is an answer.
struct Sender {
    dice: Dice,
    /// Where the server is now, which changes with each start.
    portal: Arc<RwLock<Api>>,
    next: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
}

impl Sender {
    async fn send(mut self) -> Vec<Told> {
        let mut told = Vec::new();
        while !self.enough.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let (key, body) = (format!("campaign-{number}"), self.body(number));
            let first = self.until_answered(&key, &body).await;
            // Some repeat at once what was answered already.
            if self.dice.below(3) == 0 {
                let again = self.until_answered(&key, &body).await;
                assert_eq!(again.lasting(), first.lasting(), "{key}");
            }
            // Others wait for the end, so that however long this goes on, what waits stays bounded.
            if self.dice.below(3) == 0 {
                self.until_ended(&first.id()).await;
            }
            told.push(Told { key, body, first });
            tokio::time::sleep(Duration::from_millis(self.dice.below(600))).await;
        }
        told
    }

    fn body(&mut self, number: u64) -> Value {
        let mut parameters = match self.dice.below(10) {
            0 => json!({ "behaviour": "fail" }),
            1 => json!({ "behaviour": "retry-once" }),
            2 | 3 => json!({ "behaviour": "lose-answer" }),
            _ => json!({}),
        };
        if self.dice.below(2) == 0 {
            parameters["seconds"] = json!(f64::from(u32::try_from(self.dice.below(40)).unwrap()) / 100.0);
        }
        vm(&format!("campaign-{number}"), parameters)
    }

    /// Asks until the request has come to its end.
    async fn until_ended(&mut self, id: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let portal = self.portal.read().unwrap().clone();
            let call = portal.call("GET", &format!("/requests/{id}")).header("Prefer", "wait=2");
            if let Ok(answer) = Answer::try_of(call.timeout(Duration::from_secs(5))).await
                && answer.status != 503
                && !answer.clone().is(200).json()["finished_at"].is_null()
            {
                return;
            }
            assert!(Instant::now() < end, "no end of {id}");
            tokio::time::sleep(Duration::from_millis(self.dice.below(100))).await;
        }
    }

    /// Sends until there is an answer of the portal's own; two at a time now and then.
    async fn until_answered(&mut self, key: &str, body: &Value) -> Answer {
        let end = Instant::now() + PATIENCE;
        let mut wait = 20;
        loop {
            let portal = self.portal.read().unwrap().clone();
            let send = || submit(portal.clone(), key.to_owned(), body.to_string());
            let answers = if self.dice.below(4) == 0 {
                let (one, two) = tokio::join!(send(), send());
                [one, two]
            } else {
                [send().await, None]
            };
            let mut given = answers.into_iter().flatten();
            if let Some(answer) = given.next() {
                if let Some(other) = given.next() {
                    assert_eq!(answer.lasting(), other.lasting(), "{key}");
                }
                return answer;
            }
            assert!(Instant::now() < end, "no answer for {key}");
            tokio::time::sleep(Duration::from_millis(self.dice.below(wait))).await;
            wait = (wait * 2).min(500);
        }
    }
}

/// The portal's answer to a submission; nothing if there was none, or only that it cannot answer now.
async fn submit(portal: Api, key: String, body: String) -> Option<Answer> {
    let call = portal.call("POST", ALPHA).header("Idempotency-Key", &key);
    let call = call.header("Content-Type", "application/json").timeout(Duration::from_secs(10)).body(body);
    let answer = Answer::try_of(call).await.ok()?;
    match answer.status {
        202 => Some(answer),
        409 | 503 => None,
        _ => panic!("{key}: {} {}", answer.status, answer.text()),
    }
}

fn kills() -> (u32, Duration) {
    let minutes = std::env::var("KEYTURN_CAMPAIGN_MINUTES").ok().map(|text| text.parse().unwrap());
    (KILLS, Duration::from_secs(60 * minutes.unwrap_or(0)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_again_and_again_does_all_that_it_accepted_once() {
    let mut dice = Dice::thrown();
    let mut world = World::with(&[("KEYTURN_LEASE", "1s"), ("KEYTURN_LOG", "error")]);
    let portal = Arc::new(RwLock::new(world.ann.clone()));
    let (next, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let senders: Vec<_> = (1..=SENDERS)
        .map(|who| {
            let (portal, next, enough) = (Arc::clone(&portal), Arc::clone(&next), Arc::clone(&enough));
            tokio::spawn(Sender { dice: dice.of(who), portal, next, enough }.send())
        })
        .collect();

    let ((at_least, long), begun) = (kills(), Instant::now());
    let mut killed = 0;
    while killed < at_least || begun.elapsed() < long {
        tokio::time::sleep(Duration::from_millis(dice.below(900))).await;
        world.kill();
        killed += 1;
        if dice.below(4) == 0 {
            // Also while it starts.
            world.server.begin_and_kill(Duration::from_millis(dice.below(200))).await;
            killed += 1;
        }
        world.restart();
        *portal.write().unwrap() = world.ann.clone();
        assert!(senders.iter().all(|sender| !sender.is_finished()), "a sender gave up");
    }
    enough.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    for sender in senders {
        told.extend(sender.await.unwrap());
    }
    println!("{killed} kills, {} keys, {:.1} s", told.len(), begun.elapsed().as_secs_f64());
    let requests = settled(&world).await;
    println!("settled after {:.1} s", begun.elapsed().as_secs_f64());
    nothing_was_lost(&world, &told, &requests).await;
    everything_happened_once(&world, &told, &requests);
    let (taken_up, adopted) = interrupted(&world).await;
    println!("{taken_up} runs were interrupted and taken up again, {adopted} of them after their effect");
    assert!(taken_up > 0, "no kill met a run");
    let home = world.server.home.path().to_owned();
    eventually("nothing runs any more", async || programs_of(&home).is_empty().then_some(())).await;
}

/// How many runs were looked at for no other reason than that their holder had gone, and how many of them were found done.
async fn interrupted(world: &World) -> (i64, i64) {
    let options = SqliteConnectOptions::new().filename(world.server.home.database());
    let mut database = options.connect().await.unwrap();
    let looked = "SELECT count(DISTINCT request), count(DISTINCT iif(entry LIKE '%made by this request%', request, NULL))
                    FROM event JOIN request ON request.id = event.request
                   WHERE entry LIKE '%\"step\":\"observe\"%' AND parameters LIKE '%\"behaviour\":\"ok\"%'";
    sqlx::query_as(looked).fetch_one(&mut database).await.unwrap()
}

/// Every row of a list.
async fn all(api: &Api, path: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}?size=500{cursor}")).await.is(200).json();
        rows.extend(page["results"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_str() else { return rows };
        cursor = format!("&cursor={next}");
    }
}

/// All requests by their ID, once every one has come to its end.
async fn settled(world: &World) -> HashMap<String, Value> {
    let end = Instant::now() + BOUND.max(SOON);
    loop {
        let requests = all(&world.ada, "/requests").await;
        let open: Vec<&Value> =
            requests.iter().filter(|one| one["finished_at"].is_null()).map(|one| &one["state"]).collect();
        if open.is_empty() {
            let by_id = requests.into_iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one));
            return by_id.collect();
        }
        assert!(Instant::now() < end, "stuck: {open:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Every key has one request and its first answer; there is no request but those.
async fn nothing_was_lost(world: &World, told: &[Told], requests: &HashMap<String, Value>) {
    for Told { key, body, first } in told {
        let again = world.ann.post(ALPHA, key, body).await;
        again.repeats(first);
        let request = &requests[&first.id()];
        assert_eq!(request["name"], body["name"]);
        let end = if body["parameters"]["behaviour"] == "fail" { "failed" } else { "succeeded" };
        assert_eq!(request["state"], end, "{request}");
    }
    assert_eq!(requests.len(), told.len(), "one request a key");
    let living = all(&world.ada, "/teams/alpha/resources").await;
    let mut makers: Vec<&str> = living.iter().map(|one| one["created_by"]["id"].as_str().unwrap()).collect();
    let mut done: Vec<&str> =
        requests.iter().filter(|(_, one)| one["state"] == "succeeded").map(|(id, _)| id.as_str()).collect();
    makers.sort_unstable();
    done.sort_unstable();
    assert_eq!(makers, done, "one resource a request that succeeded");
}

/// The program's own ledger holds one effect a request, and none of a request that failed.
fn everything_happened_once(world: &World, told: &[Told], requests: &HashMap<String, Value>) {
    let ledger = world.server.home.path().join("data/offerings/vm/ledger");
    let ledger = std::fs::read_to_string(ledger).unwrap();
    let mut effects: HashMap<&str, u32> = HashMap::new();
    for line in ledger.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], "apply", "nothing here is ever destroyed: {line}");
        assert!(requests.contains_key(words[1]), "the effect of no request: {line}");
        *effects.entry(words[1]).or_default() += 1;
    }
    for Told { key, first, .. } in told {
        let id = first.id();
        let happened = effects.get(id.as_str()).copied().unwrap_or(0);
        assert_eq!(happened, u32::from(requests[&id]["state"] == "succeeded"), "{key}: {}", requests[&id]);
    }
}
