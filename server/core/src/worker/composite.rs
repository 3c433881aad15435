//! Carrying out what is made of steps: asking for each when its turn comes, waiting for them without holding a worker, and
//! adopting what is there.
//!
//! Nothing of where it stands is kept but the steps' own requests, so whoever takes the run next, after whatever crash or in
//! the next attempt, sees the same: what a step made counts as done for as long as it is there, and is never asked for twice.
//! Once something has failed no step is begun; what is under way comes to its own end, and only then does the parent fail and
//! its name become free. What its steps made stays, and the next attempt goes on from there. It is taken away only where
//! somebody wants that: by a cancellation, by abandoning it, and by the removal of the whole.

mod removal;

use super::carry_out::{Attempt, Verdict, cut};
use crate::{
    Error,
    catalog::{Composite, Step, known},
    provisioner::Elsewhere,
    service::Asking,
    store::{Held, Intent, StepRequest, StoreError, StoredRequest, StoredResource},
};
use domain::{
    action::Kind,
    problem::ProblemKind,
    state::{RequestState, Resolution},
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
/// How many resources a reason names as those that stay; the history has them all.
const MOST_NAMED: usize = 3;
/// How much of a failure a reason tells, in characters, so that what stays has room behind it.
const MOST_TOLD: usize = 450;

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
    /// Its request failed before the parent was tried again, and gets another attempt too.
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

/// A request and its steps.
pub(super) struct Family<'a> {
    work: &'a Attempt<'a>,
    composite: &'a Composite,
    asking: Asking<'a>,
    /// What the history of this attempt says of steps already.
    noted: HashSet<(String, String)>,
    /// How often somebody decided, in this attempt, that it is to be tried again.
    decided: usize,
}

impl<'a> Family<'a> {
    pub(super) async fn of(work: &'a Attempt<'a>, composite: &'a Composite) -> Result<Self, StoreError> {
        let request = &work.run.request;
        let (mut noted, mut decided, mut after) = (HashSet::new(), 0, 0);
        loop {
            let events = work.portal.store.events(request.view.id, after, ENTRIES).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in events.into_iter().filter(|event| event.attempt == request.view.attempt) {
                if let EventEntry::Step { step, detail } = event.entry {
                    let again = Resolution::of_line(&detail) == Some(Resolution::Retry);
                    decided += usize::from(step == "resolve" && again);
                    noted.insert((step, detail));
                }
            }
        }
        let asking = work.portal.asking_for(request, work.hold());
        Ok(Self { work, composite, asking, noted, decided })
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
        // What an earlier hold met counts, whatever has become of it.
        let mut failed = Vec::from_iter(self.work.run.why.clone());
        let mut wait = TOLD;
        for (step, standing) in &standings {
            match standing {
                Standing::New | Standing::Anew(_) => {}
                Standing::UnderWay(request) => {
                    if request.view.parent_id != Some(self.work.run.request.view.id) {
                        wait = NOT_TOLD;
                    }
                    self.note(&step.id, format!("asked for by request {}", request.view.id)).await?;
                }
                Standing::Unknown(request) => self.note_unknown(&step.id, request).await?,
                Standing::There(life) => {
                    there.insert(&step.id, life);
                    self.note(&step.id, "done".into()).await?;
                }
                Standing::Failed(why) => {
                    self.note(&step.id, why.clone()).await?;
                    failed.push(format!("Step {}: {why}", step.id));
                }
            }
        }
        if !failed.is_empty() {
            let told: Vec<String> = failed.iter().map(|why| sentence(why)).collect();
            return self.fail(&told.join(" "), &made).await;
        }
        if there.len() == standings.len() {
            return match self.outputs(&there) {
                Ok(outputs) => Ok(Verdict::There(outputs)),
                Err(why) => self.give_up(why).await,
            };
        }
        for (step, standing) in &standings {
            if step.needs.iter().all(|need| there.contains_key(need.as_str())) {
                let soon = match standing {
                    Standing::New => self.ask_for(step, &there).await?,
                    Standing::Anew(request) => self.try_again(step, request, &there).await?,
                    _ => None,
                };
                wait = wait.min(soon.unwrap_or(wait));
            }
        }
        Ok(waits(wait))
    }

    /// What is added to a step's key in this attempt of the parent's, and each time that somebody decides to try it again.
    fn more(&self) -> String {
        match (self.work.run.request.view.attempt, self.decided) {
            (1, 0) => String::new(),
            (attempt, 0) => format!("/{attempt}"),
            (attempt, decided) => format!("/{attempt}.{decided}"),
        }
    }

    /// What the steps of the create asked for, oldest first.
    async fn made(&self) -> Result<Vec<StepRequest>, Trouble> {
        let maker = self.work.run.resource.view.created_by.id;
        let mut steps = self.work.portal.store.steps_of(maker).await?;
        steps.retain(|one| is_create(&one.request));
        Ok(steps)
    }

