//! Carrying out what is made of steps: asking for each when its turn comes, waiting for them without holding a worker,
//! and taking away what they made where one comes to nothing.
//!
//! Nothing of where it stands is kept but the steps' own requests, so whoever takes the run next, after whatever crash, sees
//! the same. Once a step has failed no other is begun: those under way are stopped, what was made is removed, last first,
//! and only then is the parent at its end and its name free.

use super::{
    carry_out::{Attempt, Verdict, cut},
    change::DELETED,
};
use crate::{
    Error,
    catalog::{Composite, Step, known},
    provisioner::Elsewhere,
    service::Asking,
    store::{Held, Intent, StepRequest, StoreError, StoredRequest, StoredResource},
};
use domain::{
    action::{self, Kind},
    problem::ProblemKind,
    state::RequestState,
    view::{EventEntry, Object},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

/// When one looks again at steps of which one will be told.
const TOLD: Duration = Duration::from_secs(15);
/// When one looks again at what one is not told of.
const NOT_TOLD: Duration = Duration::from_secs(2);
/// How many entries of a history one look gives.
const ENTRIES: u32 = 500;

/// Why it does not go on as it should.
enum Trouble {
    /// The database.
    Store(StoreError),
    /// It will pass by itself.
    Later,
    /// Trying again may help.
    Again(String),
    /// It cannot be told what came of it.
    Doubt(String),
    /// Trying again will not help.
    Refused(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let told = error.fields.iter().map(|field| format!("{} {}", field.pointer, field.detail));
        let told: Vec<String> = told.collect();
        let why =
            if told.is_empty() { error.detail } else { format!("{} {}", error.detail, told.join("; ")) };
        match error.kind {
            ProblemKind::Busy
            | ProblemKind::Contended
            | ProblemKind::StoreUnavailable
            | ProblemKind::KeyInUse => Self::Later,
            ProblemKind::DeletionInProgress | ProblemKind::OfferingUnavailable => Self::Again(why),
            ProblemKind::Internal => Self::Doubt(why),
            _ => Self::Refused(why),
        }
    }
}

/// Where a step stands.
enum Standing {
    /// It is to be asked for.
    New,
    /// Its request failed in an earlier attempt of the parent's, and gets another attempt too.
    Anew(StoredRequest),
    /// It is under way, and tells when it ends if it is the parent's own.
    UnderWay(StoredRequest),
    /// Nobody can tell.
    Unknown(StoredRequest),
    /// It is there.
    There(Box<StoredResource>),
    /// It came to nothing.
    Failed(String),
}

/// What became of a removal.
enum Removal {
    Done,
    Waiting(Duration),
    Again(String),
    Stuck(String),
}

/// A request and its steps.
pub(super) struct Family<'a> {
    work: &'a Attempt<'a>,
    composite: &'a Composite,
    asking: Asking<'a>,
    /// What the history of this attempt says of steps already.
    noted: HashSet<(String, String)>,
}

impl<'a> Family<'a> {
    pub(super) async fn of(work: &'a Attempt<'a>, composite: &'a Composite) -> Result<Self, StoreError> {
        let request = &work.run.request;
        let (mut noted, mut after) = (HashSet::new(), 0);
        loop {
            let events = work.portal.store.events(request.view.id, after, ENTRIES).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in events.into_iter().filter(|event| event.attempt == request.view.attempt) {
                if let EventEntry::Step { step, detail } = event.entry {
                    noted.insert((step, detail));
                }
            }
        }
        let asking = work.portal.asking_for(request, work.hold());
        Ok(Self { work, composite, asking, noted })
    }

    pub(super) async fn carry_out(mut self, intent: Intent) -> Result<Verdict, StoreError> {
        let kind = self.work.kind();
        let came = match (kind, intent) {
            (Kind::Delete, Intent::Cancel) => return Ok(Verdict::Gone(RequestState::Canceled, None)),
            (Kind::Delete, _) => self.tear_down().await,
            (Kind::Update | Kind::Action, _) => {
                let why = "What is made of steps cannot be changed as a whole.";
                return Ok(Verdict::Gone(RequestState::Failed, Some(why.into())));
            }
            (Kind::Create, Intent::Cancel) => self.leave_nothing(RequestState::Canceled, None).await,
            (Kind::Create, Intent::Abandon) => {
                let why = self.work.why();
                self.leave_nothing(RequestState::Failed, Some(why)).await
            }
            (Kind::Create, Intent::Adopt) => self.adopt().await,
            (Kind::Create, Intent::Apply) => match self.bring_about().await {
                Err(Trouble::Refused(why)) => self.give_up(why).await,
                Err(Trouble::Again(why)) if !self.work.may_try_again() => self.give_up(why).await,
                came => came,
            },
        };
        settled(came)
    }

