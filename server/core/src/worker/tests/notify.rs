//! Notifications: what happens is told, signed, on the published schedule, under one ID until it arrives.

mod delivery;
mod endings;
mod expiry;

use crate::{
    Answered, Caller, Error,
    clock::StandingClock,
    provisioner::Outcome,
    testing::{House, Plan, Scripted, eventually, key, receiver::Receiver, standing},
};
use domain::{
    backoff::NOTIFICATION_RETRY_WINDOW,
    notification::{NotificationDeliveryState as State, NotificationDeliveryView, NotificationView},
    problem::ProblemKind,
    role::TeamRole,
    state::RequestState::{Failed, Succeeded},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// A house whose time stands, with an owner who is told.
struct Told {
    house: House,
    clock: Arc<StandingClock>,
    owner: Caller,
}

fn shown<T: serde::de::DeserializeOwned>(answered: &Answered) -> T {
    serde_json::from_slice(&answered.answer.body).unwrap()
}

impl Told {
    async fn with(script: Scripted) -> Self {
        Self::on(Plan::of(script)).await
    }

    async fn on(plan: Plan) -> Self {
        let clock = standing();
        Self::by(Plan { clock: clock.clone(), ..plan }, clock).await
    }

    /// By this plan's own clock.
    async fn by(plan: Plan, clock: Arc<StandingClock>) -> Self {
        let mut house = House::build(plan).await;
        let owner = house.person("olga", "alpha", TeamRole::Owner).await;
        house.work();
        Self { house, clock, owner }
    }

    async fn make(&self, with: &str, url: &str, events: &[&str]) -> Result<NotificationView, Error> {
        let body = json!({ "label": "ops", "url": url, "events": events }).to_string();
        let made =
            self.house.portal.create_notification(&self.owner, "alpha", key(with), body.into()).await?;
        Ok(shown(&made))
    }

    async fn told(&self, receiver: &Receiver, events: &[&str]) -> NotificationView {
        self.make(&format!("make-{}", receiver.url), &receiver.url, events).await.unwrap()
    }

    async fn deliveries(&self, of: &NotificationView) -> Vec<NotificationDeliveryView> {
        let id = of.id.to_string();
        let page = self.house.portal.notification_deliveries(&self.owner, "alpha", &id, 50, None).await;
        page.unwrap().results
    }

    /// The newest delivery once it was tried so often.
    async fn tried(&self, of: &NotificationView, tries: u32) -> NotificationDeliveryView {
        eventually(async || self.deliveries(of).await.into_iter().next().filter(|one| one.tries >= tries))
            .await
    }

    async fn now(&self, of: &NotificationView) -> NotificationView {
        self.house.portal.notification(&self.owner, "alpha", &of.id.to_string()).await.unwrap()
    }

    async fn change(&self, of: &NotificationView, with: &str, body: &Value) -> Result<Answered, Error> {
        let (portal, id) = (&self.house.portal, of.id.to_string());
        portal.change_notification(&self.owner, "alpha", &id, key(with), body.to_string().into()).await
    }

    async fn resend(
        &self,
        of: &NotificationView,
        delivery: &NotificationDeliveryView,
        with: &str,
    ) -> Result<Answered, Error> {
        let ids = (of.id.to_string(), delivery.id.to_string());
        let portal = &self.house.portal;
        portal.resend_notification(&self.owner, "alpha", (&ids.0, &ids.1), key(with), "".into()).await
    }
}

const ALL: [&str; 4] = ["request.succeeded", "request.failed", "request.unknown", "request.canceled"];

#[tokio::test]
async fn what_happened_is_told_once_signed_and_without_values() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &ALL).await;
    let body = json!({ "offering": "vm", "name": "one", "parameters": { "note": "hush" } });
    let id = told.house.send("k", &body).await.unwrap().request_id.unwrap();
    told.house.reaches(id, Succeeded).await;
    let delivery = told.tried(&one, 1).await;
    assert_eq!((delivery.state, delivery.request_id, delivery.next_at), (State::Delivered, Some(id), None));
    assert_eq!((delivery.attempts.len(), delivery.attempts[0].status), (1, Some(204)));
    let arrived = receiver.received();
    assert_eq!(arrived.len(), 1, "only what was asked for");
    let got = &arrived[0];
    assert_eq!(got.id(), delivery.id.to_string());
    let now = told.house.portal.now();
    assert!(got.is_genuine(one.secret.as_deref().unwrap(), now));
    assert!(!got.is_genuine("whsec_b3RoZXI=", now));
    let json = got.json();
    assert_eq!(json["type"], "request.succeeded");
    assert_eq!(json["data"]["request"]["state"], "succeeded");
    assert_eq!(json["data"]["request"]["id"], id.to_string());
    assert_eq!(json["data"]["links"]["page"], format!("http://portal.test/requests/{id}"));
    assert!(!String::from_utf8_lossy(&got.body).contains("hush"));
    // Whoever did not ask for it is not told, nor is another team.
    assert_eq!(told.deliveries(&one).await.len(), 1);
}

