//! The provisioner that calls a service.

use super::super::support::{Home, World, eventually, fresh};
use super::{Place, TOKEN, home, machine, machines::Machines, place, told};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_called_once_with_its_key_and_nothing_shows_its_secret() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("now", "now")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(
        (&ended["state"], &ended["outputs"]),
        (&json!("succeeded"), &json!({ "address": "now.test" }))
    );
    let call = machines.book().calls[0].clone();
    assert_eq!(call["idempotency-key"], format!("{id}-1-apply"));
    assert_eq!(call["keyturn-correlation-id"], id);
    assert_eq!(call["content-type"], "application/json");
    let refused = world.ann.made(&machine("refused", "refuse")).await;
    let ended = world.ann.ended(&refused).await;
    assert_eq!(ended["state"], "failed", "{ended}");
    assert_eq!(ended["reason"], "no room, says ***");
    let seen = told(&world, &refused).await + &told(&world, &id).await + &world.server.log();
    assert!(!seen.contains(TOKEN));
    // What is refused for now is asked for again, under the same key.
    let busy = world.ann.made(&machine("busy", "busy-once")).await;
    assert_eq!(world.ann.ended(&busy).await["state"], "succeeded");
    let path = "/teams/alpha/resources/machine/now";
    let gone = world.ann.delete(path, &fresh("delete")).await.is(202).id();
    assert_eq!(world.ann.ended(&gone).await["state"], "succeeded");
    assert!(!machines.book().things.contains_key("alpha/now"));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_goes_on_is_asked_about_to_its_end() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("polled", "poll")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["outputs"], json!({ "address": "polled.test" }));
    assert_eq!(ended["secret_outputs"], json!(["password"]));
    assert_eq!(machines.made("polled"), 1);
    let id = world.ann.made(&machine("fails", "poll-fail")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("the disk is full")));
    // What it had made was removed before the request counted as failed.
    assert!(!machines.book().things.contains_key("alpha/fails"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_is_found_out_by_a_look_and_not_by_a_second_call() {
    let Place { world, machines, _folder } = place().await;
    for (name, behaviour) in [("broken", "break"), ("lost", "lose"), ("long", "huge")] {
        let id = world.ann.made(&machine(name, behaviour)).await;
        let ended = world.ann.ended(&id).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        assert_eq!(machines.made(name), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_actions_are_done_once_though_their_answer_is_lost() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("one", "now")).await;
    world.ann.ended(&id).await;
    let path = "/teams/alpha/resources/machine/one";
    let version = world.ann.etag(path).await;
    let larger = json!({ "size": "large", "behaviour": "break" });
    let changed = world.ann.patch(path, &fresh("change"), &version, &larger).await.is(202).id();
    let ended = world.ann.ended(&changed).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(machines.did("change one"), 1);
    assert_eq!(machines.book().things["alpha/one"]["size"], "large");
    let action = format!("{path}/actions/restart");
    let restarted = world.ann.post(&action, &fresh("restart"), &json!({})).await.is(202).id();
    assert_eq!(world.ann.ended(&restarted).await["state"], "succeeded");
    assert_eq!(machines.did("restart one"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_look_does_not_find_is_asked_for_again_and_what_others_made_is_left_alone() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("absent", "nothing")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "failed", "{ended}");
    let keys: Vec<String> =
        machines.book().calls.iter().map(|call| call["idempotency-key"].clone()).collect();
    assert_eq!(keys, vec![format!("{id}-1-apply"); 4], "as often as the offering lets it, under one key");
    let theirs = json!({ "owner": "somebody else", "done": [] });
    machines.book().things.insert("alpha/theirs".into(), theirs.clone());
    let id = world.ann.made(&machine("theirs", "nothing")).await;
    let ended = world.ann.ended(&id).await;
    assert_eq!(ended["state"], "failed");
    assert!(ended["reason"].as_str().unwrap().contains("this request did not make it"), "{ended}");
    assert_eq!(machines.book().things["alpha/theirs"], theirs);
    assert_eq!(machines.did("remove theirs"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_between_the_call_and_its_record_leaves_one_effect() {
    let Place { mut world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("killed", "lose")).await;
    eventually("it was called", async || (machines.made("killed") == 1).then_some(())).await;
    world.kill();
    world.restart();
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    assert_eq!(machines.made("killed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_canceled_while_the_service_works_is_removed() {
    let Place { world, machines, _folder } = place().await;
    let id = world.ann.made(&machine("canceled", "callback")).await;
    eventually("it was called", async || (machines.made("canceled") == 1).then_some(())).await;
    machines.book().things.insert("alpha/canceled".into(), json!({ "owner": id, "done": [] }));
    world.ann.act(&format!("/requests/{id}/cancel"), &fresh("cancel")).await;
    assert_eq!(world.ann.ended(&id).await["state"], "canceled");
    assert!(!machines.book().things.contains_key("alpha/canceled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_not_allowed_is_never_called() {
    let (machines, folder) = (Machines::default(), tempfile::tempdir().unwrap());
    let base = machines.serve().await;
    let mut home = home(folder.path(), &Machines::offering(&base), Home::new);
    home.set("KEYTURN_OUTBOUND_ALLOW", "public");
    let world = World::at(home);
    let id = world.ann.made(&machine("refused", "now")).await;
    eventually("it ends", async || {
        let view = world.ann.get(&format!("/requests/{id}")).await.json();
        let reason = view["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("KEYTURN_OUTBOUND_ALLOW").then_some(())
    })
    .await;
    assert_eq!(machines.book().calls.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_is_led_nowhere_that_is_not_allowed() {
    let Place { world, machines, _folder } = place().await;
    // Another address of this machine, which is not allowed, and one that clouds answer with credentials.
    let inner = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = inner.local_addr().unwrap();
    let met = tokio::spawn(async move { inner.accept().await.is_ok() });
    for (name, place) in
        [("inner", format!("http://{address}/x")), ("local", "http://169.254.169.254/x".into())]
    {
        machines.book().looks_elsewhere = Some(place);
        let id = world.ann.made(&machine(name, "break")).await;
        let why = eventually("nobody can tell", async || {
            let view = world.ann.get(&format!("/requests/{id}")).await.json();
            (view["state"] == "unknown").then(|| view["reason"].to_string())
        })
        .await;
        assert!(why.contains("is not among the destinations"), "{why}");
        assert_eq!(machines.made(name), 1);
    }
    assert!(!met.is_finished(), "the other address was connected to");
    met.abort();
}
