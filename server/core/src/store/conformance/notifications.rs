//! Notifications: written with what they tell of, taken by one at a time, gone when they are over.

use super::*;
use crate::store::notifications::{AfterTry, MOST_NOTIFICATIONS, NotificationEffect, TakenDelivery};
use domain::{
    id::NotificationId,
    notification::{
        NotificationAttemptView, NotificationDeliveryState as State, NotificationEvent, NotificationView,
    },
};

impl Bench {
    async fn told(&self, team: &str, events: &[NotificationEvent], key: &str) -> Submitted {
        let now = self.now();
        let view = NotificationView {
            id: NotificationId(self.id()),
            team: team.into(),
            label: "ops \0".into(),
            url: "https://hooks.example.org/in".into(),
            events: events.to_vec(),
            created_by: "ann".into(),
            created_at: now,
            updated_at: now,
            disabled_at: None,
            disabled_reason: None,
            old_secret_until: None,
            secret: None,
            note: None,
        };
        let answer = Answer::showing(AnswerKind::Created, None, &view).unwrap();
        let effect = NotificationEffect::Create {
            view: Box::new(view),
            secrets: b"kt\0\0\0\x01sealed".to_vec(),
            answer,
        };
        self.decided(team, key, effect).await
    }

    async fn decided(&self, team: &str, key: &str, effect: NotificationEffect) -> Submitted {
        let effect = Effect::Notification(Box::new(effect));
        let scope = scope_of(team, 1, key);
        self.store.submit(self.decision(scope, Operation::NotificationCreate, effect)).await.unwrap()
    }

    pub(super) async fn first_told(&self, team: &str, events: &[NotificationEvent]) -> NotificationId {
        let key = format!("told-{}", self.id());
        assert!(matches!(self.told(team, events, &key).await, Submitted::First(..)));
        self.store.notifications(team).await.unwrap()[0].id
    }

    /// A create that comes to `state`.
    async fn ends(&self, vm: &str, state: RequestState) -> RequestId {
        let id = self.created(&format!("create-{vm}"), vm).await;
        let run = self.taken("w", self.now()).await;
        self.ended(run.hold(), state, self.now()).await;
        id
    }

    async fn took(&self, now: Moment) -> Option<TakenDelivery> {
        self.store.take_delivery("w", now, LEASE).await.unwrap()
    }

    async fn tried(&self, taken: &TakenDelivery, after: AfterTry, now: Moment) -> bool {
        let attempt = NotificationAttemptView { at: now, millis: 5, status: Some(500), error: None };
        self.store.delivery_tried(taken.id, taken.fence, attempt, after, now).await.unwrap()
    }

    pub(super) async fn states(&self, of: NotificationId) -> Vec<State> {
        let page = self.store.notification_deliveries(of, None, 100).await.unwrap();
        page.results.iter().map(|one| one.state).collect()
    }
}

pub(super) async fn what_happened_is_told_to_whom_it_concerns_and_no_one_else(bench: Bench) {
    use NotificationEvent::{Failed, Succeeded, Unknown};
    let failures = bench.first_told("blue", &[Failed, Unknown]).await;
    let successes = bench.first_told("blue", &[Succeeded]).await;
    let others = bench.first_told("green", &[Failed, Succeeded, Unknown]).await;
    let whole = bench.first_told("-", &[Failed, Succeeded]).await;
    let id = bench.ends("one", RequestState::Succeeded).await;
    let lost = bench.ends("two", RequestState::Unknown).await;
    // Once more the same request, and once more nobody can tell.
    let resolve =
        Effect::Resolve { request: lost, resolution: Resolution::Retry, forced: None, reason: None };
    bench.store.submit(bench.decision(scope("resolve"), Operation::Resolve, resolve)).await.unwrap();
    let again = bench.taken("w", at(3_000_000)).await;
    bench.ended(again.hold(), RequestState::Unknown, at(3_000_000)).await;
    let about = async |of| {
        let page = bench.store.notification_deliveries(of, None, 100).await.unwrap();
        assert_eq!(page.total, i64::try_from(page.results.len()).unwrap());
        page.results.into_iter().map(|one| (one.event, one.request_id)).collect::<Vec<_>>()
    };
    assert_eq!(about(failures).await, [(Unknown, Some(lost)), (Unknown, Some(lost))]);
    assert_eq!(about(successes).await, [(Succeeded, Some(id))]);
    assert_eq!(about(others).await, []);
    assert_eq!(about(whole).await, [(Succeeded, Some(id))]);
    // A worker that lost its lease tells nothing either.
    assert_eq!(bench.ended(again.hold(), RequestState::Failed, at(3_000_001)).await, Held::Lost);
    assert_eq!(about(failures).await.len(), 2);
    let page = bench.store.notification_deliveries(failures, None, 1).await.unwrap();
    let next = super::super::cursor::read(&page.next.unwrap()).unwrap();
    let rest = bench.store.notification_deliveries(failures, Some(next), 1).await.unwrap();
    assert_ne!(rest.results[0].id, page.results[0].id);
    assert!(rest.next.is_none());
}

