//! Approvals: what waits for a second person, what is decided, and that nobody waits for ever.

use super::{
    super::{Plan, Planned},
    *,
};
use domain::{
    action::{DELETE, UPDATE},
    approval::{ApprovalNeeded, ApprovalView, Decider, Verdict},
    notification::NotificationEvent,
};

const NEEDED: ApprovalNeeded = ApprovalNeeded { by: Decider::Owner, timeout_seconds: 3600 };
const KEPT: Duration = Duration::from_hours(2);

/// A change that waits for approval.
fn asking(plan: Plan) -> Plan {
    Plan::new(move |resource| Ok(Planned { approval: Some(NEEDED), ..plan.on(resource)? }))
}

impl Bench {
    /// A create that waits for approval.
    fn needing(&self, key: &str, vm: &str, size: &str) -> Submission {
        let mut create = self.create(&scope(key), vm, size);
        if let Effect::Create { request, .. } = &mut create.effect {
            request.view.state = RequestState::PendingApproval;
            request.view.approval = Some(NEEDED.asked_at(request.view.created_at));
        }
        create
    }

    async fn asked(&self, key: &str, vm: &str) -> RequestId {
        match self.store.submit(self.needing(key, vm, "small")).await.unwrap() {
            Submitted::First(_, Some(id)) => id,
            other => panic!("not a first: {other:?}"),
        }
    }

    fn verdict(&self, id: RequestId, verdict: Verdict, reason: Option<&str>) -> Submission {
        let operation = if verdict == Verdict::Approved { Operation::Approve } else { Operation::Reject };
        let effect = Effect::Decide { request: id, verdict, reason: reason.map(str::to_owned) };
        let mut decision = self.decision(scope_of("blue", 2, &format!("d-{}", self.id())), operation, effect);
        decision.arrived.sent_by = "olga".into();
        decision
    }

    async fn approve(&self, id: RequestId) -> Submitted {
        self.store.submit(self.verdict(id, Verdict::Approved, None)).await.unwrap()
    }

    async fn reject(&self, id: RequestId) -> Submitted {
        self.store.submit(self.verdict(id, Verdict::Rejected, Some("too big"))).await.unwrap()
    }

    async fn view_of(&self, id: RequestId) -> RequestView {
        self.store.request(id).await.unwrap().unwrap().view
    }

    async fn approval(&self, id: RequestId) -> ApprovalView {
        self.view_of(id).await.approval.expect("it takes one")
    }
}

pub(super) async fn what_needs_approval_holds_key_and_name_and_has_no_run(bench: Bench) {
    let submission = bench.needing("k", "one", "small");
    let repeat = submission.clone();
    let Submitted::First(answer, Some(id)) = bench.store.submit(submission).await.unwrap() else {
        panic!("not a first")
    };
    let view = bench.view_of(id).await;
    let approval = view.approval.clone().unwrap();
    assert_eq!(
        (view.state, approval.by, approval.verdict),
        (RequestState::PendingApproval, Decider::Owner, None)
    );
    assert_eq!(approval.expires_at, view.created_at.plus(NEEDED.timeout()));
    // The first answer tells the same as a look, and so does every repeat of it.
    let told: RequestView = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told, view);
    let Submitted::Repeat(claim) = bench.store.submit(repeat).await.unwrap() else { panic!("not a repeat") };
    assert_eq!(claim.answer.body, answer.body);
    bench.idle().await;
    assert!(matches!(bench.store.submit(bench.create(&scope("o"), "one", "small")).await.unwrap(),
        Submitted::Existing(_, of) if of == id));
    let other = bench.store.submit(bench.create(&scope("p"), "one", "large")).await.unwrap();
    assert!(matches!(other, Submitted::NameTaken(_)));
    // However long it takes, its key is kept.
    bench.store.retire(bench.now().plus(KEPT * 100), KEPT, 10).await.unwrap();
    assert!(bench.claim("k").await.unwrap().retired_at.is_none());
}

