//! Runs an offering's own program, under the guard process, so that it never outlives this server.
//!
//! The program is started as `PROGRAM observe|apply|destroy` in the offering's folder, with the job as one JSON object
//! on standard input: `operation`, `request_id`, `made_by`, `correlation_id`, `attempt`, `team`, `action`, `undo`,
//! `offering`, `type`, `name`, `parameters`, `previous`, `input`, `outputs` (of an earlier run). A program in a shell finds
//! the same in its environment (see `environment`), save `previous` and outputs, which may hold secrets. Standard error is
//! the log; standard output is the answer (see `answer`).
//!
//! | `action` | operations | what is asked for |
//! | --- | --- | --- |
//! | `create` | observe, apply, destroy | the thing as `parameters` say, with the mark of `request_id`; `destroy` takes it back |
//! | `update` | observe, apply | the thing that bears the mark of `made_by`, from `previous` to `parameters` |
//! | an action's ID | observe, apply | the action with `input`; `parameters` are already as they shall be after it |
//! | `delete` | observe, destroy | that the thing with the mark of `made_by` is gone |
//!
//! With `undo`, `apply` takes an update or action back that may have been done, in part or wholly: `parameters` are what
//! was before it.

mod answer;
pub(crate) mod environment;
mod log;

use super::{Context, Job, Observation, Outcome, Provisioner, guard_process::GRACE};
pub(crate) use environment::{INPUT, PARAMETER, variable};

use answer::{End, MAX_ANSWER, Run};
use async_trait::async_trait;
use domain::name::Name;
use log::Masks;
use serde_json::json;
use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// How long the guard process may take to end the program after its pipe closed; past that it is killed itself.
const GUARD_GRACE: Duration = GRACE.saturating_add(Duration::from_secs(3));

/// How long the pipes may stay open after the guard process ended, held by something that it could not end.
const PIPE_GRACE: Duration = Duration::from_secs(1);

/// How long the rest of the log may take to be kept after the program ended.
const LOG_GRACE: Duration = Duration::from_secs(10);

/// Where programs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The binary that guards a program when it is started as `BINARY exec-guard -- PROGRAM OPERATION`.
    pub guard: PathBuf,
    /// The folder in which every offering gets a folder of its own for its things.
    pub state: PathBuf,
}

impl Site {
    /// This very binary as the guard, and `offerings` in the data folder for what programs keep.
    pub fn of_this_binary(data: &Path) -> io::Result<Self> {
        Ok(Self { guard: std::env::current_exe()?, state: std::path::absolute(data)?.join("offerings") })
    }
}

/// The program of one offering.
#[derive(Debug, Clone)]
pub struct Exec {
    guard: PathBuf,
    program: PathBuf,
    folder: PathBuf,
    state: PathBuf,
    timeout: Duration,
    secret_outputs: BTreeSet<String>,
}

impl Exec {
    /// The program of `offering`, at an absolute path, run in the offering's `folder` for at most `timeout`.
    #[must_use]
    pub fn new(
        site: &Site,
        offering: &Name,
        folder: PathBuf,
        program: PathBuf,
        timeout: Duration,
        secret_outputs: BTreeSet<String>,
    ) -> Self {
        let state = site.state.join(offering.as_str());
        Self { guard: site.guard.clone(), program, folder, state, timeout, secret_outputs }
    }

