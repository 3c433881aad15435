//! Calls whose outcome nobody sees, and calls that had none: what is sent again, by whose word, and what never is.

use super::super::support::{Home, World, eventually, fresh};
use super::{Place, home, kestra::Kestra, machine, machines::Machines, place, told};
use serde_json::json;

/// The offering of a service that one cannot look at, that does not report, and that does twice what is sent twice.
fn blind(base: &str) -> String {
    let offering = Machines::offering(base);
    let (head, rest) = offering.split_once("    observe:\n").unwrap();
    let (_, destroy) = rest.split_once("    destroy:\n").unwrap();
    format!("{head}    destroy:\n{destroy}")
        .replace("callback: true", "callback: false")
        .replace("        callback: '{{ callback }}'\n", "")
}

/// A portal whose service is like that.
async fn blind_place() -> Place {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let world = World::at(home(folder.path(), &blind(&base), Home::new));
    Place { world, machines, _folder: folder }
}

async fn unknown(world: &World, id: &str) -> String {
    eventually("nobody can tell", async || {
        let view = world.ann.get(&format!("/requests/{id}")).await.json();
        (view["state"] == "unknown").then(|| view["reason"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_look_at_is_sent_again_at_a_persons_word_and_once() {
    let Place { world, machines, _folder } = blind_place().await;
    let id = world.ann.made(&machine("one", "break")).await;
    unknown(&world, &id).await;
    assert_eq!(machines.made("one"), 1);
    for times in [2, 3] {
        let retry = json!({ "resolution": "retry" });
        world.ann.post(&format!("/requests/{id}/resolve"), &fresh("retry"), &retry).await.is(202);
        eventually("it is sent", async || (machines.made("one") == times).then_some(())).await;
        unknown(&world, &id).await;
        assert_eq!(machines.made("one"), times, "one word, one call");
    }
    let adopt = json!({ "resolution": "adopt" });
    world.ann.post(&format!("/requests/{id}/resolve"), &fresh("adopt"), &adopt).await.is(202);
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(told(&world, &id).await.matches("carried out once more, as was decided").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_the_service_never_ends_comes_to_the_end_that_a_person_chooses() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let home = home(folder.path(), &Machines::offering(&base), Home::new);
    let file = folder.path().join("catalog/machine/offering.yaml");
    let impatient = std::fs::read_to_string(&file).unwrap().replace("timeout: 60s", "timeout: 2s");
    std::fs::write(&file, impatient.replace("call_timeout: 6s", "call_timeout: 1s")).unwrap();
    let world = World::at(home);
    for (resolution, end, removed) in
        [("adopt", "succeeded", 0), ("retry", "succeeded", 0), ("abandon", "failed", 1)]
    {
        let id = world.ann.made(&machine(resolution, "poll-never")).await;
        let reason = unknown(&world, &id).await;
        assert!(reason.contains("no end after"), "{reason}");
        let decided = json!({ "resolution": resolution });
        world.ann.post(&format!("/requests/{id}/resolve"), &fresh("decide"), &decided).await.is(202);
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], end, "{resolution}: {ended}");
        assert_eq!(machines.made(resolution), 1, "{resolution}: nothing is begun twice");
        assert_eq!(machines.did(&format!("remove {resolution}")), removed, "{resolution}");
    }
    world.ann.made(&machine("abandon", "now")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_refused_for_now_is_sent_again_though_nobody_can_look() {
    let Place { world, machines, _folder } = blind_place().await;
    let id = world.ann.made(&machine("busy", "busy-once")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(machines.book().calls.len(), 2);
    assert_eq!(machines.made("busy"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_was_asked_for_nothing_so_that_the_create_fails() {
    for offering in [blind, Kestra::offering] {
        let folder = tempfile::tempdir().unwrap();
        // Nobody listens there any more.
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let world = World::at(home(folder.path(), &offering(&format!("http://{nobody}")), Home::new));
        let id = world.ann.made(&machine("one", "now")).await;
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], "failed", "{ended}");
        let reason = ended["reason"].as_str().unwrap();
        assert!(reason.contains("4 of 4 tries") && reason.contains("no connection"), "{reason}");
        // Its name is free.
        world.ann.made(&machine("one", "other")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_not_allowed_is_a_plain_failure() {
    for offering in [blind, Kestra::offering] {
        let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
        let base = machines.serve().await;
        let mut home = home(folder.path(), &offering(&base), Home::new);
        home.set("KEYTURN_OUTBOUND_ALLOW", "public");
        let world = World::at(home);
        let id = world.ann.made(&machine("refused", "now")).await;
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], "failed", "{ended}");
        assert!(ended["reason"].as_str().unwrap().contains("KEYTURN_OUTBOUND_ALLOW"), "{ended}");
        assert_eq!(machines.book().calls.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_in_is_never_sent_again_though_its_answer_leads_nowhere() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("led", "astray")).await;
    // It takes its time; what stands in the end is found by looking.
    eventually("it is looked for", async || (machines.book().looks.len() >= 4).then_some(())).await;
    assert_eq!(machines.made("led"), 1);
    machines
        .book()
        .things
        .insert("alpha/led".into(), json!({ "owner": id, "done": [], "address": "led.test" }));
    let ended = world.ann.ended(&id).await;
    assert_eq!(
        (&ended["state"], &ended["outputs"]),
        (&json!("succeeded"), &json!({ "address": "led.test" }))
    );
    assert_eq!(machines.made("led"), 1);
    assert!(told(&world, &id).await.contains("the service took it in"));

    let Place { world, machines, _folder } = blind_place().await;
    let id = world.ann.made(&machine("led", "astray")).await;
    let why = unknown(&world, &id).await;
    assert!(why.contains("took it in"), "{why}");
    assert_eq!(machines.made("led"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_and_polls_say_what_they_belong_to() {
    let Place { world, machines, _folder } = place().await;
    for behaviour in ["poll", "break"] {
        let mut body = machine(behaviour, behaviour);
        body["correlation_id"] = json!("payment-ORD-7");
        let id = world.ann.made(&body).await;
        assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
        let looks = std::mem::take(&mut machines.book().looks);
        assert!(!looks.is_empty(), "{behaviour}");
        for look in looks {
            assert_eq!(look.get("keyturn-correlation-id").map(String::as_str), Some("payment-ORD-7"));
            assert_eq!(look.get("idempotency-key"), None, "a look is not kept from being repeated");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_says_of_no_look_what_was_not_seen() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let offering = blind(&base).replace("    callback: false\n", "    idempotent: true\n");
    let world = World::at(home(folder.path(), &offering, Home::new));
    let id = world.ann.made(&machine("one", "break-once")).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let history = told(&world, &id).await;
    assert!(history.contains("the service carries out once what is sent again"), "{history}");
    assert!(!history.contains("it is there"), "{history}");
}