pub(super) async fn a_notification_is_sent_by_one_at_a_time_and_again_when_its_lease_ends(bench: Bench) {
    let slow = bench.first_told("blue", &[NotificationEvent::Succeeded]).await;
    bench.ends("one", RequestState::Succeeded).await;
    bench.ends("two", RequestState::Succeeded).await;
    let now = at(2_000_000);
    let one = bench.took(now).await.unwrap();
    assert_eq!((one.notification, one.tries), (slow, 0));
    assert!(bench.took(now).await.is_none(), "to one address one at a time");
    // To another address goes what is due there.
    let quick = bench.first_told("blue", &[NotificationEvent::Succeeded]).await;
    bench.ends("three", RequestState::Succeeded).await;
    let other = bench.took(now).await.unwrap();
    assert_eq!(other.notification, quick);
    assert!(bench.tried(&other, AfterTry::Delivered, now).await);
    assert!(!bench.tried(&other, AfterTry::Delivered, now).await, "once");
    // Whoever took it ended. What waited meanwhile has been due for longer; then the next gets the same again, and what
    // the first writes does not count any more.
    let later = now.plus(LEASE);
    for _ in 0..2 {
        let next = bench.took(later).await.unwrap();
        assert!(next.notification == slow && next.id != one.id);
        assert!(bench.tried(&next, AfterTry::Delivered, later).await);
    }
    let again = bench.took(later).await.unwrap();
    assert_eq!(again.id, one.id);
    assert!(!bench.tried(&one, AfterTry::Delivered, later).await);
    assert!(bench.tried(&again, AfterTry::Again(Duration::from_hours(1)), later).await);
    assert!(bench.took(later).await.is_none());
    let then = later.plus(Duration::from_hours(1));
    let last = bench.took(then).await.unwrap();
    assert_eq!((last.id, last.tries), (one.id, 1));
}

pub(super) async fn who_cannot_be_told_is_switched_off(bench: Bench) {
    let id = bench.first_told("blue", &[NotificationEvent::Succeeded]).await;
    let now = at(2_000_000);
    for vm in ["one", "two", "three"] {
        bench.ends(vm, RequestState::Succeeded).await;
    }
    for _ in 0..2 {
        let taken = bench.took(now).await.unwrap();
        bench.tried(&taken, AfterTry::GiveUp, now).await;
    }
    let disabled = async || bench.store.notification("blue", id).await.unwrap().unwrap().0.disabled_at;
    assert_eq!(disabled().await, None);
    let taken = bench.took(now).await.unwrap();
    bench.tried(&taken, AfterTry::GiveUp, now).await;
    assert_eq!(disabled().await, Some(now));
    assert_eq!(bench.states(id).await, [State::GivenUp; 3]);
    bench.ends("four", RequestState::Succeeded).await;
    assert_eq!(bench.states(id).await.len(), 3);
    let off = bench.decided("blue", "again", NotificationEffect::Resend { id, delivery: taken.id }).await;
    assert!(matches!(off, Submitted::TooLate(_)), "{off:?}");
}