    /// Leaves nothing of a create that is to end like this.
    pub(super) async fn take_back(
        mut self,
        state: RequestState,
        reason: Option<String>,
    ) -> Result<Verdict, StoreError> {
        match self.work.kind() {
            Kind::Create => settled(self.leave_nothing(state, reason).await),
            _ => Ok(Verdict::Gone(RequestState::Failed, reason)),
        }
    }

    /// Asks for every step whose turn it is, or finds that all are there.
    async fn bring_about(&mut self) -> Result<Verdict, Trouble> {
        if !self.work.run.touched {
            match self.work.mark("apply").await? {
                Held::Yes(Intent::Cancel) => return self.leave_nothing(RequestState::Canceled, None).await,
                Held::Yes(_) => {}
                Held::Lost => return Ok(Verdict::Stopped),
            }
        }
        let composite = self.composite;
        let mut standings = Vec::with_capacity(composite.steps.len());
        let made = self.made().await?;
        for step in &composite.steps {
            standings.push((step, self.standing(step, &made).await?));
        }
        let mut there: BTreeMap<&str, &StoredResource> = BTreeMap::new();
        let (mut failed, mut wait) = (Vec::new(), TOLD);
        for (step, standing) in &standings {
            match standing {
                Standing::New | Standing::Anew(_) => {}
                Standing::UnderWay(request) => {
                    if request.view.parent_id != Some(self.work.run.request.view.id) {
                        wait = NOT_TOLD;
                    }
                    self.note(&step.id, format!("asked for by request {}", request.view.id)).await?;
                }
                Standing::Unknown(request) => {
                    let id = request.view.id;
                    self.note(&step.id, format!("nobody can tell what became of request {id}; decide there"))
                        .await?;
                }
                Standing::There(life) => {
                    there.insert(&step.id, life);
                    self.note(&step.id, "done".into()).await?;
                }
                Standing::Failed(why) => failed.push(format!("Step {}: {why}", step.id)),
            }
        }
        if let Some(why) = failed.into_iter().next() {
            return self.give_up(why).await;
        }
        if there.len() == standings.len() {
            return match self.outputs(&there) {
                Ok(outputs) => Ok(Verdict::There(outputs)),
                Err(why) => self.give_up(why).await,
            };
        }
        for (step, standing) in &standings {
            if step.needs.iter().all(|need| there.contains_key(need.as_str())) {
                match standing {
                    Standing::New => {
                        let existing = self.ask_for(step, &there).await?;
                        wait = if existing { Duration::ZERO } else { wait };
                    }
                    Standing::Anew(request) => {
                        let more = format!("/retry/{}", self.attempt());
                        self.asking.retry((&step.id, &more), request.view.id).await.map_err(of(step))?;
                    }
                    _ => {}
                }
            }
        }
        Ok(waits(wait))
    }

    fn attempt(&self) -> u32 {
        self.work.run.request.view.attempt
    }

    /// What is added to a step's key in this attempt of the parent's.
    fn more(&self) -> String {
        match self.attempt() {
            1 => String::new(),
            attempt => format!("/{attempt}"),
        }
    }

    /// What the steps of the create asked for, oldest first.
    async fn made(&self) -> Result<Vec<StepRequest>, Trouble> {
        let maker = self.work.run.resource.view.created_by.id;
        let mut steps = self.work.portal.store.steps_of(maker).await?;
        steps.retain(|one| Kind::of(&one.request.view.action) == Kind::Create);
        Ok(steps)
    }

