//! A throw-away PostgreSQL for tests, also for those of the portal itself. It ends with the process that started it, even
//! when that is killed: the script that runs it waits for its standard input to close.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
};

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    script: Mutex<Script>,
}

/// The script that runs it, and how one talks with it.
#[derive(Debug)]
struct Script {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Cluster {
    /// The one that all tests of this process share. It may lose commits with the machine, and is faster for that.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// One of its own.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script =
            here.ancestors().map(|folder| folder.join(".ci/postgres.sh")).find(|file| file.is_file());
        let mut child = Command::new(script.unwrap())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut script = Script { child, input, output };
        assert_eq!(script.answer(), "started", "PostgreSQL did not start; above stands why");
        Self { script: Mutex::new(script) }
    }

    /// Has the script do something (`database`, `stop`, `start`); its answer.
    pub(crate) fn ask(&self, what: &str) -> String {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(script.input.as_mut().unwrap(), "{what}").unwrap();
        script.answer()
    }

    /// A new, empty database; its address.
    pub(crate) fn database(&self) -> String {
        let address = self.ask("database");
        assert!(address.starts_with("postgres://"), "no database was made; above stands why");
        address
    }
}

impl Script {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // The end of its input is what ends it.
        self.input = None;
        let _ = self.child.wait();
    }
}
