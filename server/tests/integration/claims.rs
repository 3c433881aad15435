//! Claims as the database keeps them: their numbers, their empty answers, and many at once.

use super::support::{ALPHA, Answer, Cluster, Home, World, fast};
use serde_json::json;
use sqlx::ConnectOptions;

/// The last number that a 32-bit count of rows would have.
const LAST: i64 = 2_147_483_647;

#[tokio::test(flavor = "multi_thread")]
async fn repeats_use_up_no_numbers_and_there_are_more_than_anybody_counts() {
    for home in [Home::on_sqlite(&[]), Home::on_postgres(Cluster::shared(), &[])] {
        let on_sqlite = !home.is_on_postgres();
        let world = World::at(home);
        let body = fast("old", json!({}));
        let old = world.ann.post(ALPHA, "old", &body).await.is(202);
        world.ann.ended(&old.id()).await;
        // As after two thousand million claims.
        if on_sqlite {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.server.home.database());
            let mut database = options.connect().await.unwrap();
            let done = sqlx::query("UPDATE claim SET id = $1 WHERE key = 'old'").bind(LAST - 1);
            assert_eq!(done.execute(&mut database).await.unwrap().rows_affected(), 1);
        } else {
            let mut database = world.server.home.postgres().await;
            let moved =
                sqlx::query("SELECT setval(pg_get_serial_sequence('claim', 'id'), $1)").bind(LAST - 1);
            moved.execute(&mut database).await.unwrap();
        }
        for _ in 0..100 {
            world.ann.post(ALPHA, "old", &body).await.repeats(&old);
        }
        for number in 0..5 {
            let (key, body) = (format!("new-{number}"), fast(&format!("new-{number}"), json!({})));
            let new = world.ann.post(ALPHA, &key, &body).await.is(202);
            world.ann.post(ALPHA, &key, &body).await.repeats(&new);
        }
        let last = "SELECT max(id) FROM claim";
        let last: i64 = if on_sqlite {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.server.home.database());
            sqlx::query_scalar(last).fetch_one(&mut options.connect().await.unwrap()).await.unwrap()
        } else {
            sqlx::query_scalar(last).fetch_one(&mut world.server.home.postgres().await).await.unwrap()
        };
        assert!((LAST + 4..LAST + 20).contains(&last), "{last}: the repeats used up {}", last - LAST - 4);
        assert_eq!(world.count().await, 6);
    }
}

#[tokio::test]
async fn an_empty_answer_is_kept_and_repeated_as_empty() {
    let world = World::at(Home::on_sqlite(&[]));
    let made = world.ann.post("/tokens", "make", &json!({ "label": "deploy" })).await.is(201);
    let path = format!("/tokens/{}", made.id());
    let revoke = async || world.ann.delete(&path, "end").await;
    let first = revoke().await.is(204);
    assert!(first.body.is_empty() && first.header("content-type").is_none());
    for _ in 0..3 {
        let again = revoke().await.is(204);
        again.repeats_without_state(&first);
        assert!(again.body.is_empty());
    }
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.server.home.database());
    let mut database = options.connect().await.unwrap();
    let once = "SELECT (SELECT count(*) FROM audit WHERE act = 'token_revoke'),
                       (SELECT count(*) FROM claim WHERE key = 'end')";
    let once: (i64, i64) = sqlx::query_as(once).fetch_one(&mut database).await.unwrap();
    assert_eq!(once, (1, 1));
    // The key stands for that token's end and nothing else.
    let other = world.ann.post("/tokens", "make-2", &json!({ "label": "other" })).await.is(201);
    world.ann.delete(&format!("/tokens/{}", other.id()), "end").await.refused(422, "idempotency-key-reused");
    let used = world.server.api(other.json()["token"].as_str().unwrap());
    used.get("/me").await.is(200);
}

#[tokio::test]
async fn a_number_and_its_text_are_two_meanings_of_one_key() {
    let world = World::start();
    let body =
        |count: &str| format!(r#"{{"offering":"fast","name":"one","parameters":{{"count":{count}}}}}"#);
    let first = world.ann.text(ALPHA, "k", &body("1")).await.is(202);
    for same in ["1.0", "1e0", "10e-1"] {
        world.ann.text(ALPHA, "k", &body(same)).await.repeats(&first);
    }
    // Beside what would not be taken in at all the key counts first.
    for other in ["\"1\"", "2", "1.5", "true", "[1]"] {
        world.ann.text(ALPHA, "k", &body(other)).await.refused(422, "idempotency-key-reused");
    }
    world.ann.text(ALPHA, "k", &body("9007199254740993")).await.refused(400, "invalid-json");
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn a_long_key_is_itself_whatever_it_is_made_of() {
    for home in [Home::on_sqlite(&[]), Home::on_postgres(Cluster::shared(), &[])] {
        let world = World::at(home);
        // Of all visible characters in no order that anything could shorten, and of one.
        let odd: String =
            (0..255_u32).map(|place| char::from_u32(0x21 + place * place * 31 % 94).unwrap()).collect();
        let odd = odd.replace(['"', '\\'], "x");
        for (number, key) in [odd, "a".repeat(255), "b".to_owned()].iter().enumerate() {
            let body = fast(&format!("long-{number}"), json!({}));
            let first = world.ann.post(ALPHA, key, &body).await.is(202);
            world.ann.post(ALPHA, key, &body).await.repeats(&first);
            for near in [format!("{key}a"), format!("{key}{}", "a".repeat(8000))] {
                let answer = world.ann.post(ALPHA, &near, &body).await;
                if near.len() > 255 {
                    answer.refused(400, "idempotency-key-invalid");
                } else {
                    assert_eq!(answer.is(200).header("keyturn-outcome"), Some("existing"));
                }
            }
        }
        let found =
            Answer::of(world.ann.call("GET", "/teams/alpha/submissions").query(&[("key", "a".repeat(255))]));
        assert_eq!(found.await.is(200).json()["name"], "long-1");
        assert_eq!(world.count().await, 3);
    }
}