pub(super) async fn what_is_approved_is_carried_out_and_says_by_whom(bench: Bench) {
    let id = bench.asked("k", "one").await;
    let submission = bench.verdict(id, Verdict::Approved, Some("go ahead"));
    let repeat = submission.clone();
    let Submitted::Accepted(answer, _, also) = bench.store.submit(submission).await.unwrap() else {
        panic!("not accepted")
    };
    assert_eq!((answer.kind, also), (AnswerKind::Accepted, vec![]));
    let (view, told) =
        (bench.view_of(id).await, serde_json::from_slice::<RequestView>(&answer.body).unwrap());
    assert_eq!((view.state, &told), (RequestState::Queued, &view));
    let approval = view.approval.unwrap();
    assert_eq!((approval.verdict, approval.decided_by.as_deref()), (Some(Verdict::Approved), Some("olga")));
    assert_eq!((approval.reason.as_deref(), approval.decided_at.is_some()), (Some("go ahead"), true));
    let Submitted::Repeat(claim) = bench.store.submit(repeat).await.unwrap() else { panic!("not a repeat") };
    assert_eq!(claim.answer.body, answer.body);
    // Once more is no other decision, to reject it is; whatever becomes of it.
    let run = bench.taken("w", bench.now()).await;
    assert_eq!((run.request.view.id, run.touched), (id, false));
    for state in [RequestState::Running, RequestState::Succeeded] {
        assert!(matches!(bench.approve(id).await, Submitted::Existing(_, of) if of == id));
        assert!(matches!(bench.reject(id).await, Submitted::Undecidable(now) if now == state));
        if state == RequestState::Running {
            bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
        }
    }
    let steps = bench.store.events(id, 0, 100).await.unwrap();
    let step = EventEntry::Step { step: "approval".into(), detail: "approved by olga: go ahead".into() };
    assert!(steps.iter().any(|event| event.entry == step), "{steps:?}");
}

pub(super) async fn what_is_rejected_frees_its_name_and_counts_from_there(bench: Bench) {
    let id = bench.asked("k", "one").await;
    let mut decision = bench.verdict(id, Verdict::Rejected, Some("too big"));
    let end = bench.now().plus(Duration::from_mins(10));
    decision.arrived.at = end;
    assert!(matches!(bench.store.submit(decision).await.unwrap(), Submitted::Accepted(..)));
    let view = bench.view_of(id).await;
    assert_eq!((view.state, view.finished_at), (RequestState::Rejected, Some(end)));
    assert_eq!(view.reason.as_deref(), Some("olga rejected it: too big"));
    assert_eq!(view.approval.unwrap().verdict, Some(Verdict::Rejected));
    assert!(matches!(bench.reject(id).await, Submitted::Existing(_, of) if of == id));
    assert!(matches!(bench.approve(id).await, Submitted::Undecidable(RequestState::Rejected)));
    let cancel = bench.decision(scope("stop"), Operation::Cancel, Effect::Cancel(id));
    let cancel = bench.store.submit(cancel).await.unwrap();
    assert!(matches!(cancel, Submitted::Undecidable(RequestState::Rejected)));
    bench.idle().await;
    bench.created("other", "one").await;
    bench.store.retire(at(end.plus(KEPT).millis() - 1), KEPT, 10).await.unwrap();
    assert!(bench.claim("k").await.unwrap().retired_at.is_none());
    bench.store.retire(end.plus(KEPT), KEPT, 10).await.unwrap();
    assert_eq!(bench.claim("k").await.unwrap().retired_at, Some(end.plus(KEPT)));
}

pub(super) async fn a_canceled_wait_is_over_and_takes_no_decision(bench: Bench) {
    let id = bench.asked("k", "one").await;
    let cancel = bench.decision(scope("stop"), Operation::Cancel, Effect::Cancel(id));
    assert!(matches!(bench.store.submit(cancel).await.unwrap(), Submitted::First(..)));
    assert_eq!((bench.state(id).await, bench.approval(id).await.verdict), (RequestState::Canceled, None));
    assert!(matches!(bench.approve(id).await, Submitted::Undecidable(RequestState::Canceled)));
    assert!(matches!(bench.reject(id).await, Submitted::Undecidable(RequestState::Canceled)));
    // What takes no approval takes no decision either, and what is not there none at all.
    let plain = bench.created("plain", "two").await;
    assert!(matches!(bench.approve(plain).await, Submitted::Undecidable(RequestState::Queued)));
    assert!(matches!(bench.approve(RequestId(bench.id())).await, Submitted::Missing));
}

