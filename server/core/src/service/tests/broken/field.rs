//! A campaign within one process: callers and workers over a store, and the history that comes of it.

use super::{
    faults::{Fault, break_it},
    hands::Shop,
    history::{Ask, Call, Dice, End, History, Object, Outcome, Request, Resource, Told},
};
use crate::{
    Answered, Error,
    clock::{Clock, SystemClock},
    provisioner::fake::Fake,
    store::{ListScope, RequestList},
    testing::{Ground, House, Plan, SOON, key},
};
use bytes::Bytes;
use domain::{
    name::Name, problem::ProblemKind, search::Search, state::RequestState, time::Moment, view::RequestView,
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Keys of which the first answer gets lost with its server.
const LOST: &str = "-lost";
/// Keys of requests that wait longer than keys are kept, before anybody works on them.
const PATIENT: u64 = 3;
const WORKERS: u64 = 4;
const CALLERS: u64 = 6;
const STEPS: u64 = 12;

/// The machine's clock, which may be moved on.
#[derive(Debug, Default)]
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now(&self) -> Moment {
        SystemClock::shifted(self.0.load(Ordering::Relaxed)).now()
    }
}

struct Field {
    house: Arc<House>,
    fault: Fault,
    ticks: AtomicU64,
    calls: Mutex<Vec<Call>>,
    sent: Mutex<Vec<Sent>>,
    /// Requests that somebody was told of, with what they are about.
    requests: Mutex<Vec<(String, Ask)>>,
    /// Keys whose server ended before it could answer.
    lost: Mutex<HashSet<String>>,
}

/// A submission.
#[derive(Debug, Clone)]
struct Sent {
    key: String,
    ask: Ask,
    if_match: Option<String>,
}

