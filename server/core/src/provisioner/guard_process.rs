//! The guard process: stands between the server and an offering's program, so that no program outlives its server.
//!
//! Its standard input is a pipe from the server: the job, one line of JSON, and lines with a number: for how many
//! milliseconds from now the server surely holds the run. When the pipe closes (the server let go, or died by whatever
//! signal), or when that time is over without another such line (the server lives, but was stopped or hangs), the guard
//! ends the program's whole process group. It is a process of its own because only a living process can do that: a killed
//! server cannot, and what could be arranged inside the program's process needs `unsafe`.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::{
    ffi::OsString,
    io::{self, BufRead, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitCode, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// How long a program may take to end after SIGTERM before SIGKILL follows.
pub const GRACE: Duration = Duration::from_secs(2);

/// The longest job, in bytes: a body, outputs of an earlier run, and room.
const MAX_JOB: u64 = 16 << 20;

/// Exit code: the program was not started, and nothing was done (`EX_TEMPFAIL` of sysexits.h).
const NOT_STARTED_NOW: u8 = 75;

/// Exit code: the program cannot be started (what a POSIX shell answers).
const NOT_STARTABLE: u8 = 126;

/// Exit code: the program was ended since another may hold the run by now; what it did has to be looked at. What a
/// program itself says by it means the same.
const CANNOT_TELL: u8 = 3;

enum Event {
    Job(Vec<u8>),
    /// For how long from now the server holds the run.
    Held(Duration),
    ServerGone,
    ProgramEnded,
}

/// Why a program comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    ItsOwn,
    ServerGone,
    HoldOver,
}

/// The body of `keyturn exec-guard -- PROGRAM ARGUMENT…`.
///
/// Exits with the program's own code, or with 128 plus the number of the signal that ended it; with 3 where the server's
/// time was over.
#[must_use]
pub fn main(program_and_args: Vec<OsString>) -> ExitCode {
    ExitCode::from(guard(program_and_args.into_iter()))
}

fn guard(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let Some(program) = arguments.next() else {
        complain("no program is named", &io::Error::from(io::ErrorKind::InvalidInput));
        return NOT_STARTABLE;
    };
    // Signals to the terminal's group or to everything of this user are the server's business, not the guard's.
    let _signals = match survive_signals() {
        Ok(signals) => signals,
        Err(error) => {
            complain("signals cannot be handled", &error);
            return NOT_STARTED_NOW;
        }
    };
    // What leaves the program's group by a session of its own becomes the guard's child once its parent ends.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        complain("orphans cannot be taken in", &error.into());
    }

    let (events, happens) = mpsc::channel();
    let of_server = events.clone();
    thread::spawn(move || watch_server(&of_server));
    let mut until = None;
    let job = loop {
        match happens.recv() {
            Ok(Event::Held(time)) => until = Some(Instant::now() + time),
            Ok(Event::Job(job)) => break job,
            _ => return NOT_STARTED_NOW,
        }
    };

    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).process_group(0).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            complain("the program cannot be started", &error);
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => NOT_STARTABLE,
                _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => NOT_STARTABLE,
                _ => NOT_STARTED_NOW,
            };
        }
    };
    let group = Pid::from_child(&child);
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its job closes the pipe, which is its own affair.
        thread::spawn(move || input.write_all(&job));
    }
    thread::spawn(move || {
        // Without reaping: until it is reaped nobody else can get its number, so the group can be ended safely.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(rustix::process::waitid(WaitId::Pid(group), options), Err(rustix::io::Errno::INTR)) {}
        events.send(Event::ProgramEnded)
    });

    let reason = reason_to_end(&happens, until);
    if reason != Reason::ItsOwn {
        signal_group(group, Signal::TERM);
        let killed_at = Instant::now() + GRACE;
        let next = || happens.recv_timeout(killed_at.saturating_duration_since(Instant::now()));
        // Whether it ended by itself or not, the end below is the same.
        while !matches!(next(), Ok(Event::ProgramEnded) | Err(_)) {}
    }
    signal_group(group, Signal::KILL);
    let status = child.wait();
    end_orphans();
    if reason == Reason::HoldOver {
        return CANNOT_TELL;
    }
    match status {
        Ok(status) => code_of(status),
        Err(error) => {
            complain("the program's end cannot be told", &error);
            u8::MAX
        }
    }
}

/// Waits for a reason to end the program.
fn reason_to_end(happens: &mpsc::Receiver<Event>, mut until: Option<Instant>) -> Reason {
    loop {
        let next = match until {
            Some(until) => happens.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => happens.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Event::Held(time)) => until = Some(Instant::now() + time),
            Ok(Event::ProgramEnded) => return Reason::ItsOwn,
            Err(RecvTimeoutError::Timeout) => return Reason::HoldOver,
            Ok(Event::Job(_) | Event::ServerGone) | Err(RecvTimeoutError::Disconnected) => {
                return Reason::ServerGone;
            }
        }
    }
}

/// Passes on what the server says, until the pipe's end; an error is as good an end as the end itself.
fn watch_server(events: &mpsc::Sender<Event>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_JOB).read_until(b'\n', &mut line);
        if read.is_err() || !line.ends_with(b"\n") || events.send(said(line)).is_err() {
            break;
        }
    }
    let _ = events.send(Event::ServerGone);
}

/// What a line says.
fn said(line: Vec<u8>) -> Event {
    let number = std::str::from_utf8(&line).ok().and_then(|text| text.trim_end().parse().ok());
    number.map_or(Event::Job(line), |millis| Event::Held(Duration::from_millis(millis)))
}

