//! A portal on an empty database, with people in it, for tests of what is true of the whole without HTTP.

mod changes;
pub(crate) mod composite;
mod ground;
pub(crate) mod receiver;

pub(crate) use changes::target;
pub(crate) use ground::Ground;

use crate::{
    Answered, Caller, Credential, Error, Parts, Portal,
    catalog::{Action, Catalog, Offering, ParameterSchema},
    clock::{Clock, Ids, StandingClock, SystemClock, SystemIds},
    keys::Keys,
    outbound::Outbound,
    provisioner::{Begun, Context, Job, Observation, Outcome, Provisioner, fake::Fake},
    service::{Arrival, OpenError},
    settings::{GuardSettings, Settings},
    store::{NewPrincipal, Store},
};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{
    backoff::Backoff,
    id::{PrincipalId, RequestId},
    name::Name,
    role::{PortalRole, TeamRole},
    state::RequestState,
    submission::Channel,
    time::Moment,
    view::{EventEntry, Object, RequestView},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, LazyLock, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything that must come may take.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Randomness of the system, but every wait takes its full length.
#[derive(Debug)]
struct FullWaits;

impl Ids for FullWaits {
    fn fill(&self, bytes: &mut [u8]) {
        SystemIds.fill(bytes);
    }

    fn random(&self) -> u32 {
        u32::MAX
    }
}

/// What a house is built with.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) lease: Duration,
    pub(crate) workers: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) offerings: Vec<Offering>,
    pub(crate) keys: Keys,
    pub(crate) guard: GuardSettings,
}

impl Plan {
    /// One offering `vm` with this provisioner, two tries, short waits, and a lease that never ends in a test.
    pub(crate) fn of(provisioner: impl Provisioner + 'static) -> Self {
        Self {
            lease: Duration::from_mins(1),
            workers: 2,
            clock: Arc::new(SystemClock::default()),
            offerings: vec![offering("vm", Arc::new(provisioner))],
            keys: Keys::of([(1, [7; 32])]).unwrap(),
            guard: GuardSettings::default(),
        }
    }

    /// The same with its one offering changed.
    pub(crate) fn offering(mut self, change: impl FnOnce(&mut Offering)) -> Self {
        change(&mut self.offerings[0]);
        self
    }
}

/// An offering of virtual machines.
pub(crate) fn offering(id: &str, provisioner: Arc<dyn Provisioner>) -> Offering {
    let id = Name::parse(id).unwrap();
    Offering {
        version: "1".into(),
        digest: String::new(),
        title: "Virtual machine".into(),
        description: "For tests.".into(),
        category: "Tests".into(),
        resource_type: id.clone(),
        schema: schema(&json!({
            "type": "object",
            "properties": {
                "size": { "enum": ["small", "large"], "default": "small" },
                "count": { "type": "number", "minimum": 1, "maximum": 100, "default": 1 },
                "note": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "nested": { "type": "object" },
                "quota": { "type": ["integer", "string"] },
                "behaviour": { "type": "string" },
                "seconds": { "type": "number" },
            },
        })),
        max_tries: 2,
        timeout: Duration::from_mins(1),
        retry: Backoff { base: Duration::from_millis(1), cap: Duration::from_millis(5) },
        updates: true,
        actions: actions(),
        duplicate_window: None,
        quota_cost: 1,
        approval: None,
        secret_outputs: BTreeSet::new(),
        public_outputs: None,
        expiry: None,
        composite: None,
        provisioner,
        id,
    }
}

/// One action that adds to the count, and one that only runs.
fn actions() -> BTreeMap<Name, Action> {
    let action = |id: &str, parameters: Value, changes: Value| {
        let action = Action {
            title: id.into(),
            description: "For tests.".into(),
            schema: schema(&parameters),
            changes: serde_json::from_value(changes).unwrap(),
        };
        (Name::parse(id).unwrap(), action)
    };
    let by = json!({ "type": "integer", "default": 1 });
    let behaviour = json!({ "type": "string" });
    [
        action(
            "grow",
            json!({ "type": "object", "properties": { "by": by, "behaviour": behaviour } }),
            json!({ "count": { "add": "by" } }),
        ),
        action("restart", json!({ "type": "object", "properties": { "behaviour": behaviour } }), json!({})),
    ]
    .into()
}