#[tokio::test]
async fn what_does_not_arrive_is_sent_again_as_published_and_at_last_given_up() {
    let told = Told::with(Scripted::default().applying([Outcome::Failed("no".into())])).await;
    let receiver = Receiver::answering(&["500 Oh"; 100]).await;
    let one = told.told(&receiver, &["request.failed"]).await;
    let policy = told.house.portal.guard_policy();
    let schedule = policy.retry_schedules.iter().find(|one| one.sender == "notification").unwrap();
    assert_eq!(Duration::from_secs(schedule.window_seconds), NOTIFICATION_RETRY_WINDOW);
    assert!(policy.retention_seconds * 10 >= schedule.window_seconds * 11);
    let id = told.house.create("one").await;
    told.house.reaches(id, Failed).await;
    let mut tries = 1;
    let mut delivery = told.tried(&one, tries).await;
    while delivery.state == State::Waiting {
        // Full jitter; in tests every wait takes its full length.
        let ceiling = (schedule.base_millis << (tries - 1)).min(schedule.cap_millis);
        let wait = delivery.next_at.unwrap().since(told.house.portal.now());
        assert_eq!(wait, Duration::from_millis(ceiling), "before try {}", tries + 1);
        told.clock.advance(wait);
        tries += 1;
        delivery = told.tried(&one, tries).await;
        assert!(tries < 50);
    }
    assert_eq!(delivery.state, State::GivenUp);
    let arrived = receiver.received();
    assert_eq!(arrived.len(), usize::try_from(tries).unwrap());
    assert!(arrived.iter().all(|one| one.id() == arrived[0].id() && one.body == arrived[0].body));
    let log = delivery.attempts.last().unwrap();
    assert_eq!(
        (log.status, log.error.as_deref()),
        (Some(500), Some("the address answered 500 Internal Server Error"))
    );
    assert!(told.now(&one).await.disabled_at.is_none(), "one that was given up is no reason yet");
    // A person sends it again: the same, once for each key.
    told.resend(&one, &delivery, "again").await.unwrap();
    told.tried(&one, tries + 1).await;
    assert!(told.resend(&one, &delivery, "again").await.unwrap().replayed);
    assert_eq!(receiver.received().last().unwrap().id(), delivery.id.to_string());
}

#[tokio::test]
async fn a_server_that_ends_between_sending_and_writing_sends_it_again_under_the_same_id() {
    let mut told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&["hang"]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    told.house.create("one").await;
    eventually(async || receiver.received().first().cloned()).await;
    told.house.shut_down().await;
    assert_eq!(told.deliveries(&one).await[0].tries, 0, "nobody wrote down that it was sent");
    let mut next = told.house.beside(|_| ()).await;
    next.work();
    told.clock.advance(Duration::from_mins(1));
    let delivery = told.tried(&one, 1).await;
    assert_eq!(delivery.state, State::Delivered);
    let ids: Vec<String> = receiver.received().iter().map(crate::testing::receiver::Received::id).collect();
    assert_eq!(ids, [delivery.id.to_string(), delivery.id.to_string()]);
}