    async fn standing(&self, step: &Step, made: &[StepRequest]) -> Result<Standing, Trouble> {
        let more = self.more();
        let asked = self.asking.claimed(&step.id, &more).await?;
        let is_first = more.is_empty();
        let retried = !is_first && self.asking.claimed(&step.id, &format!("/retry{more}")).await?.is_some();
        // What came of it before is not held against this attempt.
        let spoken = is_first || asked.is_some() || retried;
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
                Some(life) if is_there(&life) => Standing::There(Box::new(life)),
                _ if spoken => Standing::Failed(format!("what request {id} made was removed meanwhile")),
                _ => Standing::New,
            },
            RequestState::Failed if spoken => {
                let why = request.view.reason.as_deref().unwrap_or("no reason was given");
                Standing::Failed(format!("request {id} failed: {why}"))
            }
            RequestState::Failed => Standing::Anew(request),
            RequestState::Rejected if spoken => {
                let why = request.view.reason.as_deref().unwrap_or("no reason was given");
                Standing::Failed(format!("request {id} was rejected: {why}"))
            }
            state if spoken => Standing::Failed(format!("request {id} was {state}")),
            _ => Standing::New,
        })
    }

    /// Asks for a step; when to look again, if sooner than one would be told.
    async fn ask_for(
        &mut self,
        step: &Step,
        there: &BTreeMap<&str, &StoredResource>,
    ) -> Result<Option<Duration>, Trouble> {
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
        Ok(asked.existing.then_some(Duration::ZERO))
    }

    /// Opens the next attempt of a step's request; when to look again, if sooner than one would be told.
    async fn try_again(
        &mut self,
        step: &Step,
        request: &StoredRequest,
        there: &BTreeMap<&str, &StoredResource>,
    ) -> Result<Option<Duration>, Trouble> {
        let more = format!("/retry{}", self.more());
        match self.asking.retry((&step.id, &more), request.view.id).await {
            Ok(()) => Ok(None),
            Err(error) if error.kind == ProblemKind::AlreadyDecided => {
                let now = self.work.portal.store.request(request.view.id).await?;
                if now.is_some_and(|now| now.view.state == RequestState::Failed) {
                    // Its secret parameters are not kept any more, but the parent may still have them.
                    return self.ask_for(step, there).await;
                }
                // A person has tried it again in this moment.
                Ok(Some(NOT_TOLD))
            }
            // Somebody else made something there meanwhile. It counts if it is just what the step asks for.
            Err(error) if error.kind == ProblemKind::NameTaken => self.ask_for(step, there).await,
            Err(error) => Err(of(step)(error)),
        }
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

    /// Decides that it fails, for good: whoever takes the run next begins nothing, and waits for what is under way.
    async fn give_up(&mut self, why: String) -> Result<Verdict, Trouble> {
        let why = cut(&why);
        self.note("fail", why.clone()).await?;
        let turned = Some((Intent::Apply, Some(why)));
        Ok(Verdict::Waits(elsewhere(Duration::ZERO), turned))
    }

    /// Fails once nothing that the steps asked for is under way. What they made stays, and the reason says so. Nobody has to
    /// decide any more about what waited for that.
    async fn fail(&mut self, why: &str, made: &[StepRequest]) -> Result<Verdict, Trouble> {
        let mut waiting = false;
        for StepRequest { step, request } in made.iter().filter(|one| !one.request.view.state.is_final()) {
            waiting = true;
            match request.view.state {
                RequestState::Unknown => self.note_unknown(step, request).await?,
                RequestState::PendingApproval
                    if request.view.parent_id == Some(self.work.run.request.view.id) =>
                {
                    match self.asking.cancel(step, request).await {
                        // Somebody decided in this moment.
                        Err(error) if error.kind == ProblemKind::AlreadyDecided => {}
                        asked => asked?,
                    }
                }
                _ => {}
            }
        }
        if waiting {
            let detail = "no other step is begun; what is under way comes to its own end first";
            self.note("fail", detail.into()).await?;
            return Ok(waits(TOLD));
        }
        let mut staying = Vec::new();
        for StepRequest { step, request } in self.with_what_failed_ones_left(made.to_vec()).await? {
            if request.view.state != RequestState::Succeeded {
                continue;
            }
            let Some(life) = self.work.portal.store.life(request.resource).await?.filter(is_there) else {
                continue;
            };
            let what = format!("{} {}", life.view.resource_type, life.view.name);
            self.note(&step, format!("{what} stays, made by request {}", request.view.id)).await?;
            staying.push(what);
        }
        if staying.is_empty() {
            return Ok(Verdict::Left(why.to_owned()));
        }
        let shortened: String = why.chars().take(MOST_TOLD).collect();
        let shortened = if shortened.len() < why.len() { format!("{shortened}…") } else { shortened };
        let named = staying.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match staying.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Verdict::Left(format!(
            "{} What the other steps made stays, each a resource of its own: {named}{more}. \
             Try again goes on from there.",
            sentence(&shortened)
        )))
    }

    /// Says that somebody has to decide about the request of a step.
    async fn note_unknown(&mut self, step: &str, request: &StoredRequest) -> Result<(), Trouble> {
        let id = request.view.id;
        self.note(step, format!("nobody can tell what became of request {id}; decide there")).await
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

/// Whether what a step made can be used.
fn is_there(life: &StoredResource) -> bool {
    matches!(life.view.state.as_str(), "active" | "creating")
}

fn is_create(request: &StoredRequest) -> bool {
    Kind::of(&request.view.action) == Kind::Create
}

/// The same with a stop at its end.
fn sentence(why: &str) -> String {
    let ends = why.ends_with(['.', '!', '?', '…']);
    if ends { why.to_owned() } else { format!("{why}.") }
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