pub(crate) fn schema(schema: &Value) -> Arc<ParameterSchema> {
    Arc::new(ParameterSchema::compile(schema).unwrap())
}

/// A portal, its database, and people.
pub(crate) struct House {
    pub(crate) portal: Portal,
    pub(crate) store: Arc<dyn Store>,
    /// A member of team alpha.
    pub(crate) ann: Caller,
    pub(crate) ground: Ground,
    plan: Plan,
    background: Option<(CancellationToken, JoinHandle<()>)>,
}

impl House {
    pub(crate) async fn build(plan: Plan) -> Self {
        Self::build_on(Ground::sqlite(), plan).await
    }

    pub(crate) async fn build_on(ground: Ground, plan: Plan) -> Self {
        let (portal, store) = open(&ground, &plan).await;
        let now = plan.clock.now();
        for team in ["alpha", "beta"] {
            store.add_team(&Name::parse(team).unwrap(), None, now).await.unwrap();
        }
        let ann = person(store.as_ref(), "ann", "alpha", TeamRole::Member).await;
        Self { portal, store, ann, ground, plan, background: None }
    }

    /// Another portal on the same database, as another process would be.
    pub(crate) async fn beside(&self, change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = self.plan.clone();
        change(&mut plan);
        let (portal, store) = open(&self.ground, &plan).await;
        let (ann, ground) = (self.ann.clone(), self.ground.clone());
        Self { portal, store, ann, ground, plan, background: None }
    }

    /// Why another portal does not open on the same database.
    pub(crate) async fn refused_beside(&self, change: impl FnOnce(&mut Plan)) -> OpenError {
        let mut plan = self.plan.clone();
        change(&mut plan);
        Portal::open(parts(self.ground.open().await, &plan)).await.unwrap_err()
    }

    /// A house whose workers run.
    pub(crate) async fn at_work(plan: Plan) -> Self {
        let mut house = Self::build(plan).await;
        house.work();
        house
    }

    /// Lets the workers begin.
    pub(crate) fn work(&mut self) {
        let (stop, portal) = (CancellationToken::new(), self.portal.clone());
        let token = stop.clone();
        let running = tokio::spawn(async move { portal.run_background(token).await });
        self.background = Some((stop, running));
    }

    /// Shuts the workers down as a server does that ends, and waits for them.
    pub(crate) async fn shut_down(&mut self) {
        let (stop, running) = self.background.take().unwrap();
        stop.cancel();
        tokio::time::timeout(SOON, running).await.unwrap().unwrap();
    }

    pub(crate) async fn person(&self, name: &str, team: &str, role: TeamRole) -> Caller {
        person(self.store.as_ref(), name, team, role).await
    }

    /// A connection to the SQLite file beside the portal's own.
    pub(crate) async fn database(&self) -> sqlx::SqliteConnection {
        self.ground.file().await
    }

    /// Everything that lies on the disk.
    pub(crate) fn disk(&self) -> Vec<u8> {
        self.ground.disk()
    }

    /// Submits a create by ann in team alpha.
    pub(crate) async fn send(&self, key: &str, body: &Value) -> Result<Answered, Error> {
        self.send_text(key, &body.to_string()).await
    }

    pub(crate) async fn send_text(&self, key: &str, body: &str) -> Result<Answered, Error> {
        send(&self.portal, &self.ann, "alpha", key, body).await
    }

    /// Creates `vm/<name>`; its request.
    pub(crate) async fn create(&self, name: &str) -> RequestId {
        let answered = self.send(&format!("create-{name}"), &vm(name)).await.unwrap();
        assert!(!answered.replayed && !answered.existing);
        answered.request_id.unwrap()
    }

    pub(crate) async fn cancel(&self, id: RequestId) -> Result<Answered, Error> {
        let arrival = key(&format!("cancel-{id}"));
        self.portal.cancel(&self.ann, &id.to_string(), arrival, Bytes::new()).await
    }

    pub(crate) async fn resolve(&self, id: RequestId, resolution: &str) -> Answered {
        let body = json!({ "resolution": resolution }).to_string();
        let arrival = key(&format!("resolve-{id}-{}", self.portal.new_submission_key()));
        self.portal.resolve(&self.ann, &id.to_string(), arrival, body.into()).await.unwrap()
    }

