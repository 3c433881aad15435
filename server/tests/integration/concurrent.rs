//! Many senders at once.

use super::support::{ALPHA, Cluster, Home, World, fast};
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::collections::HashMap;

const KEYS: usize = 200;
const SENDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_keys_of_twenty_sends_each_make_two_hundred_requests_and_resources() {
    let world = World::start();
    // The sends of all keys interleave, so that repeats meet their firsts at every stage.
    let sends = (0..SENDS).flat_map(|_| 0..KEYS).map(|number| {
        let api = world.ann.clone();
        async move {
            let body = fast(&format!("load-{number}"), json!({ "count": number % 100 + 1 }));
            (number, api.post(ALPHA, &format!("load-{number}"), &body).await)
        }
    });
    let answers: Vec<_> = stream::iter(sends).buffer_unordered(100).collect().await;
    assert_eq!(answers.len(), KEYS * SENDS);

    let mut firsts = HashMap::new();
    let mut first_count = 0;
    for (number, answer) in &answers {
        assert_eq!(answer.status, 202, "{}", answer.text());
        first_count += usize::from(answer.header("idempotency-replayed").is_none());
        let lasting = answer.lasting();
        assert_eq!(firsts.entry(number).or_insert_with(|| lasting.clone()), &lasting);
    }
    assert_eq!(first_count, KEYS);
    for (_, answer) in answers.iter().take(KEYS) {
        assert_eq!(world.ann.ended(&answer.id()).await["state"], "succeeded");
    }
    assert_eq!(world.count().await, 200);
    assert_eq!(world.resources("alpha").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbouring_keys_of_many_teams_never_meet_a_fault() {
    neighbours(World::start()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_neighbouring_keys_of_many_teams_never_meet_a_fault() {
    neighbours(World::at(Home::on_postgres(Cluster::shared(), &[]))).await;
}

async fn neighbours(world: World) {
    let sends = (0..600).map(|number| {
        let (api, path) = match number % 3 {
            0 => (world.ann.clone(), "/teams/alpha/requests"),
            1 => (world.ben.clone(), "/teams/beta/requests"),
            _ => (world.ada.clone(), "/teams/beta/requests"),
        };
        // A third of them is refused, and leaves its key as it was.
        let size = if number % 5 == 0 { "huge" } else { "small" };
        async move {
            let body = fast(&format!("near-{number}"), json!({ "size": size }));
            api.post(path, &format!("near-{:08}", number / 3), &body).await.status
        }
    });
    let statuses: Vec<u16> = stream::iter(sends).buffer_unordered(60).collect().await;
    assert!(statuses.iter().all(|status| matches!(status, 202 | 422)), "{statuses:?}");
    assert_eq!(world.count().await, 480);
}
