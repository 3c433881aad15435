//! Changes of what is there: their order, their versions, and the delete that ends a life.

use super::*;
use crate::{
    Error,
    store::{Delta, NewChange, Plan, Planned, StoredResource},
};
use domain::{
    action::{DELETE, UPDATE},
    change::{self, Change},
    merge,
    problem::ProblemKind,
};

fn planned(before: &Object, after: Object, delta: Delta) -> Planned {
    Planned {
        parameters: after.clone(),
        patch: Some(merge::between(before, &after)),
        desired: Some(after),
        delta: Some(delta),
        offering_version: "1".into(),
        approval: None,
    }
}

/// An update by this patch.
pub(super) fn patch(patch: &serde_json::Value) -> Plan {
    let patch = object(patch);
    Plan::new(move |resource| {
        let before = &resource.view.parameters;
        Ok(planned(before, merge::merged(before, &patch), Delta::Merge(patch.clone())))
    })
}

/// An action that adds to the count.
fn grow(by: i64) -> Plan {
    let (changes, input) =
        ([("count".to_owned(), Change::Add("by".into()))].into(), object(&json!({ "by": by })));
    Plan::new(move |resource| {
        let before = &resource.view.parameters;
        let after = change::changed(before, &changes, &input).map_err(Error::fields)?;
        Ok(planned(before, after, Delta::Action { changes: changes.clone(), input: input.clone() }))
    })
}

pub(super) fn nothing_left() -> Plan {
    Plan::new(|_| {
        let parameters = Object::new();
        let offering_version = "1".into();
        Ok(Planned { parameters, patch: None, desired: None, delta: None, offering_version, approval: None })
    })
}

impl Bench {
    pub(super) fn change(&self, key: &str, vm: &str, action: &str, plan: Plan) -> Submission {
        let operation = match action {
            UPDATE => Operation::Update,
            DELETE => Operation::Delete,
            _ => Operation::Act,
        };
        let change = NewChange {
            id: RequestId(self.id()),
            team: name("blue"),
            kind: name("vm"),
            name: name(vm),
            action: action.into(),
            labels: Labels::default(),
            correlation_id: None,
            parent_id: None,
            schema_digest: None,
            hidden: None,
            plan,
        };
        self.decision(scope(key), operation, Effect::Change(Box::new(change)))
    }

