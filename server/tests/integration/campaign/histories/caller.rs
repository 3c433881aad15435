//! Callers: they carry their plans out, lose answers, send again, and write down all they asked and were told.

use super::plan::{Deed, Delivery, Plan, Step, other_than, spelled};
use crate::{
    history::{Ask, Call, Dice, Outcome, Resource, Sight, Told},
    support::{ALPHA, Answer, Api},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a caller goes on with what gets no answer.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long a caller waits for an end, which may wait for what a person has to decide.
const WHILE: Duration = Duration::from_secs(10);
/// How long a caller waits for one answer.
const TIME_OUT: Duration = Duration::from_secs(10);

/// A submission, whoever sends it.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) key: String,
    pub(super) ask: Ask,
    pub(super) if_match: Option<String>,
}

/// What all callers have in common.
pub(super) struct Field {
    /// Where the servers are now, which changes with each start.
    pub(super) portals: RwLock<Vec<Api>>,
    pub(super) enough: AtomicBool,
    clock: AtomicU64,
    calls: Mutex<Vec<Call>>,
    sights: Mutex<Vec<Sight>>,
    sent: Mutex<Vec<Sent>>,
    /// Requests that somebody was told of.
    requests: Mutex<Vec<String>>,
    /// An early version of each name.
    versions: Mutex<HashMap<String, String>>,
}

