//! Who is asking: tokens, guesses, and what is never written into a log.

use super::support::{ALPHA, Answer, PASSWORD, World, browser::Browser, fast, fresh};
use serde_json::json;

#[tokio::test]
async fn a_token_is_its_characters_and_nothing_near_them() {
    let world = World::start();
    let token = world.ann.token.clone().unwrap();
    assert!(token.starts_with("kt_"));
    let flipped: String = token
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    let wrong =
        [&flipped, &token[..token.len() - 1], &format!("{token}x"), "", "kt_", "\"", &"x".repeat(8000)];
    for wrong in wrong {
        let call = world.nobody().call("GET", "/me").header("Authorization", format!("Bearer {wrong}"));
        let answer = Answer::of(call).await;
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
        answer.refused(401, "unauthenticated");
    }
    let twice = world.ann.call("GET", "/me").header("Authorization", format!("Bearer {token}"));
    Answer::of(twice).await.refused(401, "unauthenticated");
    let lower = world.nobody().call("GET", "/me").header("Authorization", format!("bearer {token}"));
    assert_eq!(Answer::of(lower).await.is(200).json()["name"], "ann");
}

#[tokio::test]
async fn a_cookie_that_nobody_made_is_nobody() {
    let world = World::start();
    for cookie in [
        "keyturn_session=x",
        "keyturn_session=",
        "keyturn_session=AAAAAAAAAAAAAAAAAAAAAA",
        "=;;=",
        "\u{e9}=1",
    ] {
        let call = world.nobody().call("GET", "/me").header("Cookie", cookie.as_bytes());
        Answer::of(call).await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn guessing_is_braked_by_the_real_address_and_lets_the_good_token_in() {
    let world = World::start();
    let guess = async |number: usize| {
        let scheme = if number.is_multiple_of(2) { "Bearer" } else { "Basic" };
        let call =
            world.nobody().call("POST", ALPHA).header("Authorization", format!("{scheme} kt_{number}"));
        let call =
            call.header("X-Forwarded-For", format!("10.0.0.{number}")).header("Idempotency-Key", "guess");
        Answer::of(call.json(&fast("vm-one", json!({})))).await
    };
    let mut braked = 0;
    for number in 0..200 {
        let answer = guess(number).await;
        if answer.status == 401 {
            assert_eq!(braked, 0);
            continue;
        }
        assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
        answer.refused(429, "too-many-attempts");
        braked += 1;
    }
    assert!(braked >= 50, "{braked}");
    // The key that came with the guesses is still free, and the good token works from the same address.
    let first = world.ann.post(ALPHA, "guess", &fast("vm-one", json!({}))).await.is(202);
    assert_eq!(first.header("idempotency-replayed"), None);
}

#[tokio::test]
async fn guessing_passwords_is_braked_too() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    let mut statuses = Vec::new();
    for _ in 0..25 {
        statuses.push(browser.post("/login", &[("name", "ann"), ("password", "wrong")]).await.status);
    }
    assert_eq!(statuses[0], 401);
    assert_eq!(statuses[24], 429);
}

#[tokio::test]
async fn who_guesses_keeps_nobody_out_who_comes_from_elsewhere() {
    let world = World::start();
    let from = |address: [u8; 4]| {
        let client = reqwest::Client::builder().local_address(std::net::IpAddr::from(address));
        client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
    };
    let (guesser, other) = (from([127, 0, 0, 1]), from([127, 0, 0, 2]));
    let log_in = async |client: &reqwest::Client, password: &str, claimed: &str| {
        let call = client.post(format!("{}/login", world.server.base));
        let call = call.header("Origin", &world.server.base).header("X-Forwarded-For", claimed);
        Answer::of(call.form(&[("name", "ann"), ("password", password)])).await
    };
    let mut statuses = Vec::new();
    for number in 0..30 {
        // Whoever it says it is.
        statuses.push(log_in(&guesser, "wrong", &format!("127.0.0.{}", number + 2)).await);
    }
    let last = statuses.pop().unwrap();
    assert!(last.status == 429 && last.header("retry-after").is_some(), "{}", last.text());
    // Also with the right password by now, and the owner gets in from another address.
    assert_eq!(log_in(&guesser, PASSWORD, "127.0.0.2").await.status, 429);
    assert_eq!(log_in(&other, PASSWORD, "127.0.0.1").await.status, 303);
    // The same of tokens: of 200 wrong ones the last are not even looked at, and elsewhere each is.
    let wrong = async |client: &reqwest::Client, number: usize| {
        let call = client.get(format!("{}/api/v1/me", world.server.base));
        Answer::of(call.bearer_auth(format!("kt_{number}")).header("X-Forwarded-For", "127.0.0.2"))
            .await
            .status
    };
    let mut last = 0;
    for number in 0..200 {
        last = wrong(&guesser, number).await;
    }
    assert_eq!((last, wrong(&other, 0).await), (429, 401));
    world.ann.get("/me").await.is(200);
}

#[tokio::test]
async fn a_token_in_the_address_is_refused_and_not_written_down() {
    let world = World::with(&[("KEYTURN_LOG", "trace")]);
    let token = world.ann.token.clone().unwrap();
    for query in [format!("token={token}"), format!("access_token={token}"), format!("whatever={token}")] {
        let call = world.nobody().call("GET", &format!("/requests?{query}"));
        Answer::of(call).await.refused(400, "token-in-query");
        // Not even beside a good one.
        world.ann.get(&format!("/requests?{query}")).await.refused(400, "token-in-query");
    }
    assert!(!world.server.log().contains(&token));
}

#[tokio::test]
async fn no_secret_reaches_the_log() {
    let world = World::with(&[("KEYTURN_LOG", "trace")]);
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    browser.get("/").await.is(200);
    let id = world.ann.made(&super::support::vm("vm-one", json!({ "note": "note-of-ann" }))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let reveal = "/teams/alpha/resources/vm/vm-one/secrets/password/reveal";
    let secret =
        world.ann.act(reveal, &fresh("k")).await.is(200).json()["value"].as_str().unwrap().to_owned();
    let log = world.server.log();
    let cookie = browser.cookie.unwrap();
    for secret in [PASSWORD, &world.ann.token.clone().unwrap(), &secret, cookie.split_once('=').unwrap().1] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn what_another_site_makes_a_browser_send_is_not_carried_out() {
    let world = World::start();
    let call = |site: &str| {
        let call =
            world.ann.call("POST", ALPHA).header("Idempotency-Key", "k").header("Sec-Fetch-Site", site);
        Answer::of(call.json(&fast("vm-one", json!({}))))
    };
    call("cross-site").await.refused(403, "cross-site");
    call("same-site").await.refused(403, "cross-site");
    assert_eq!(world.count().await, 0);
    call("same-origin").await.is(202);
    let mut browser = Browser::new(&world.server);
    let form = [("name", "ann"), ("password", PASSWORD)];
    browser.post_from("https://evil.example", "/login", &form).await.is(403);
    browser.post_from("null", "/login", &form).await.is(403);
    assert_eq!(browser.cookie, None);
}
