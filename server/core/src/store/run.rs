//! Runs as workers see them: what is to be done, by whom, and how it ends.

use super::{StoredRequest, StoredResource};
use domain::{expiry::Expiry, id::RequestId, state::RequestState, view::Object};
use std::time::Duration;

/// What a run is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Carry the request out.
    Apply,
    /// Stop and leave nothing behind.
    Cancel,
    /// Take what is there as done.
    Adopt,
    /// Remove what may be there and close it as failed.
    Abandon,
}

/// A run that a worker holds by a lease.
#[derive(Debug, Clone)]
pub struct Run {
    /// The request.
    pub request: StoredRequest,
    /// Which hold this is: every write of an earlier holder is refused.
    pub fence: i64,
    /// How many tries ended without a result.
    pub tries: u32,
    /// What is to be done.
    pub intent: Intent,
    /// Why it is taken back, or comes to nothing once what is under way is at its end, where an earlier hold found so.
    pub why: Option<String>,
    /// Whether an earlier hold may have begun to change something outside.
    pub touched: bool,
    /// Whether a person decided about it: to let it be carried out once more even where nobody can tell what was begun, or to
    /// take it back whatever is said to go on. Their word is used up as soon as something is begun by it.
    pub insisted: bool,
    /// For how long the servers that took it have not known its offering.
    pub lacked: Option<Duration>,
    /// For how long it has been waiting for work that goes on elsewhere; nothing before the first wait.
    pub waited: Option<Duration>,
    /// The life of the resource that it is about.
    pub resource: StoredResource,
}

impl Run {
    /// The hold by which this run's writes are checked.
    #[must_use]
    pub fn hold(&self) -> Hold {
        Hold { request: self.request.view.id, attempt: self.request.view.attempt, fence: self.fence }
    }
}

/// A worker's hold on a run: the fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The request.
    pub request: RequestId,
    /// The attempt.
    pub attempt: u32,
    /// The number of the hold.
    pub fence: i64,
}

/// Whether a fenced write counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It did; the run is to do this now.
    Yes(Intent),
    /// The lease was lost; nothing was written.
    Lost,
}

/// How a run ends.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The state that the request comes to.
    pub state: RequestState,
    /// Why.
    pub reason: Option<String>,
    /// Outputs to show.
    pub outputs: Object,
    /// Names of secret outputs.
    pub secret_names: Vec<String>,
    /// The secret outputs, sealed.
    pub secrets: Option<Vec<u8>>,
    /// Texts that nobody may read in the request's history: a program may have written a secret before it was known.
    pub scrubbed: Vec<String>,
    /// When what was made or changed ends, where that is known.
    pub expiry: Option<Expiry>,
    /// Whether something of it is left though it came to nothing: then a stop that was promised meanwhile has something to
    /// take back.
    pub leaves: bool,
}

impl Ending {
    /// An ending without outputs.
    #[must_use]
    pub fn without_outputs(state: RequestState, reason: Option<String>) -> Self {
        Self {
            state,
            reason,
            outputs: Object::new(),
            secret_names: Vec::new(),
            secrets: None,
            scrubbed: Vec::new(),
            expiry: None,
            leaves: false,
        }
    }
}
