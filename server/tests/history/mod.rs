//! Histories: what callers asked and were told while everything around them failed, and how things stood at the end.
//!
//! [`check`] judges one against a small sequential model of the portal's promises. It is a pure function: it knows
//! neither databases nor processes, so that whatever can tell a history, a campaign against real servers or a test
//! within one process, is judged by the same rules.

mod answers;
mod dice;
mod endings;
mod lives;
mod refusals;
#[cfg(test)]
mod tests;

pub(crate) use dice::Dice;

use serde_json::{Map, Value};
use std::collections::HashMap;

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Everything that was asked and told, and how things stood once all had come to its end.
///
/// It is complete only if every key was sent once more after the faults were over, with every meaning it was ever sent
/// with: until then nobody knows which lost submissions arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Every keyed call.
    pub(crate) calls: Vec<Call>,
    /// Every look at a resource.
    pub(crate) sights: Vec<Sight>,
    /// How things stood at the end.
    pub(crate) end: End,
}

/// One keyed call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// When it began, on one counter of the whole history.
    pub(crate) began: u64,
    /// When its answer was read, or given up.
    pub(crate) ended: u64,
    /// The key.
    pub(crate) key: String,
    /// What it means.
    pub(crate) ask: Ask,
    /// The version that it was to be about; no part of its meaning.
    pub(crate) if_match: Option<String>,
    /// What came of it.
    pub(crate) outcome: Outcome,
}

/// The meaning of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    /// A new resource.
    Create { name: String, parameters: Object },
    /// Other parameters for a resource, as a merge patch.
    Update { name: String, patch: Object },
    /// An action that adds to `count`.
    Add { name: String, count: i64 },
    /// The end of a resource.
    Delete { name: String },
    /// The end of a request.
    Cancel { request: String },
    /// The next attempt of a request that failed.
    Retry { request: String },
    /// What becomes of a request whose outcome nobody can tell: `adopt`, `retry` or `abandon`.
    Resolve { request: String, resolution: String },
}

impl Ask {
    /// Whether a call of this kind makes a request of its own.
    fn makes_a_request(&self) -> bool {
        self.decides().is_none()
    }

    /// The request that it decides about.
    fn decides(&self) -> Option<&str> {
        match self {
            Self::Cancel { request } | Self::Retry { request } | Self::Resolve { request, .. } => {
                Some(request)
            }
            Self::Create { .. } | Self::Update { .. } | Self::Add { .. } | Self::Delete { .. } => None,
        }
    }

    /// The name of the resource that it is about.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Create { name, .. }
            | Self::Update { name, .. }
            | Self::Add { name, .. }
            | Self::Delete { name } => Some(name),
            Self::Cancel { .. } | Self::Retry { .. } | Self::Resolve { .. } => None,
        }
    }

    /// Whether it changes a resource that is there.
    fn changes(&self) -> bool {
        matches!(self, Self::Update { .. } | Self::Add { .. } | Self::Delete { .. })
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It was told a success.
    Told(Told),
    /// It was refused for good.
    Refused { status: u16, problem: String },
    /// Nobody knows: the answer was lost, or was that there is none now.
    Unknown,
}

/// A success.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// The request it is about.
    pub(crate) request: String,
    /// Status, content type, location and entity tag: what a repeat must tell again.
    pub(crate) head: String,
    /// The bytes of the body.
    pub(crate) body: String,
    /// Whether it says that it is the first answer, given again.
    pub(crate) replayed: bool,
    /// Whether it says that what was asked for was there already.
    pub(crate) existing: bool,
}

/// A look at a living resource.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    /// When the look began.
    pub(crate) began: u64,
    /// When it ended.
    pub(crate) ended: u64,
    /// What was seen.
    pub(crate) seen: Resource,
}

/// A resource that lives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    /// The life.
    pub(crate) life: String,
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: i64,
    /// Whether it is being deleted.
    pub(crate) deleting: bool,
    /// What it is meant to be.
    pub(crate) parameters: Object,
    /// The request that made it.
    pub(crate) made_by: String,
}

/// How things stand when nothing moves any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    /// Every request.
    pub(crate) requests: Vec<Request>,
    /// Every living resource.
    pub(crate) resources: Vec<Resource>,
    /// What was done outside, in order.
    pub(crate) ledger: Vec<Effect>,
}

/// A request at the end.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its ID.
    pub(crate) id: String,
    /// `create`, `update`, `delete` or the name of an action.
    pub(crate) action: String,
    /// The name of its resource.
    pub(crate) name: String,
    /// Its state.
    pub(crate) state: String,
    /// What is said of how it came to that.
    pub(crate) reason: Option<String>,
    /// Its parameters.
    pub(crate) parameters: Object,
}

/// Something that was done outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effect {
    /// `apply` for something new, `destroy` for its end; `change` for an update or an action, `undo` where one was taken
    /// back; `again` where it was asked for once more though it stood, and nothing came of that.
    pub(crate) deed: String,
    /// The request it was done for.
    pub(crate) request: String,
    /// In which attempt of it.
    pub(crate) attempt: u32,
    /// The name of what it was done to.
    pub(crate) name: String,
    /// The `count` of what stood afterwards, where that is told.
    pub(crate) count: Option<i64>,
}

