//! What an offering says of a service that it calls.

use super::texts::Shape;
use crate::{outbound::Method, provisioner::named_secrets::NamedSecrets};
use std::{collections::BTreeMap, time::Duration};

/// How the service is called for everything that an offering does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The secrets that templates may use.
    pub secrets: NamedSecrets,
    /// The names of those that sign reports as well as each callback's own.
    pub shared: Vec<String>,
    /// Whether the service carries out once what comes with the same `Idempotency-Key`, so that a call in doubt may be
    /// repeated.
    pub idempotent: bool,
    /// Whether the service reports on its work by callback.
    pub by_callback: bool,
    /// How long one call may take.
    pub call_within: Duration,
    /// How long work may go on there, in all.
    pub patience: Duration,
    /// How often one looks at work that goes on there.
    pub look_again: Duration,
    /// After what time a thing that a first look does not find is looked for once more.
    pub settled_after: Duration,
    /// Makes the thing.
    pub apply: CallPlan,
    /// Changes it.
    pub update: Option<CallPlan>,
    /// What else is done with it.
    pub actions: BTreeMap<String, CallPlan>,
    /// Removes it.
    pub destroy: CallPlan,
    /// Stops work that goes on.
    pub stop: Option<CallPlan>,
    /// How an address out of an answer is asked.
    pub poll: Option<PollPlan>,
    /// How one looks whether the thing is there.
    pub observe: Option<LookPlan>,
}

/// One call, as templates.
#[derive(Debug, Clone)]
pub struct CallPlan {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body, which is sent as JSON.
    pub body: Option<Shape>,
    /// What its answer means.
    pub answer: Answer,
}

/// What an answer means, as expressions over `status`, `headers` and `body`.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// It is done.
    pub done: Option<String>,
    /// It goes on.
    pub in_progress: Option<String>,
    /// It came to nothing, and trying again will not help.
    pub failed: Option<String>,
    /// Why it came to nothing.
    pub error: Option<String>,
    /// The address to ask at.
    pub poll: Option<String>,
    /// Outputs, by name.
    pub outputs: Vec<(String, String)>,
}

/// How an address out of an answer is asked.
#[derive(Debug, Clone)]
pub struct PollPlan {
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// What its answer means.
    pub answer: Answer,
}

/// How one looks whether a thing is there, and whose it is.
#[derive(Debug, Clone)]
pub struct LookPlan {
    /// The address.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// It is not there; without this, by the status 404 or 410.
    pub absent: Option<String>,
    /// It is there and was made by `made_by`.
    pub ours: String,
    /// What an update or action asks for is done.
    pub done: Option<String>,
    /// It is being worked on.
    pub in_progress: Option<String>,
    /// Outputs, by name.
    pub outputs: Vec<(String, String)>,
}