/// Replaces the default action of the usual signals, for as long as the process lives.
///
/// Handlers instead of ignoring: a program started from here gets the default actions back.
fn survive_signals() -> io::Result<tokio::runtime::Runtime> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()] {
        // The handler stays when the stream of its signals is dropped.
        let _unread = signal(kind)?;
    }
    drop(inside);
    Ok(runtime)
}

fn signal_group(group: Pid, signal: Signal) {
    // The one error possible is that the group is gone, which is what was wanted.
    let _ = rustix::process::kill_process_group(group, signal);
}

/// Ends what left the program's group and was taken in, round by round, since each may leave orphans of its own.
fn end_orphans() {
    for _ in 0..100 {
        let orphans = children();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            let _ = rustix::process::kill_process(orphan, Signal::KILL);
            let _ = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// This process's children, where the kernel tells (`CONFIG_PROC_CHILDREN`); otherwise none.
fn children() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>())
        .filter_map(Pid::from_raw)
        .collect()
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn complain(what: &str, error: &io::Error) {
    eprintln!("keyturn exec-guard: {what}: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        path::Path,
        process::{Child, ChildStdin},
        time::Instant,
    };

    const PROGRAM: &str = "KEYTURN_TEST_GUARDED_PROGRAM";

    /// Not a test of its own: the tests below start this binary again with this test alone, which then is the guard.
    #[test]
    fn the_guard_itself() {
        if let Some(program) = std::env::var_os(PROGRAM) {
            std::process::exit(i32::from(guard(["/bin/sh".into(), "-c".into(), program].into_iter())));
        }
    }

    fn guarded(folder: &Path, program: &str) -> (Child, ChildStdin) {
        let mut guard = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "provisioner::guard_process::tests::the_guard_itself", "--nocapture"])
            .env(PROGRAM, program)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let pipe = guard.stdin.take().unwrap();
        (guard, pipe)
    }

    fn appears(file: &Path) -> String {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("{} never appeared", file.display());
    }

    fn ended(id: &str) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    #[test]
    fn the_exit_code_and_the_signal_of_a_program_come_through() {
        let folder = tempfile::tempdir().unwrap();
        for (program, code) in
            [("exit 0", 0), ("exit 75", 75), ("kill -KILL $$", 137), ("cat >job; exit 3", 3)]
        {
            let (mut guard, mut pipe) = guarded(folder.path(), program);
            pipe.write_all(b"{\"job\":1}\n").unwrap();
            assert_eq!(guard.wait().unwrap().code(), Some(code), "{program}");
        }
        assert_eq!(appears(&folder.path().join("job")), "{\"job\":1}\n");
    }

    #[test]
    fn without_a_whole_job_nothing_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let (mut guard, mut pipe) = guarded(folder.path(), "echo started >started");
        pipe.write_all(b"{\"job\":").unwrap();
        drop(pipe);
        assert_eq!(guard.wait().unwrap().code(), Some(i32::from(NOT_STARTED_NOW)));
        assert!(!folder.path().join("started").exists());
    }

    #[test]
    fn when_the_pipe_closes_everything_the_program_started_ends() {
        let folder = tempfile::tempdir().unwrap();
        // A stubborn program, with a child in its group and one that made a session of its own.
        let program = "trap '' TERM; sleep 600 & echo $! >child; setsid sh -c 'echo $$ >stray; exec sleep 600' & \
                       echo $$ >itself; wait; while :; do sleep 600; done";
        let (mut guard, mut pipe) = guarded(folder.path(), program);
        pipe.write_all(b"{}\n").unwrap();
        let ids = ["child", "stray", "itself"].map(|name| appears(&folder.path().join(name)));
        // Signals to the guard are no reason to end.
        let group = Pid::from_child(&guard);
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            rustix::process::kill_process_group(group, signal).unwrap();
        }
        thread::sleep(Duration::from_millis(100));
        assert!(guard.try_wait().unwrap().is_none());
        drop(pipe);
        for id in &ids {
            assert!(ended(id), "{id} lives");
        }
        assert_eq!(guard.wait().unwrap().code(), Some(137));
    }

    #[test]
    fn when_the_server_no_longer_says_that_it_holds_the_run_the_program_ends() {
        let folder = tempfile::tempdir().unwrap();
        let program = "sleep 600 & echo $! >child; wait";
        let (mut guard, mut pipe) = guarded(folder.path(), program);
        pipe.write_all(b"600000\n{}\n").unwrap();
        let child = appears(&folder.path().join("child"));
        pipe.write_all(b"1\n").unwrap();
        // The pipe stays open all the while.
        assert_eq!(guard.wait().unwrap().code(), Some(i32::from(CANNOT_TELL)));
        assert!(ended(&child));
        // What is said last counts.
        let (mut guard, mut pipe) = guarded(folder.path(), "sleep 1; exit 0");
        pipe.write_all(b"200\n600000\n{}\n").unwrap();
        assert_eq!(guard.wait().unwrap().code(), Some(0));
    }

    #[test]
    fn what_a_program_leaves_behind_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = "sleep 600 & echo $! >child; setsid sleep 600 & exit 0";
        let (mut guard, mut pipe) = guarded(folder.path(), program);
        pipe.write_all(b"{}\n").unwrap();
        assert_eq!(guard.wait().unwrap().code(), Some(0));
        assert!(ended(&appears(&folder.path().join("child"))));
    }
}