    async fn run(&self, operation: &'static str, job: &Job, context: &Context) -> Run {
        let not_started = |why: String| Run { end: End::NotStarted(why), answer: None, last_line: None };
        if context.stop.is_cancelled() {
            return Run { end: End::Stopped, answer: None, last_line: None };
        }
        let mut guard = match self.start(operation, job).await {
            Ok(guard) => guard,
            // The system's own words stay out: they may name a path of this server.
            Err(error) => {
                tracing::error!(%error, guard = %self.guard.display(), "the guard process cannot be started");
                return not_started("the program cannot be started at present".to_owned());
            }
        };
        let (Some(mut pipe), Some(stdout), Some(stderr)) =
            (guard.stdin.take(), guard.stdout.take(), guard.stderr.take())
        else {
            return not_started("the program has no pipes".to_owned());
        };
        let masks = Masks::of(&job.outputs, &self.secret_outputs);
        let (answering, logging) = (read_answer(stdout), log::stream(stderr, &context.log, &masks));
        tokio::pin!(answering, logging);
        let (mut answer, mut last_line) = (None, None);

        let end = {
            let working = async {
                let mut held = context.held.clone();
                if let Some(held) = &mut held {
                    tell_held(&mut pipe, held).await;
                }
                hand_over(&mut pipe, operation, job).await;
                tokio::select! {
                    status = guard.wait() => status,
                    never = keep_telling(&mut pipe, held) => match never {},
                }
            };
            tokio::pin!(working);
            let deadline = sleep(self.timeout);
            tokio::pin!(deadline);
            loop {
                tokio::select! {
                    biased;
                    () = context.stop.cancelled() => break End::Stopped,
                    status = &mut working => break End::Exited(status.ok().and_then(|status| status.code())),
                    () = &mut deadline => break End::TimedOut,
                    read = &mut answering, if answer.is_none() => answer = Some(read),
                    last = &mut logging, if last_line.is_none() => last_line = Some(last),
                }
            }
        };
        // Closing the pipe tells the guard to end the program, if it has not ended.
        drop(pipe);
        if !matches!(end, End::Exited(_)) && timeout(GUARD_GRACE, guard.wait()).await.is_err() {
            tracing::error!(request_id = %job.request_id, "the guard process did not end and is killed");
            kill(&mut guard).await;
        }
        if answer.is_none() {
            answer = timeout(PIPE_GRACE, &mut answering).await.ok();
        }
        if last_line.is_none() {
            let grace = if matches!(end, End::Exited(_)) { LOG_GRACE } else { PIPE_GRACE };
            last_line = timeout(grace, &mut logging).await.ok();
        }
        Run { end, answer: answer.flatten(), last_line: last_line.flatten() }
    }

    async fn start(&self, operation: &'static str, job: &Job) -> io::Result<Child> {
        tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state).await?;
        Command::new(&self.guard)
            .args(["exec-guard", "--"])
            .arg(&self.program)
            .arg(operation)
            .env_clear()
            .envs(environment::of(job, &self.state))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Writes the job; a guard that does not take it ends, and its end says why.
async fn hand_over(pipe: &mut ChildStdin, operation: &str, job: &Job) {
    let job = json!({
        "operation": operation,
        "request_id": job.request_id,
        "made_by": job.made_by,
        "correlation_id": job.correlation_id,
        "attempt": job.attempt,
        "team": job.team,
        "action": job.action,
        "undo": job.undo,
        "offering": job.offering,
        "type": job.resource_type,
        "name": job.name,
        "parameters": job.parameters,
        "previous": job.previous,
        "input": job.input,
        "outputs": job.outputs,
    });
    let _ = pipe.write_all(format!("{job}\n").as_bytes()).await;
    let _ = pipe.flush().await;
}

/// Tells the guard for how long the run is held, each time that it is held longer.
async fn keep_telling(pipe: &mut ChildStdin, held: Option<watch::Receiver<Instant>>) -> Infallible {
    if let Some(mut held) = held {
        while held.changed().await.is_ok() {
            tell_held(pipe, &mut held).await;
        }
    }
    std::future::pending().await
}

/// Tells the guard for how long from now the run is held. A guard that does not take it is at its end.
async fn tell_held(pipe: &mut ChildStdin, held: &mut watch::Receiver<Instant>) {
    let until = *held.borrow_and_update();
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    let _ = pipe.write_all(format!("{left}\n").as_bytes()).await;
    let _ = pipe.flush().await;
}

/// Everything up to the end, or nothing if that is more than an answer may be; the rest is read all the same.
async fn read_answer(mut stdout: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let room = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX).saturating_add(1);
    (&mut stdout).take(room).read_to_end(&mut answer).await.ok()?;
    if answer.len() > MAX_ANSWER {
        let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
        return None;
    }
    Some(answer)
}

/// Ends the guard's own process group, which holds the program when something else stands in for the guard.
async fn kill(guard: &mut Child) {
    if let Some(group) =
        guard.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = guard.wait().await;
}

#[async_trait]
impl Provisioner for Exec {
    async fn observe(&self, job: &Job, context: &Context) -> Observation {
        self.run("observe", job, context).await.observation(&self.secret_outputs)
    }

    async fn apply(&self, job: &Job, context: &Context) -> Outcome {
        self.run("apply", job, context).await.outcome(&self.secret_outputs, true)
    }

    async fn destroy(&self, job: &Job, context: &Context) -> Outcome {
        self.run("destroy", job, context).await.outcome(&self.secret_outputs, false)
    }
}

#[cfg(test)]
mod tests;