pub(super) async fn what_nobody_decides_about_in_time_is_rejected_once(bench: Bench) {
    let told = bench.first_told("blue", &[NotificationEvent::Rejected]).await;
    let mut ids = Vec::new();
    for vm in ["one", "two", "three"] {
        ids.push(bench.asked(vm, vm).await);
    }
    let decided = bench.asked("decided", "four").await;
    bench.approve(decided).await;
    let waiting = async |team: Option<&str>, limit| {
        let found = bench.store.waiting(team.map(name).as_ref(), limit).await.unwrap();
        found.iter().map(|request| request.id).collect::<Vec<_>>()
    };
    assert_eq!(waiting(None, 10).await, ids, "the nearest end first");
    assert_eq!(waiting(Some("blue"), 2).await, ids[..2]);
    assert_eq!(waiting(Some("green"), 10).await, []);
    let (first, last) = (bench.approval(ids[0]).await.expires_at, bench.approval(ids[2]).await.expires_at);
    assert_eq!(bench.store.undecided(at(first.millis() - 1), 10).await.unwrap(), []);
    assert!(!bench.store.time_out(ids[0], at(first.millis() - 1)).await.unwrap());
    assert_eq!(bench.store.undecided(first, 10).await.unwrap(), ids[..1]);
    assert_eq!(bench.store.undecided(last, 2).await.unwrap(), ids[..2], "a batch is bounded");
    // Too late to decide, though it still stands there.
    let mut late = bench.verdict(ids[0], Verdict::Approved, None);
    late.arrived.at = first;
    assert!(matches!(bench.store.submit(late).await.unwrap(), Submitted::TooLate(_)));
    for id in &ids {
        assert!(bench.store.time_out(*id, last).await.unwrap());
        assert!(!bench.store.time_out(*id, last).await.unwrap(), "once");
    }
    assert!(!bench.store.time_out(decided, last).await.unwrap());
    let view = bench.view_of(ids[0]).await;
    assert_eq!((view.state, view.finished_at), (RequestState::Rejected, Some(last)));
    assert!(view.reason.unwrap().contains("in time"));
    let approval = view.approval.unwrap();
    assert_eq!((approval.verdict, approval.decided_by), (Some(Verdict::TimedOut), None));
    assert_eq!(bench.store.undecided(last, 10).await.unwrap(), []);
    let page = bench.store.notification_deliveries(told, None, 100).await.unwrap();
    let about: HashSet<_> = page.results.iter().filter_map(|one| one.request_id).collect();
    assert_eq!((page.results.len(), about), (3, ids.iter().copied().collect()), "each is told of once");
    assert!(matches!(bench.reject(ids[0]).await, Submitted::Existing(..)));
    assert!(matches!(bench.approve(ids[0]).await, Submitted::Undecidable(RequestState::Rejected)));
    bench.created("other", "one").await;
}

pub(super) async fn a_change_that_waits_keeps_its_turn_and_goes_back_when_it_is_rejected(bench: Bench) {
    bench.standing().await;
    let told =
        bench.first_told("blue", &[NotificationEvent::PendingApproval, NotificationEvent::Rejected]).await;
    let before = bench.one().await.view;
    for approved in [true, false] {
        let key = |text: &str| format!("{text}-{approved}");
        let size = if approved { "large" } else { "huge" };
        let update = asking(patch(&json!({ "size": size })));
        let (first, _) = bench.accepted(&key("first"), UPDATE, update).await;
        assert_eq!(bench.state(first).await, RequestState::PendingApproval);
        let now = bench.one().await.view;
        assert_eq!(now.parameters["size"], size, "it is what the resource is meant to be");
        let second = bench.updated(&key("second"), json!({ "note": size })).await;
        // Nothing overtakes it.
        bench.idle().await;
        if approved {
            assert!(matches!(bench.approve(first).await, Submitted::Accepted(..)));
            bench.carried_out(first, RequestState::Succeeded).await;
        } else {
            let version = bench.one().await.view.version;
            assert!(matches!(bench.reject(first).await, Submitted::Accepted(..)));
            assert_eq!(bench.state(first).await, RequestState::Rejected);
            let back = bench.one().await.view;
            assert_eq!((back.version, &back.parameters["size"]), (version + 1, &json!("large")));
            assert_eq!(bench.desired(second).await["size"], "large", "without what was rejected");
        }
        bench.carried_out(second, RequestState::Succeeded).await;
    }
    assert_eq!(bench.store.notification_deliveries(told, None, 100).await.unwrap().results.len(), 3);
    let after = bench.one().await;
    assert_eq!(after.view.version, before.version + 5);
    assert_eq!(after.applied, Some(object(&json!({ "size": "large", "count": 1, "note": "huge" }))));
}

