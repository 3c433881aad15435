//! Provisioners: what makes, looks at and removes real things. A provisioner never sees HTTP, a database or another
//! request; it is handed one job and answers by what it did.

pub mod exec;
pub mod fake;
pub mod guard_process;
pub mod http;
pub mod kestra;
pub mod named_secrets;
pub(crate) mod steps;

use crate::{outbound::Outbound, signature::SharedSecret};
use async_trait::async_trait;
use domain::{id::RequestId, name::Name, view::Object};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// One job: everything a provisioner may know.
#[derive(Clone)]
pub struct Job {
    /// The request; every answer is keyed by it.
    pub request_id: RequestId,
    /// The request that made the resource, whose mark the thing bears; for a create the request itself.
    pub made_by: RequestId,
    /// Groups the request with its relatives.
    pub correlation_id: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The team that owns the resource.
    pub team: Name,
    /// `create`, or another action.
    pub action: String,
    /// The offering.
    pub offering: Name,
    /// The resource's type.
    pub resource_type: Name,
    /// The resource's name.
    pub name: Name,
    /// What the resource is meant to be once this job is done: all of its parameters, after defaults. Of a delete, what it
    /// was.
    pub parameters: Object,
    /// What it was before, by what was last carried out; nothing for a create.
    pub previous: Object,
    /// An action's own parameters.
    pub input: Object,
    /// Whether this takes an update back: `parameters` is what it was before, `previous` what the update asked for.
    pub undo: bool,
    /// What an earlier run of this resource answered, secret outputs included.
    pub outputs: Object,
}

impl std::fmt::Debug for Job {
    /// Says which job it is; parameters and outputs may hold secrets and stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("request_id", &self.request_id)
            .field("attempt", &self.attempt)
            .field("team", &self.team)
            .field("action", &self.action)
            .field("offering", &self.offering)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What is done elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// What the request asks for.
    Apply,
    /// Taking an update back.
    Undo,
    /// Removing the thing.
    Destroy,
}

impl Work {
    /// The word by which it is kept.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Destroy => "destroy",
        }
    }
}

/// What was begun elsewhere for a job, or is about to be: how the other side reports on it, and what was noted of it.
#[derive(Debug, Clone)]
pub struct Begun {
    /// What is done there.
    pub work: Work,
    /// The address for reports.
    pub callback: String,
    /// What reports are signed with.
    pub secret: SharedSecret,
    /// What the provisioner noted when it began.
    pub note: Object,
    /// Whether nobody can have been asked to begin it before.
    pub fresh: bool,
}

/// What a provisioner is given besides its job.
#[derive(Debug)]
pub struct Context {
    /// Fires when the work must stop: canceled, or the lease is about to end.
    pub stop: CancellationToken,
    /// Until when the run is surely held, for who must not go on when this server itself stands still.
    pub held: Option<watch::Receiver<Instant>>,
    /// Takes log lines as they come; bounded, so a program that writes faster than they can be kept waits.
    pub log: mpsc::Sender<String>,
    /// Makes calls to the outside, for who works there.
    pub outbound: Option<Outbound>,
    /// What was begun elsewhere, for who works there.
    pub begun: Option<Begun>,
    noted: Mutex<Option<Object>>,
}

impl Context {
    /// What every provisioner needs.
    #[must_use]
    pub fn new(stop: CancellationToken, log: mpsc::Sender<String>) -> Self {
        Self { stop, held: None, log, outbound: None, begun: None, noted: Mutex::default() }
    }

    /// What was noted of the work elsewhere.
    #[must_use]
    pub fn note(&self) -> Object {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        noted.or_else(|| self.begun.as_ref().map(|begun| begun.note.clone())).unwrap_or_default()
    }

    /// Notes something of the work elsewhere, instead of what was noted before: an address to ask at, an ID. It is kept
    /// with the answer that the work is in progress.
    pub fn set_note(&self, note: Object) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }

    /// What was noted anew, if anything.
    pub(crate) fn noted(self) -> Option<Object> {
        self.noted.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that goes on elsewhere, as by another service or by requests of the portal's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Elsewhere {
    /// What is waited for, in words for the history.
    pub what: String,
    /// When one looks again, unless somebody reports before.
    pub look_again: Duration,
    /// How long it may take, from the first wait on; then nobody can tell what became of it.
    pub patience: Option<Duration>,
}