pub(super) async fn one_that_arrives_makes_up_for_those_that_did_not(bench: Bench) {
    let id = bench.first_told("blue", &[NotificationEvent::Succeeded]).await;
    let now = at(2_000_000);
    let give_up = || AfterTry::GiveUp;
    let all = [give_up(), give_up(), AfterTry::Delivered, give_up(), give_up(), AfterTry::Again(LEASE)];
    for (number, after) in all.into_iter().enumerate() {
        bench.ends(&format!("vm-{number}"), RequestState::Succeeded).await;
        let taken = bench.took(now).await.unwrap();
        bench.tried(&taken, after, now).await;
        assert_eq!(bench.store.notification("blue", id).await.unwrap().unwrap().0.disabled_at, None);
    }
    // One that waits is not met, so that the next that is given up is the third in a row.
    bench.ends("last", RequestState::Succeeded).await;
    let taken = bench.took(now).await.unwrap();
    bench.tried(&taken, give_up(), now).await;
    assert!(bench.store.notification("blue", id).await.unwrap().unwrap().0.disabled_at.is_some());
    assert!(bench.took(now.plus(LEASE)).await.is_none(), "what still waits is not sent while it is off");
}

pub(super) async fn notifications_end_with_what_they_kept(bench: Bench) {
    let id = bench.first_told("blue", &[NotificationEvent::Succeeded]).await;
    for vm in ["one", "two", "three"] {
        bench.ends(vm, RequestState::Succeeded).await;
    }
    assert_eq!(bench.store.sweep_deliveries(at(0), 2).await.unwrap(), 0);
    assert_eq!(bench.store.sweep_deliveries(at(9_000_000), 2).await.unwrap(), 2);
    assert_eq!(bench.states(id).await.len(), 1);
    let removed = bench.decided("green", "r", NotificationEffect::Remove(id)).await;
    assert!(matches!(removed, Submitted::Missing), "another team's: {removed:?}");
    assert!(matches!(bench.decided("blue", "r", NotificationEffect::Remove(id)).await, Submitted::First(..)));
    assert!(matches!(bench.decided("blue", "r", NotificationEffect::Remove(id)).await, Submitted::Repeat(_)));
    assert!(matches!(bench.decided("blue", "r-2", NotificationEffect::Remove(id)).await, Submitted::Gone(_)));
    let elsewhere = bench.decided("green", "r-2", NotificationEffect::Remove(id)).await;
    assert!(matches!(elsewhere, Submitted::Missing), "another team's: {elsewhere:?}");
    assert!(bench.took(at(9_000_000)).await.is_none());
    assert_eq!(bench.store.sweep_deliveries(at(0), 2).await.unwrap(), 1);
    assert_eq!(bench.store.sweep_deliveries(at(0), 2).await.unwrap(), 0);
    let head = b"kt\0\0\0\x02";
    assert!(bench.store.notifications_sealed_otherwise(head, 5).await.unwrap().is_empty(), "the row is gone");
    let later = bench.decided("blue", "r-3", NotificationEffect::Remove(id)).await;
    assert!(matches!(later, Submitted::Gone(_)), "known all the same: {later:?}");
    for number in 0..MOST_NOTIFICATIONS {
        let told = bench.told("blue", &[NotificationEvent::Failed], &format!("more-{number}")).await;
        assert!(matches!(told, Submitted::First(..)));
    }
    let one_more = bench.told("blue", &[NotificationEvent::Failed], "one-more").await;
    assert!(matches!(one_more, Submitted::TooLate(_)), "{one_more:?}");
}

pub(super) async fn shared_secrets_are_sealed_anew(bench: Bench) {
    let id = bench.first_told("blue", &[NotificationEvent::Failed]).await;
    assert_eq!(bench.store.key_use().await.unwrap()[&1].secrets, 1);
    let found = bench.store.notifications_sealed_otherwise(b"kt\0\0\0\x02", 10).await.unwrap();
    let (old, new) = (b"kt\0\0\0\x01sealed".to_vec(), b"kt\0\0\0\x02sealed".to_vec());
    assert_eq!(found, [(id, old.clone())]);
    assert!(bench.store.notifications_sealed_otherwise(b"kt\0\0\0\x01", 10).await.unwrap().is_empty());
    assert!(!bench.store.reseal_notification(id, new.clone(), old.clone()).await.unwrap());
    assert!(bench.store.reseal_notification(id, old.clone(), new.clone()).await.unwrap());
    assert_eq!(bench.store.key_use().await.unwrap()[&2].secrets, 1);
    // A rotation that was worked out from other secrets than there are is refused.
    let rotate = NotificationEffect::Rotate { id, before: old, after: new, old_until: at(5_000_000) };
    let rotated = bench.decided("blue", "rotate", rotate).await;
    assert!(matches!(rotated, Submitted::TooLate(_)), "{rotated:?}");
}