    async fn standing(&self, step: &Step, made: &[StepRequest]) -> Result<Standing, Trouble> {
        let attempt = self.attempt();
        let asked = self.asking.claimed(&step.id, &self.more()).await?;
        let retried =
            attempt > 1 && self.asking.claimed(&step.id, &format!("/retry/{attempt}")).await?.is_some();
        // What came of it in an earlier attempt is not held against this one.
        let spoken = attempt == 1 || asked.is_some() || retried;
        let own = made.iter().rev().find(|one| one.step == step.id).map(|one| one.request.clone());
        let request = match asked.flatten() {
            // It was there already, made by somebody else.
            Some(other) if !made.iter().any(|one| one.request.view.id == other.view.id) => Some(other),
            _ => own,
        };
        let Some(request) = request else { return Ok(Standing::New) };
        let id = request.view.id;
        Ok(match request.view.state {
            RequestState::PendingApproval | RequestState::Queued | RequestState::Running => {
                Standing::UnderWay(request)
            }
            RequestState::Unknown => Standing::Unknown(request),
            RequestState::Succeeded => match self.work.portal.store.life(request.resource).await? {
                Some(life) if matches!(life.view.state.as_str(), "active" | "creating") => {
                    Standing::There(Box::new(life))
                }
                _ if spoken => Standing::Failed(format!("what request {id} made was removed meanwhile")),
                _ => Standing::New,
            },
            RequestState::Failed if spoken => {
                let why = request.view.reason.as_deref().unwrap_or("no reason was given");
                Standing::Failed(format!("request {id} failed: {why}"))
            }
            RequestState::Failed => Standing::Anew(request),
            state if spoken => Standing::Failed(format!("request {id} was {state}")),
            _ => Standing::New,
        })
    }

    /// Asks for a step; whether what it asks for was there already.
    async fn ask_for(
        &mut self,
        step: &Step,
        there: &BTreeMap<&str, &StoredResource>,
    ) -> Result<bool, Trouble> {
        let variables = self.variables(there, false);
        let wrong = |why| Trouble::Refused(format!("Step {}: {why}", step.id));
        let name = step.name.value(&variables).map_err(wrong)?;
        let mut parameters = Object::new();
        for (parameter, mapping) in &step.parameters {
            let mut value = mapping.value(&variables).map_err(wrong)?;
            if let Some(from) = step.handed_on(parameter) {
                let lost = || wrong(format!("the secret {from} is not kept any more"));
                value = self.work.handed_on(from, value).ok_or_else(lost)?;
            }
            parameters.insert(parameter.clone(), value);
        }
        let more = self.more();
        let asked = self
            .asking
            .create((&step.id, &more), &step.offering, &name, &Value::Object(parameters))
            .await
            .map_err(of(step))?;
        if let Some(id) = asked.request_id {
            let detail = if asked.existing {
                format!("it was there already, made by request {id}; it stays when this is removed")
            } else {
                format!("asked for by request {id}")
            };
            self.note(&step.id, detail).await?;
        }
        Ok(asked.existing)
    }

    /// What expressions may read. Secret outputs are among it only where what is read stays secret.
    fn variables(&self, there: &BTreeMap<&str, &StoredResource>, with_secrets: bool) -> minijinja::Value {
        let view = &self.work.run.request.view;
        let mut parameters = Object::new();
        for name in self.work.offering.schema.names() {
            // One that may be left out can be read all the same.
            parameters.insert(name.clone(), view.parameters.get(name).cloned().unwrap_or_default());
        }
        let steps: Object = there
            .iter()
            .map(|(step, life)| {
                let mut outputs = life.view.outputs.clone();
                if with_secrets {
                    outputs.extend(self.secrets(life));
                }
                ((*step).to_owned(), json!({ "outputs": outputs }))
            })
            .collect();
        known(json!({
            "name": view.name, "team": view.team, "correlation_id": view.correlation_id, "request_id": view.id,
            "parameters": parameters, "steps": steps,
        }))
    }