#[tokio::test]
async fn an_address_that_is_gone_is_switched_off_until_a_person_switches_it_on() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&["410 Gone"]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    told.house.create("one").await;
    let delivery = told.tried(&one, 1).await;
    let off = told.now(&one).await;
    assert_eq!(off.disabled_reason.as_deref(), Some("the address answered 410 Gone"));
    let refused = told.resend(&one, &delivery, "k-1").await.unwrap_err();
    assert_eq!(refused.kind, ProblemKind::AlreadyDecided);
    let id = told.house.create("two").await;
    told.house.reaches(id, Succeeded).await;
    assert_eq!(told.deliveries(&one).await.len(), 1, "nothing is kept for who is switched off");
    told.change(&one, "on", &json!({ "enabled": true })).await.unwrap();
    told.resend(&one, &delivery, "k-1").await.unwrap();
    assert_eq!(told.tried(&one, 2).await.state, State::Delivered);
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_receiver_says_when_it_wants_to_be_asked_again() {
    // In seconds, or as a time of the clock that the house is built with.
    for asked in ["429 Later\r\nretry-after: 3600", "429 Later\r\nretry-after: Thu, 28 May 2026 21:26:40 GMT"]
    {
        let told = Told::with(Scripted::default()).await;
        let receiver = Receiver::answering(&[asked]).await;
        let one = told.told(&receiver, &["request.succeeded"]).await;
        told.house.create("one").await;
        let delivery = told.tried(&one, 1).await;
        assert_eq!(
            delivery.next_at.unwrap().since(told.house.portal.now()),
            Duration::from_hours(1),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn a_slow_receiver_holds_up_nobody_else() {
    let told = Told::with(Scripted::default()).await;
    let slow = Receiver::answering(&["hang", "hang", "hang"]).await;
    let quick = Receiver::answering(&[]).await;
    let waiting = told.told(&slow, &["request.succeeded"]).await;
    let one = told.told(&quick, &["request.succeeded"]).await;
    for name in ["one", "two", "three"] {
        let id = told.house.create(name).await;
        told.house.reaches(id, Succeeded).await;
    }
    eventually(async || (quick.received().len() == 3).then_some(())).await;
    assert!(told.deliveries(&one).await.len() == 3 && told.deliveries(&waiting).await.len() == 3);
    assert_eq!(slow.received().len(), 1, "one at a time");
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    let id = one.id.to_string();
    let portal = &told.house.portal;
    let rotate = async |with: &str| {
        portal.rotate_notification(&told.owner, "alpha", &id, key(with), "".into()).await.unwrap()
    };
    let rotated = rotate("r").await;
    let fresh = shown::<NotificationView>(&rotated);
    let (old, new) = (one.secret.unwrap(), fresh.secret.unwrap());
    assert_ne!(old, new);
    let repeat = rotate("r").await;
    assert!(repeat.replayed && shown::<NotificationView>(&repeat).secret.is_none());
    let ping = async |with: &str| {
        portal.ping_notification(&told.owner, "alpha", &id, key(with), "".into()).await.unwrap();
    };
    ping("p-1").await;
    let first = eventually(async || receiver.received().first().cloned()).await;
    assert!(first.is_genuine(&old, portal.now()) && first.is_genuine(&new, portal.now()));
    told.clock.advance(Duration::from_hours(24));
    ping("p-2").await;
    let second = eventually(async || receiver.received().get(1).cloned()).await;
    assert!(!second.is_genuine(&old, portal.now()) && second.is_genuine(&new, portal.now()));
    let disk = told.house.disk();
    for secret in [old, new] {
        assert!(!disk.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[tokio::test]
async fn nobody_is_told_at_an_address_that_is_not_allowed() {
    let told = Told::with(Scripted::default()).await;
    for url in [
        "http://127.0.0.2/",
        "http://[::1]/",
        "http://2130706434/",
        "ftp://127.0.0.1/",
        "",
        "http://u:p@127.0.0.1/",
    ] {
        let refused = told.make("k", url, &["request.failed"]).await.unwrap_err();
        assert_eq!(refused.kind, ProblemKind::InvalidParameters, "{url}");
        assert_eq!(refused.fields[0].pointer, "/url");
    }
    for events in [&[][..], &["ping"], &["request.started"]] {
        let refused = told.make("k", "http://127.0.0.1/", events).await.unwrap_err();
        assert_eq!(refused.fields[0].pointer, "/events");
    }
}

#[tokio::test]
async fn owners_manage_what_their_team_is_told_and_administrators_the_whole_portals() {
    let told = Told::with(Scripted::default()).await;
    let portal = &told.house.portal;
    let body = || json!({ "label": "x", "url": "http://127.0.0.1:9/", "events": ALL }).to_string();
    let make = async |who: &Caller, team: &str| {
        portal.create_notification(who, team, key("k"), body().into()).await.map_err(|error| error.kind)
    };
    let ann = &told.house.ann;
    assert_eq!(make(ann, "alpha").await.unwrap_err(), ProblemKind::Forbidden);
    assert_eq!(make(&told.owner, "beta").await.unwrap_err(), ProblemKind::NotFound);
    assert_eq!(make(&told.owner, "-").await.unwrap_err(), ProblemKind::NotFound);
    assert_eq!(portal.notifications(ann, "alpha").await.unwrap_err().kind, ProblemKind::Forbidden);
    let admin = Caller { role: domain::role::PortalRole::Admin, ..ann.clone() };
    let all: NotificationView = shown(&make(&admin, "-").await.unwrap());
    let id = told.house.create("one").await;
    told.house.reaches(id, Succeeded).await;
    let deliveries =
        portal.notification_deliveries(&admin, "-", &all.id.to_string(), 10, None).await.unwrap();
    assert_eq!(deliveries.results[0].request_id, Some(id));
    // Whoever was an owner gets no repeat of what only owners see.
    make(&told.owner, "alpha").await.unwrap();
    assert!(make(&told.owner, "alpha").await.unwrap().replayed);
    let team = told.owner.teams[0].0.clone();
    let former = Caller { teams: vec![(team, domain::role::TeamRole::Member)], ..told.owner.clone() };
    assert_eq!(make(&former, "alpha").await.unwrap_err(), ProblemKind::Forbidden);
    // By another team's address it is not there.
    let elsewhere = portal.notification(&told.owner, "alpha", &all.id.to_string()).await.unwrap_err();
    assert_eq!(elsewhere.kind, ProblemKind::NotFound);
}

#[tokio::test]
async fn secrets_are_sealed_anew_with_the_keys_newest_version() {
    let mut told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    told.house.shut_down().await;
    let both = crate::keys::Keys::of([(1, [7; 32]), (2, [8; 32])]).unwrap();
    let mut next = told.house.beside(|plan| plan.keys = both).await;
    let used = |versions: Vec<(i64, crate::keys::Use)>| {
        versions.iter().map(|(_, one)| one.secrets).collect::<Vec<_>>()
    };
    assert_eq!(used(next.portal.key_versions().await.unwrap()), [1, 0]);
    // No file holds these keys, so none is taken out of one; the seals are made anew before that.
    let _ = next.portal.prune_keys().await;
    assert_eq!(used(next.portal.key_versions().await.unwrap()), [0, 1]);
    next.work();
    let id = one.id.to_string();
    next.portal.ping_notification(&told.owner, "alpha", &id, key("p"), "".into()).await.unwrap();
    let got = eventually(async || receiver.received().first().cloned()).await;
    assert!(got.is_genuine(&one.secret.unwrap(), next.portal.now()));
}

#[tokio::test]
async fn what_was_removed_is_not_told_and_leaves_nothing() {
    let told = Told::with(Scripted::default()).await;
    let receiver = Receiver::answering(&[]).await;
    let one = told.told(&receiver, &["request.succeeded"]).await;
    let id = one.id.to_string();
    told.house.portal.remove_notification(&told.owner, "alpha", &id, key("r")).await.unwrap();
    let made = told.house.create("one").await;
    told.house.reaches(made, Succeeded).await;
    assert!(told.house.portal.notifications(&told.owner, "alpha").await.unwrap().is_empty());
    assert!(told.house.portal.notification(&told.owner, "alpha", &id).await.is_err());
    assert!(receiver.received().is_empty());
}
