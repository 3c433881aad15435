//! The harness: starts the real program, makes people, and asks over HTTP.

pub(crate) mod answer;
pub(crate) mod browser;
pub(crate) mod cluster;

pub(crate) use answer::Answer;
pub(crate) use cluster::Cluster;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How long anything that must come may take.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A key that nobody used before.
pub(crate) fn fresh(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The body of a create of the offering that succeeds at once.
pub(crate) fn fast(name: &str, parameters: Value) -> Value {
    create("fast", name, parameters)
}

/// The body of a create of the offering with a program.
pub(crate) fn vm(name: &str, parameters: Value) -> Value {
    create("vm", name, parameters)
}

fn create(offering: &str, name: &str, parameters: Value) -> Value {
    let members = [("offering", offering.into()), ("name", name.into()), ("parameters", parameters)];
    Value::Object(members.map(|(member, value)| (member.to_owned(), value)).into_iter().collect())
}

/// Asks again until the answer is there.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < end, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Names the database of all tests that do not choose one themselves; by default it is SQLite.
const DATABASE: &str = "KEYTURN_TEST_DATABASE";
/// A key for servers that do not make their own.
const KEY: &str = "5ec2e7a11ce0b0b5ca401da7e5ec2e7a11ce0b0b5ca401da7e5ec2e7a11ce0b0";

/// A folder for one portal, whether it runs or not.
pub(crate) struct Home {
    dir: Arc<TempDir>,
    settings: Vec<(String, String)>,
    /// Whether a file that may not grow any more is an error to the program, not its end.
    survives_full_files: bool,
}

impl Home {
    /// On the database that this run of the tests is about.
    pub(crate) fn new(settings: &[(&str, &str)]) -> Self {
        match std::env::var(DATABASE).as_deref() {
            Err(_) | Ok("sqlite") => Self::on_sqlite(settings),
            Ok("postgres") => Self::on_postgres(Cluster::shared(), settings),
            Ok(other) => panic!("{DATABASE}: write sqlite or postgres, not {other}"),
        }
    }

    /// With a file for its database.
    pub(crate) fn on_sqlite(settings: &[(&str, &str)]) -> Self {
        let dir = Arc::new(TempDir::new().unwrap());
        Self { dir, settings: Vec::new(), survives_full_files: false }.with(settings)
    }

    /// With a new database of this cluster.
    pub(crate) fn on_postgres(cluster: &Cluster, settings: &[(&str, &str)]) -> Self {
        let home = Self::on_sqlite(&[
            ("KEYTURN_DATABASE_URL", &cluster.database()),
            ("KEYTURN_SECRET_KEY_FILE", "supplied.key"),
        ]);
        std::fs::write(home.path().join("supplied.key"), KEY).unwrap();
        home.with(settings)
    }

    /// The same folder and database, for another server, with some settings of its own.
    pub(crate) fn beside(&self, settings: &[(&str, &str)]) -> Self {
        Self { dir: Arc::clone(&self.dir), settings: self.settings.clone(), ..*self }.with(settings)
    }

    fn with(mut self, settings: &[(&str, &str)]) -> Self {
        self.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    pub(crate) fn surviving_full_files(self) -> Self {
        Self { survives_full_files: true, ..self }
    }

    /// Changes a setting, for the next start.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn is_on_postgres(&self) -> bool {
        self.settings.iter().any(|(name, _)| name == "KEYTURN_DATABASE_URL")
    }

    /// A connection to its PostgreSQL database beside the portal's own.
    pub(crate) async fn postgres(&self) -> sqlx::PgConnection {
        let address = self.settings.iter().find(|(name, _)| name == "KEYTURN_DATABASE_URL").unwrap();
        let options: sqlx::postgres::PgConnectOptions = address.1.parse().unwrap();
        sqlx::ConnectOptions::connect(&options).await.unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("data/keyturn.db")
    }

    /// The program, in this folder, with nothing of the test's own environment but the path.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog");
        let mut command = if self.survives_full_files {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_keyturn")]);
            shell
        } else {
            Command::new(env!("CARGO_BIN_EXE_keyturn"))
        };
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KEYTURN_LISTEN", "127.0.0.1:0")
            .env("KEYTURN_CATALOG", catalog)
            .envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input is no failure of the test.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed; what it says.
    pub(crate) fn must(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out.trim().to_owned()
    }

    pub(crate) fn team(&self, name: &str) {
        self.must(&["team", "add", name], "");
    }

    /// Makes a user with a password; its token.
    pub(crate) fn user(&self, name: &str, role: &str, team: Option<&str>, password: Option<&str>) -> String {
        let mut arguments = vec!["user", "add", name, "--role", role];
        arguments.extend(team.iter().flat_map(|team| ["--team", team]));
        if password.is_some() {
            arguments.push("--password-stdin");
        }
        self.must(&arguments, password.unwrap_or_default());
        self.token(name)
    }

    pub(crate) fn token(&self, user: &str) -> String {
        let said = self.must(&["token", "create", "--user", user, "--label", "test", "--json"], "");
        let said: Value = serde_json::from_str(&said).unwrap();
        said["token"].as_str().unwrap().to_owned()
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) home: Home,
    child: Child,
    pub(crate) base: String,
    /// The one-time set-up link, if there was one.
    pub(crate) set_up: Option<String>,
}

impl Server {
    pub(crate) fn start(home: Home) -> Self {
        let (child, said) = Self::spawn(&home);
        let base = said["address"].as_str().unwrap().to_owned();
        let set_up = said["setup"].as_str().map(str::to_owned);
        Self { home, child, base, set_up }
    }

    fn spawn(home: &Home) -> (Child, Value) {
        let log = std::fs::File::options().create(true).append(true).open(home.path().join("log")).unwrap();
        let mut child =
            home.command(&["serve", "--json"]).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line);
        let said = said.unwrap_or_else(|_| {
            panic!("{line:?}: {}", std::fs::read_to_string(home.path().join("log")).unwrap())
        });
        (child, said)
    }

    /// Everything that the server logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts it once more, only to kill it after a while, whether it was ready by then or not.
    pub(crate) async fn begin_and_kill(&self, after: Duration) {
        let mut child =
            self.home.command(&["serve"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        tokio::time::sleep(after).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Kills the server without a warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the server to stop, as an administrator's system does.
    pub(crate) fn stop(&self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// Starts it again on the same folder; the address is a new one.
    pub(crate) fn restart(&mut self) {
        let (child, said) = Self::spawn(&self.home);
        self.child = child;
        said["address"].as_str().unwrap().clone_into(&mut self.base);
    }

    pub(crate) fn api(&self, token: &str) -> Api {
        Api::new(&self.base, Some(token))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the server\n{}", self.log());
        }
    }
}

/// A server with two teams and people in them.
pub(crate) struct World {
    pub(crate) server: Server,
    /// A member of team alpha.
    pub(crate) ann: Api,
    /// Another member of team alpha.
    pub(crate) abe: Api,
    /// A viewer of team alpha.
    pub(crate) vic: Api,
    /// A member of team beta.
    pub(crate) ben: Api,
    /// An administrator.
    pub(crate) ada: Api,
    tokens: [String; 5],
}

pub(crate) const PASSWORD: &str = "correct horse battery";

impl World {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::at(Home::new(settings))
    }

    pub(crate) fn at(home: Home) -> Self {
        home.team("alpha");
        home.team("beta");
        let tokens = [
            home.user("ann", "member", Some("alpha"), Some(PASSWORD)),
            home.user("abe", "member", Some("alpha:member"), None),
            home.user("vic", "member", Some("alpha:viewer"), None),
            home.user("ben", "member", Some("beta"), Some(PASSWORD)),
            home.user("ada", "admin", None, None),
        ];
        let server = Server::start(home);
        let [ann, abe, vic, ben, ada] = tokens.each_ref().map(|token| server.api(token));
        Self { server, ann, abe, vic, ben, ada, tokens }
    }

    pub(crate) fn kill(&mut self) {
        self.server.kill();
    }

    pub(crate) fn restart(&mut self) {
        self.server.restart();
        let [ann, abe, vic, ben, ada] = self.tokens.each_ref().map(|token| self.server.api(token));
        (self.ann, self.abe, self.vic, self.ben, self.ada) = (ann, abe, vic, ben, ada);
    }

    pub(crate) fn nobody(&self) -> Api {
        Api::new(&self.server.base, None)
    }

    /// How many requests there are.
    pub(crate) async fn count(&self) -> i64 {
        self.ada.get("/requests?size=1").await.json()["total"].as_i64().unwrap()
    }

    /// How many living resources a team has.
    pub(crate) async fn resources(&self, team: &str) -> i64 {
        self.ada.get(&format!("/teams/{team}/resources?size=1")).await.json()["total"].as_i64().unwrap()
    }
}

/// Somebody who calls the API.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: reqwest::Client,
    pub(crate) base: String,
    pub(crate) token: Option<String>,
}

/// Where a create goes.
pub(crate) const ALPHA: &str = "/teams/alpha/requests";

impl Api {
    pub(crate) fn new(base: &str, token: Option<&str>) -> Self {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(90))
            .build()
            .unwrap();
        Self { client, base: base.to_owned(), token: token.map(str::to_owned) }
    }

    /// A call below `/api/v1`, with the token.
    pub(crate) fn call(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        let call = self.client.request(method, format!("{}/api/v1{path}", self.base));
        match &self.token {
            Some(token) => call.bearer_auth(token),
            None => call,
        }
    }

    /// A call of an address that is not below `/api/v1`.
    pub(crate) async fn root(&self, path: &str) -> Answer {
        Answer::of(self.client.get(format!("{}{path}", self.base))).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.call("GET", path)).await
    }

    /// A keyed call with a JSON body.
    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.text(path, key, &body.to_string()).await
    }

    /// A keyed call with a body as it is spelled.
    pub(crate) async fn text(&self, path: &str, key: &str, body: &str) -> Answer {
        let call = self.call("POST", path).header("Idempotency-Key", key);
        Answer::of(call.header("Content-Type", "application/json").body(body.to_owned())).await
    }

    /// A keyed call without a body.
    pub(crate) async fn act(&self, path: &str, key: &str) -> Answer {
        Answer::of(self.call("POST", path).header("Idempotency-Key", key)).await
    }

    /// A patch of what is there, with its version.
    pub(crate) async fn patch(&self, path: &str, key: &str, version: &str, body: &Value) -> Answer {
        let call = self.call("PATCH", path).header("Idempotency-Key", key).header("If-Match", version);
        let call = call.header("Content-Type", "application/merge-patch+json");
        Answer::of(call.body(body.to_string())).await
    }

    /// A delete of what is there.
    pub(crate) async fn delete(&self, path: &str, key: &str) -> Answer {
        Answer::of(self.call("DELETE", path).header("Idempotency-Key", key)).await
    }

    /// The version of a resource, as its `ETag`.
    pub(crate) async fn etag(&self, path: &str) -> String {
        self.get(path).await.is(200).header("etag").unwrap().to_owned()
    }

    /// Makes something that must be taken in; its ID.
    pub(crate) async fn made(&self, body: &Value) -> String {
        self.post(ALPHA, &fresh("made"), body).await.is(202).id()
    }

    /// The request when it has come to its end.
    pub(crate) async fn ended(&self, id: &str) -> Value {
        let call = self.call("GET", &format!("/requests/{id}")).header("Prefer", "wait=30");
        Answer::of(call).await.is(200).json()
    }
}
