//! A throw-away PostgreSQL for tests, also for those of the portal itself. It ends with the process that started it, even
//! when that is killed: the script that runs it waits for its standard input to close.

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The address of its databases, without a name.
    address: String,
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
        let address = script.answer();
        assert!(address.starts_with("postgres://"), "PostgreSQL did not start; above stands why");
        Self { address, script: Mutex::new(script) }
    }

    /// Has the script do something (`stop`, `start`) and gives its answer.
    pub(crate) fn ask(&self, what: &str) -> String {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(script.input.as_mut().unwrap(), "{what}").unwrap();
        script.answer()
    }

    /// A new, empty database; its address.
    pub(crate) async fn database(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut connection = connect(&format!("{}&dbname=postgres", self.address)).await;
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0")))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        format!("{}&dbname={name}", self.address)
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

/// A connection to look, or to change what no door changes.
pub(crate) async fn connect(address: &str) -> PgConnection {
    address.parse::<PgConnectOptions>().unwrap().connect().await.unwrap()
}