    fn secrets(&self, life: &StoredResource) -> Object {
        let Some(sealed) = &life.secrets else { return Object::new() };
        match self.work.portal.open_secrets(life.view.id, sealed) {
            Ok(secrets) => secrets.unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, context = error.context, "a step's secrets were not opened");
                Object::new()
            }
        }
    }

    fn outputs(&self, there: &BTreeMap<&str, &StoredResource>) -> Result<Object, String> {
        let (open, all) = (self.variables(there, false), self.variables(there, true));
        let mut outputs = Object::new();
        for (name, mapping) in &self.composite.outputs {
            let variables = if self.work.offering.secret_outputs.contains(name) { &all } else { &open };
            let value = mapping.value(variables).map_err(|why| format!("Output {name}: {why}"))?;
            outputs.insert(name.clone(), value);
        }
        Ok(outputs)
    }

    async fn adopt(&mut self) -> Result<Verdict, Trouble> {
        let composite = self.composite;
        let (made, mut lives) = (self.made().await?, Vec::new());
        for step in &composite.steps {
            match self.standing(step, &made).await? {
                Standing::There(life) => lives.push((step.id.as_str(), life)),
                _ => {
                    return Ok(Verdict::Unknown(format!(
                        "Step {} is not done, so there is nothing to adopt.",
                        step.id
                    )));
                }
            }
        }
        let there = lives.iter().map(|(step, life)| (*step, &**life)).collect();
        Ok(match self.outputs(&there) {
            Ok(outputs) => Verdict::There(outputs),
            Err(why) => Verdict::Unknown(why),
        })
    }

    /// Decides that it comes to nothing, for good: whoever takes the run next takes away what was made, and nothing else.
    async fn give_up(&mut self, why: String) -> Result<Verdict, Trouble> {
        let why = cut(&why);
        self.note("fail", why.clone()).await?;
        let turned = Some((Intent::Abandon, Some(why)));
        Ok(Verdict::Waits(elsewhere(Duration::ZERO), turned))
    }

    /// Takes away what was made, and ends in `state` once nothing of it is left.
    async fn leave_nothing(
        &mut self,
        state: RequestState,
        reason: Option<String>,
    ) -> Result<Verdict, Trouble> {
        if self.work.is_being_deleted().await? {
            return Ok(Verdict::Gone(RequestState::Canceled, Some(DELETED.into())));
        }
        Ok(match self.remove().await? {
            Removal::Done => Verdict::Gone(state, reason),
            Removal::Waiting(wait) => waits(wait),
            Removal::Again(why) => Verdict::LookAgain(why),
            Removal::Stuck(why) => Verdict::Unknown(format!("What was made could not be removed: {why}")),
        })
    }

    /// Removes what a create made, for the delete of the whole.
    async fn tear_down(&mut self) -> Result<Verdict, Trouble> {
        if !self.work.run.touched {
            match self.work.mark("destroy").await? {
                Held::Yes(Intent::Cancel) => return Ok(Verdict::Gone(RequestState::Canceled, None)),
                Held::Yes(_) => {}
                Held::Lost => return Ok(Verdict::Stopped),
            }
        }
        Ok(match self.remove().await? {
            Removal::Done => Verdict::There(Object::new()),
            Removal::Waiting(wait) => waits(wait),
            Removal::Again(why) => Verdict::LookAgain(why),
            Removal::Stuck(why) => Verdict::Gone(RequestState::Failed, Some(why)),
        })
    }

    /// Stops what is under way, then removes what was made: one after the other, the last first.
    async fn remove(&mut self) -> Result<Removal, Trouble> {
        let made = self.made().await?;
        let mut wait = None;
        for StepRequest { step, request } in &made {
            match request.view.state {
                RequestState::PendingApproval | RequestState::Queued | RequestState::Running => {
                    let is_own = request.view.parent_id == Some(self.work.run.request.view.id);
                    let soon = if is_own { TOLD } else { NOT_TOLD };
                    wait = Some(wait.map_or(soon, |wait: Duration| wait.min(soon)));
                    match self.asking.cancel(step, request).await {
                        // It came to its end in this moment.
                        Err(error) if error.kind == ProblemKind::AlreadyDecided => wait = Some(NOT_TOLD),
                        asked => asked?,
                    }
                    self.note(step, format!("request {} is asked to stop", request.view.id)).await?;
                }
                RequestState::Unknown => {
                    wait = wait.or(Some(NOT_TOLD));
                    let id = request.view.id;
                    self.note(step, format!("nobody can tell what became of request {id}; decide there"))
                        .await?;
                }
                _ => {}
            }
        }
        if let Some(wait) = wait {
            return Ok(Removal::Waiting(wait));
        }
        let mut removing = self.work.portal.store.steps_of(self.work.run.request.view.id).await?;
        removing.retain(|one| one.request.view.action == action::DELETE);
        for StepRequest { step, request } in made.iter().rev() {
            if request.view.state != RequestState::Succeeded {
                continue;
            }
            let life = self.work.portal.store.life(request.resource).await?;
            let Some(life) = life.filter(|life| life.view.state != "gone") else { continue };
            return self.remove_one(step, &life, &removing).await;
        }
        Ok(Removal::Done)
    }

    async fn remove_one(
        &mut self,
        step: &str,
        life: &StoredResource,
        removing: &[StepRequest],
    ) -> Result<Removal, Trouble> {
        let ours: Vec<&StoredRequest> = removing
            .iter()
            .map(|one| &one.request)
            .filter(|request| request.resource == life.view.id)
            .collect();
        // Whatever came of it before, it is tried once more each time that the whole is.
        let may_ask_again = self.work.run.tries == 0;
        match ours.last() {
            Some(request) if !request.view.state.is_final() => {
                let id = request.view.id;
                if request.view.state == RequestState::Unknown {
                    self.note(step, format!("nobody can tell what became of request {id}; decide there"))
                        .await?;
                }
                return Ok(Removal::Waiting(TOLD));
            }
            Some(request) if request.view.state == RequestState::Failed => {
                let id = request.view.id;
                let why = request.view.reason.as_deref().unwrap_or("no reason was given");
                let why = format!("Step {step}: request {id} failed: {why}");
                if !may_ask_again {
                    return Ok(Removal::Stuck(why));
                }
                let more = format!("/delete/{}/retry/{}", life.view.id, request.view.attempt);
                self.asking.retry((step, &more), id).await?;
                return Ok(Removal::Again(why));
            }
            Some(request) if !may_ask_again => {
                return Ok(Removal::Stuck(format!("Step {step}: request {} was canceled", request.view.id)));
            }
            _ => {}
        }
        if life.view.state == "deleting" {
            return Ok(Removal::Waiting(NOT_TOLD));
        }
        let more = format!("/delete/{}/{}", life.view.id, ours.len());
        match self.asking.delete((step, &more), life).await {
            Ok(asked) => {
                if let Some(id) = asked.request_id {
                    self.note(step, format!("removed by request {id}")).await?;
                }
                Ok(Removal::Waiting(if asked.existing { NOT_TOLD } else { TOLD }))
            }
            // It went in this moment.
            Err(error) if error.kind == ProblemKind::NotFound => Ok(Removal::Waiting(Duration::ZERO)),
            Err(error) => match Trouble::from(error) {
                Trouble::Refused(why) => Ok(Removal::Stuck(format!("Step {step}: {why}"))),
                Trouble::Again(why) => Ok(Removal::Again(format!("Step {step}: {why}"))),
                trouble => Err(trouble),
            },
        }
    }

    /// Writes into the history, once.
    async fn note(&mut self, step: &str, detail: String) -> Result<(), Trouble> {
        let entry = (step.to_owned(), cut(&detail));
        if !self.noted.contains(&entry) {
            self.work.step(&entry.0, &entry.1).await?;
            self.noted.insert(entry);
        }
        Ok(())
    }
}

/// Says which step it was that met trouble.
fn of(step: &Step) -> impl Fn(Error) -> Trouble {
    move |error| match Trouble::from(error) {
        Trouble::Refused(why) => Trouble::Refused(format!("Step {}: {why}", step.id)),
        Trouble::Again(why) => Trouble::Again(format!("Step {}: {why}", step.id)),
        other => other,
    }
}

fn elsewhere(look_again: Duration) -> Elsewhere {
    Elsewhere { what: "for its steps".into(), look_again, patience: None }
}

fn waits(look_again: Duration) -> Verdict {
    Verdict::Waits(elsewhere(look_again), None)
}

fn settled(came: Result<Verdict, Trouble>) -> Result<Verdict, StoreError> {
    match came {
        Ok(verdict) => Ok(verdict),
        Err(Trouble::Store(error)) => Err(error),
        Err(Trouble::Later) => Ok(waits(NOT_TOLD)),
        Err(Trouble::Again(why)) => Ok(Verdict::Again(why)),
        Err(Trouble::Doubt(why) | Trouble::Refused(why)) => Ok(Verdict::LookAgain(why)),
    }
}
