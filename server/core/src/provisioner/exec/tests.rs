//! Programs run for real; a small shell script stands in for the guard binary, which these tests do not have.

use super::*;
use crate::provisioner::tests::{context, job, script, stand_in_guard};
use std::{fs, os::unix::fs::PermissionsExt, time::Instant};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(program: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        stand_in_guard(place.folder.path());
        script(&place.folder.path().join("provision"), program);
        place
    }

    fn exec(&self, timeout: Duration) -> Exec {
        let at = self.folder.path();
        let site = Site { guard: at.join("guard"), state: at.join("state") };
        let name = Name::parse("vm").unwrap();
        Exec::new(
            &site,
            &name,
            at.into(),
            at.join("provision"),
            timeout,
            BTreeSet::from(["password".to_owned()]),
        )
    }
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_program_gets_its_job_and_its_answer_and_log_come_back() {
    let place = Place::with(
        "[ \"$1\" = apply ] && cat >got.json && echo \"for $KEYTURN_NAME\" >&2 && echo \"pass $(cat got.json)\" >&2
         printf '{\"outputs\":{\"size\":\"%s\",\"env\":\"%s\"}}' \"$KEYTURN_PARAM_SIZE\" \"${CARGO_MANIFEST_DIR-none}\"",
    );
    let ((context, mut log), mut job) = (context(), job("vm-one", json!({"size": "small"})));
    job.outputs.insert("password".to_owned(), "hunter2".into());
    (job.action, job.undo) = ("resize".to_owned(), true);
    job.previous.insert("size".to_owned(), "large".into());
    job.input.insert("by".to_owned(), 2.into());
    let outcome = place.exec(LONG).apply(&job, &context).await;
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    assert_eq!(json!(outputs), json!({"size": "small", "env": "none"}));
    assert_eq!(log.recv().await.unwrap(), "for vm-one");
    let masked = log.recv().await.unwrap();
    assert!(masked.contains("***") && !masked.contains("hunter2"), "{masked}");
    let got: serde_json::Value =
        serde_json::from_slice(&fs::read(place.folder.path().join("got.json")).unwrap()).unwrap();
    assert_eq!(got["operation"], "apply");
    assert_eq!(got["request_id"], job.request_id.to_string());
    assert_eq!(got["made_by"], job.made_by.to_string());
    assert_eq!((&got["action"], &got["undo"]), (&json!("resize"), &json!(true)));
    assert_eq!((&got["previous"], &got["input"]), (&json!({"size": "large"}), &json!({"by": 2})));
    assert_eq!(got["outputs"]["password"], "hunter2");
    let state = fs::metadata(place.folder.path().join("state/vm")).unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_program_that_runs_too_long_is_ended_and_nobody_can_tell() {
    let place = Place::with("sleep 60 & sleep 60");
    let (context, _log) = context();
    let began = Instant::now();
    let outcome = place.exec(Duration::from_millis(200)).apply(&job("vm-one", json!({})), &context).await;
    assert_eq!(outcome, Outcome::CannotTell("timed out".to_owned()));
    assert!(began.elapsed() < GUARD_GRACE + Duration::from_secs(5));
}

#[tokio::test]
async fn a_stopped_program_says_so_even_while_nobody_takes_its_log() {
    let place = Place::with("while :; do echo line >&2; done");
    let (stop, (log, _kept)) = (tokio_util::sync::CancellationToken::new(), tokio::sync::mpsc::channel(1));
    let context = Context::new(stop.clone(), log);
    let stopping = async {
        sleep(Duration::from_millis(200)).await;
        stop.cancel();
    };
    let (exec, job) = (place.exec(LONG), job("vm-one", json!({})));
    let (outcome, ()) = tokio::join!(exec.apply(&job, &context), stopping);
    assert_eq!(outcome, Outcome::Stopped);
    assert!(
        matches!(exec.observe(&job, &context).await, Observation::CannotTell(_)),
        "nothing starts after a stop"
    );
}

#[tokio::test]
async fn a_killed_program_and_an_endless_answer_tell_nothing() {
    let (context, _log) = context();
    let job = job("vm-one", json!({}));
    let killed = Place::with("kill -KILL $$").exec(LONG).apply(&job, &context).await;
    assert!(matches!(killed, Outcome::CannotTell(_)), "{killed:?}");
    let endless = Place::with("head -c 3000000 /dev/zero").exec(LONG).apply(&job, &context).await;
    assert!(matches!(endless, Outcome::CannotTell(_)), "{endless:?}");
    let failed = Place::with("echo 'no room' >&2; exit 9").exec(LONG).apply(&job, &context).await;
    assert_eq!(failed, Outcome::Failed("the program ended with exit code 9: no room".to_owned()));
    let silent = Place::with("exit 0").exec(LONG).destroy(&job, &context).await;
    assert!(matches!(silent, Outcome::Done(_)), "{silent:?}");
}

#[tokio::test]
async fn a_guard_that_cannot_be_started_is_worth_another_try() {
    let place = Place::with("exit 0");
    fs::remove_file(place.folder.path().join("guard")).unwrap();
    let (context, _log) = context();
    let outcome = place.exec(LONG).apply(&job("vm-one", json!({})), &context).await;
    assert!(matches!(&outcome, Outcome::Retryable(why) if !why.contains('/')), "{outcome:?}");
}