    pub(crate) async fn view(&self, id: RequestId) -> RequestView {
        self.store.request(id).await.unwrap().unwrap().view
    }

    /// The request once it is in this state.
    pub(crate) async fn reaches(&self, id: RequestId, state: RequestState) -> RequestView {
        eventually(async || Some(self.view(id).await).filter(|view| view.state == state)).await
    }

    /// Its history in short: states by their name, steps as `step: detail`, and log lines.
    pub(crate) async fn history(&self, id: RequestId) -> Vec<String> {
        let mut after = 0;
        let mut history = Vec::new();
        loop {
            let events = self.store.events(id, after, 500).await.unwrap();
            let Some(last) = events.last() else { return history };
            after = last.seq;
            history.extend(events.into_iter().map(|event| match event.entry {
                EventEntry::State { state, .. } => state.to_string(),
                EventEntry::Step { step, detail } => format!("{step}: {detail}"),
                EventEntry::Log { line } => line,
            }));
        }
    }

    /// How often a step was begun or noted.
    pub(crate) async fn steps(&self, id: RequestId, step: &str) -> usize {
        let begins = format!("{step}: ");
        let history = self.history(id).await;
        history.iter().filter(|entry| entry.starts_with(&begins)).count()
    }

    /// The job that a provisioner is given for a request.
    pub(crate) async fn job(&self, id: RequestId) -> Job {
        let view = self.view(id).await;
        Job {
            request_id: id,
            made_by: id,
            correlation_id: view.correlation_id,
            attempt: view.attempt,
            team: view.team,
            action: view.action,
            offering: view.offering,
            resource_type: view.resource_type,
            name: view.name,
            parameters: view.parameters,
            previous: Object::new(),
            input: Object::new(),
            undo: false,
            outputs: view.outputs,
        }
    }

    /// Whether another may have the name `vm/<name>` now.
    pub(crate) async fn is_free(&self, name: &str) -> bool {
        let (team, kind) = (Name::parse("alpha").unwrap(), "vm");
        self.store.resource(&team, kind, name).await.unwrap().is_none()
    }

    /// The state of the resource `vm/<name>`.
    pub(crate) async fn resource_state(&self, name: &str) -> String {
        let team = Name::parse("alpha").unwrap();
        self.store.resource(&team, "vm", name).await.unwrap().unwrap().view.state
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some((stop, _)) = &self.background {
            stop.cancel();
        }
    }
}

async fn open(ground: &Ground, plan: &Plan) -> (Portal, Arc<dyn Store>) {
    let store = ground.open().await;
    (Portal::open(parts(Arc::clone(&store), plan)).await.unwrap(), store)
}

/// The other side of a call is a server that the test runs on this machine. One for all tests, since reading the
/// certificate authorities takes a while.
static OUTBOUND: LazyLock<Outbound> = LazyLock::new(|| Outbound::new("127.0.0.1".parse().unwrap()).unwrap());

fn parts(store: Arc<dyn Store>, plan: &Plan) -> Parts {
    Parts {
        store,
        catalog: Catalog::of(plan.offerings.clone()),
        keys: plan.keys.clone(),
        clock: Arc::clone(&plan.clock),
        ids: Arc::new(FullWaits),
        outbound: OUTBOUND.clone(),
        public_url: "http://portal.test".into(),
        settings: Settings { guard: plan.guard, workers: plan.workers, lease: plan.lease },
    }
}

async fn person(store: &dyn Store, name: &str, team: &str, role: TeamRole) -> Caller {
    let (id, team) = (PrincipalId(SystemIds.uuid(Moment::from_millis(0))), Name::parse(team).unwrap());
    let principal = NewPrincipal {
        id,
        name: name.to_owned(),
        role: PortalRole::Member,
        password_hash: None,
        team: Some((team.clone(), role)),
    };
    store.add_principal(principal, Moment::from_millis(0)).await.unwrap();
    Caller {
        id,
        name: name.to_owned(),
        role: PortalRole::Member,
        teams: vec![(team, role)],
        via: Credential::Session,
        channel: Channel::Api,
        address: None,
    }
}

