//! The servers under load: the real program in a folder of its own, and a bare HTTP endpoint as the ceiling.

use crate::filled;
use axum::{Router, body::Bytes, http::StatusCode, http::header, routing::post};
use serde_json::Value;
use sqlx::Connection;
use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The argument by which this program becomes the bare endpoint.
pub(crate) const BARE: &str = "bare-endpoint";

/// Where the server keeps its rows.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file in the server's own folder.
    Sqlite,
    /// A database of a PostgreSQL cluster, at this URL.
    Postgres(String),
}

/// What a portal begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingUp {
    /// How many runs are carried out at once.
    pub(crate) workers: &'static str,
    /// How many finished keys there are.
    pub(crate) keys: u64,
}

/// An empty portal as it is by default.
pub(crate) const PLAIN: SettingUp = SettingUp { workers: "4", keys: 0 };

const KEY_FILE: &str = "secret.key";

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
    head: String,
    folder: TempDir,
    database: Database,
    settings: Vec<(String, String)>,
    /// From the start of the program to its first answer.
    pub(crate) cold_start: Duration,
}

impl Server {
    /// The portal.
    pub(crate) async fn portal(database: &Database, setting_up: &SettingUp) -> Self {
        let folder = TempDir::new().unwrap();
        key_file(folder.path());
        let mut settings = vec![("KEYTURN_WORKERS".to_owned(), setting_up.workers.to_owned())];
        if let Database::Postgres(url) = database {
            settings.push(("KEYTURN_DATABASE_URL".to_owned(), url.clone()));
        }
        let command = |arguments: &[&str]| command(folder.path(), arguments, &settings);
        let run = |arguments: &[&str]| {
            let output = command(arguments).stderr(Stdio::inherit()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["team", "add", "bench"]);
        run(&["user", "add", "bench", "--role", "member", "--team", "bench:member"]);
        let said = run(&["token", "create", "--user", "bench", "--label", "bench", "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        let token = said["token"].as_str().unwrap();
        let file = folder.path().join("data/keyturn.db");
        if setting_up.keys > 0 {
            match database {
                Database::Sqlite => filled::sqlite(&file, setting_up.keys),
                Database::Postgres(url) => filled::postgres(url, setting_up.keys).await,
            }
        }
        let started = Instant::now();
        let (child, address) = listening(command(&["serve", "--json"]));
        std::net::TcpStream::connect(&address).unwrap();
        let cold_start = started.elapsed();
        let head = format!(
            "POST /api/v1/teams/bench/requests HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\n"
        );
        Self { child, address, head, folder, database: database.clone(), settings, cold_start }
    }

    /// The same portal, stopped and started with further settings.
    pub(crate) fn again(mut self, settings: &[(&str, &str)]) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        (self.child, self.address) =
            listening(command(self.folder.path(), &["serve", "--json"], &self.settings));
        self
    }

    /// An endpoint that reads its body and answers with these bytes: what HTTP alone allows.
    pub(crate) fn bare(body: &str) -> Self {
        let started = Instant::now();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([BARE, body]);
        let (child, address) = listening(command);
        let head = "POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n".to_owned();
        let folder = TempDir::new().unwrap();
        let (database, settings) = (Database::Sqlite, Vec::new());
        Self { child, address, head, folder, database, settings, cold_start: started.elapsed() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The first lines of every call.
    pub(crate) fn head(&self) -> String {
        self.head.clone()
    }

    /// How many requests it holds.
    pub(crate) async fn requests(&self) -> i64 {
        self.count("SELECT count(*) FROM request").await
    }

    /// How many claims still hold what they were answered.
    pub(crate) async fn unswept(&self) -> i64 {
        self.count("SELECT count(*) FROM claim WHERE length(body) > 0").await
    }

    /// Waits until nothing is left to be carried out.
    pub(crate) async fn idle(&self) {
        while self.count("SELECT count(*) FROM run").await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn count(&self, statement: &'static str) -> i64 {
        match &self.database {
            Database::Sqlite => {
                let connection =
                    rusqlite::Connection::open(self.folder.path().join("data/keyturn.db")).unwrap();
                connection.query_row(statement, [], |row| row.get(0)).unwrap()
            }
            Database::Postgres(url) => {
                let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
                sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
            }
        }
    }

    /// The most memory that it held so far, in MB.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    }

    /// The processor time that it used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let ticks =
            |nth: usize| after.split_whitespace().nth(nth).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        // Linux counts in hundredths of a second for every program.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts a key into a folder, as it is supplied with PostgreSQL; the same serves on SQLite.
pub(crate) fn key_file(folder: &Path) {
    let key = folder.join(KEY_FILE);
    std::fs::write(&key, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The program in its folder, with these settings and no other.
pub(crate) fn command(folder: &Path, arguments: &[&str], settings: &[(String, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keyturn"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KEYTURN_LISTEN", "127.0.0.1:0")
        .env("KEYTURN_LOG", "warn")
        .env("KEYTURN_SECRET_KEY_FILE", folder.join(KEY_FILE))
        .env("KEYTURN_CATALOG", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog"))
        .envs(settings.iter().map(|(name, value)| (name, value)));
    command
}

/// Starts a program and waits until it says where it listens.
fn listening(mut command: Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listens: Value = serde_json::from_str(&line).unwrap();
    let address = listens["listen"].as_str().unwrap().to_owned();
    (child, address)
}

/// Serves as the bare endpoint until it is killed.
pub(crate) async fn serve_bare(body: String) {
    let body = Bytes::from(body);
    let answer = move |_: Bytes| {
        let body = body.clone();
        async move { (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], body) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    println!("{}", serde_json::json!({ "listen": address.to_string() }));
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route("/", post(answer))).await.unwrap();
}
