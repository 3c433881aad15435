//! A campaign within one process: callers and workers over a store, and the history that comes of it.

use super::{
    Fault,
    hands::Shop,
    history::{Ask, Call, Dice, End, History, Object, Outcome, Request, Resource, Told},
};
use crate::{
    Answered, Error,
    provisioner::fake::Fake,
    testing::{House, Plan, SOON, key},
};
use bytes::Bytes;
use domain::{problem::ProblemKind, view};
use serde_json::{Value, json};
use sqlx::Row;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Keys of which the first answer gets lost with its server.
const LOST: &str = "-lost";
const WORKERS: u64 = 4;
const CALLERS: u64 = 6;
const STEPS: u64 = 12;

struct Field {
    house: Arc<House>,
    ticks: AtomicU64,
    calls: Mutex<Vec<Call>>,
    sent: Mutex<Vec<(String, Ask)>>,
    requests: Mutex<Vec<String>>,
    /// Keys whose server ended before it could answer.
    lost: Mutex<HashSet<String>>,
}

/// The history of one campaign, with everything at its end.
pub(super) async fn history(seed: u64, fault: Fault) -> History {
    let house = Arc::new(House::build(Plan::of(Fake::default())).await);
    break_it(&house, fault).await;
    let field = Arc::new(Field {
        house: Arc::clone(&house),
        ticks: AtomicU64::new(0),
        calls: Mutex::default(),
        sent: Mutex::default(),
        requests: Mutex::default(),
        lost: Mutex::default(),
    });
    let shop = Arc::new(Shop {
        house,
        fault,
        ledger: Mutex::default(),
        enough: AtomicBool::new(false),
        away: tokio::sync::Semaphore::new(2),
    });
    let workers = (0..WORKERS).map(|who| tokio::spawn(Arc::clone(&shop).work(Dice(seed).of(200 + who))));
    let workers: Vec<_> = workers.collect();
    let callers =
        (0..CALLERS).map(|who| tokio::spawn(Arc::clone(&field).call(Dice(seed).of(100 + who), who)));
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    field.all_again().await;
    field.settled().await;
    field.all_again().await;
    field.settled().await;
    shop.enough.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let mut end = field.end().await;
    end.ledger.clone_from(&shop.ledger.lock().unwrap());
    History { calls: field.calls.lock().unwrap().clone(), sights: Vec::new(), end }
}

/// Makes the database do what it would do if the promise were not kept.
async fn break_it(house: &House, fault: Fault) {
    let trigger = match fault {
        Fault::Sound | Fault::NoFence => return,
        Fault::NoUniqueKeys => {
            "CREATE TRIGGER broken AFTER INSERT ON claim BEGIN
                UPDATE claim SET key = NEW.key || '-' || NEW.id WHERE id = NEW.id;
            END"
        }
        // Its server ends before the claim is written; the request is there by then.
        Fault::ClaimApart => {
            "CREATE TRIGGER broken AFTER INSERT ON claim
             WHEN NEW.key LIKE '%-lost' AND NOT EXISTS (SELECT 1 FROM submission WHERE key = NEW.key) BEGIN
                DELETE FROM claim WHERE id = NEW.id;
            END"
        }
    };
    sqlx::query(trigger).execute(&mut house.database().await).await.unwrap();
}

impl Field {
    async fn call(self: Arc<Self>, mut dice: Dice, who: u64) {
        for step in 0..STEPS {
            let pick = dice.next();
            let (key, ask) = match dice.below(8) {
                0..4 => {
                    let lost = if dice.below(4) == 0 { LOST } else { "" };
                    (format!("key-{who}-{step}{lost}"), create(&mut dice, who, step))
                }
                4 | 5 => match chosen(&self.sent, pick) {
                    Some(before) => before,
                    None => continue,
                },
                6 => match chosen(&self.sent, pick) {
                    Some((key, Ask::Create { name, .. })) => (key, other(&name)),
                    _ => continue,
                },
                _ => match chosen(&self.requests, pick) {
                    Some(request) => (format!("key-{who}-{step}"), Ask::Cancel { request }),
                    None => continue,
                },
            };
            self.sent.lock().unwrap().push((key.clone(), ask.clone()));
            let again = dice.below(2) == 0;
            while self.send(&key, &ask).await == Outcome::Unknown && again {}
            tokio::time::sleep(Duration::from_millis(dice.below(20))).await;
        }
    }

    async fn send(&self, key: &str, ask: &Ask) -> Outcome {
        let began = self.ticks.fetch_add(1, Ordering::SeqCst);
        let mut outcome = outcome(self.asked(key, ask).await);
        if key.ends_with(LOST)
            && matches!(outcome, Outcome::Told(_))
            && self.lost.lock().unwrap().insert(key.into())
        {
            outcome = Outcome::Unknown;
        }
        let ended = self.ticks.fetch_add(1, Ordering::SeqCst);
        if let Outcome::Told(told) = &outcome
            && !told.replayed
        {
            self.requests.lock().unwrap().push(told.request.clone());
        }
        let call = Call { began, ended, key: key.into(), ask: ask.clone(), if_match: None, outcome };
        self.calls.lock().unwrap().push(call.clone());
        call.outcome
    }