/// An arrival with this key.
pub(crate) fn key(key: &str) -> Arrival {
    Arrival { keys: vec![key.as_bytes().to_vec()], ..Arrival::default() }
}

/// Submits a create.
pub(crate) async fn send(
    portal: &Portal,
    caller: &Caller,
    team: &str,
    with: &str,
    body: &str,
) -> Result<Answered, Error> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    portal.create_request(caller, team, key(with), body, Vec::new()).await
}

/// The body of a create of a virtual machine.
pub(crate) fn vm(name: &str) -> Value {
    json!({ "offering": "vm", "name": name, "parameters": {} })
}

/// A clock that stands at a day in 2026.
pub(crate) fn standing() -> Arc<StandingClock> {
    Arc::new(StandingClock::at(Moment::from_millis(1_780_000_000_000)))
}

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < end, "it did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A provisioner that answers what it was told to, in order, and notes what it was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scripted(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    observe: VecDeque<Observation>,
    apply: VecDeque<Outcome>,
    destroy: VecDeque<Outcome>,
    /// Lines that each apply writes.
    lines: Vec<String>,
    /// Whether an apply without an answer works until it is stopped; otherwise it is done at once.
    hangs: bool,
    /// Whether what it begins goes on elsewhere, and the callbacks that it was given there.
    away: bool,
    begun: Vec<Begun>,
    calls: Vec<&'static str>,
    stopped: Vec<Instant>,
}

impl Scripted {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    pub(crate) fn observing(self, answers: impl IntoIterator<Item = Observation>) -> Self {
        self.script().observe.extend(answers);
        self
    }

    pub(crate) fn applying(self, answers: impl IntoIterator<Item = Outcome>) -> Self {
        self.script().apply.extend(answers);
        self
    }

    pub(crate) fn destroying(self, answers: impl IntoIterator<Item = Outcome>) -> Self {
        self.script().destroy.extend(answers);
        self
    }

    pub(crate) fn writing(self, lines: Vec<String>) -> Self {
        self.script().lines = lines;
        self
    }

    pub(crate) fn away(self) -> Self {
        self.script().away = true;
        self
    }

    /// What it was given for work elsewhere when it was last asked to begin.
    pub(crate) fn begun(&self) -> Option<Begun> {
        self.script().begun.last().cloned()
    }

    pub(crate) fn hanging(self) -> Self {
        self.script().hangs = true;
        self
    }

    /// What it was asked, in order.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.script().calls.clone()
    }

    /// When it was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<Instant> {
        self.script().stopped.first().copied()
    }
}

#[async_trait]
impl Provisioner for Scripted {
    async fn observe(&self, _: &Job, _: &Context) -> Observation {
        let mut script = self.script();
        script.calls.push("observe");
        script.observe.pop_front().unwrap_or(Observation::Absent)
    }

    async fn apply(&self, _: &Job, context: &Context) -> Outcome {
        let (answer, lines, hangs) = {
            let mut script = self.script();
            script.calls.push("apply");
            script.begun.extend(context.begun.clone());
            (script.apply.pop_front(), script.lines.clone(), script.hangs)
        };
        for line in lines {
            context.log.send(line).await.unwrap();
        }
        match answer {
            Some(answer) => answer,
            None if hangs => {
                context.stop.cancelled().await;
                self.script().stopped.push(Instant::now());
                Outcome::Stopped
            }
            None => Outcome::Done(Object::new()),
        }
    }

    async fn destroy(&self, _: &Job, context: &Context) -> Outcome {
        let mut script = self.script();
        script.calls.push("destroy");
        script.begun.extend(context.begun.clone());
        script.destroy.pop_front().unwrap_or(Outcome::Done(Object::new()))
    }

    async fn stop(&self, _: &Job, _: &Context) -> Outcome {
        self.script().calls.push("stop");
        Outcome::Done(Object::new())
    }

    fn works_elsewhere(&self) -> bool {
        self.script().away
    }
}

/// A house whose offering is carried out by the fake.
pub(crate) async fn with_fake() -> (House, Fake) {
    let fake = Fake::default();
    (House::build(Plan::of(fake.clone())).await, fake)
}
