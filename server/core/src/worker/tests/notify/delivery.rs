//! What becomes of a delivery, whatever the other side does.

use super::*;
use domain::notification::NotificationAttemptView;

/// An answer that is made up as the test goes.
fn kept(answer: String) -> &'static str {
    Box::leak(answer.into_boxed_str())
}

/// The log of a delivery's only try.
fn only(delivery: &NotificationDeliveryView) -> &NotificationAttemptView {
    assert_eq!(delivery.attempts.len(), 1);
    &delivery.attempts[0]
}

#[tokio::test]
async fn an_answer_of_any_length_is_an_answer() {
    let told = Told::with(Scripted::default()).await;
    let long = format!("200 OK\r\ncontent-length: 90000000\r\n\r\n{}", "x".repeat(300_000));
    let receiver = Receiver::answering(&[kept(long)]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    told.house.create("one").await;
    let delivery = told.tried(&one, 1).await;
    assert_eq!((delivery.state, only(&delivery).status), (State::Delivered, Some(200)));
    assert_eq!(only(&delivery).error, None);
}

#[tokio::test]
async fn a_redirect_is_no_arrival_and_is_not_followed() {
    let told = Told::with(Scripted::default()).await;
    let elsewhere = Receiver::answering(&[]).await;
    for (number, status) in ["301 Moved", "307 Temporary Redirect"].into_iter().enumerate() {
        let answer = format!("{status}\r\nlocation: {}", elsewhere.url);
        let receiver = Receiver::answering(&[kept(answer)]).await;
        let one = told.told(&receiver, &["request.succeeded"]).await;
        told.house.create(&format!("vm-{number}")).await;
        let delivery = told.tried(&one, 1).await;
        assert_eq!((delivery.state, only(&delivery).status), (State::Waiting, status[..3].parse().ok()));
        assert!(only(&delivery).error.as_deref().unwrap().contains("answered 30"));
        // Off, so that the next round's is the only one that is told.
        told.change(&one, &format!("off-{number}"), &json!({ "enabled": false })).await.unwrap();
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn who_answers_too_slowly_is_asked_again_and_who_said_yes_is_not() {
    let told = Told::with(Scripted::default()).await;
    let silent = Receiver::answering(&["hang"]).await;
    let stalls = Receiver::answering(&["stall 200 OK"]).await;
    let (never, slow) =
        (told.told(&silent, &["request.succeeded"]).await, told.told(&stalls, &["request.succeeded"]).await);
    told.house.create("one").await;
    let delivery = told.tried(&slow, 1).await;
    assert_eq!((delivery.state, only(&delivery).status), (State::Delivered, Some(200)));
    let delivery = told.tried(&never, 1).await;
    assert_eq!((delivery.state, only(&delivery).status), (State::Waiting, None));
    assert!(only(&delivery).error.is_some() && only(&delivery).millis >= 14_000);
    assert!(delivery.next_at.unwrap() > told.house.portal.now());
}

#[tokio::test]
async fn the_log_of_a_delivery_is_bounded_and_each_key_sends_it_once_more() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&["500 Oh"; 200]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    told.house.create("one").await;
    let delivery = told.tried(&one, 1).await;
    for tries in 2..=24 {
        told.resend(&one, &delivery, &format!("again-{tries}")).await.unwrap();
        let now = told.tried(&one, tries).await;
        assert_eq!((now.id, now.tries, now.state), (delivery.id, tries, State::Waiting));
        assert!(told.resend(&one, &delivery, &format!("again-{tries}")).await.unwrap().replayed);
    }
    let last = told.tried(&one, 24).await;
    assert_eq!(last.attempts.len(), 20);
    let arrived = receiver.received();
    assert!(arrived.iter().all(|got| got.id() == delivery.id.to_string() && got.body == arrived[0].body));
    // One that was given up is tried over the whole time again.
    told.clock.advance(NOTIFICATION_RETRY_WINDOW);
    let given_up =
        eventually(async || Some(told.tried(&one, 25).await).filter(|one| one.state == State::GivenUp)).await;
    told.resend(&one, &given_up, "once-more").await.unwrap();
    assert_eq!(told.tried(&one, given_up.tries + 1).await.state, State::Waiting);
    // Of another address, or of none, it is not there.
    let other = told.make("other", "http://127.0.0.1:9/", &["request.failed"]).await.unwrap();
    let elsewhere = told.resend(&other, &delivery, "k").await.unwrap_err();
    assert_eq!(elsewhere.kind, ProblemKind::NotFound);
    let member = told.house.person("mia", "alpha", TeamRole::Member).await;
    let ids = (one.id.to_string(), delivery.id.to_string());
    let refused =
        told.house.portal.resend_notification(&member, "alpha", (&ids.0, &ids.1), key("k"), "".into()).await;
    assert_eq!(refused.unwrap_err().kind, ProblemKind::Forbidden);
}

#[tokio::test]
async fn of_three_secrets_the_last_two_sign_until_the_day_is_over() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    let (portal, id) = (&told.house.portal, one.id.to_string());
    let mut secrets = vec![one.secret.clone().unwrap()];
    for with in ["r-1", "r-2"] {
        let rotated =
            portal.rotate_notification(&told.owner, "alpha", &id, key(with), "".into()).await.unwrap();
        secrets.push(shown::<NotificationView>(&rotated).secret.unwrap());
    }
    for (number, span, sign) in [
        (0, Duration::ZERO, [false, true, true]),
        (1, Duration::from_hours(24) - Duration::from_secs(1), [false, true, true]),
        (2, Duration::from_secs(1), [false, false, true]),
    ] {
        told.clock.advance(span);
        portal
            .ping_notification(&told.owner, "alpha", &id, key(&format!("p-{number}")), "".into())
            .await
            .unwrap();
        let got = eventually(async || receiver.received().get(number).cloned()).await;
        let genuine: Vec<bool> = secrets.iter().map(|secret| got.is_genuine(secret, portal.now())).collect();
        assert_eq!(genuine, sign, "ping {number}");
    }
}