    async fn asked(&self, with: &str, ask: &Ask) -> Result<Answered, Error> {
        let (portal, ann) = (&self.house.portal, &self.house.ann);
        match ask {
            Ask::Create { name, parameters } => {
                let body = json!({ "offering": "vm", "name": name, "parameters": parameters });
                self.house.send(with, &body).await
            }
            Ask::Cancel { request } => portal.cancel(ann, request, key(with), Bytes::new()).await,
            other => panic!("not in this campaign: {other:?}"),
        }
    }

    /// Sends every key with every meaning until it has an answer.
    async fn all_again(&self) {
        let sent = self.sent.lock().unwrap().clone();
        for (key, ask) in sent {
            let end = Instant::now() + SOON;
            while self.send(&key, &ask).await == Outcome::Unknown {
                assert!(Instant::now() < end, "no answer for {key}");
            }
        }
    }

    /// Waits until nothing moves any more, or long enough for that.
    async fn settled(&self) {
        let end = Instant::now() + SOON / 2;
        let open = "SELECT count(*) FROM request WHERE finished_at IS NULL";
        while Instant::now() < end {
            let open: i64 =
                sqlx::query_scalar(open).fetch_one(&mut self.house.database().await).await.unwrap();
            if open == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(&self) -> End {
        let mut database = self.house.database().await;
        let rows = sqlx::query("SELECT id, action, name, state, parameters FROM request");
        let requests: Vec<Request> = rows
            .map(|row: sqlx::sqlite::SqliteRow| Request {
                id: row.get::<uuid::Uuid, _>(0).to_string(),
                action: row.get(1),
                name: row.get(2),
                state: row.get(3),
                parameters: object(row.get(4)),
            })
            .fetch_all(&mut database)
            .await
            .unwrap();
        let rows = sqlx::query(
            "SELECT id, name, version, state, parameters, request FROM resource WHERE ended_at IS NULL",
        );
        let resources = rows
            .map(|row: sqlx::sqlite::SqliteRow| Resource {
                life: row.get::<uuid::Uuid, _>(0).to_string(),
                name: row.get(1),
                version: row.get(2),
                deleting: row.get::<&str, _>(3) == "deleting",
                parameters: object(row.get(4)),
                made_by: row.get::<uuid::Uuid, _>(5).to_string(),
            })
            .fetch_all(&mut database)
            .await
            .unwrap();
        End { requests, resources, ledger: Vec::new() }
    }
}

fn object(text: &str) -> Object {
    serde_json::from_str(text).unwrap()
}

fn chosen<T: Clone>(among: &Mutex<Vec<T>>, pick: u64) -> Option<T> {
    let among = among.lock().unwrap();
    let length = u64::try_from(among.len()).unwrap();
    (length > 0).then(|| among[usize::try_from(pick % length).unwrap()].clone())
}

/// Mostly a name of its own; sometimes one that others want as well.
fn create(dice: &mut Dice, who: u64, step: u64) -> Ask {
    let name = if dice.below(4) == 0 { format!("shared-{}", step / 4) } else { format!("own-{who}-{step}") };
    let parameters = if dice.below(3) == 0 { json!({ "size": "large" }) } else { json!({}) };
    Ask::Create { name, parameters: parameters.as_object().unwrap().clone() }
}

/// Another meaning than that of a create of this name.
fn other(name: &str) -> Ask {
    let parameters = view::Object::from_iter([("count".to_owned(), Value::from(77))]);
    Ask::Create { name: format!("{name}-x"), parameters }
}

fn outcome(result: Result<Answered, Error>) -> Outcome {
    match result {
        Ok(answered) => Outcome::Told(Told {
            request: answered.request_id.unwrap().to_string(),
            head: format!("{:?}", (answered.answer.kind, answered.answer.location, answered.answer.etag)),
            body: String::from_utf8(answered.answer.body.to_vec()).unwrap(),
            replayed: answered.replayed,
            existing: answered.existing,
        }),
        Err(error) => match error.kind {
            ProblemKind::StoreUnavailable | ProblemKind::Busy | ProblemKind::KeyInUse => Outcome::Unknown,
            ProblemKind::KeyReused => refused(422, error.kind),
            ProblemKind::NameTaken | ProblemKind::AlreadyDecided => refused(409, error.kind),
            ProblemKind::NotFound => refused(404, error.kind),
            kind => refused(500, kind),
        },
    }
}

fn refused(status: u16, kind: ProblemKind) -> Outcome {
    Outcome::Refused { status, problem: kind.slug().into() }
}
