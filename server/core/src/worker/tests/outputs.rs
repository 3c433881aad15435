//! What a run gives: log lines in order, outputs, and secrets that are shown only by an audited call.

use crate::testing::{House, Plan, Scripted};
use domain::{problem::ProblemKind, role::TeamRole, state::RequestState::Succeeded, view::Object};
use serde_json::{Value, json};

#[tokio::test]
async fn log_lines_arrive_in_order() {
    let lines: Vec<String> = (0..1200).map(|number| format!("line {number}")).collect();
    let house = House::at_work(Plan::of(Scripted::default().writing(lines.clone()))).await;
    let id = house.create("one").await;
    house.reaches(id, Succeeded).await;
    let history = house.history(id).await;
    assert_eq!(history[..3], ["queued", "running", "apply: begun"]);
    assert_eq!(history[3..history.len() - 1], lines);
    assert_eq!(history.last().unwrap(), "succeeded");
}

#[tokio::test]
async fn a_secret_output_is_sealed_shown_nowhere_and_revealed_by_an_audited_call() {
    const SECRET: &str = "hunter2-of-the-machine";
    let outputs = Object::from_iter([
        ("address".to_owned(), json!("one.test")),
        ("password".to_owned(), json!(SECRET)),
    ]);
    let script = Scripted::default().applying([crate::provisioner::Outcome::Done(outputs)]);
    let plan = Plan::of(script).offering(|offering| {
        offering.secret_outputs.insert("password".into());
    });
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    let view = house.reaches(id, Succeeded).await;
    assert_eq!(view.outputs, Object::from_iter([("address".to_owned(), json!("one.test"))]));
    assert_eq!(view.secret_outputs, ["password"]);
    assert!(!house.history(id).await.join("\n").contains(SECRET));
    let resource = house.portal.resource(&house.ann, "alpha", "vm", "one").await.unwrap();
    assert!(!serde_json::to_string(&resource).unwrap().contains(SECRET));
    let lies_open = |disk: &[u8]| disk.windows(SECRET.len()).any(|at| at == SECRET.as_bytes());
    assert!(!lies_open(&house.disk()));

    let look = async |caller, output| house.portal.reveal(caller, "alpha", "vm", "one", output).await;
    assert_eq!(look(&house.ann, "password").await.unwrap(), SECRET);
    assert_eq!(looks(&house).await, 1);
    // Who may not see it, and what is not there.
    let vic = house.person("vic", "alpha", TeamRole::Viewer).await;
    assert_eq!(look(&vic, "password").await.unwrap_err().kind, ProblemKind::Forbidden);
    let ben = house.person("ben", "beta", TeamRole::Owner).await;
    assert_eq!(look(&ben, "password").await.unwrap_err().kind, ProblemKind::NotFound);
    assert_eq!(look(&house.ann, "address").await.unwrap_err().kind, ProblemKind::NotFound);
    assert_eq!(looks(&house).await, 1);
    assert!(!lies_open(&house.disk()));
}

#[tokio::test]
async fn whatever_stands_in_a_secret_output_is_hidden_everywhere_else() {
    let outputs = json!({
        "cred": { "user": "u", "password": "exec-nested-55", "mode": "running" },
        "pin": 7_766_554_433_u64,
        "url": "db://u:exec-nested-55@h",
        "port": 7_766_554_433_u64,
    });
    let Value::Object(outputs) = outputs else { panic!() };
    let lines = ["made with exec-nested-55", "and 7766554433"].map(str::to_owned).to_vec();
    let script = Scripted::default().writing(lines).applying([crate::provisioner::Outcome::Done(outputs)]);
    let plan = Plan::of(script).offering(|offering| {
        offering.secret_outputs.extend(["cred".to_owned(), "pin".to_owned()]);
    });
    let house = House::at_work(plan).await;
    let id = house.create("one").await;
    let view = house.reaches(id, Succeeded).await;
    let shown = json!({ "url": "db://u:***@h", "port": "***" });
    assert_eq!(Value::Object(view.outputs), shown);
    let history = house.history(id).await;
    // The portal's own words are not garbled, though a secret holds one of them.
    assert_eq!(history[1], "running");
    assert!(
        history.contains(&"made with ***".to_owned()) && history.contains(&"and ***".to_owned()),
        "{history:?}"
    );
}

async fn looks(house: &House) -> i64 {
    sqlx::query_scalar(
        "SELECT count(*) FROM audit WHERE act = 'secret_reveal' AND actor = 'ann' AND target = 'vm/one'
            AND detail = 'password'",
    )
    .fetch_one(&mut house.database().await)
    .await
    .unwrap()
}