impl Field {
    pub(super) fn new(portals: Vec<Api>) -> Self {
        Self {
            portals: RwLock::new(portals),
            enough: AtomicBool::new(false),
            clock: AtomicU64::new(0),
            calls: Mutex::default(),
            sights: Mutex::default(),
            sent: Mutex::default(),
            requests: Mutex::default(),
            versions: Mutex::default(),
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn portal(&self, dice: &mut Dice) -> Api {
        let portals = self.portals.read().unwrap();
        chosen(&portals, dice.next()).unwrap()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(super) fn add(&self, sent: Sent) {
        self.sent.lock().unwrap().push(sent);
    }

    pub(super) fn sights(&self) -> Vec<Sight> {
        self.sights.lock().unwrap().clone()
    }

    /// Every key with every meaning it was sent with.
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

fn chosen<T: Clone>(among: &[T], pick: u64) -> Option<T> {
    let length = u64::try_from(among.len()).unwrap();
    (length > 0).then(|| among[usize::try_from(pick % length).unwrap()].clone())
}

/// One of the newest: older ones have come to their end.
fn newest<T: Clone>(among: &[T], pick: u64) -> Option<T> {
    chosen(&among[among.len().saturating_sub(24)..], pick)
}

/// One caller.
pub(super) struct Caller {
    plan: Plan,
    /// For what no plan can hold: how often one must wait and where one turns to.
    dice: Dice,
    field: Arc<Field>,
    who: u64,
    keys: u64,
}

impl Caller {
    pub(super) fn new(dice: &Dice, who: u64, field: Arc<Field>) -> Self {
        Self { plan: Plan::of(dice, who), dice: dice.of(who + 1000), field, who, keys: 0 }
    }

    pub(super) async fn run(mut self) {
        while !self.field.enough.load(Ordering::Relaxed) {
            let step = self.plan.next();
            let pause = step.pause;
            self.take(step).await;
            tokio::time::sleep(pause).await;
        }
    }

    async fn take(&mut self, step: Step) {
        let Some(sent) = self.chosen(&step.deed).await else { return };
        let outcome = match step.delivery {
            Delivery::Once => self.send(&sent, TIME_OUT).await,
            Delivery::Lost(after) => self.send(&sent, after).await,
            Delivery::Twice => {
                let mut other = Self {
                    dice: self.dice.of(1),
                    plan: Plan::of(&self.dice, 0),
                    field: Arc::clone(&self.field),
                    ..*self
                };
                tokio::join!(self.send(&sent, TIME_OUT), other.send(&sent, TIME_OUT)).0
            }
        };
        let outcome =
            if step.insists && outcome == Outcome::Unknown { self.insist(&sent).await } else { outcome };
        if let Outcome::Told(told) = outcome
            && step.waits
        {
            self.until_ended(&told.request).await;
        }
    }

    /// What a deed comes to now, if there is anything to do it with.
    async fn chosen(&mut self, deed: &Deed) -> Option<Sent> {
        let before = |pick| chosen(&self.field.sent.lock().unwrap(), pick);
        let sent = match deed {
            Deed::Again(pick) => return before(*pick),
            Deed::Other(pick) => {
                let first = before(*pick)?;
                Sent { ask: other_than(&first.ask, *pick), ..first }
            }
            Deed::Ask(ask) => self.with_fresh_key(ask.clone(), None),
            Deed::Cancel(pick) => {
                let request = newest(&self.field.requests.lock().unwrap(), *pick)?;
                self.with_fresh_key(Ask::Cancel { request }, None)
            }
            Deed::Anew(pick) => {
                let ask = before(*pick)?.ask;
                self.with_fresh_key(matches!(ask, Ask::Create { .. }).then_some(ask)?, None)
            }
            Deed::Update(pick) => {
                let name = self.name(*pick)?;
                let seen = self.look(&name).await?;
                let early =
                    self.field.versions.lock().unwrap().entry(name.clone()).or_insert(seen.clone()).clone();
                let version = if pick % 8 == 0 { early } else { seen };
                let patch = match pick % 3 {
                    0 => json!({ "note": format!("by {pick}") }),
                    1 => json!({ "size": "large", "note": null }),
                    _ => json!({ "tags": ["x", "y"], "nested": { "a": 1 + pick % 5, "b": null } }),
                };
                let patch = patch.as_object()?.clone();
                self.with_fresh_key(Ask::Update { name, patch }, Some(version))
            }
            Deed::Add(pick) => {
                let (name, count) = (self.name(*pick)?, i64::try_from(pick % 3).ok()? + 1);
                self.with_fresh_key(Ask::Add { name, count }, None)
            }
            Deed::Delete(pick) => {
                let name = self.name(*pick)?;
                let version = if pick % 2 == 0 { self.look(&name).await } else { None };
                self.with_fresh_key(Ask::Delete { name }, version)
            }
            Deed::Decide(pick) => {
                let ask = self.decision(*pick).await?;
                self.with_fresh_key(ask, None)
            }
            Deed::Look(pick) => {
                let name = self.name(*pick)?;
                self.look(&name).await;
                return None;
            }
        };
        self.field.add(sent.clone());
        Some(sent)
    }

    /// What there is to be decided about one of the requests that go no further without a person.
    async fn decision(&mut self, pick: u64) -> Option<Ask> {
        let waiting = "/requests?filters[state][IN]=failed,unknown&size=10";
        let call = self.field.portal(&mut self.dice).call("GET", waiting).timeout(TIME_OUT);
        let answer = Answer::try_of(call).await.ok().filter(|answer| answer.status == 200)?;
        let seen = chosen(answer.json()["results"].as_array()?, pick)?;
        let request = seen["id"].as_str()?.to_owned();
        match seen["state"].as_str()? {
            "failed" => Some(Ask::Retry { request }),
            "unknown" => {
                let is_action = !["create", "update", "delete"].iter().any(|kind| seen["action"] == *kind);
                let of = if is_action { "desired" } else { "parameters" };
                let was_done = seen[of]["behaviour"] == "observe-unknown";
                let resolution = chosen(&resolutions(&request, was_done, is_action), pick)?.to_owned();
                Some(Ask::Resolve { request, resolution })
            }
            _ => None,
        }
    }

    /// The name of one of the things that were asked for last.
    fn name(&self, pick: u64) -> Option<String> {
        let sent = newest(&self.field.sent.lock().unwrap(), pick)?;
        name_of(&sent.ask).map(str::to_owned)
    }

    fn with_fresh_key(&mut self, ask: Ask, if_match: Option<String>) -> Sent {
        self.keys += 1;
        Sent { key: format!("key-{}-{}", self.who, self.keys), ask, if_match }
    }

    /// Sends once, waits for the answer as long as said, and writes down what came of it.
    pub(super) async fn send(&mut self, sent: &Sent, patience: Duration) -> Outcome {
        let portal = self.field.portal(&mut self.dice);
        let call = call(&portal, sent, &mut self.dice).timeout(TIME_OUT);
        let began = self.field.tick();
        // A call that is dropped closes its connection.
        let outcome = match tokio::time::timeout(patience, Answer::try_of(call)).await {
            Ok(Ok(answer)) => judged(&answer),
            _ => Outcome::Unknown,
        };
        let ended = self.field.tick();
        let Sent { key, ask, if_match } = sent.clone();
        if let Outcome::Told(told) = &outcome
            && !told.replayed
        {
            self.field.requests.lock().unwrap().push(told.request.clone());
        }
        self.field.calls.lock().unwrap().push(Call {
            began,
            ended,
            key,
            ask,
            if_match,
            outcome: outcome.clone(),
        });
        outcome
    }

    /// Sends until there is an answer of the portal's own.
    pub(super) async fn insist(&mut self, sent: &Sent) -> Outcome {
        let (end, mut wait) = (Instant::now() + PATIENCE, 20);
        loop {
            let outcome = self.send(sent, TIME_OUT).await;
            if outcome != Outcome::Unknown {
                return outcome;
            }
            assert!(Instant::now() < end, "no answer for {sent:?}");
            tokio::time::sleep(Duration::from_millis(self.dice.below(wait))).await;
            wait = (wait * 2).min(500);
        }
    }

    /// Asks for a while whether the request has come to its end, or as far as it goes without a person.
    async fn until_ended(&mut self, id: &str) {
        let end = Instant::now() + WHILE;
        while Instant::now() < end {
            let portal = self.field.portal(&mut self.dice);
            let call = portal.call("GET", &format!("/requests/{id}")).header("Prefer", "wait=2");
            if let Ok(answer) = Answer::try_of(call.timeout(Duration::from_secs(5))).await
                && answer.status != 503
            {
                let seen = answer.is(200).json();
                if !seen["finished_at"].is_null() || seen["state"] == "unknown" {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(self.dice.below(100))).await;
        }
    }

    /// Looks at a resource; the version that it has.
    async fn look(&mut self, name: &str) -> Option<String> {
        let call =
            self.field.portal(&mut self.dice).call("GET", &format!("/teams/alpha/resources/vm/{name}"));
        let began = self.field.tick();
        let answer =
            Answer::try_of(call.timeout(TIME_OUT)).await.ok().filter(|answer| answer.status == 200)?;
        let (ended, seen) = (self.field.tick(), resource(&answer.json()));
        self.field.sights.lock().unwrap().push(Sight { began, ended, seen });
        answer.header("etag").map(str::to_owned)
    }
}

/// What may be said of a request that nobody can tell of, and of which it is known whether it had its effect.
///
/// This follows from its ID alone and never from how it was seen to stand: between the look and the decision somebody else
/// may decide. One that is ever abandoned has no effect any more, so that to adopt it would be a lie; as it would be to
/// abandon an action that is done, which nothing takes back.
fn resolutions(request: &str, was_done: bool, is_action: bool) -> [&'static str; 2] {
    let is_kept = is_action || request.bytes().map(u64::from).sum::<u64>() % 2 == 0;
    if was_done && is_kept { ["retry", "adopt"] } else { ["retry", "abandon"] }
}

fn name_of(ask: &Ask) -> Option<&str> {
    match ask {
        Ask::Create { name, .. }
        | Ask::Update { name, .. }
        | Ask::Add { name, .. }
        | Ask::Delete { name } => Some(name),
        Ask::Cancel { .. } | Ask::Retry { .. } | Ask::Resolve { .. } => None,
    }
}

/// A submission as a call of the API, in one of its spellings.
fn call(portal: &Api, sent: &Sent, dice: &mut Dice) -> reqwest::RequestBuilder {
    let resource = |name: &str| format!("/teams/alpha/resources/vm/{name}");
    let (method, path, body) = match &sent.ask {
        Ask::Create { name, parameters } => (
            "POST",
            ALPHA.to_owned(),
            Some(json!({ "offering": "vm", "name": name, "parameters": parameters })),
        ),
        Ask::Update { name, patch } => ("PATCH", resource(name), Some(Value::from(patch.clone()))),
        Ask::Add { name, count } => {
            ("POST", format!("{}/actions/add-disks", resource(name)), Some(json!({ "count": count })))
        }
        Ask::Delete { name } => ("DELETE", resource(name), None),
        Ask::Cancel { request } => ("POST", format!("/requests/{request}/cancel"), None),
        Ask::Retry { request } => ("POST", format!("/requests/{request}/retry"), None),
        Ask::Resolve { request, resolution } => {
            ("POST", format!("/requests/{request}/resolve"), Some(json!({ "resolution": resolution })))
        }
    };
    let key = if dice.below(2) == 0 { sent.key.clone() } else { format!("\"{}\"", sent.key) };
    let mut call = portal.call(method, &path).header("Idempotency-Key", key);
    if let Some(version) = &sent.if_match {
        call = call.header("If-Match", version);
    }
    match body {
        Some(body) => call.header("Content-Type", "application/json").body(spelled(&body, dice)),
        None => call,
    }
}

/// What an answer says of its call.
fn judged(answer: &Answer) -> Outcome {
    let body = answer.text();
    let Ok(json) = serde_json::from_str::<Value>(&body) else {
        return Outcome::Refused { status: answer.status, problem: format!("no JSON: {body}") };
    };
    let slug = json["type"].as_str().and_then(|kind| kind.strip_prefix("/problems/")).unwrap_or_default();
    match (answer.status, slug) {
        (200..300, _) => Outcome::Told(Told {
            request: json["id"].as_str().unwrap_or_default().to_owned(),
            head: format!("{:?}", (answer.lasting().0, answer.lasting().1)),
            body,
            replayed: answer.header("idempotency-replayed").is_some(),
            existing: answer.header("keyturn-outcome") == Some("existing"),
        }),
        // There is no answer now; whether anything was done is not said.
        (409, "idempotency-key-in-use") | (503, _) => Outcome::Unknown,
        (status, slug) => Outcome::Refused { status, problem: slug.to_owned() },
    }
}

/// A resource as the API shows it.
pub(super) fn resource(shown: &Value) -> Resource {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    Resource {
        life: text(&shown["id"]),
        name: text(&shown["name"]),
        version: shown["version"].as_i64().unwrap(),
        deleting: shown["state"] == "deleting",
        parameters: shown["parameters"].as_object().unwrap().clone(),
        made_by: text(&shown["created_by"]["id"]),
    }
}

#[test]
fn what_is_ever_abandoned_is_never_adopted() {
    let ids = ["01990a5d-ac96-774b-8cce-000000000000", "01990a5d-ac96-774b-8cce-000000000001"];
    let mut seen = ids.map(|id| resolutions(id, true, false).map(str::to_owned)).concat();
    seen.sort_unstable();
    assert_eq!(
        seen,
        ["abandon", "adopt", "retry", "retry"],
        "each of the three is somebody's, and no two exclude"
    );
    for id in ids {
        assert_eq!(resolutions(id, false, false), ["retry", "abandon"]);
        assert_eq!(resolutions(id, true, true), ["retry", "adopt"]);
    }
}
