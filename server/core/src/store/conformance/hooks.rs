//! Hooks: definitions with their secrets, and what was delivered to them.

use super::*;
use crate::store::{Delivery, HookEffect, HookSeal, SealedSecret};
use domain::{
    hook::{DeliveryOutcome, HookDefinition, HookView, KEPT_DELIVERIES, Signing},
    id::{DeliveryId, HookId},
};

const DAY: Duration = Duration::from_hours(24);

fn definition(title: &str) -> HookDefinition {
    HookDefinition {
        title: title.into(),
        offering: name("vm"),
        identity: "webhook-id".into(),
        signature: Signing::Standard,
        when: None,
        name: "vm-{{ id }}".into(),
        parameters: Object::new(),
        labels: std::collections::BTreeMap::new(),
        correlation_id: None,
        sample: None,
    }
}

impl Bench {
    fn secret(&self, sealed: &[u8]) -> SealedSecret {
        SealedSecret { id: self.id(), sealed: sealed.to_vec(), ends_at: None }
    }

    async fn on_hooks(&self, key: &str, effect: HookEffect) -> Submitted {
        self.store
            .submit(self.decision(scope(key), Operation::HookCreate, Effect::Hook(effect)))
            .await
            .unwrap()
    }

    async fn hook(&self, title: &str) -> HookView {
        let (id, now) = (HookId(self.id()), self.now());
        let view = HookView {
            id,
            team: name("blue"),
            address: HookView::address_of(id),
            definition: definition(title),
            version: 1,
            created_by: "ann".into(),
            created_at: now,
            updated_at: now,
            old_secret_ends_at: None,
            secret: None,
            note: None,
        };
        let answer = Answer::showing(AnswerKind::Created, None, &view).unwrap();
        let secret = self.secret(b"kt\0\0\0\x01first");
        let effect = HookEffect::Create { view: Box::new(view.clone()), secret, answer };
        let made = self.on_hooks(title, effect).await;
        assert!(matches!(made, Submitted::First(..)), "{made:?}");
        view
    }

    fn delivery(&self, hook: HookId, at: Moment) -> Delivery {
        Delivery {
            id: DeliveryId(self.id()),
            hook,
            at,
            event_id: Some("ev".into()),
            address: Some("127.0.0.1".into()),
            outcome: DeliveryOutcome::Refused,
            problem: Some("hook-mapping-failed"),
            detail: Some("NUL \0 in it".into()),
            request: None,
            size: 3,
            sealed: b"kt\0\0\0\x01event".to_vec(),
        }
    }
}

fn rotation(id: HookId, secret: SealedSecret, old_ends_at: Moment) -> HookEffect {
    HookEffect::Rotate { id, secret, old_ends_at, note: "shown once" }
}

pub(super) async fn a_hook_is_changed_from_the_version_that_was_seen(bench: Bench) {
    bench.store.add_team(&name("blue"), None, at(0)).await.unwrap();
    let view = bench.hook("one").await;
    let kept = bench.store.hook(view.id).await.unwrap().unwrap();
    assert_eq!((&kept.view, kept.secrets.len(), kept.removed_at), (&view, 1, None));
    let change =
        |version| HookEffect::Change { id: view.id, definition: Box::new(definition("two")), version };
    assert!(matches!(bench.on_hooks("stale", change(7)).await, Submitted::Unfit(_)));
    assert!(matches!(bench.on_hooks("change", change(1)).await, Submitted::First(..)));
    assert!(matches!(bench.on_hooks("again", change(1)).await, Submitted::Unfit(_)), "it has moved on");
    let kept = bench.store.hook(view.id).await.unwrap().unwrap().view;
    assert_eq!((kept.definition.title.as_str(), kept.version), ("two", 2));
    // Another team's key does not reach it.
    let foreign = bench.decision(scope_of("red", 1, "k"), Operation::HookRemove, Effect::Hook(change(2)));
    assert!(matches!(bench.store.submit(foreign).await.unwrap(), Submitted::Missing));
}

pub(super) async fn two_secrets_count_during_a_rotation_and_no_third(bench: Bench) {
    bench.store.add_team(&name("blue"), None, at(0)).await.unwrap();
    let hook = bench.hook("one").await.id;
    let ends = bench.now().plus(DAY);
    let second = bench.secret(b"kt\0\0\0\x01second");
    assert!(matches!(bench.on_hooks("r1", rotation(hook, second, ends)).await, Submitted::First(..)));
    let secrets = bench.store.hook(hook).await.unwrap().unwrap().secrets;
    let shown: Vec<_> = secrets.iter().map(|secret| (&secret.sealed[6..], secret.ends_at)).collect();
    assert_eq!(shown, [(b"second".as_slice(), None), (b"first", Some(ends))]);
    let third = bench.secret(b"kt\0\0\0\x01third");
    let refused = bench.on_hooks("r2", rotation(hook, third.clone(), ends)).await;
    assert!(matches!(refused, Submitted::Unfit(_)), "{refused:?}");
    assert!(matches!(bench.on_hooks("end", HookEffect::EndSecret(hook)).await, Submitted::First(..)));
    assert!(matches!(bench.on_hooks("r3", rotation(hook, third, ends)).await, Submitted::First(..)));
    // What has ended is swept, what counts is not.
    assert_eq!(bench.store.sweep_hooks(bench.now(), at(0), 10).await.unwrap(), 0);
    assert_eq!(bench.store.sweep_hooks(ends, at(0), 10).await.unwrap(), 1);
    let secrets = bench.store.hook(hook).await.unwrap().unwrap().secrets;
    assert_eq!(secrets.iter().map(|secret| &secret.sealed[6..]).collect::<Vec<_>>(), [b"third"]);
}