/// Whether the thing is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// It is not there.
    Absent,
    /// It is there and ours, as the job asks for; here are its outputs.
    Ours(Object),
    /// It is there and ours, but what this update or action asks for is not done, or not to its end.
    Before(Object),
    /// What the job asks for goes on elsewhere, and is not at its end.
    InProgress(Elsewhere),
    /// What the job asks for was tried elsewhere and came to nothing, for this reason.
    CameToNothing(String),
    /// Something of that name is there, but `made_by` did not make it.
    Foreign,
    /// It cannot be told at present.
    CannotTell(String),
}

/// What came of applying or destroying.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Done; here are the outputs.
    Done(Object),
    /// Begun, and it goes on elsewhere. `observe` tells what becomes of it; a `destroy` is asked for once more.
    InProgress(Elsewhere),
    /// Surely not even begun, as where nobody could be asked to; trying again without a look is safe.
    NotBegun {
        /// Why.
        why: String,
        /// Whether trying again may help.
        again: bool,
    },
    /// Not done; trying again may help.
    Retryable(String),
    /// Not done; trying again will not help.
    Failed(String),
    /// It cannot be told whether it was done.
    CannotTell(String),
    /// Stopped on request; what was begun may stand half-way.
    Stopped,
}

/// Makes, looks at, changes and removes things of one kind.
#[async_trait]
pub trait Provisioner: Send + Sync + std::fmt::Debug {
    /// Is it there, and is it ours?
    async fn observe(&self, job: &Job, context: &Context) -> Observation;
    /// Bring it to what the job asks for: make it, change it, or do the action with it. May be called again after any
    /// doubt, `observe` having come first.
    async fn apply(&self, job: &Job, context: &Context) -> Outcome;
    /// Remove whatever `made_by` made; done as well when nothing is there.
    async fn destroy(&self, job: &Job, context: &Context) -> Outcome;
    /// Stop what goes on elsewhere for this job, so that it can be taken back. Only asked of work that `observe` found in
    /// progress; where it cannot be stopped, its end is awaited.
    async fn stop(&self, _: &Job, _: &Context) -> Outcome {
        Outcome::Done(Object::new())
    }
    /// What it means that a look at this job finds what was before, in words for the history.
    fn before(&self, _: &Job) -> &'static str {
        "it is there, and this is not done"
    }
    /// Whether what it begins may go on elsewhere. Then what it is given tells how the other side reports on it, which is
    /// kept before it is asked to begin.
    fn works_elsewhere(&self) -> bool {
        false
    }
    /// Secrets that sign reports as well as each errand's own: those that the offering shares with the other side. Two
    /// while they are exchanged.
    fn shared_secrets(&self) -> Vec<SharedSecret> {
        Vec::new()
    }
    /// What it lacks on this machine so that nothing it is asked for can go well; nothing where it lacks nothing.
    fn lacks(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::Value;

    /// A job of the team `team-a`; the same name gives the same request.
    pub(crate) fn job(name: &str, parameters: Value) -> Job {
        let mut id = *b"\x01\x99\x0a\x5d\xac\x96\x77\x4b\x8c\xce\0\0\0\0\0\0";
        for (at, byte) in name.bytes().enumerate() {
            id[10 + at % 6] ^= byte.rotate_left(u32::try_from(at / 6).unwrap());
        }
        let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
        Job {
            request_id: RequestId(uuid::Uuid::from_bytes(id)),
            made_by: RequestId(uuid::Uuid::from_bytes(id)),
            correlation_id: "payment-ORD-123".to_owned(),
            attempt: 1,
            team: Name::parse("team-a").unwrap(),
            action: "create".to_owned(),
            offering: Name::parse("vm").unwrap(),
            resource_type: Name::parse("vm").unwrap(),
            name: Name::parse(name).unwrap(),
            parameters,
            previous: Object::new(),
            input: Object::new(),
            undo: false,
            outputs: Object::new(),
        }
    }

    /// A context, and where its log lines arrive.
    pub(crate) fn context() -> (Context, mpsc::Receiver<String>) {
        let (log, lines) = mpsc::channel(10_000);
        (Context::new(CancellationToken::new(), log), lines)
    }

    /// A script that stands in for the guard binary: it takes the job's line and hands it to the program.
    pub(crate) fn stand_in_guard(folder: &std::path::Path) -> std::path::PathBuf {
        let path = folder.join("guard");
        script(&path, "IFS= read -r job; shift 2; printf '%s\\n' \"$job\" | \"$@\"");
        path
    }

    /// Writes an executable script.
    pub(crate) fn script(path: &std::path::Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_job_in_a_log_shows_no_values() {
        let mut job = job("vm-one", serde_json::json!({"password": "hunter2"}));
        job.outputs.insert("key".to_owned(), "hunter3".into());
        let shown = format!("{job:?}");
        assert!(shown.contains("vm-one") && !shown.contains("hunter"), "{shown}");
    }
}
