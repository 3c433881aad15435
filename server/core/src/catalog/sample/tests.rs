//! The sample programs and the one of the tests, run for real: twice, by strangers, at once, and killed in the middle.

mod changes;

use crate::{
    catalog::{Catalog, Offering},
    provisioner::{
        Job, Observation, Outcome,
        exec::{Site, environment},
        tests::{context, job, stand_in_guard},
    },
};
use domain::{
    expiry::{End, Expiry},
    id::RequestId,
    name::Name,
    view::Object,
};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

struct Shop {
    data: tempfile::TempDir,
    catalog: Catalog,
}

impl Shop {
    fn of_samples() -> Self {
        Self::of(|data| Catalog::sample(data).unwrap())
    }

    fn of_tests() -> Self {
        Self::of(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/catalog"))
    }

    fn of(folder: impl Fn(&Path) -> PathBuf) -> Self {
        let data = tempfile::tempdir().unwrap();
        let site = Site { guard: stand_in_guard(data.path()), state: data.path().join("offerings") };
        let catalog = Catalog::load(&folder(data.path()), &site);
        assert_eq!(catalog.broken(), []);
        Self { data, catalog }
    }

    fn offering(&self, id: &str) -> Arc<Offering> {
        Arc::clone(self.catalog.get(&Name::parse(id).unwrap()).unwrap())
    }

    fn state(&self, offering: &str) -> PathBuf {
        self.data.path().join("offerings").join(offering)
    }

    /// Starts the program as it would be started, and kills it after a while.
    fn kill_midway(&self, offering: &str, job: &Job, after: Duration) {
        let state = self.state(offering);
        fs::create_dir_all(&state).unwrap();
        let mut program = Command::new("./provision");
        program.arg("apply").current_dir(self.data.path().join("catalog").join(offering));
        program.envs(environment::of(job, &state)).stdin(Stdio::null());
        let mut running =
            program.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        std::thread::sleep(after);
        let group = rustix::process::Pid::from_child(&running);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        running.wait().unwrap();
        // What it started dies with it, but not at the same instant; a worker goes on only once all of it is gone.
        while rustix::process::test_kill_process_group(group).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The job with the parameters as a submission would have them, defaults filled in.
fn meant(offering: &Offering, name: &str, parameters: Value) -> Job {
    let mut job = job(name, parameters);
    job.parameters = offering.schema.normalise(job.parameters).unwrap();
    job.offering = offering.id.clone();
    job
}

/// The same name, asked for by another request.
fn stranger(job: &Job) -> Job {
    let mut id = *job.request_id.0.as_bytes();
    id[15] ^= 0x55;
    let id = RequestId(uuid::Uuid::from_bytes(id));
    Job { request_id: id, made_by: id, ..job.clone() }
}

async fn observe(offering: &Offering, job: &Job) -> Observation {
    offering.provisioner.observe(job, &context().0).await
}

async fn apply(offering: &Offering, job: &Job) -> Object {
    let (context, _log) = context();
    match offering.provisioner.apply(job, &context).await {
        Outcome::Done(outputs) => outputs,
        other => panic!("{other:?}"),
    }
}

async fn destroy(offering: &Offering, job: &Job) {
    let (context, _log) = context();
    let outcome = offering.provisioner.destroy(job, &context).await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

fn run(program: &str, arguments: &[&str]) -> String {
    let ran = Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn text<'o>(outputs: &'o Object, name: &str) -> &'o str {
    outputs[name].as_str().unwrap()
}

/// Observe, apply twice, a stranger, destroy twice: the same for every program.
async fn lives_and_ends(offering: &Offering, job: &Job) -> Object {
    assert_eq!(observe(offering, job).await, Observation::Absent);
    let outputs = apply(offering, job).await;
    assert_eq!(observe(offering, job).await, Observation::Ours(outputs.clone()));
    let other = stranger(job);
    assert_eq!(observe(offering, &other).await, Observation::Foreign);
    let refused = offering.provisioner.apply(&other, &context().0).await;
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    destroy(offering, &other).await;
    assert_eq!(observe(offering, job).await, Observation::Ours(outputs.clone()));
    outputs
}

#[tokio::test]
async fn a_git_repository_is_made_once_and_can_be_cloned() {
    let shop = Shop::of_samples();
    let git = shop.offering("git-repository");
    let hostile =
        "--help $(touch /tmp/keyturn-was-here) `id` \"quoted\" 'single' \\n %s ; rm -rf .\nsecond line é";
    let parameters =
        json!({"description": hostile, "default_branch": "trunk/v1.0", "visibility": "internal"});
    let job = meant(&git, "repo", parameters);
    let outputs = lives_and_ends(&git, &job).await;
    assert_eq!(apply(&git, &job).await, outputs);
    let clone = shop.data.path().join("clone");
    run("git", &["clone", "--quiet", text(&outputs, "clone_url"), clone.to_str().unwrap()]);
    let at = clone.to_str().unwrap();
    assert_eq!(run("git", &["-C", at, "rev-parse", "HEAD"]).trim(), text(&outputs, "first_commit"));
    assert_eq!(run("git", &["-C", at, "branch", "--show-current"]).trim(), "trunk/v1.0");
    let readme = fs::read_to_string(clone.join("README.md")).unwrap();
    assert!(!Path::new("/tmp/keyturn-was-here").exists());
    assert_eq!(readme, format!("# repo\n\n{hostile}\n\nVisibility: internal\n"));
    run("git", &["-C", text(&outputs, "clone_url"), "fsck", "--strict"]);
    destroy(&git, &job).await;
    destroy(&git, &job).await;
    assert_eq!(observe(&git, &job).await, Observation::Absent);
    assert_eq!(fs::read_dir(shop.state("git-repository").join(".aside")).unwrap().count(), 0);
}

#[test]
fn branches_that_git_does_not_take_are_refused_by_the_schema() {
    let shop = Shop::of_samples();
    let git = shop.offering("git-repository");
    let fits = |branch: &str| {
        let sent = Object::from_iter([("default_branch".to_owned(), json!(branch))]);
        git.schema.normalise(sent).is_ok()
    };
    for good in ["main", "release/1.x", "a-b_c"] {
        assert!(fits(good), "{good}");
    }
    for bad in
        ["", "-main", "a..b", "a//b", "/a", "a/", "a.lock", "a.lock/b", "HEAD", "a b", "@", "a\nb", ".a"]
    {
        assert!(!fits(bad), "{bad:?}");
    }
}

#[tokio::test]
async fn a_certificate_is_made_once_and_verifies() {
    let shop = Shop::of_samples();
    let tls = shop.offering("tls-certificate");
    let names = json!(["www.example.org", "*.example.org", "localhost"]);
    let job = meant(&tls, "web", json!({"dns_names": names, "days": 30}));
    let outputs = lives_and_ends(&tls, &job).await;
    assert!(tls.secret_outputs.contains("private_key"));
    let file = |name: &str| {
        let path = shop.data.path().join(format!("{name}.pem"));
        fs::write(&path, text(&outputs, name)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, authority, key) = (file("certificate"), file("ca_certificate"), file("private_key"));
    for host in ["www.example.org", "api.example.org", "localhost"] {
        let flags = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", host];
        run("openssl", &[&flags[..], &["-CAfile", &authority, &certificate]].concat());
    }
    let shown = run("openssl", &["x509", "-in", &certificate, "-noout", "-text"]);
    assert!(shown.contains("DNS:www.example.org, DNS:*.example.org, DNS:localhost"), "{shown}");
    assert!(shown.contains("TLS Web Server Authentication") && shown.contains("CA:FALSE"), "{shown}");
    assert_eq!(
        run("openssl", &["x509", "-in", &certificate, "-noout", "-pubkey"]),
        run("openssl", &["pkey", "-in", &key, "-pubout"])
    );
    assert!(text(&outputs, "not_after").ends_with('Z') && text(&outputs, "not_after").len() == 20);
    // It ends when the certificate itself says that it does.
    let Ok(Expiry { end: End::At(end), .. }) = tls.expiry.as_ref().unwrap().of(&outputs, &Object::new())
    else {
        panic!("no end");
    };
    let says = run("openssl", &["x509", "-in", &certificate, "-noout", "-enddate", "-dateopt", "iso_8601"]);
    assert_eq!(says.trim(), format!("notAfter={}", end.to_string().replace('T', " ").replace(".000", "")));
    for kept in ["authority/key.pem", "certificates/team-a/web/key.pem"] {
        let mode = fs::metadata(shop.state("tls-certificate").join(kept)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{kept}");
    }
    destroy(&tls, &job).await;
    assert_eq!(observe(&tls, &job).await, Observation::Absent);
    let rsa =
        apply(&tls, &meant(&tls, "rsa", json!({"dns_names": ["a.test"], "key_type": "rsa-2048"}))).await;
    assert_eq!(rsa["ca_certificate"], outputs["ca_certificate"], "one authority for all");
}

#[test]
fn names_that_no_certificate_should_hold_are_refused_by_the_schema() {
    let shop = Shop::of_samples();
    let tls = shop.offering("tls-certificate");
    let fits =
        |names: Value| tls.schema.normalise(Object::from_iter([("dns_names".to_owned(), names)])).is_ok();
    assert!(fits(json!(["localhost"])) && fits(json!(["*.a-b.example.org", "a.test"])));
    let long = vec!["a"; 128].join(".");
    for bad in [
        "",
        "A.test",
        "a..test",
        "-a.test",
        "a-.test",
        "*",
        "*a.test",
        "a.*.test",
        "a.test.",
        "1.2.3.4",
        "a.test\nb.test",
        "a.test,DNS:b.test",
        "a b.test",
        "é.test",
        &long,
    ] {
        assert!(!fits(json!([bad])), "{bad:?}");
    }
    assert!(!fits(json!([])) && !fits(json!(["a.test", "a.test"])) && !fits(json!("a.test")));
    assert!(!fits((0..21).map(|n| json!(format!("a{n}.test"))).collect()));
}

#[tokio::test]
async fn first_uses_at_once_share_one_authority() {
    let shop = Shop::of_samples();
    let tls = shop.offering("tls-certificate");
    let made = (0..6).map(|n| {
        let (tls, job) =
            (Arc::clone(&tls), meant(&tls, &format!("web{n}"), json!({"dns_names": ["a.test"]})));
        tokio::spawn(async move { apply(&tls, &job).await })
    });
    let mut authorities = Vec::new();
    for one in made.collect::<Vec<_>>() {
        authorities.push(one.await.unwrap()["ca_certificate"].clone());
    }
    authorities.dedup();
    assert_eq!(authorities.len(), 1);
}

#[tokio::test]
async fn killed_anywhere_and_asked_again_there_is_exactly_one() {
    let shop = Shop::of_samples();
    for (id, parameters) in
        [("git-repository", json!({})), ("tls-certificate", json!({"dns_names": ["www.example.org"]}))]
    {
        let offering = shop.offering(id);
        let mut seen = [0, 0];
        for n in 0..24_u32 {
            let job = meant(&offering, &format!("killed{n}"), parameters.clone());
            shop.kill_midway(id, &job, Duration::from_millis(u64::from(n) * 3));
            let before = match observe(&offering, &job).await {
                Observation::Absent => None,
                Observation::Ours(outputs) => Some(outputs),
                other => panic!("killed after {n}: {other:?}"),
            };
            seen[usize::from(before.is_some())] += 1;
            let outputs = apply(&offering, &job).await;
            assert!(before.is_none_or(|before| before == outputs), "what was there is adopted");
            assert_eq!(observe(&offering, &job).await, Observation::Ours(outputs));
        }
        let finished = match id {
            "git-repository" => shop.state(id).join("team-a"),
            _ => shop.state(id).join("certificates/team-a"),
        };
        assert_eq!(fs::read_dir(finished).unwrap().count(), 24, "{id} {seen:?}");
        assert_eq!(fs::read_dir(shop.state(id).join(".aside")).unwrap().count(), 0, "nothing is left aside");
    }
}

#[tokio::test]
async fn the_program_of_the_tests_behaves_as_it_is_asked() {
    let shop = Shop::of_tests();
    let vm = shop.offering("vm");
    let ledger = || fs::read_to_string(shop.state("vm").join("ledger")).unwrap_or_default();
    let asked = |name: &str, behaviour: &str| meant(&vm, name, json!({"behaviour": behaviour}));
    let try_apply = async |job: &Job| vm.provisioner.apply(job, &context().0).await;

    lives_and_ends(&vm, &asked("fine", "ok")).await;
    destroy(&vm, &asked("fine", "ok")).await;
    assert!(matches!(try_apply(&asked("bad", "fail")).await, Outcome::Failed(_)));
    let busy = asked("busy", "retry-once");
    assert!(matches!(try_apply(&busy).await, Outcome::Retryable(_)));
    assert!(matches!(try_apply(&busy).await, Outcome::Done(_)));
    let lost = asked("lost", "lose-answer");
    assert!(matches!(try_apply(&lost).await, Outcome::CannotTell(_)));
    assert!(matches!(observe(&vm, &lost).await, Observation::Ours(_)));
    for (name, behaviour, lines) in [("blind", "observe-unknown", 1), ("mute", "cannot-tell", 0)] {
        let job = asked(name, behaviour);
        assert!(matches!(try_apply(&job).await, Outcome::CannotTell(_)));
        assert!(matches!(observe(&vm, &job).await, Observation::CannotTell(_)), "{behaviour}");
        assert_eq!(ledger().matches(&format!("apply {} ", job.request_id)).count(), lines, "{behaviour}");
    }
    fs::write(shop.state("vm").join("mended"), "").unwrap();
    assert!(matches!(observe(&vm, &asked("blind", "observe-unknown")).await, Observation::Ours(_)));
    assert_eq!(observe(&vm, &asked("mute", "cannot-tell")).await, Observation::Absent);
    assert_eq!(ledger().lines().count(), 5, "{}", ledger());
    let crash = asked("crash", "crash");
    assert!(matches!(try_apply(&crash).await, Outcome::CannotTell(_)));
    assert!(matches!(observe(&vm, &crash).await, Observation::Ours(_)));
}
