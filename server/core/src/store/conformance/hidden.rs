//! Secret parameters: kept sealed with the request that brought them, for as long as they may be needed.

use super::*;
use crate::store::change::{Delta, Plan, Planned};
use domain::merge;

const MARK: &str = "secret:0123456789abcdef0123456789abcdef";

impl Bench {
    /// Creates something with a secret parameter; its request.
    async fn with_secret(&self, key: &str, vm: &str, sealed: &[u8]) -> RequestId {
        let mut create = self.create(&scope(key), vm, "small");
        let Effect::Create { request, hidden, .. } = &mut create.effect else { panic!("not a create") };
        request.view.parameters.insert("password".into(), MARK.into());
        *hidden = Some(sealed.to_vec());
        match self.store.submit(create).await.unwrap() {
            Submitted::First(_, Some(id)) => id,
            other => panic!("not a first: {other:?}"),
        }
    }

    async fn hidden(&self, life: ResourceId) -> Vec<(RequestId, Vec<u8>)> {
        let mut hidden = self.store.hidden_of(life).await.unwrap();
        hidden.sort();
        hidden
    }

    async fn life_of(&self, id: RequestId) -> ResourceId {
        self.store.request(id).await.unwrap().unwrap().resource
    }
}

pub(super) async fn secret_parameters_are_kept_with_their_requests_until_their_life_ends(bench: Bench) {
    let id = bench.with_secret("k", "one", b"kt-sealed-1").await;
    let plain = bench.created("plain", "two").await;
    let life = bench.life_of(id).await;
    assert_eq!(bench.hidden(life).await, [(id, b"kt-sealed-1".to_vec())]);
    assert_eq!(bench.hidden(bench.life_of(plain).await).await, []);
    // Who comes second with the same brings nothing.
    let mut second = bench.create(&scope("second"), "one", "small");
    let Effect::Create { request, hidden, .. } = &mut second.effect else { panic!("not a create") };
    request.view.parameters.insert("password".into(), MARK.into());
    *hidden = Some(b"kt-sealed-2".to_vec());
    assert!(
        matches!(bench.store.submit(second).await.unwrap(), Submitted::Existing(_, first) if first == id)
    );
    assert_eq!(bench.hidden(life).await.len(), 1);

    for _ in 0..2 {
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    }
    let with_another = Plan::new(|resource| {
        let patch = object(&json!({ "password": MARK.replace('0', "f") }));
        let after = merge::merged(&resource.view.parameters, &patch);
        Ok(Planned {
            parameters: after.clone(),
            patch: Some(patch.clone()),
            delta: Some(Delta::Merge(patch)),
            desired: Some(after),
            offering_version: "1".into(),
            approval: None,
        })
    });
    let mut update = bench.change("update", "one", "update", with_another);
    let Effect::Change(change) = &mut update.effect else { panic!("not a change") };
    change.hidden = Some(b"kt-sealed-3".to_vec());
    let Submitted::Accepted(_, update, _) = bench.store.submit(update).await.unwrap() else { panic!() };
    assert_eq!(bench.hidden(life).await, [(id, b"kt-sealed-1".to_vec()), (update, b"kt-sealed-3".to_vec())]);
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert_eq!(bench.hidden(life).await.len(), 2, "which an update may go back to");

    let delete = bench.change("delete", "one", "delete", nothing_left());
    assert!(matches!(bench.store.submit(delete).await.unwrap(), Submitted::Accepted(..)));
    assert_eq!(bench.hidden(life).await.len(), 2, "which its teardown may need");
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert_eq!(bench.hidden(life).await, []);
}

pub(super) async fn secret_parameters_of_a_failed_create_wait_for_another_try_until_its_retention_ends(
    bench: Bench,
) {
    let id = bench.with_secret("k", "one", b"kt-sealed-1").await;
    let canceled = bench.with_secret("c", "two", b"kt-sealed-2").await;
    let life = bench.life_of(canceled).await;
    bench
        .store
        .submit(bench.decision(scope("cancel"), Operation::Cancel, Effect::Cancel(canceled)))
        .await
        .unwrap();
    assert_eq!(bench.hidden(life).await, [], "which nobody can try again");
    let retry = |key: &str| {
        let effect = Effect::Retry(id, ResourceId(bench.id()));
        bench.decision(scope(key), Operation::Retry, effect)
    };
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    assert!(matches!(bench.store.submit(retry("again")).await.unwrap(), Submitted::First(..)));
    assert_eq!(bench.hidden(bench.life_of(id).await).await.len(), 1, "and its new life has them");
    let run = bench.taken("w", bench.now()).await;
    let end = bench.now();
    bench.ended(run.hold(), RequestState::Failed, end).await;
    let kept = Duration::from_hours(1);
    bench.store.retire(at(end.plus(kept).millis() - 1), kept, 10).await.unwrap();
    assert_eq!(bench.hidden(bench.life_of(id).await).await.len(), 1);
    while bench.store.retire(end.plus(kept), kept, 10).await.unwrap() > 0 {}
    assert_eq!(bench.hidden(bench.life_of(id).await).await, []);
    assert!(
        matches!(bench.store.submit(retry("late")).await.unwrap(), Submitted::TooLate(why) if why.contains("secret"))
    );
    assert_eq!(bench.state(id).await, RequestState::Failed);
}

pub(super) async fn secret_parameters_are_found_by_their_seal_and_sealed_anew(bench: Bench) {
    let (old, new) = (b"kt\0\0\0\x01sealed".to_vec(), b"kt\0\0\0\x02sealed".to_vec());
    let id = bench.with_secret("k", "one", &old).await;
    let other = bench.with_secret("o", "two", &new).await;
    let head = b"kt\0\0\0\x02";
    assert_eq!(bench.store.hidden_otherwise(head, 10).await.unwrap(), [(id, old.clone())]);
    assert_eq!(bench.store.hidden_otherwise(b"kt\0\0\0\x01", 10).await.unwrap(), [(other, new.clone())]);
    let needed = bench.store.key_use().await.unwrap();
    assert_eq!((needed[&1].secrets, needed[&2].secrets), (1, 1));
    assert!(!bench.store.reseal_hidden(id, new.clone(), old.clone()).await.unwrap());
    assert!(bench.store.reseal_hidden(id, old.clone(), new.clone()).await.unwrap());
    assert!(!bench.store.reseal_hidden(id, old.clone(), new.clone()).await.unwrap(), "once");
    assert_eq!(bench.store.hidden_otherwise(head, 10).await.unwrap(), []);
    bench.store.set_once("parameter_key", old.clone()).await.unwrap();
    assert_eq!(bench.store.key_use().await.unwrap()[&1].secrets, 1);
    assert!(!bench.store.change_setting("parameter_key", new.clone(), old.clone()).await.unwrap());
    assert!(bench.store.change_setting("parameter_key", old, new.clone()).await.unwrap());
    assert_eq!(bench.store.setting("parameter_key").await.unwrap(), Some(new));
}
