//! The provisioner that starts flows of Kestra.

use super::super::support::{ALPHA, Home, World, eventually, fresh};
use super::{
    TOKEN,
    callbacks::deliver,
    home,
    kestra::{Day, Kestra},
    machine, told,
};
use serde_json::json;
use std::time::Duration;

struct Place {
    world: World,
    kestra: Kestra,
    _folder: tempfile::TempDir,
}

async fn place(day: Day) -> Place {
    let (kestra, folder) = (Kestra::on(day), tempfile::tempdir().unwrap());
    let base = kestra.serve().await;
    let world = World::at(home(folder.path(), &Kestra::offering(&base), Home::new));
    Place { world, kestra, _folder: folder }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_is_followed_to_its_end_and_bears_the_requests_labels() {
    let Place { world, kestra, _folder } = place(Day::default()).await;
    let mut body = machine("one", "now");
    body["correlation_id"] = "payment ORD-123:é".into();
    let id = world.ann.made(&body).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(
        (&ended["state"], &ended["outputs"]),
        (&json!("succeeded"), &json!({ "address": "one.test" }))
    );
    let executions = kestra.of("make", &id);
    assert_eq!(executions.len(), 1);
    assert_eq!(executions[0].labels["system.correlationId"], "payment ORD-123:é");
    assert_eq!(executions[0].inputs["size"], "small");
    assert_eq!(kestra.book().searches, 0, "what was never begun needs no search");
    let warned = world.ann.made(&machine("warned", "warn")).await;
    assert_eq!(world.ann.ended(&warned).await["state"], "succeeded");
    let gone = world.ann.delete("/teams/alpha/resources/machine/one", &fresh("delete")).await.is(202).id();
    assert_eq!(world.ann.ended(&gone).await["state"], "succeeded");
    assert_eq!(kestra.of("remove", &gone).len(), 1);
    assert!(!(told(&world, &id).await + &world.server.log()).contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_by_its_label_though_the_search_lags() {
    for day in [
        Day { faulty: true, ..Day::default() },
        Day { faulty: true, lag: Duration::from_millis(600), ..Day::default() },
        Day { silent: true, ..Day::default() },
    ] {
        let Place { world, kestra, _folder } = place(day.clone()).await;
        let id = world.ann.made(&machine("lost", "now")).await;
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], "succeeded", "{day:?}: {ended}");
        assert_eq!(kestra.of("make", &id).len(), 1, "{day:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_between_the_call_and_its_record_starts_no_second_flow() {
    let day = Day { silent: true, lag: Duration::from_millis(500), ..Day::default() };
    let Place { mut world, kestra, _folder } = place(day).await;
    let id = world.ann.made(&machine("killed", "now")).await;
    eventually("it was started", async || (kestra.of("make", &id).len() == 1).then_some(())).await;
    world.kill();
    world.restart();
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(kestra.of("make", &id).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relatives_execution_is_not_taken_for_ones_own() {
    let Place { world, kestra, _folder } = place(Day::default()).await;
    let mut ids = Vec::new();
    for name in ["first", "second"] {
        kestra.book().day.faulty = name == "second";
        let mut body = machine(name, "now");
        body["correlation_id"] = "shared".into();
        let id = world.ann.post(ALPHA, name, &body).await.is(202).id();
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["outputs"], json!({ "address": format!("{name}.test") }), "{ended}");
        ids.push(id);
    }
    assert!(ids.iter().all(|id| kestra.of("make", id).len() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_request_has_its_execution_killed_and_its_thing_removed() {
    let Place { world, kestra, _folder } = place(Day::default()).await;
    let id = world.ann.made(&machine("slow", "slow")).await;
    eventually("it was started", async || (kestra.of("make", &id).len() == 1).then_some(())).await;
    world.ann.act(&format!("/requests/{id}/cancel"), &fresh("cancel")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "canceled", "{ended}");
    let state = world.ann.get(&format!("/requests/{id}/events")).await.text();
    assert!(state.contains("KILLED"), "{state}");
    assert_eq!((kestra.of("make", &id).len(), kestra.of("remove", &id).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_execution_fails_the_request_and_a_retry_starts_another() {
    let Place { world, kestra, _folder } = place(Day::default()).await;
    let id = world.ann.made(&machine("again", "fail-once")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(ended["reason"].as_str().unwrap().ends_with("ended as FAILED"), "{ended}");
    world.ann.act(&format!("/requests/{id}/retry"), &fresh("retry")).await.is(202);
    eventually("the second is done", async || {
        let view = world.ann.get(&format!("/requests/{id}")).await.json();
        (view["state"] == "succeeded").then_some(())
    })
    .await;
    assert_eq!(kestra.of("make", &id).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_flow_that_ran_twice_one_counts_and_the_history_says_so() {
    let Place { world, kestra, _folder } = place(Day { twice: true, faulty: true, ..Day::default() }).await;
    let id = world.ann.made(&machine("twice", "now")).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(kestra.of("make", &id).len(), 2);
    assert!(
        told(&world, &id)
            .await
            .contains("2 executions bear this request's labels, of which the first counts: ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn before_a_second_call_one_searches_twice_by_the_requests_own_label() {
    let Place { world, kestra, _folder } = place(Day { refusing: 1, ..Day::default() }).await;
    // A sibling with the same correlation ID is under way, and must not be taken for this one.
    let mut sibling = machine("sibling", "slow");
    sibling["correlation_id"] = "shared".into();
    kestra.book().day.refusing = 0;
    let other = world.ann.made(&sibling).await;
    eventually("it was started", async || (kestra.of("make", &other).len() == 1).then_some(())).await;
    kestra.book().day.refusing = 1;
    let mut body = machine("doubtful", "now");
    body["correlation_id"] = "shared".into();
    let id = world.ann.made(&body).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(
        (&ended["state"], &ended["outputs"]["address"]),
        (&json!("succeeded"), &json!("doubtful.test"))
    );
    assert_eq!(kestra.of("make", &id).len(), 1);
    let [_, first, second] = kestra.book().searched_before[..] else { panic!("{:?}", kestra.book()) };
    assert_eq!(first, 0, "what was never begun needs no search");
    assert!(second >= 2, "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_may_report_before_it_is_seen_to_be_done() {
    let (kestra, folder) = (Kestra::on(Day::default()), tempfile::tempdir().unwrap());
    let base = kestra.serve().await;
    let file = folder.path().join("signs");
    std::fs::write(&file, "whsec_a2VzdHJhJ3Mgb3du").unwrap();
    let offering = Kestra::offering(&base)
        .replace("    apply:\n", &format!(
            "    secrets: {{ signs: {{ file: {} }} }}\n    callback: {{ secrets: [signs] }}\n    apply:\n",
            file.display()
        ))
        .replace("inputs: { name: '{{ name }}', size:", "inputs: { name: '{{ name }}', report: '{{ callback.url }}', size:");
    let world = World::at(home(folder.path(), &offering, Home::new));
    let id = world.ann.made(&machine("reports", "slow")).await;
    let started = || kestra.of("make", &id).pop();
    let execution = eventually("it was started", async || started()).await;
    let url = &execution.inputs["report"];
    let path = &url[url.find("/api/v1/").unwrap()..];
    let secret = portal::signature::SharedSecret::kept("whsec_a2VzdHJhJ3Mgb3du".into()).unwrap();
    let done = json!({ "state": "succeeded", "sequence": 1, "outputs": { "address": "told.test" } });
    let answer = deliver(&world.server.base, path, &secret, &execution.id, &done).await.is(200);
    assert_eq!(answer.json()["outcome"], "applied");
    let ended = world.ann.ended(&id).await;
    assert_eq!((&ended["state"], &ended["outputs"]["address"]), (&json!("succeeded"), &json!("told.test")));
}
