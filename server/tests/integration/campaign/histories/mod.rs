//! Randomised histories: many callers at once, while servers and databases are killed and started again. All they were
//! told, and how things stand at the end, is then checked against the model of `history`.

mod caller;
mod plan;

use super::{programs_of, thrown};
use crate::{
    history::{Ask, Dice, Effect, End, History, Outcome, Request, check},
    support::{Api, Cluster, Home, SOON, Server, World, eventually},
};
use caller::{Caller, Field, Sent, resource};
use serde_json::Value;
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// How many call at once.
const CALLERS: u64 = 12;
/// How long all that was accepted may take to come to its end once everything stays up.
const BOUND: Duration = Duration::from_mins(1);
/// Short leases, so that what a killed server held is taken up soon, and a log of faults only.
const SETTINGS: [(&str, &str); 2] = [("KEYTURN_LEASE", "1s"), ("KEYTURN_LOG", "error")];

/// How long the faults go on at least.
fn length() -> Duration {
    let minutes = std::env::var("KEYTURN_CAMPAIGN_MINUTES").ok().map(|text| text.parse().unwrap());
    Duration::from_secs(60 * minutes.unwrap_or(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_promises_hold_while_the_server_is_killed_again_and_again() {
    let mut site = Site { world: World::at(Home::on_sqlite(&SETTINGS)), beside: Vec::new(), cluster: None };
    site.campaign(42).await;
    let (taken_up, adopted) = interrupted(&site.world).await;
    println!("{taken_up} runs were interrupted and taken up again, {adopted} of them after their effect");
    assert!(taken_up > 0, "no kill met a run");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_promises_hold_while_two_servers_are_killed_and_their_database_is_restarted() {
    let cluster = Cluster::start(&["--durable"]);
    let world = World::at(Home::on_postgres(
        &cluster,
        &[&SETTINGS[..], &[("KEYTURN_CLOCK_OFFSET", "5m")][..]].concat(),
    ));
    // The clocks of the two are ten minutes apart.
    let beside = vec![Server::start(world.server.home.beside(&[("KEYTURN_CLOCK_OFFSET", "-5m")]))];
    let mut site = Site { world, beside, cluster: Some(cluster) };
    site.campaign(24).await;
}

/// The servers of a campaign, and what they stand on.
struct Site {
    world: World,
    /// Other servers on the same database.
    beside: Vec<Server>,
    /// The database server, where it is one.
    cluster: Option<Cluster>,
}

impl Site {
    /// Where all servers are now.
    fn portals(&self) -> Vec<Api> {
        let ann = &self.world.ann;
        let beside = self.beside.iter().map(|server| server.api(ann.token.as_deref().unwrap()));
        std::iter::once(ann.clone()).chain(beside).collect()
    }

    /// Lets something fail, and brings it back.
    async fn fail(&mut self, dice: &mut Dice) {
        if let Some(cluster) = self.cluster.as_ref().filter(|_| dice.below(4) == 0) {
            assert_eq!(cluster.ask("stop"), "stopped");
            tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
            assert_eq!(cluster.ask("start"), "started");
            return;
        }
        let number = usize::try_from(dice.below(1 + u64::try_from(self.beside.len()).unwrap())).unwrap();
        let while_starting = (dice.below(4) == 0).then(|| Duration::from_millis(dice.below(200)));
        let server = if number == 0 { &mut self.world.server } else { &mut self.beside[number - 1] };
        server.kill();
        if let Some(after) = while_starting {
            server.begin_and_kill(after).await;
        }
        if number == 0 { self.world.restart() } else { server.restart() }
    }

    /// Lets callers call while so many things fail, and checks what comes of it.
    async fn campaign(&mut self, faults: u32) {
        let mut dice = thrown();
        let seed = dice.clone();
        let field = Arc::new(Field::new(self.portals()));
        let callers =
            (1..=CALLERS).map(|who| tokio::spawn(Caller::new(&seed, who, Arc::clone(&field)).run()));
        let callers: Vec<_> = callers.collect();
        let (begun, long) = (Instant::now(), length());
        let mut failed = 0;
        while failed < faults || begun.elapsed() < long {
            tokio::time::sleep(Duration::from_millis(dice.below(900))).await;
            self.fail(&mut dice).await;
            failed += 1;
            *field.portals.write().unwrap() = self.portals();
            assert!(callers.iter().all(|caller| !caller.is_finished()), "a caller gave up");
        }
        field.enough.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        let home = self.world.server.home.path().to_owned();
        let history = healed(&seed, &field, &self.world.ada, &home.join("data/offerings/vm")).await;
        eprintln!("{failed} faults, {:.1} s; {}", begun.elapsed().as_secs_f64(), told(&history));
        must_hold(&seed, &history);
        eventually("nothing runs any more", async || programs_of(&home).is_empty().then_some(())).await;
    }
}

/// Lets everything come to its end, sends every key once more before and after that, and tells how things stand then.
async fn healed(seed: &Dice, field: &Arc<Field>, all_seeing: &Api, state: &Path) -> History {
    // Whatever got lost arrives now or never.
    all_again(seed, field, field.sent()).await;
    // From now on everything can be looked at, so that whatever nobody could tell is decided.
    std::fs::create_dir_all(state).unwrap();
    std::fs::write(state.join("mended"), "").unwrap();
    settled(seed, field, all_seeing).await;
    // And once all is over, every key that was accepted still has its first answer.
    let accepted = |sent: &Sent, calls: &HashSet<String>| calls.contains(&sent.key);
    let told: HashSet<String> = field
        .calls()
        .into_iter()
        .filter(|call| matches!(call.outcome, Outcome::Told(_)))
        .map(|call| call.key)
        .collect();
    let again = field.sent().into_iter().filter(|sent| accepted(sent, &told)).collect();
    all_again(seed, field, again).await;
    let requests = settled(seed, field, all_seeing).await;
    let resources = all(all_seeing, "/teams/alpha/resources").await;
    let end = End {
        requests: requests.iter().map(request).collect(),
        resources: resources.iter().map(resource).collect(),
        ledger: effects(&std::fs::read_to_string(state.join("ledger")).unwrap_or_default()),
    };
    History { calls: field.calls(), sights: field.sights(), end }
}

/// Sends all of these until each has an answer.
async fn all_again(seed: &Dice, field: &Arc<Field>, sent: Vec<Sent>) {
    let shares = usize::try_from(CALLERS).unwrap();
    let tasks = (0..shares).map(|share| {
        let mut caller = Caller::new(seed, u64::try_from(share).unwrap() + 2000, Arc::clone(field));
        let mine: Vec<Sent> = sent.iter().skip(share).step_by(shares).cloned().collect();
        tokio::spawn(async move {
            for sent in mine {
                caller.insist(&sent).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
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

/// All requests, once every one has come to its end; what nobody can tell is tried once more.
async fn settled(seed: &Dice, field: &Arc<Field>, api: &Api) -> Vec<Value> {
    let end = Instant::now() + BOUND.max(SOON);
    // No key of these was used before.
    let mut decided = field.calls().len();
    loop {
        let requests = all(api, "/requests").await;
        let open: Vec<&Value> = requests.iter().filter(|one| one["finished_at"].is_null()).collect();
        if open.is_empty() {
            return requests;
        }
        let unknown: Vec<Sent> = open
            .iter()
            .filter(|one| one["state"] == "unknown")
            .map(|one| {
                decided += 1;
                let (request, resolution) = (one["id"].as_str().unwrap().to_owned(), "retry".to_owned());
                let key = format!("last-word-{decided}-{request}");
                Sent { key, ask: Ask::Resolve { request, resolution }, if_match: None }
            })
            .collect();
        for sent in &unknown {
            field.add(sent.clone());
        }
        all_again(seed, field, unknown).await;
        assert!(Instant::now() < end, "stuck: {open:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn request(shown: &Value) -> Request {
    let text = |member: &str| shown[member].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    Request {
        id: text("id"),
        action: text("action"),
        name: text("name"),
        state: text("state"),
        reason: shown["reason"].as_str().map(str::to_owned),
        parameters: shown["parameters"].as_object().unwrap().clone(),
    }
}

/// The test offering's own ledger: `<deed> <request> <team>/<name> <attempt> <action> <count> …`.
fn effects(ledger: &str) -> Vec<Effect> {
    let effect = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let name = words[2].strip_prefix("alpha/").unwrap().to_owned();
        let (attempt, count) = (words[3].parse().unwrap(), words[5].parse().ok());
        Effect { deed: words[0].to_owned(), request: words[1].to_owned(), attempt, name, count }
    };
    ledger.lines().map(effect).collect()
}

/// What a history is made of, in short.
fn told(history: &History) -> String {
    type Kind = (&'static str, fn(&Ask) -> bool);
    let count = |fits: fn(&Outcome) -> bool| history.calls.iter().filter(|call| fits(&call.outcome)).count();
    let kinds: [Kind; 7] = [
        ("create", |ask| matches!(ask, Ask::Create { .. })),
        ("update", |ask| matches!(ask, Ask::Update { .. })),
        ("add", |ask| matches!(ask, Ask::Add { .. })),
        ("delete", |ask| matches!(ask, Ask::Delete { .. })),
        ("cancel", |ask| matches!(ask, Ask::Cancel { .. })),
        ("retry", |ask| matches!(ask, Ask::Retry { .. })),
        ("resolve", |ask| matches!(ask, Ask::Resolve { .. })),
    ];
    let kinds = kinds.map(|(word, fits)| {
        let told =
            history.calls.iter().filter(|call| fits(&call.ask) && matches!(call.outcome, Outcome::Told(_)));
        (word, told.count())
    });
    format!(
        "{} calls (told: {kinds:?}): {} told, {} refused, {} without an answer; {} looks, {} requests, {} effects",
        history.calls.len(),
        count(|outcome| matches!(outcome, Outcome::Told(_))),
        count(|outcome| matches!(outcome, Outcome::Refused { .. })),
        count(|outcome| *outcome == Outcome::Unknown),
        history.sights.len(),
        history.end.requests.len(),
        history.end.ledger.len(),
    )
}

/// Demands that no promise was broken; else the whole history is kept for whoever looks into it.
#[track_caller]
fn must_hold(seed: &Dice, history: &History) {
    let found = check(history);
    if !found.is_empty() {
        let file = std::env::temp_dir().join(format!("keyturn-history-{}", seed.0));
        std::fs::write(&file, format!("{history:#?}")).unwrap();
        let (first, file) = (&found[..found.len().min(20)], file.display());
        panic!("{} promises were broken; the history is in {file}; the first are {first:#?}", found.len());
    }
}

/// How many creates were looked at for no other reason than that their holder had gone, and how many of them were found
/// done.
async fn interrupted(world: &World) -> (i64, i64) {
    let options = SqliteConnectOptions::new().filename(world.server.home.database());
    let mut database = options.connect().await.unwrap();
    let looked = "SELECT count(DISTINCT request), count(DISTINCT iif(entry LIKE '%made by this request%', request, NULL))
                    FROM event JOIN request ON request.id = event.request
                   WHERE entry LIKE '%\"step\":\"observe\"%' AND parameters LIKE '%\"behaviour\":\"ok\"%'
                     AND action = 'create' AND state = 'succeeded'";
    sqlx::query_as(looked).fetch_one(&mut database).await.unwrap()
}