/// The history of one campaign, with everything at its end.
pub(super) async fn history(ground: Ground, seed: u64, fault: Fault) -> History {
    let clock = Arc::new(Moved::default());
    let plan = Plan { clock: Arc::<Moved>::clone(&clock), ..Plan::of(Fake::default()) };
    let house = Arc::new(House::build_on(ground, plan).await);
    break_it(&house, fault).await;
    let field = Arc::new(Field {
        house: Arc::clone(&house),
        fault,
        ticks: AtomicU64::new(0),
        calls: Mutex::default(),
        sent: Mutex::default(),
        requests: Mutex::default(),
        lost: Mutex::default(),
    });
    for number in 0..PATIENT {
        let name = format!("patient-{number}");
        field.first(&name, create(&name, &json!({})), None).await;
    }
    let kept = house.portal.guard_policy().retention_seconds;
    clock.0.store(i64::try_from(kept * 1000 * 2).unwrap(), Ordering::Relaxed);
    let shop = Arc::new(Shop {
        house,
        fault,
        ledger: Mutex::default(),
        enough: AtomicBool::new(false),
        away: tokio::sync::Semaphore::new(2),
    });
    // What was begun is taken first, so only with many does anybody begin something while something is undone.
    let hands = if fault == Fault::NameEarly { 4 * WORKERS } else { WORKERS };
    let workers = (0..hands).map(|who| tokio::spawn(Arc::clone(&shop).work(Dice(seed).of(200 + who))));
    let workers: Vec<_> = workers.collect();
    let callers =
        (0..CALLERS).map(|who| tokio::spawn(Arc::clone(&field).call(Dice(seed).of(100 + who), who)));
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    field.change_one().await;
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

impl Field {
    async fn call(self: Arc<Self>, mut dice: Dice, who: u64) {
        for step in 0..STEPS {
            self.step(&mut dice, who, step).await;
            tokio::time::sleep(Duration::from_millis(dice.below(20))).await;
        }
    }

    async fn step(&self, dice: &mut Dice, who: u64, step: u64) -> Option<()> {
        let pick = dice.next();
        let key = format!("key-{who}-{step}");
        match dice.below(10) {
            0..4 => {
                let lost = if dice.below(4) == 0 { LOST } else { "" };
                self.first(&format!("{key}{lost}"), any_create(dice, who, step), None).await;
            }
            4 | 5 => {
                let before = chosen(&self.sent, pick)?;
                self.send_in_earnest(&before).await;
            }
            6 => {
                let before = chosen(&self.sent, pick)?;
                let Ask::Create { name, .. } = &before.ask else { return None };
                let ask = create(&format!("{name}-x"), &json!({ "count": 77 }));
                self.first(&before.key, ask, None).await;
            }
            7 | 8 => {
                let (request, about) = self.at_work(pick).await?;
                self.first(&key, Ask::Cancel { request }, None).await;
                let Ask::Create { name, .. } = about else { return None };
                self.first(&format!("{key}-anew"), create(&name, &json!({ "count": 5 })), None).await;
            }
            _ => {
                let Ask::Create { name, .. } = chosen(&self.sent, pick)?.ask else { return None };
                let version = self.version(&name).await?;
                let patch = object(json!({ "note": format!("by {who} in step {step}") }));
                self.first(&key, Ask::Update { name, patch }, Some(version)).await;
            }
        }
        Some(())
    }

    /// A create that somebody works on, if there is one just now, or else any request.
    async fn at_work(&self, pick: u64) -> Option<(String, Ask)> {
        let running = self
            .requests()
            .await
            .into_iter()
            .find(|request| request.action == "create" && request.state == RequestState::Running);
        let Some(running) = running else { return chosen(&self.requests, pick) };
        Some((running.id.to_string(), create(running.name.as_str(), &json!({}))))
    }

    /// Sends what was not sent before.
    async fn first(&self, key: &str, ask: Ask, if_match: Option<String>) {
        let sent = Sent { key: key.into(), ask, if_match };
        self.sent.lock().unwrap().push(sent.clone());
        self.send_in_earnest(&sent).await;
    }

    async fn send_in_earnest(&self, sent: &Sent) {
        let end = Instant::now() + SOON;
        while self.send(sent).await == Outcome::Unknown {
            assert!(Instant::now() < end, "no answer for {sent:?}");
        }
    }

    async fn send(&self, sent: &Sent) -> Outcome {
        let Sent { key, ask, if_match } = sent.clone();
        let began = self.ticks.fetch_add(1, Ordering::SeqCst);
        let mut outcome = outcome(self.asked(sent).await);
        if key.ends_with(LOST)
            && matches!(outcome, Outcome::Told(_))
            && self.lost.lock().unwrap().insert(key.clone())
        {
            outcome = Outcome::Unknown;
        }
        let ended = self.ticks.fetch_add(1, Ordering::SeqCst);
        if let Outcome::Told(told) = &outcome
            && !told.replayed
        {
            self.requests.lock().unwrap().push((told.request.clone(), ask.clone()));
        }
        let call = Call { began, ended, key, ask, if_match, outcome };
        self.calls.lock().unwrap().push(call.clone());
        call.outcome
    }

    async fn asked(&self, sent: &Sent) -> Result<Answered, Error> {
        let (house, with) = (&self.house, sent.key.as_str());
        match &sent.ask {
            Ask::Create { name, parameters } => {
                let body = json!({ "offering": "vm", "name": name, "parameters": parameters });
                house.send(with, &body).await
            }
            Ask::Update { name, patch } => {
                if self.fault == Fault::VersionFirst && self.version(name).await != sent.if_match {
                    let kind = ProblemKind::PreconditionFailed;
                    return Err(Error::new(kind, kind.help()));
                }
                let tags: Vec<&str> = sent.if_match.iter().map(String::as_str).collect();
                house.patch(&house.ann, with, name, &Value::from(patch.clone()), &tags).await
            }
            Ask::Cancel { request } => {
                house.portal.cancel(&house.ann, request, key(with), Bytes::new()).await
            }
            other => panic!("not in this campaign: {other:?}"),
        }
    }

    /// The version that a resource has now.
    async fn version(&self, name: &str) -> Option<String> {
        let found = self.house.store.resource(&team(), "vm", name).await.unwrap();
        found.map(|resource| resource.view.etag().to_string())
    }

    /// Changes something, whatever the dice said: every history holds a change that went through and is sent again.
    async fn change_one(&self) {
        let name = "changed-in-the-end";
        self.first(name, create(name, &json!({})), None).await;
        if let Some(version) = self.version(name).await {
            let patch = object(json!({ "note": "changed" }));
            self.first("change-in-the-end", Ask::Update { name: name.into(), patch }, Some(version)).await;
        }
    }

    /// Sends every key with every meaning until it has an answer.
    async fn all_again(&self) {
        let sent = self.sent.lock().unwrap().clone();
        for sent in sent {
            self.send_in_earnest(&sent).await;
        }
    }

    /// Waits until nothing moves any more, or long enough for that.
    async fn settled(&self) {
        let end = Instant::now() + SOON / 2;
        while Instant::now() < end {
            if self.requests().await.iter().all(|request| request.finished_at.is_some()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn requests(&self) -> Vec<RequestView> {
        let list = RequestList { scope: ListScope::All, search: Search::default().with_size(1000) };
        self.house.store.requests(list).await.unwrap().results
    }

    async fn end(&self) -> End {
        let requests = self.requests().await.into_iter().map(|view| Request {
            id: view.id.to_string(),
            action: view.action,
            name: view.name.to_string(),
            state: view.state.to_string(),
            reason: view.reason,
            parameters: view.parameters,
        });
        let resources = self.house.store.resources(&team(), None, 1000).await.unwrap().results;
        let resources = resources.into_iter().map(|view| Resource {
            life: view.id.to_string(),
            name: view.name.to_string(),
            version: view.version,
            deleting: view.state == "deleting",
            parameters: view.parameters,
            made_by: view.created_by.id.to_string(),
        });
        End { requests: requests.collect(), resources: resources.collect(), ledger: Vec::new() }
    }
}

fn team() -> Name {
    Name::parse("alpha").unwrap()
}

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("an object: {value}") };
    object
}

fn chosen<T: Clone>(among: &Mutex<Vec<T>>, pick: u64) -> Option<T> {
    let among = among.lock().unwrap();
    let length = u64::try_from(among.len()).unwrap();
    (length > 0).then(|| among[usize::try_from(pick % length).unwrap()].clone())
}

fn create(name: &str, parameters: &Value) -> Ask {
    Ask::Create { name: name.into(), parameters: object(parameters.clone()) }
}

/// Mostly a name of its own; sometimes one that others want as well.
fn any_create(dice: &mut Dice, who: u64, step: u64) -> Ask {
    let name = if dice.below(4) == 0 { format!("shared-{}", step / 4) } else { format!("own-{who}-{step}") };
    create(&name, &if dice.below(3) == 0 { json!({ "size": "large" }) } else { json!({}) })
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
            ProblemKind::StoreUnavailable
            | ProblemKind::Busy
            | ProblemKind::Contended
            | ProblemKind::KeyInUse => Outcome::Unknown,
            ProblemKind::KeyReused => refused(422, error.kind),
            ProblemKind::NameTaken | ProblemKind::AlreadyDecided => refused(409, error.kind),
            ProblemKind::NotFound => refused(404, error.kind),
            ProblemKind::KeyExpired => refused(410, error.kind),
            ProblemKind::PreconditionFailed => refused(412, error.kind),
            kind => refused(500, kind),
        },
    }
}

fn refused(status: u16, kind: ProblemKind) -> Outcome {
    Outcome::Refused { status, problem: kind.slug().into() }
}
