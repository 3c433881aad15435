//! The event stream of a request.

use super::support::{Answer, World, vm};
use serde_json::{Value, json};

struct Event {
    id: i64,
    name: String,
    data: Value,
}

fn events(answer: &Answer) -> Vec<Event> {
    let text = answer.text();
    let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name}: {block}")).to_owned()
    };
    blocks
        .map(|block| Event {
            id: field(block, "id").parse().unwrap(),
            name: field(block, "event"),
            data: serde_json::from_str(&field(block, "data")).unwrap(),
        })
        .collect()
}

#[tokio::test]
async fn a_stream_tells_all_as_it_happens_and_ends_with_the_end() {
    let world = World::start();
    let id = world.ann.made(&vm("vm-one", json!({ "seconds": 1 }))).await;
    let path = format!("/requests/{id}/events");
    let answer = world.ann.get(&path).await.is(200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let told = events(&answer);
    let numbers: Vec<i64> = told.iter().map(|event| event.id).collect();
    let counted: Vec<i64> = (1..).take(told.len()).collect();
    assert_eq!(numbers, counted);
    let states: Vec<&Value> =
        told.iter().filter(|event| event.name == "state").map(|event| &event.data["state"]).collect();
    assert_eq!(states.first(), Some(&&json!("queued")));
    assert_eq!(states.last(), Some(&&json!("succeeded")));
    assert!(told.iter().any(|event| event.name == "log" && event.data["line"] == "done vm-one"));

    // It resumes after the last entry that was received, and says when there will be no more.
    let after = |last: &str| Answer::of(world.ann.call("GET", &path).header("Last-Event-ID", last));
    let rest = events(&after("2").await.is(200));
    assert_eq!(rest.first().unwrap().id, 3);
    assert_eq!(rest.len(), told.len() - 2);
    assert!(after(&told.len().to_string()).await.is(204).body.is_empty());
    after("x").await.refused(400, "invalid-query");
}