pub(super) async fn a_removed_hook_is_known_and_keeps_nothing(bench: Bench) {
    bench.store.add_team(&name("blue"), None, at(0)).await.unwrap();
    let (one, two) = (bench.hook("one").await.id, bench.hook("two").await.id);
    bench.store.record_deliveries(vec![bench.delivery(one, bench.now())]).await.unwrap();
    assert!(matches!(bench.on_hooks("end", HookEffect::Remove(one)).await, Submitted::First(..)));
    assert!(matches!(bench.on_hooks("end", HookEffect::Remove(one)).await, Submitted::Repeat(_)));
    assert!(matches!(bench.on_hooks("more", HookEffect::Remove(one)).await, Submitted::Gone(_)));
    let removed = bench.store.hook(one).await.unwrap().unwrap();
    assert!(removed.removed_at.is_some() && removed.secrets.is_empty());
    // What comes late is not written down for nobody.
    bench.store.record_deliveries(vec![bench.delivery(one, bench.now())]).await.unwrap();
    assert_eq!(bench.store.deliveries(one, None, 10).await.unwrap().total, 0);
    let page = bench.store.hooks(&name("blue"), None, 10, bench.now()).await.unwrap();
    assert_eq!((page.results[0].id, page.total), (two, 1));
    let change = HookEffect::EndSecret(one);
    assert!(matches!(bench.on_hooks("late", change).await, Submitted::Missing));
}

pub(super) async fn of_each_hook_the_last_deliveries_stay(bench: Bench) {
    bench.store.add_team(&name("blue"), None, at(0)).await.unwrap();
    let (one, two) = (bench.hook("one").await.id, bench.hook("two").await.id);
    let deliveries = (0..i64::from(KEPT_DELIVERIES) + 5).map(|n| bench.delivery(one, at(n))).collect();
    bench.store.record_deliveries(deliveries).await.unwrap();
    bench.store.record_deliveries(vec![bench.delivery(two, at(1))]).await.unwrap();
    let page = bench.store.deliveries(one, None, 3).await.unwrap();
    assert_eq!((page.total, page.results[0].at), (i64::from(KEPT_DELIVERIES), at(104)));
    let place = crate::store::cursor::read(page.next.as_deref().unwrap());
    let rest = bench.store.deliveries(one, place, 1000).await.unwrap();
    assert_eq!((rest.results[0].at, rest.results.last().unwrap().at, rest.next), (at(101), at(5), None));
    let shown = &page.results[0];
    assert_eq!(
        (shown.outcome, shown.problem.as_deref(), shown.detail.as_deref(), shown.event_id.as_deref()),
        (DeliveryOutcome::Refused, Some("hook-mapping-failed"), Some("NUL \u{fffd} in it"), Some("ev"))
    );
    assert_eq!(bench.store.delivery(one, shown.id).await.unwrap().unwrap().1, b"kt\0\0\0\x01event");
    assert!(bench.store.delivery(two, shown.id).await.unwrap().is_none(), "another hook's");
    // The old ones are swept in batches.
    assert_eq!(bench.store.sweep_hooks(at(0), at(50), 40).await.unwrap(), 40);
    assert_eq!(bench.store.sweep_hooks(at(0), at(50), 40).await.unwrap(), 7);
    assert_eq!(bench.store.deliveries(one, None, 1).await.unwrap().total, 54);
}

pub(super) async fn what_is_sealed_of_hooks_is_found_and_sealed_anew(bench: Bench) {
    bench.store.add_team(&name("blue"), None, at(0)).await.unwrap();
    let hook = bench.hook("one").await.id;
    bench.store.record_deliveries(vec![bench.delivery(hook, bench.now())]).await.unwrap();
    let secrets = async |version| {
        let needed = bench.store.key_use().await.unwrap();
        needed.get(&version).copied().unwrap_or_default().secrets
    };
    assert_eq!((secrets(1).await, secrets(2).await), (2, 0));
    let new = b"kt\0\0\0\x02";
    let found = bench.store.hooks_sealed_otherwise(new, 10).await.unwrap();
    assert_eq!(found.len(), 2);
    for (seal, before) in found {
        let after = [new.as_slice(), &before[6..]].concat();
        let wrong = bench.store.reseal_hook(seal, b"other".to_vec(), after.clone()).await.unwrap();
        assert!(!wrong, "it was changed meanwhile");
        assert!(bench.store.reseal_hook(seal, before, after).await.unwrap());
    }
    assert!(bench.store.hooks_sealed_otherwise(new, 10).await.unwrap().is_empty());
    assert_eq!((secrets(1).await, secrets(2).await), (0, 2));
    let nothing = HookSeal::Secret(bench.id());
    assert!(!bench.store.reseal_hook(nothing, Vec::new(), Vec::new()).await.unwrap());
}