pub(super) async fn an_approved_change_waits_for_those_before_it(bench: Bench) {
    bench.standing().await;
    let earlier = bench.updated("earlier", json!({ "note": "x" })).await;
    let (id, _) = bench.accepted("a", UPDATE, asking(patch(&json!({ "size": "large" })))).await;
    bench.approve(id).await;
    let run = bench.taken("w", bench.now()).await;
    assert_eq!(run.request.view.id, earlier);
    bench.idle().await;
    bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
    bench.carried_out(id, RequestState::Succeeded).await;
}

pub(super) async fn a_delete_that_waits_stops_nothing_before_it_is_approved(bench: Bench) {
    bench.standing().await;
    let (id, _) = bench.accepted("delete", DELETE, asking(nothing_left())).await;
    let one = bench.one().await;
    assert_eq!((one.view.state.as_str(), one.ended_by), ("active", None));
    // Asked for again it is the same wish.
    let again = bench.change("again", "one", DELETE, asking(nothing_left()));
    assert!(matches!(bench.store.submit(again).await.unwrap(), Submitted::Existing(_, of) if of == id));
    let version = one.view.version;
    assert!(matches!(bench.reject(id).await, Submitted::Accepted(..)));
    let one = bench.one().await;
    assert_eq!((one.view.state.as_str(), one.ended_by, one.view.version), ("active", None, version + 1));

    let (id, _) = bench.accepted("delete-2", DELETE, asking(nothing_left())).await;
    let later = bench.updated("later", json!({ "note": "x" })).await;
    bench.idle().await;
    assert!(matches!(bench.approve(id).await, Submitted::Accepted(..)));
    let one = bench.one().await;
    assert_eq!((one.view.state.as_str(), one.ended_by), ("deleting", Some(id)));
    assert_eq!(bench.state(later).await, RequestState::Canceled, "a change loses against it");
    bench.carried_out(id, RequestState::Succeeded).await;
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none());
}

pub(super) async fn of_decisions_at_once_on_several_servers_one_counts(bench: Bench) {
    let stores = [bench.place.open().await, bench.place.open().await];
    let mut ids = Vec::new();
    for number in 0..12 {
        ids.push(bench.asked(&format!("k-{number}"), &format!("vm-{number}")).await);
    }
    // A moment at which the time to decide is over for the one that ends it, and not yet for the others.
    let over = bench.approval(ids[11]).await.expires_at;
    let mut tasks = Vec::new();
    for (place, id) in ids.iter().copied().enumerate() {
        for (number, store) in stores.iter().enumerate() {
            let decisions = [
                bench.verdict(id, Verdict::Approved, None),
                bench.verdict(id, Verdict::Rejected, Some("no")),
                bench.decision(scope(&format!("c-{place}-{number}")), Operation::Cancel, Effect::Cancel(id)),
            ];
            for decision in decisions {
                let store = Arc::clone(store);
                tasks.push(tokio::spawn(async move {
                    let word = decision.arrived.operation;
                    match store.submit(decision).await.unwrap() {
                        Submitted::Accepted(..) | Submitted::First(..) => Some((id, word)),
                        Submitted::Existing(..) | Submitted::Undecidable(_) => None,
                        other => panic!("{other:?}"),
                    }
                }));
            }
            let store = Arc::clone(store);
            tasks.push(tokio::spawn(async move {
                store.time_out(id, over).await.unwrap().then_some((id, "time_out"))
            }));
        }
    }
    let mut won: Vec<(RequestId, &str)> = Vec::new();
    for task in tasks {
        won.extend(task.await.unwrap());
    }
    for id in ids {
        let of: Vec<&str> = won.iter().filter(|(of, _)| *of == id).map(|(_, word)| *word).collect();
        let view = bench.view_of(id).await;
        let verdict = view.approval.and_then(|approval| approval.verdict);
        // What is approved may be canceled after that, and nothing else follows on anything.
        let expected = match (view.state, verdict) {
            (RequestState::Queued, Some(Verdict::Approved)) => vec!["approve"],
            (RequestState::Canceled, Some(Verdict::Approved)) => vec!["approve", "cancel"],
            (RequestState::Canceled, None) => vec!["cancel"],
            (RequestState::Rejected, Some(Verdict::Rejected)) => vec!["reject"],
            (RequestState::Rejected, Some(Verdict::TimedOut)) => vec!["time_out"],
            other => panic!("{other:?}"),
        };
        let mut of = of;
        of.sort_unstable();
        assert_eq!(of, expected);
    }
}
