//! Every end is told once, whichever way it comes: by a worker, by a person, of the whole and of its steps.

use super::*;
use crate::{
    provisioner::fake::{Behaviour, Fake},
    testing::composite::pairs,
};
use domain::{
    id::RequestId,
    role::PortalRole,
    state::RequestState::{Canceled, Running, Unknown},
};

/// Everything that can be told of requests.
const EVERY: [&str; 6] = [
    "request.pending_approval",
    "request.succeeded",
    "request.failed",
    "request.unknown",
    "request.canceled",
    "request.rejected",
];

impl Told {
    /// What was told of a request, by name: while the clock stands still nothing is older than anything else.
    async fn of(&self, to: &NotificationView, request: RequestId) -> Vec<&'static str> {
        let all = self.deliveries(to).await;
        let about = all.iter().filter(|one| one.request_id == Some(request));
        let mut told: Vec<&str> = about.map(|one| one.event.as_str()).collect();
        told.sort_unstable();
        told
    }

    /// What was told of a request and of each of its steps.
    async fn of_family(&self, to: &NotificationView, parent: RequestId) -> Vec<Vec<&'static str>> {
        let mut all = vec![self.of(to, parent).await];
        for step in self.house.store.steps_of(parent).await.unwrap() {
            all.push(self.of(to, step.request.view.id).await);
        }
        all
    }
}

#[tokio::test]
async fn what_a_person_decides_is_told_like_all_else() {
    let fake = Fake::default();
    for (name, behaviour) in [
        ("adopted", Behaviour::Unobservable),
        ("closed", Behaviour::CannotTell),
        ("stopped", Behaviour::Hang),
        ("failing", Behaviour::Fail("no".into())),
    ] {
        fake.behave(name, behaviour);
    }
    let plan = Plan::of(fake.clone()).offering(|offering| offering.max_tries = 1);
    let told = Told::on(plan).await;
    let house = &told.house;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &EVERY).await;

    let adopted = house.create("adopted").await;
    house.reaches(adopted, Unknown).await;
    house.resolve(adopted, "adopt").await;
    house.reaches(adopted, Succeeded).await;
    assert_eq!(told.of(&one, adopted).await, ["request.succeeded", "request.unknown"]);

    let closed = house.create("closed").await;
    house.reaches(closed, Unknown).await;
    let admin = Caller { role: PortalRole::Admin, ..house.ann.clone() };
    let body = r#"{"resolution":"abandon","force":true,"reason":"retired"}"#;
    let close = house.portal.resolve(&admin, &closed.to_string(), key("close"), body.into()).await;
    close.unwrap();
    assert_eq!(told.of(&one, closed).await, ["request.failed", "request.unknown"]);

    let stopped = house.create("stopped").await;
    house.reaches(stopped, Running).await;
    house.cancel(stopped).await.unwrap();
    house.reaches(stopped, Canceled).await;
    assert_eq!(told.of(&one, stopped).await, ["request.canceled"]);

    let failing = house.create("failing").await;
    house.reaches(failing, Failed).await;
    fake.behave("failing", Behaviour::Succeed);
    house.retry(failing).await.unwrap();
    house.reaches(failing, Succeeded).await;
    assert_eq!(told.of(&one, failing).await, ["request.failed", "request.succeeded"]);

    // A change that loses against a delete, and the delete.
    fake.behave("failing", Behaviour::Hang);
    let change = house.updated("failing", &json!({ "note": "n" })).await;
    house.reaches(change, Running).await;
    let delete = house.deleted("failing").await;
    house.reaches(delete, Succeeded).await;
    assert_eq!(told.of(&one, change).await, ["request.canceled"]);
    assert_eq!(told.of(&one, delete).await, ["request.succeeded"]);
    let all = told.deliveries(&one).await;
    eventually(async || (receiver.received().len() == all.len()).then_some(())).await;
    let mut ids: Vec<String> =
        receiver.received().iter().map(crate::testing::receiver::Received::id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "each event has an ID of its own");
}

#[tokio::test]
async fn the_whole_and_each_of_its_steps_are_told_once() {
    let fake = Fake::default();
    fake.behave("bad", Behaviour::Fail("no".into()));
    let plan = pairs(&fake);
    // Time goes on here, since steps are waited for.
    let told = Told::by(plan, standing()).await;
    let house = &told.house;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &EVERY).await;
    let good = house.pair("good").await;
    house.reaches(good, Succeeded).await;
    assert_eq!(told.of_family(&one, good).await, vec![vec!["request.succeeded"]; 4]);
    let bad = house.pair("bad").await;
    house.reaches(bad, Failed).await;
    let family = house.family(bad).await;
    let told_of = told.of_family(&one, bad).await;
    assert_eq!(told_of[0], ["request.failed"]);
    for (step, told_of) in family.iter().zip(&told_of[1..]) {
        let state = step.rsplit(' ').next().unwrap();
        assert_eq!(told_of, &[format!("request.{state}")], "{step}");
    }
    assert!(family.contains(&"machine create failed".to_owned()), "{family:?}");
}
