//! Several servers on one PostgreSQL database: they are one portal, whichever of them one asks and whichever dies.

use super::support::{ALPHA, Answer, Api, Cluster, Home, SOON, Server, World, eventually, fast, fresh, vm};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A server without workers: it only answers.
const ANSWERS: (&str, &str) = ("KEYTURN_WORKERS", "0");

fn world(settings: &[(&str, &str)]) -> World {
    World::at(Home::on_postgres(Cluster::shared(), settings))
}

/// One more server on the same database, and the same caller there.
fn beside(world: &World, settings: &[(&str, &str)]) -> (Server, Api) {
    let server = Server::start(world.server.home.beside(settings));
    let ann = server.api(world.ann.token.as_deref().unwrap());
    (server, ann)
}

/// Every line of the ledger in which the test's program writes what it did.
fn ledger(world: &World) -> Vec<String> {
    let file = world.server.home.path().join("data/offerings/vm/ledger");
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_sends_of_one_key_half_to_each_server_make_one_request() {
    let world = world(&[]);
    let (_other, there) = beside(&world, &[]);
    for round in 0..5 {
        let (key, body) = (fresh("both"), fast(&format!("both-{round}"), json!({ "note": "é" })));
        let sends = (0..20).map(|number| {
            let (api, key, body) = ([&world.ann, &there][number % 2].clone(), key.clone(), body.clone());
            tokio::spawn(async move { api.post(ALPHA, &key, &body).await })
        });
        let mut answers = Vec::new();
        for send in sends.collect::<Vec<_>>() {
            answers.push(send.await.unwrap().is(202));
        }
        assert!(answers.iter().all(|answer| answer.lasting() == answers[0].lasting()));
        let firsts = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none());
        assert_eq!(firsts.count(), 1);
        assert_eq!(there.ended(&answers[0].id()).await["state"], "succeeded");
        // A repeat is the same on either, also long after.
        for api in [&world.ann, &there] {
            api.post(ALPHA, &key, &body).await.repeats(&answers[0]);
        }
    }
    assert_eq!(world.count().await, 5);
    assert_eq!(world.resources("alpha").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_names_wanted_on_two_servers_at_once_have_one_owner_each() {
    let world = world(&[]);
    let (_other, there) = beside(&world, &[]);
    let sends = (0..120).map(|number| {
        let api = [&world.ann, &there][number % 2].clone();
        // Every name is wanted six times, under keys of their own, in two shapes that exclude each other.
        let body = fast(&format!("wanted-{}", number / 6), json!({ "count": number % 2 + 1 }));
        tokio::spawn(async move { api.post(ALPHA, &fresh("wants"), &body).await.status })
    });
    let mut seen = [0; 3];
    for send in sends.collect::<Vec<_>>() {
        match send.await.unwrap() {
            202 => seen[0] += 1,
            200 => seen[1] += 1,
            409 => seen[2] += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!(seen, [20, 40, 60]);
    assert_eq!(world.count().await, 20);
}

/// Of twelve requests that are sent to a server without workers, how many came to their end there at once. By looking
/// again alone, one in seven would.
async fn prompt(there: &Api) -> usize {
    let mut prompt = 0;
    for round in 0..12 {
        let begun = Instant::now();
        let id = there.made(&fast(&format!("news-{round}"), json!({}))).await;
        assert_eq!(there.ended(&id).await["state"], "succeeded");
        prompt += usize::from(begun.elapsed() < Duration::from_millis(400));
    }
    prompt
}

#[tokio::test(flavor = "multi_thread")]
async fn without_news_what_another_does_is_seen_by_looking_again() {
    let home = Home::on_postgres(Cluster::shared(), &[]);
    // A function of the same name that tells nobody is found before PostgreSQL's own.
    let hush = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$;
                CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$";
    sqlx::raw_sql(hush).execute(&mut home.postgres().await).await.unwrap();
    let world = World::at(home);
    let (_other, there) = beside(&world, &[ANSWERS]);
    let begun = Instant::now();
    let prompt = prompt(&there).await;
    // All came to their end, each within a second or two; the test of the news would have failed.
    assert!(prompt < 8, "{prompt} of 12 were heard at once, of nobody");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let id = world.ann.made(&vm("told", json!({ "seconds": 1 }))).await;
    let told = there.get(&format!("/requests/{id}/events")).await.is(200).text();
    assert!(told.contains("done told") && told.contains("succeeded"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_at_one_server_hears_at_once_what_another_does() {
    let world = world(&[]);
    let (_other, there) = beside(&world, &[ANSWERS]);
    let prompt = prompt(&there).await;
    assert!(prompt >= 8, "only {prompt} of 12 were heard at once");

    let id = world.ann.made(&vm("told", json!({ "seconds": 1 }))).await;
    let told = there.get(&format!("/requests/{id}/events")).await.is(200).text();
    assert!(told.contains("done told") && told.contains("succeeded"), "{told}");
    // A cancellation at one server stops what runs at another, long before its lease is renewed.
    let id = there.made(&vm("stopped", json!({ "seconds": 60 }))).await;
    let path = format!("/requests/{id}");
    eventually("it runs", async || running(&there, &path).await).await;
    let begun = Instant::now();
    there.act(&format!("{path}/cancel"), &fresh("cancel")).await.is(202);
    assert_eq!(there.ended(&id).await["state"], "canceled");
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

async fn running(api: &Api, path: &str) -> Option<()> {
    (api.get(path).await.json()["state"] == "running").then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_whose_clocks_are_twenty_minutes_apart_never_run_anything_twice() {
    let lease = ("KEYTURN_LEASE", "2s");
    let world = world(&[("KEYTURN_CLOCK_OFFSET", "10m"), lease]);
    let (_other, there) = beside(&world, &[("KEYTURN_CLOCK_OFFSET", "-10m"), lease]);
    // Both write to one file.
    for millis in ["600000", "-600000"] {
        let log = world.server.log();
        assert!(log.contains(&format!("millis={millis}")), "a shifted clock ({millis} ms) is told: {log}");
    }
    let mut ids = Vec::new();
    for number in 0..8 {
        let api = [&world.ann, &there][number % 2];
        // Longer than the lease, which is renewed meanwhile by a clock that the other knows nothing of.
        ids.push(api.made(&vm(&format!("apart-{number}"), json!({ "seconds": 4 }))).await);
    }
    for id in &ids {
        assert_eq!(world.ann.ended(id).await["state"], "succeeded");
        let told = there.get(&format!("/requests/{id}/events")).await.is(200).text();
        assert_eq!(told.matches("done apart").count(), 1, "{told}");
    }
    let lines = ledger(&world);
    assert_eq!(lines.len(), ids.len(), "{lines:#?}");
    assert!(ids.iter().all(|id| lines.iter().filter(|line| line.contains(id.as_str())).count() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_by_a_clock_that_is_ahead_is_due_at_once_elsewhere() {
    let world = world(&[("KEYTURN_CLOCK_OFFSET", "10m"), ANSWERS]);
    let (_other, there) = beside(&world, &[("KEYTURN_CLOCK_OFFSET", "0s"), ("KEYTURN_WORKERS", "2")]);
    let begun = Instant::now();
    let id = world.ann.made(&fast("ahead", json!({}))).await;
    assert_eq!(there.ended(&id).await["state"], "succeeded");
    assert!(begun.elapsed() < SOON / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_servers_run_is_taken_over_by_another_within_the_lease() {
    let mut world = world(&[("KEYTURN_LEASE", "3s")]);
    let id = world.ann.made(&vm("orphan", json!({ "seconds": 2 }))).await;
    let path = format!("/requests/{id}");
    eventually("it runs", async || running(&world.ann, &path).await).await;
    let (_other, there) = beside(&world, &[]);
    world.kill();
    let begun = Instant::now();
    assert_eq!(there.ended(&id).await["state"], "succeeded");
    // The lease, the program once more, and a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert_eq!(ledger(&world).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_postgresql_is_away_nothing_is_taken_in_and_once_it_is_back_nothing_is_lost() {
    let cluster = Cluster::start(&["--durable"]);
    let world = World::at(Home::on_postgres(&cluster, &[]));
    let (other, there) = beside(&world, &[]);
    let mut kept: Vec<(String, Value, Answer)> = Vec::new();
    let mut refused: Vec<(String, Value)> = Vec::new();
    let mut doubtful: Vec<(String, Value)> = Vec::new();
    for round in 0..3 {
        // Senders are at it while the database goes away under them.
        let sends = (0..60).map(|number| {
            let api = [&world.ann, &there][number % 2].clone();
            let (key, body) = (fresh("away"), fast(&format!("away-{round}-{number}"), json!({})));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(10) * u32::try_from(number).unwrap()).await;
                let answer = api.post(ALPHA, &key, &body).await;
                (key, body, answer)
            })
        });
        let sends: Vec<_> = sends.collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(cluster.ask("stop"), "stopped");
        for send in sends {
            let (key, body, answer) = send.await.unwrap();
            match answer.status {
                202 => kept.push((key, body, answer)),
                // It was cut while PostgreSQL kept it: nobody knows whether it did.
                409 => {
                    let answer = answer.refused(409, "idempotency-key-in-use");
                    assert!(answer.header("retry-after").is_some());
                    doubtful.push((key, body));
                }
                _ => {
                    let answer = answer.refused(503, "store-unavailable");
                    assert!(answer.header("retry-after").is_some());
                    refused.push((key, body));
                }
            }
        }
        for (server, api) in [(&world.server, &world.ann), (&other, &there)] {
            let begun = Instant::now();
            let answer = api.post(ALPHA, &fresh("gone"), &fast("gone", json!({}))).await;
            let answer = answer.refused(503, "store-unavailable");
            assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            for (path, status) in [("/readyz", 503), ("/healthz", 200)] {
                let asked = reqwest::get(format!("{}{path}", server.base)).await.unwrap();
                assert_eq!(asked.status(), status, "{path}");
            }
        }
        assert_eq!(cluster.ask("start"), "started");
        for api in [&world.ann, &there] {
            let body = fast(&fresh("back"), json!({}));
            let key = fresh("back");
            let back =
                async || Some(api.post(ALPHA, &key, &body).await).filter(|answer| answer.status == 202);
            let answer = eventually("it is back", back).await;
            assert_eq!(api.ended(&answer.id()).await["state"], "succeeded");
        }
    }
    assert!(kept.len() > 3 && refused.len() > 3, "{} kept, {} not", kept.len(), refused.len());
    for (key, body, first) in &kept {
        there.post(ALPHA, key, body).await.repeats(first);
        assert_eq!(there.ended(&first.id()).await["state"], "succeeded");
    }
    // Who was told to come again does, and gets one thing of each. What was refused was not there before.
    for (key, body) in refused.iter().chain(&doubtful) {
        let answer = world.ann.post(ALPHA, key, body).await.is(202);
        let is_refused = refused.iter().any(|(of, _)| of == key);
        assert!(!(is_refused && answer.header("idempotency-replayed").is_some()), "503 was no refusal");
        assert_eq!(world.ann.ended(&answer.id()).await["state"], "succeeded");
    }
    let all = i64::try_from(kept.len() + refused.len() + doubtful.len() + 6).unwrap();
    assert_eq!((world.count().await, world.resources("alpha").await), (all, all));
}

#[test]
fn with_postgresql_the_key_is_supplied_and_a_password_is_never_said() {
    let address = Cluster::shared().database().replace("keyturn@", "keyturn:hush@");
    let home = Home::on_postgres(Cluster::shared(), &[("KEYTURN_DATABASE_URL", &address)]);
    let migrated = home.run(&["migrate"], "");
    assert!(migrated.status.success());
    let unsupplied = home.beside(&[("KEYTURN_SECRET_KEY_FILE", "data/none.key")]).run(&["migrate"], "");
    let wrong = home.beside(&[("KEYTURN_DATABASE_URL", "postgres://kt:hush@127.0.0.1:1/none")]);
    let wrong = wrong.run(&["serve"], "");
    let told = |output: &std::process::Output| {
        String::from_utf8([output.stdout.as_slice(), &output.stderr].concat()).unwrap()
    };
    assert!(!unsupplied.status.success() && told(&unsupplied).contains("KEYTURN_SECRET_KEY_FILE"));
    assert!(!home.path().join("data/none.key").exists());
    assert!(!wrong.status.success() && told(&wrong).contains("KEYTURN_DATABASE_URL"), "{}", told(&wrong));
    for output in [&migrated, &unsupplied, &wrong] {
        assert!(!told(output).contains("hush"), "{}", told(output));
    }
}

#[test]
fn servers_that_start_at_once_make_the_tables_once() {
    let home = Home::on_postgres(Cluster::shared(), &[]);
    let starts: Vec<_> = (0..6)
        .map(|_| home.command(&["migrate"]).stderr(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    for start in starts {
        let output = start.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    home.team("alpha");
}
