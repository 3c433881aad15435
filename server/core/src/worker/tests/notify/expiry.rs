//! Resources that end: when that is known, who is told, and that nothing is removed.

use super::*;
use crate::catalog::{Ends, ExpiryRule};
use domain::view::Object;

const DAY: Duration = Duration::from_hours(24);

/// A house whose machines end as this says, a fortnight after somebody is told.
async fn ending(script: Scripted, ends: Ends) -> Told {
    let rule = ExpiryRule { ends, warn: DAY * 14 };
    Told::on(Plan::of(script).offering(|offering| offering.expiry = Some(rule))).await
}

fn not_after(text: &str) -> Outcome {
    Outcome::Done(Object::from_iter([("not_after".to_owned(), json!(text))]))
}

#[tokio::test]
async fn a_lifetime_is_extended_once_for_each_key_and_told_of_signed() {
    let told = ending(Scripted::default(), Ends::Days("count".into())).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &["resource.expiring"]).await;
    let house = &told.house;
    let body = json!({ "offering": "vm", "name": "one", "parameters": { "count": 30, "note": "hush" } });
    let made = house.send("k", &body).await.unwrap().request_id.unwrap();
    house.reaches(made, Succeeded).await;
    let born = house.portal.now();
    let end = async || house.resource("one").await.view.expires_at.unwrap().since(born);
    assert_eq!(end().await, DAY * 30);
    told.clock.advance(DAY * 2);
    for _ in 0..2 {
        let week = house.act("week", "one", "grow", &json!({ "by": 7 })).await.unwrap();
        house.reaches(week.request_id.unwrap(), Succeeded).await;
        assert_eq!(end().await, DAY * 37, "seven days once, from when it was made");
    }
    told.clock.advance(DAY * 21);
    let delivery = told.tried(&one, 1).await;
    assert_eq!((delivery.state, delivery.request_id), (State::Delivered, None));
    let got = &receiver.received()[0];
    assert!(got.is_genuine(one.secret.as_deref().unwrap(), house.portal.now()));
    assert_eq!(got.id(), delivery.id.to_string());
    let said = got.json();
    assert_eq!(said["type"], "resource.expiring");
    assert_eq!(said["data"]["resource"]["expires_at"], born.plus(DAY * 37).to_string());
    assert_eq!(said["data"]["resource"]["request_id"], made.to_string());
    let place = "/teams/alpha/resources/vm/one";
    assert_eq!(said["data"]["links"]["page"], format!("http://portal.test{place}"));
    assert_eq!(said["data"]["links"]["api"], format!("http://portal.test/api/v1{place}"));
    assert!(!String::from_utf8_lossy(&got.body).contains("hush"));
    // The end comes, and everything is as it was.
    told.clock.advance(DAY * 300);
    let week = house.act("another-week", "one", "grow", &json!({ "by": 7 })).await.unwrap();
    house.reaches(week.request_id.unwrap(), Succeeded).await;
    assert_eq!((house.resource_state("one").await, end().await), ("active".into(), DAY * 44));
    eventually(async || (receiver.received().len() == 2).then_some(())).await;
    assert_ne!(receiver.received()[1].id(), got.id());
}

#[tokio::test]
async fn an_end_that_nobody_can_read_fails_nothing_and_is_said() {
    let script = Scripted::default().applying([
        not_after("soon"),
        not_after("2040-01-31T00:00:00Z"),
        Outcome::Done(Object::new()),
    ]);
    let told = ending(script, Ends::Output("not_after".into())).await;
    let house = &told.house;
    let id = house.standing("one").await;
    assert_eq!(house.resource("one").await.view.expires_at, None);
    let history = house.history(id).await;
    let why =
        "expiry: it is not known when it ends: the output not_after is not a time as RFC 3339 writes it";
    assert!(history.iter().any(|entry| entry == why), "{history:?}");
    let end = "2040-01-31T00:00:00.000Z";
    for note in ["a", "b"] {
        // What a change does not answer anew stays as it was.
        let id = house.updated("one", &json!({ "note": note })).await;
        house.ended_as(id, Succeeded).await;
        let shown = house.portal.resource(&house.ann, "alpha", "vm", "one").await.unwrap();
        assert_eq!(serde_json::to_value(&shown).unwrap()["expires_at"], end, "{note}");
        assert_eq!(house.steps(id, "expiry").await, 0);
    }
}