/// A promise of the portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Promise {
    /// A key is first once, for one meaning; whatever came with it later was a repeat.
    FirstOnce,
    /// Every repeat gets the first answer, byte for byte.
    SameAnswer,
    /// A repeat is never refused.
    HonestRepeat,
    /// Another meaning under a used key is always refused, as such, and nothing else is.
    ChangedPayload,
    /// A key makes one request, and every request was made by a key.
    OneRequest,
    /// What was told to be accepted is there.
    NothingLost,
    /// Every request comes to the end it was asked for.
    RightEnd,
    /// A name belongs to one living resource.
    OneLife,
    /// An attempt of a request has at most one effect outside, and one stands if the request succeeded. It is asked for once
    /// more only by as many words of people as there are.
    OneEffect,
    /// What ended never comes back.
    NoReturn,
    /// Versions only grow, and name one state each.
    Versions,
    /// What a living resource is meant to be is what its changes make of it, each counted once.
    Desired,
    /// A refusal has its cause.
    JustRefusal,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Violation {
    /// Which.
    pub(crate) promise: Promise,
    /// How.
    pub(crate) what: String,
}

/// The promises that a history breaks: none if all is well.
#[must_use]
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let case = Case::of(history);
    let mut found = Findings(Vec::new());
    answers::check(&case, &mut found);
    refusals::check(&case, &mut found);
    endings::check(&case, &mut found);
    lives::check(&case, &mut found);
    found.0
}

/// What was found so far.
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, promise: Promise, what: String) {
        self.0.push(Violation { promise, what });
    }
}

/// A history, ordered for its judges.
struct Case<'a> {
    history: &'a History,
    /// The calls of each key, in the order in which they began.
    keys: Vec<(&'a str, Vec<&'a Call>)>,
    /// The requests by their ID.
    requests: HashMap<&'a str, &'a Request>,
    /// The calls about each name.
    names: HashMap<&'a str, Vec<&'a Call>>,
    /// The decisions about each request.
    decisions: HashMap<&'a str, Vec<&'a Call>>,
}

impl<'a> Case<'a> {
    fn of(history: &'a History) -> Self {
        let mut by_key: HashMap<&str, Vec<&Call>> = HashMap::new();
        let mut names: HashMap<&str, Vec<&Call>> = HashMap::new();
        let mut decisions: HashMap<&str, Vec<&Call>> = HashMap::new();
        for call in &history.calls {
            by_key.entry(&call.key).or_default().push(call);
            if let Some(name) = call.ask.name() {
                names.entry(name).or_default().push(call);
            }
            if let Some(request) = call.ask.decides() {
                decisions.entry(request).or_default().push(call);
            }
        }
        let mut keys: Vec<_> = by_key.into_iter().collect();
        keys.sort_by_key(|(key, _)| *key);
        for calls in keys.iter_mut().map(|(_, calls)| calls).chain(names.values_mut()) {
            calls.sort_by_key(|call| call.began);
        }
        let requests = history.end.requests.iter().map(|request| (request.id.as_str(), request)).collect();
        Self { history, keys, requests, names, decisions }
    }

    /// Whether a delete of this name may have been accepted.
    fn deleted(&self, name: &str) -> bool {
        self.about(name).any(|call| matches!(call.ask, Ask::Delete { .. }))
    }

    /// Whether a create of this name came to nothing, in the end or before it was opened again.
    fn not_made(&self, name: &str) -> bool {
        let mut creates = self
            .history
            .end
            .requests
            .iter()
            .filter(|request| request.name == name && request.action == "create");
        creates.any(|request| request.state != "succeeded" || self.reopened(&request.id))
    }

    /// The calls about a name that may have been accepted.
    fn about(&self, name: &str) -> impl Iterator<Item = &'a Call> {
        let calls = self.names.get(name).cloned().unwrap_or_default();
        calls.into_iter().filter(|call| !matches!(call.outcome, Outcome::Refused { .. }))
    }

    /// The decisions about a request that may have been accepted.
    fn decisions(&self, request: &str) -> impl Iterator<Item = &'a Call> {
        let calls = self.decisions.get(request).cloned().unwrap_or_default();
        calls.into_iter().filter(|call| !matches!(call.outcome, Outcome::Refused { .. }))
    }

    /// Whether somebody may have opened the request again, or said what became of it.
    fn reopened(&self, request: &str) -> bool {
        self.decisions(request).any(|call| !matches!(call.ask, Ask::Cancel { .. }))
    }

    /// Every success, with its call.
    fn told(&self) -> impl Iterator<Item = (&'a Call, &'a Told)> {
        self.history.calls.iter().filter_map(|call| Some((call, call.told()?)))
    }
}

impl Call {
    fn told(&self) -> Option<&Told> {
        match &self.outcome {
            Outcome::Told(told) => Some(told),
            _ => None,
        }
    }
}