    pub(super) async fn accepted(&self, key: &str, action: &str, plan: Plan) -> (RequestId, Vec<RequestId>) {
        match self.store.submit(self.change(key, "one", action, plan)).await.unwrap() {
            Submitted::Accepted(_, id, also) => (id, also),
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub(super) async fn updated(&self, key: &str, with: serde_json::Value) -> RequestId {
        self.accepted(key, UPDATE, patch(&with)).await.0
    }

    async fn deleted(&self, key: &str) -> RequestId {
        self.accepted(key, DELETE, nothing_left()).await.0
    }

    /// A resource `one` that is there, with a count of one; its create.
    pub(super) async fn standing(&self) -> RequestId {
        let id = self.created("create", "one").await;
        self.carried_out(id, RequestState::Succeeded).await;
        let count = self.updated("count", json!({ "count": 1 })).await;
        self.carried_out(count, RequestState::Succeeded).await;
        id
    }

    /// Takes the run that is due, which must be this request's, and ends it.
    pub(super) async fn carried_out(&self, id: RequestId, state: RequestState) {
        let run = self.taken("w", self.now()).await;
        assert_eq!(run.request.view.id, id);
        self.ended(run.hold(), state, self.now()).await;
    }

    pub(super) async fn idle(&self) {
        assert!(self.store.take_run("w", self.now(), LEASE).await.unwrap().is_none(), "a run is due");
    }

    pub(super) async fn one(&self) -> StoredResource {
        self.store.resource(&name("blue"), "vm", "one").await.unwrap().expect("it lives")
    }

    async fn cancel(&self, id: RequestId) -> Submitted {
        let key = format!("cancel-{}", self.id());
        self.store.submit(self.decision(scope(&key), Operation::Cancel, Effect::Cancel(id))).await.unwrap()
    }

    async fn retry(&self, id: RequestId) -> Submitted {
        let (key, life) = (format!("retry-{}", self.id()), ResourceId(self.id()));
        self.store
            .submit(self.decision(scope(&key), Operation::Retry, Effect::Retry(id, life)))
            .await
            .unwrap()
    }

    pub(super) async fn desired(&self, id: RequestId) -> Object {
        self.store.request(id).await.unwrap().unwrap().view.desired.unwrap()
    }
}

pub(super) async fn changes_move_the_version_and_are_carried_out_in_order(bench: Bench) {
    bench.standing().await;
    let before = bench.one().await;
    let submitted = bench.store.submit(bench.change("a", "one", UPDATE, patch(&json!({ "size": "large" }))));
    let Submitted::Accepted(answer, first, also) = submitted.await.unwrap() else { panic!("not accepted") };
    assert_eq!((answer.kind, also), (AnswerKind::Accepted, vec![]));
    let now = bench.one().await;
    assert_eq!(now.view.version, before.view.version + 1);
    assert_eq!(answer.etag, Some(now.view.etag().to_string()));
    assert_eq!(now.view.parameters, object(&json!({ "size": "large", "count": 1 })));
    assert_eq!(now.applied, Some(object(&json!({ "size": "small", "count": 1 }))), "not yet carried out");
    let (second, _) = bench.accepted("b", "grow", grow(2)).await;
    assert!(matches!(
        bench.store.submit(bench.change("b", "one", "grow", grow(2))).await.unwrap(),
        Submitted::Repeat(_)
    ));
    let (pending, last) = bench.store.requests_of(now.view.id).await.unwrap();
    let ids = |views: &[RequestView]| views.iter().map(|view| view.id).collect::<Vec<_>>();
    assert_eq!(ids(&pending), [first, second]);
    assert_eq!((last.len(), last[0].id, last[3].action.as_str()), (4, second, "create"));

    let run = bench.taken("w", bench.now()).await;
    assert_eq!(run.request.view.id, first);
    assert_eq!(run.resource.applied.as_ref().unwrap()["size"], "small");
    bench.idle().await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert_eq!(bench.one().await.applied.unwrap(), object(&json!({ "size": "large", "count": 1 })));
    bench.carried_out(second, RequestState::Succeeded).await;
    let end = bench.one().await;
    assert_eq!(end.applied.unwrap(), object(&json!({ "size": "large", "count": 3 })));
    assert_eq!((end.view.version, end.view.state.as_str()), (now.view.version + 1, "active"));
}

pub(super) async fn a_failed_change_goes_back_and_later_ones_are_worked_out_without_it(bench: Bench) {
    bench.standing().await;
    let (first, _) = bench.accepted("a", "grow", grow(2)).await;
    let (second, _) = bench.accepted("b", "grow", grow(5)).await;
    let third = bench.updated("c", json!({ "size": "large" })).await;
    assert_eq!(bench.desired(third).await, object(&json!({ "size": "large", "count": 8 })));
    let version = bench.one().await.view.version;
    bench.carried_out(first, RequestState::Failed).await;
    assert_eq!(bench.desired(second).await["count"], 6, "without what failed");
    assert_eq!(bench.desired(third).await["count"], 6);
    let after = bench.one().await;
    assert_eq!((after.view.version, &after.view.parameters["count"]), (version + 1, &json!(6)));
    bench.carried_out(second, RequestState::Succeeded).await;
    bench.carried_out(third, RequestState::Failed).await;
    let end = bench.one().await;
    assert_eq!(end.view.parameters, object(&json!({ "size": "small", "count": 6 })), "back");
    assert_eq!((end.applied, end.view.version), (Some(end.view.parameters), version + 2));
}

pub(super) async fn a_change_that_waits_is_canceled_at_once_and_one_at_work_is_stopped(bench: Bench) {
    bench.standing().await;
    let first = bench.updated("a", json!({ "size": "large" })).await;
    let second = bench.updated("b", json!({ "note": "x" })).await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
    assert!(matches!(bench.cancel(second).await, Submitted::First(..)));
    assert_eq!(bench.state(second).await, RequestState::Canceled);
    assert_eq!(bench.one().await.view.parameters, object(&json!({ "size": "large", "count": 1 })));
    assert!(matches!(bench.cancel(first).await, Submitted::First(..)));
    // Done a moment before: it is undone at its next hold.
    assert_eq!(
        bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await,
        Held::Yes(Intent::Cancel)
    );
    let undoing = bench.taken("w", bench.now()).await;
    assert_eq!((undoing.request.view.id, undoing.intent), (first, Intent::Cancel));
    bench.ended(undoing.hold(), RequestState::Canceled, bench.now()).await;
    assert_eq!(bench.one().await.view.parameters, object(&json!({ "size": "small", "count": 1 })));
    // An action cannot be undone: what is done is done.
    let (action, _) = bench.accepted("c", "grow", grow(1)).await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
    bench.cancel(action).await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert_eq!(bench.state(action).await, RequestState::Succeeded);
    assert_eq!(bench.one().await.applied.unwrap()["count"], 2);
    bench.idle().await;
}

pub(super) async fn of_ten_changes_of_one_version_one_is_accepted(bench: Bench) {
    bench.standing().await;
    let looked_at = bench.one().await.view.version;
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let bench = Arc::clone(&bench);
            let plan = Plan::new(move |resource| {
                if resource.view.version != looked_at {
                    return Err(Error::new(ProblemKind::PreconditionFailed, "stale"));
                }
                patch(&json!({ "note": number })).on(resource)
            });
            tokio::spawn(async move {
                bench.store.submit(bench.change(&format!("k-{number}"), "one", UPDATE, plan)).await.unwrap()
            })
        })
        .collect();
    let (mut accepted, mut unfit) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Submitted::Accepted(..) => accepted += 1,
            Submitted::Unfit(error) => {
                assert_eq!(error.kind, ProblemKind::PreconditionFailed);
                unfit += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((accepted, unfit), (1, 9));
    assert_eq!(bench.one().await.view.version, looked_at + 1);
}

pub(super) async fn a_delete_ends_a_life_once_and_its_name_begins_another(bench: Bench) {
    let never = bench.change("never", "two", DELETE, nothing_left());
    assert!(matches!(bench.store.submit(never).await.unwrap(), Submitted::Missing));
    let maker = bench.standing().await;
    let life = bench.one().await.view.id;
    let delete = bench.deleted("d").await;
    assert_eq!(bench.one().await.view.state, "deleting");
    let existing = async |key: &str| match bench
        .store
        .submit(bench.change(key, "one", DELETE, nothing_left()))
        .await
        .unwrap()
    {
        Submitted::Existing(answer, id) => (answer.kind, id),
        other => panic!("not existing: {other:?}"),
    };
    assert_eq!(existing("d2").await, (AnswerKind::Done, delete));
    assert!(matches!(
        bench.store.submit(bench.create(&scope("early"), "one", "small")).await.unwrap(),
        Submitted::Deleting(_)
    ));
    bench.carried_out(delete, RequestState::Succeeded).await;
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
    assert_eq!(existing("d3").await, (AnswerKind::Done, delete));
    assert!(bench.claim("d3").await.unwrap().existing);
    bench.idle().await;
    // The create's own repeat makes nothing.
    assert!(matches!(
        bench.store.submit(bench.create(&scope("create"), "one", "small")).await.unwrap(),
        Submitted::Repeat(_)
    ));
    let again = bench.created("again", "one").await;
    let new_life = bench.one().await;
    assert!(new_life.view.id != life && new_life.view.created_by.id == again);
    bench.carried_out(again, RequestState::Succeeded).await;
    let second = bench.deleted("d4").await;
    assert_ne!(second, delete);
    let old = bench.store.life(life).await.unwrap().unwrap();
    assert_eq!(
        (old.view.state.as_str(), old.ended_by, old.view.created_by.id),
        ("gone", Some(delete), maker)
    );
}

pub(super) async fn changes_lose_against_a_delete(bench: Bench) {
    bench.standing().await;
    let at_work = bench.updated("a", json!({ "size": "large" })).await;
    let waits = bench.updated("b", json!({ "note": "x" })).await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
    let (delete, also) = bench.accepted("d", DELETE, nothing_left()).await;
    assert_eq!(also, [at_work], "its worker is told");
    let lost = bench.store.request(waits).await.unwrap().unwrap().view;
    assert_eq!(lost.state, RequestState::Canceled);
    assert!(lost.reason.unwrap().contains(&delete.to_string()));
    bench.idle().await;
    assert!(matches!(bench.cancel(delete).await, Submitted::TooLate(_)), "something stands half-way for it");
    let now = bench.now();
    assert_eq!(bench.store.renew(run.hold(), now, LEASE).await.unwrap(), Held::Yes(Intent::Cancel));
    bench.ended(run.hold(), RequestState::Unknown, now).await;
    assert_eq!(bench.state(at_work).await, RequestState::Canceled, "the teardown answers it");
    assert_eq!(bench.one().await.view.state, "deleting");
    let teardown = bench.taken("w", bench.now()).await;
    assert_eq!((teardown.request.view.id, teardown.touched), (delete, true));
    bench.ended(teardown.hold(), RequestState::Succeeded, bench.now()).await;
    bench.idle().await;
    assert_eq!(bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await, Held::Lost);
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
}

pub(super) async fn a_change_done_at_its_resources_end_never_brings_it_back(bench: Bench) {
    bench.standing().await;
    let update = bench.updated("a", json!({ "size": "large" })).await;
    let run = bench.taken("w", bench.now()).await;
    bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
    let delete = bench.deleted("d").await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    assert_eq!(bench.state(update).await, RequestState::Succeeded);
    assert_eq!(bench.one().await.view.state, "deleting");
    bench.carried_out(delete, RequestState::Succeeded).await;
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
}

pub(super) async fn a_create_that_is_deleted_is_stopped_and_holds_its_name_until_the_teardown(bench: Bench) {
    for (number, end) in
        [RequestState::Canceled, RequestState::Succeeded, RequestState::Unknown].into_iter().enumerate()
    {
        let create = bench.created(&format!("c-{number}"), "one").await;
        let run = bench.taken("w", bench.now()).await;
        bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
        let closed = end == RequestState::Unknown;
        if closed {
            bench.ended(run.hold(), end, bench.now()).await;
        }
        let (delete, also) = bench.accepted(&format!("d-{number}"), DELETE, nothing_left()).await;
        if closed {
            assert!(also.is_empty());
        } else {
            assert_eq!(also, [create]);
            bench.idle().await;
            bench.ended(run.hold(), end, bench.now()).await;
        }
        let state = if end == RequestState::Succeeded { end } else { RequestState::Canceled };
        assert_eq!(bench.state(create).await, state);
        assert_eq!(bench.one().await.view.state, "deleting");
        bench.carried_out(delete, RequestState::Succeeded).await;
        assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
    }
    // One that nobody began is canceled at once, and its teardown finds nothing.
    let create = bench.created("c", "one").await;
    let delete = bench.deleted("d").await;
    assert_eq!(bench.state(create).await, RequestState::Canceled);
    bench.carried_out(delete, RequestState::Succeeded).await;
    bench.created("free", "one").await;
}

pub(super) async fn a_delete_that_nobody_began_is_taken_back(bench: Bench) {
    bench.standing().await;
    let delete = bench.deleted("d").await;
    let version = bench.one().await.view.version;
    assert!(matches!(bench.cancel(delete).await, Submitted::First(..)));
    let back = bench.one().await;
    assert_eq!((back.view.state.as_str(), back.view.version, back.ended_by), ("active", version + 1, None));
    bench.idle().await;
    let second = bench.deleted("d2").await;
    assert_ne!(second, delete);
    let run = bench.taken("w", bench.now()).await;
    bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
    assert!(matches!(bench.cancel(second).await, Submitted::TooLate(_)));
    // A teardown that failed leaves the resource as it was, under another version.
    let version = bench.one().await.view.version;
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    let back = bench.one().await;
    assert_eq!((back.view.state.as_str(), back.view.version, back.ended_by), ("active", version + 1, None));
    assert!(matches!(bench.retry(second).await, Submitted::First(..)));
    assert_eq!(bench.one().await.ended_by, Some(second));
    // And one of which nobody can tell holds the name.
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
    assert_eq!(bench.one().await.view.state, "deleting");
}

pub(super) async fn a_failed_change_is_tried_again_only_while_nothing_else_was_accepted(bench: Bench) {
    bench.standing().await;
    let (first, _) = bench.accepted("a", "grow", grow(2)).await;
    bench.carried_out(first, RequestState::Failed).await;
    assert!(matches!(bench.retry(first).await, Submitted::First(..)));
    let now = bench.one().await;
    assert_eq!(now.view.parameters["count"], 3);
    let run = bench.taken("w", bench.now()).await;
    assert_eq!((run.request.view.attempt, run.touched), (2, true), "what was begun is looked at first");
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    let second = bench.updated("b", json!({ "size": "large" })).await;
    assert!(matches!(bench.retry(first).await, Submitted::TooLate(_)));
    bench.carried_out(second, RequestState::Failed).await;
    let delete = bench.deleted("d").await;
    assert!(matches!(bench.retry(second).await, Submitted::Deleting(id) if id == delete));
    bench.carried_out(delete, RequestState::Succeeded).await;
    assert!(matches!(bench.retry(second).await, Submitted::TooLate(_)));
    bench.created("again", "one").await;
    assert!(matches!(bench.retry(second).await, Submitted::TooLate(_)), "a new life is none of its business");
}

pub(super) async fn what_waits_for_a_create_that_fails_is_canceled(bench: Bench) {
    let create = bench.created("c", "one").await;
    let update = bench.updated("a", json!({ "size": "large" })).await;
    bench.carried_out(create, RequestState::Failed).await;
    assert_eq!(bench.state(update).await, RequestState::Canceled);
    assert_eq!(bench.store.next_due().await.unwrap(), None);
    let delete = bench.change("d", "one", DELETE, nothing_left());
    assert!(matches!(bench.store.submit(delete).await.unwrap(), Submitted::Missing), "it never existed");
    // One that succeeds is followed by what waited for it.
    let create = bench.created("c2", "one").await;
    let update = bench.updated("a2", json!({ "size": "large" })).await;
    bench.carried_out(create, RequestState::Succeeded).await;
    assert_eq!(bench.one().await.applied.unwrap()["size"], "small");
    bench.carried_out(update, RequestState::Succeeded).await;
    assert_eq!(bench.one().await.applied.unwrap()["size"], "large");
}

pub(super) async fn an_unknown_change_holds_back_the_next_until_it_is_decided(bench: Bench) {
    bench.standing().await;
    let first = bench.updated("a", json!({ "size": "large" })).await;
    let second = bench.updated("b", json!({ "note": "x" })).await;
    bench.carried_out(first, RequestState::Unknown).await;
    bench.idle().await;
    let resolve = |key: &str, forced: Option<&str>| {
        let forced = forced.map(str::to_owned);
        let effect =
            Effect::Resolve { request: first, resolution: Resolution::Abandon, forced, reason: None };
        bench.decision(scope(key), Operation::Resolve, effect)
    };
    bench.store.submit(resolve("r1", None)).await.unwrap();
    let run = bench.taken("w", bench.now()).await;
    assert_eq!((run.request.view.id, run.intent), (first, Intent::Abandon));
    bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
    bench.store.submit(resolve("r2", Some("nobody knows"))).await.unwrap();
    assert_eq!(bench.state(first).await, RequestState::Failed);
    bench.carried_out(second, RequestState::Succeeded).await;
    let end = bench.one().await;
    assert_eq!(end.applied.unwrap(), object(&json!({ "size": "small", "count": 1, "note": "x" })));
}
