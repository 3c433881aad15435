//! Every promise of a store, as a test that runs on each of them.

use super::{
    Arrived, Claim, Effect, Ending, Held, Hold, Intent, ListScope, Made, Meaning, NewPrincipal, RequestList,
    Run, Scope, Store, StoredRequest, Submission, Submitted, sqlite::Sqlite,
};
use crate::answer::{Answer, AnswerKind};
use domain::{
    command::{Command, Operation},
    id::{PrincipalId, RequestId, ResourceId, SubmissionId, TokenId},
    key::SubmissionKey,
    label::Labels,
    name::Name,
    role::{PortalRole, TeamRole},
    state::{RequestState, Resolution},
    submission::{Channel, SubmissionOutcome},
    time::Moment,
    view::{EventEntry, Object, RequestView, TokenView},
};
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

/// A store on an empty database, with what tests need to talk to it.
struct Bench {
    store: Arc<dyn Store>,
    next: AtomicU64,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("keyturn.db")).await.unwrap();
        Self {
            store: Arc::new(store),
            next: AtomicU64::new(1),
            _folder: folder,
        }
    }

    fn id(&self) -> Uuid {
        Uuid::from_u64_pair(0x0190_0000_0000_7000, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Later than every ID made before, so that the newest row is the one made last.
    fn now(&self) -> Moment {
        at(1_000_000 + i64::try_from(self.next.load(Ordering::Relaxed)).unwrap())
    }

    fn arrived(&self, scope: Scope, operation: Operation) -> Arrived {
        Arrived {
            id: SubmissionId(self.id()),
            scope,
            request: None,
            operation: operation.as_str(),
            outcome: SubmissionOutcome::First,
            problem: None,
            channel: Channel::Api,
            sent_by: "ann".into(),
            token_label: Some("ci".into()),
            address: Some("127.0.0.1".into()),
            correlation_id: None,
            labels: "{}".into(),
            at: self.now(),
        }
    }

    fn create(&self, scope: Scope, vm: &str, size: &str) -> Submission {
        let (id, now) = (RequestId(self.id()), self.now());
        let parameters = object(json!({ "size": size }));
        let view = RequestView {
            id,
            team: Name::parse(&scope.team).unwrap(),
            offering: name("vm"),
            offering_version: "1".into(),
            resource_type: name("vm"),
            name: name(vm),
            action: "create".into(),
            state: RequestState::Queued,
            reason: None,
            attempt: 1,
            parameters: parameters.clone(),
            labels: Labels::default().shown_with(&id.to_string()),
            correlation_id: id.to_string(),
            parent_id: None,
            requested_by: "ann".into(),
            channel: Channel::Api,
            outputs: Object::new(),
            secret_outputs: Vec::new(),
            created_at: now,
            updated_at: now,
            finished_at: None,
        };
        let answer = Answer::of_request(AnswerKind::Accepted, &view).unwrap();
        let mut arrived = self.arrived(scope.clone(), Operation::Create);
        arrived.request = Some(id);
        Submission {
            arrived,
            meaning: meaning(u8::try_from(size.len()).unwrap()),
            command: Some(Command::on(Operation::Create, vm.into(), parameters)),
            effect: Effect::Create {
                request: Box::new(StoredRequest {
                    view,
                    principal: scope.principal,
                    resource: ResourceId(self.id()),
                }),
                schema_digest: "digest".into(),
                answer,
            },
        }
    }

    fn decision(&self, scope: Scope, operation: Operation, effect: Effect) -> Submission {
        Submission {
            arrived: self.arrived(scope, operation),
            meaning: meaning(9),
            command: Some(Command::on(operation, "target".into(), Object::new())),
            effect,
        }
    }

    async fn created(&self, key: &str, vm: &str) -> RequestId {
        match self
            .store
            .submit(self.create(scope(key), vm, "small"))
            .await
            .unwrap()
        {
            Submitted::First(_, Some(id)) => id,
            other => panic!("not a first: {other:?}"),
        }
    }

    async fn taken(&self, worker: &str, now: Moment) -> Run {
        self.store
            .take_run(worker, now, LEASE)
            .await
            .unwrap()
            .expect("a run is due")
    }

    async fn ended(&self, hold: Hold, state: RequestState, now: Moment) -> Held {
        self.store
            .end_run(hold, Ending::without_outputs(state, None), now)
            .await
            .unwrap()
    }

    async fn state(&self, id: RequestId) -> RequestState {
        self.store.request(id).await.unwrap().unwrap().view.state
    }

    async fn claim(&self, key: &str) -> Option<Claim> {
        self.store.claim(&scope(key)).await.unwrap()
    }

    async fn all(&self, size: u32, after: Option<(Moment, Uuid)>) -> domain::view::Page<RequestView> {
        let list = RequestList {
            scope: ListScope::All,
            states: Vec::new(),
            offering: None,
            action: None,
            name: None,
            correlation_id: None,
            after,
            size,
        };
        self.store.requests(list).await.unwrap()
    }

    fn someone(&self, who: &str, role: PortalRole, team: Option<&str>) -> NewPrincipal {
        NewPrincipal {
            id: PrincipalId(self.id()),
            name: who.into(),
            role,
            password_hash: None,
            team: team.map(|team| (name(team), TeamRole::Member)),
        }
    }
}

fn at(millis: i64) -> Moment {
    Moment::from_millis(millis)
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn object(value: serde_json::Value) -> Object {
    value.as_object().unwrap().clone()
}

fn meaning(seed: u8) -> Meaning {
    Meaning {
        fingerprint: [seed; 32],
        body_hash: [seed; 32],
        key_version: 1,
    }
}

fn scope(key: &str) -> Scope {
    scope_of("blue", 1, key)
}

fn scope_of(team: &str, principal: u128, key: &str) -> Scope {
    Scope {
        team: team.into(),
        principal: PrincipalId(Uuid::from_u128(principal)),
        key: SubmissionKey::parse(key.as_bytes()).unwrap(),
    }
}

/// Runs each promise on each database.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(super::Bench::sqlite().await).await;
            })*
        }
    };
}

promises! {
    a_first_submission_leaves_the_whole_of_it
    a_repeat_gets_the_first_answer_and_makes_nothing
    a_key_is_unique_within_its_full_scope_only
    of_many_at_once_exactly_one_is_first
    a_name_belongs_to_one_living_resource
    a_refused_name_leaves_the_key_free
    a_bad_submission_never_fails_its_neighbours
    a_run_belongs_to_one_worker_until_its_lease_ends
    a_worker_that_lost_its_lease_writes_nothing
    a_run_given_back_waits_for_its_time
    a_failed_create_frees_its_name_and_an_unknown_one_holds_it
    success_shows_outputs_and_keeps_secrets_sealed
    canceling_before_the_start_ends_it_at_once
    canceling_a_started_run_tells_its_worker
    a_retry_opens_the_next_attempt_and_reserves_the_name_again
    an_unknown_outcome_is_resolved_once
    earlier_holds_never_fit_a_run_that_was_queued_again
    repeats_are_history_and_past_a_thousand_only_counted
    pages_are_stable_while_rows_arrive
    a_history_goes_on_where_one_left_off
    people_teams_and_tokens_are_kept
    only_the_first_set_up_counts
    sessions_end_and_are_swept
    a_setting_is_set_once
    what_is_kept_survives_reopening
}

async fn a_first_submission_leaves_the_whole_of_it(bench: Bench) {
    let id = bench.created("k", "one").await;
    let request = bench.store.request(id).await.unwrap().unwrap();
    assert_eq!(request.view.state, RequestState::Queued);
    let claim = bench.claim("k").await.unwrap();
    assert_eq!(claim.request, Some(id));
    let shown: RequestView = serde_json::from_slice(&claim.answer.body).unwrap();
    assert_eq!(shown, request.view);
    let resource = bench
        .store
        .resource(&name("blue"), "vm", "one")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (resource.view.state.as_str(), resource.view.created_by.id),
        ("creating", id)
    );
    assert!(bench.store.next_due().await.unwrap().is_some());
    let events = bench.store.events(id, 0, 10).await.unwrap();
    assert_eq!(
        events[0].entry,
        EventEntry::State {
            state: RequestState::Queued,
            reason: None
        }
    );
    let submissions = bench.store.submissions(id).await.unwrap();
    assert_eq!(
        (submissions.total, submissions.results[0].outcome),
        (1, SubmissionOutcome::First)
    );
}

async fn a_repeat_gets_the_first_answer_and_makes_nothing(bench: Bench) {
    let Submitted::First(first, Some(id)) = bench
        .store
        .submit(bench.create(scope("k"), "one", "small"))
        .await
        .unwrap()
    else {
        panic!("not a first")
    };
    // Whatever else it asks for: whether it means the same is for the guard to say.
    for vm in ["one", "two"] {
        let Submitted::Repeat(claim) = bench
            .store
            .submit(bench.create(scope("k"), vm, "large"))
            .await
            .unwrap()
        else {
            panic!("not a repeat")
        };
        assert_eq!((&claim.answer, claim.request), (&first, Some(id)));
    }
    assert_eq!(bench.all(10, None).await.total, 1);
    assert!(
        bench
            .store
            .resource(&name("blue"), "vm", "two")
            .await
            .unwrap()
            .is_none()
    );
}

async fn a_key_is_unique_within_its_full_scope_only(bench: Bench) {
    let scopes = [
        scope("k"),
        scope("K"),
        scope_of("green", 1, "k"),
        scope_of("blue", 2, "k"),
        scope(&"k".repeat(255)),
    ];
    for (number, scope) in scopes.into_iter().enumerate() {
        let submitted = bench
            .store
            .submit(bench.create(scope, &format!("vm-{number}"), "small"))
            .await
            .unwrap();
        assert!(matches!(submitted, Submitted::First(..)), "{number}");
    }
    assert!(
        bench
            .store
            .claim(&scope_of("green", 2, "k"))
            .await
            .unwrap()
            .is_none()
    );
}

async fn of_many_at_once_exactly_one_is_first(bench: Bench) {
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                let key = format!("k-{}", number % 10);
                bench
                    .store
                    .submit(bench.create(scope(&key), &format!("vm-{}", number % 10), "small"))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut firsts = 0;
    for task in tasks {
        match task.await.unwrap() {
            Submitted::First(..) => firsts += 1,
            Submitted::Repeat(claim) => assert!(claim.request.is_some()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, 10);
    assert_eq!(bench.all(100, None).await.total, 10);
}

async fn a_name_belongs_to_one_living_resource(bench: Bench) {
    let maker = bench.created("first", "one").await;
    let Submitted::Existing(answer, id) = bench
        .store
        .submit(bench.create(scope("second"), "one", "small"))
        .await
        .unwrap()
    else {
        panic!("not existing")
    };
    assert_eq!((answer.kind, id), (AnswerKind::Done, maker));
    let claim = bench.claim("second").await.unwrap();
    assert!(claim.existing && claim.request == Some(maker) && claim.command.is_some());
    let outcomes: Vec<_> = bench
        .store
        .submissions(maker)
        .await
        .unwrap()
        .results
        .iter()
        .map(|one| one.outcome)
        .collect();
    assert_eq!(outcomes, [SubmissionOutcome::First, SubmissionOutcome::Existing]);
    let other_team = bench
        .store
        .submit(bench.create(scope_of("green", 1, "third"), "one", "large"))
        .await
        .unwrap();
    assert!(matches!(other_team, Submitted::First(..)));
}

async fn a_refused_name_leaves_the_key_free(bench: Bench) {
    let maker = bench.created("first", "one").await;
    let refused = bench
        .store
        .submit(bench.create(scope("second"), "one", "large"))
        .await
        .unwrap();
    let Submitted::NameTaken(holder) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (holder.request, holder.parameters),
        (maker, object(json!({ "size": "small" })))
    );
    assert!(bench.claim("second").await.is_none());
    assert!(matches!(
        bench
            .store
            .submit(bench.create(scope("second"), "two", "large"))
            .await
            .unwrap(),
        Submitted::First(..)
    ));
}

async fn a_bad_submission_never_fails_its_neighbours(bench: Bench) {
    // The same arrival twice breaks a primary key in the middle of a group.
    let mut group: Vec<Submission> = (0..8)
        .map(|n| bench.create(scope(&format!("k-{n}")), &format!("vm-{n}"), "small"))
        .collect();
    group[5].arrived.id = group[2].arrived.id;
    let tasks: Vec<_> = group
        .into_iter()
        .map(|one| {
            let store = Arc::clone(&bench.store);
            tokio::spawn(async move { store.submit(one).await })
        })
        .collect();
    let mut good = 0;
    for task in tasks {
        good += usize::from(task.await.unwrap().is_ok());
    }
    assert_eq!(good, 7);
    assert_eq!(bench.all(10, None).await.total, 7);
}

async fn a_run_belongs_to_one_worker_until_its_lease_ends(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    assert_eq!(
        (run.request.view.id, run.request.view.state),
        (id, RequestState::Running)
    );
    assert!(!run.touched);
    let almost = at(now.plus(LEASE).millis() - 1);
    assert!(bench.store.take_run("w2", almost, LEASE).await.unwrap().is_none());
    // Renewed in time, it stays for another lease.
    assert_eq!(
        bench.store.renew(run.hold(), almost.plus(LEASE)).await.unwrap(),
        Held::Yes(Intent::Apply)
    );
    assert!(
        bench
            .store
            .take_run("w2", now.plus(LEASE), LEASE)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(
        bench.store.note(run.hold(), Vec::new(), true, now).await.unwrap(),
        Held::Yes(Intent::Apply)
    );
    let taken_over = bench.taken("w2", almost.plus(LEASE)).await;
    assert!(
        taken_over.touched,
        "the recovery point is known to who takes over"
    );
    assert!(taken_over.fence > run.fence);
}

async fn a_worker_that_lost_its_lease_writes_nothing(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let lost = bench.taken("w1", now).await.hold();
    let later = now.plus(LEASE);
    let good = bench.taken("w2", later).await.hold();
    let log = || vec![EventEntry::Log { line: "stale".into() }];
    assert_eq!(
        bench.store.renew(lost, later.plus(LEASE)).await.unwrap(),
        Held::Lost
    );
    assert_eq!(
        bench.store.note(lost, log(), true, later).await.unwrap(),
        Held::Lost
    );
    assert_eq!(
        bench
            .store
            .give_back(lost, later, true, None, later)
            .await
            .unwrap(),
        Held::Lost
    );
    assert_eq!(bench.ended(lost, RequestState::Failed, later).await, Held::Lost);
    assert_eq!(bench.state(id).await, RequestState::Running);
    let events = bench.store.events(id, 0, 100).await.unwrap();
    assert!(
        !events
            .iter()
            .any(|event| matches!(event.entry, EventEntry::Log { .. }))
    );
    assert_eq!(
        bench.ended(good, RequestState::Succeeded, later).await,
        Held::Yes(Intent::Apply)
    );
    assert_eq!(
        bench.ended(good, RequestState::Failed, later).await,
        Held::Lost,
        "an end is written once"
    );
    assert_eq!(bench.state(id).await, RequestState::Succeeded);
}

async fn a_run_given_back_waits_for_its_time(bench: Bench) {
    bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w1", now).await;
    let due = now.plus(Duration::from_secs(5));
    assert_eq!(
        bench
            .store
            .give_back(run.hold(), due, true, None, now)
            .await
            .unwrap(),
        Held::Yes(Intent::Apply)
    );
    assert_eq!(bench.store.next_due().await.unwrap(), Some(due));
    assert!(
        bench
            .store
            .take_run("w2", at(due.millis() - 1), LEASE)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(bench.taken("w2", due).await.tries, 1);
}

async fn a_failed_create_frees_its_name_and_an_unknown_one_holds_it(bench: Bench) {
    for (number, state) in [RequestState::Failed, RequestState::Canceled]
        .into_iter()
        .enumerate()
    {
        bench.created(&format!("k-{number}"), "one").await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), state, bench.now()).await;
        assert!(
            bench
                .store
                .resource(&name("blue"), "vm", "one")
                .await
                .unwrap()
                .is_none()
        );
    }
    let id = bench.created("unknown", "one").await;
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
    let request = bench.store.request(id).await.unwrap().unwrap().view;
    assert!(request.finished_at.is_none(), "unknown is no end");
    assert!(matches!(
        bench
            .store
            .submit(bench.create(scope("other"), "one", "large"))
            .await
            .unwrap(),
        Submitted::NameTaken(_)
    ));
}

async fn success_shows_outputs_and_keeps_secrets_sealed(bench: Bench) {
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    let ending = Ending {
        state: RequestState::Succeeded,
        reason: None,
        outputs: object(json!({ "url": "x" })),
        secret_names: vec!["password".into()],
        secrets: Some(b"sealed".to_vec()),
    };
    bench
        .store
        .end_run(run.hold(), ending, bench.now())
        .await
        .unwrap();
    let request = bench.store.request(id).await.unwrap().unwrap().view;
    assert_eq!(
        (request.outputs, request.secret_outputs),
        (object(json!({ "url": "x" })), vec!["password".into()])
    );
    assert!(request.finished_at.is_some());
    let resource = bench
        .store
        .resource(&name("blue"), "vm", "one")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (resource.view.state.as_str(), resource.secrets.as_deref()),
        ("active", Some(b"sealed".as_slice()))
    );
    assert_eq!(
        bench.store.next_due().await.unwrap(),
        None,
        "nothing is left to do"
    );
}

async fn canceling_before_the_start_ends_it_at_once(bench: Bench) {
    let id = bench.created("k", "one").await;
    let cancel = |key: &str| bench.decision(scope(key), Operation::Cancel, Effect::Cancel(id));
    let Submitted::First(answer, Some(_)) = bench.store.submit(cancel("c1")).await.unwrap() else {
        panic!()
    };
    assert_eq!(answer.kind, AnswerKind::Accepted);
    assert_eq!(bench.state(id).await, RequestState::Canceled);
    assert!(
        bench
            .store
            .take_run("w", bench.now(), LEASE)
            .await
            .unwrap()
            .is_none()
    );
    assert!(matches!(
        bench.store.submit(cancel("c1")).await.unwrap(),
        Submitted::Repeat(_)
    ));
    let Submitted::Existing(answer, _) = bench.store.submit(cancel("c2")).await.unwrap() else {
        panic!()
    };
    assert_eq!(answer.kind, AnswerKind::Done);
}

async fn canceling_a_started_run_tells_its_worker(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let run = bench.taken("w", now).await;
    bench.store.note(run.hold(), Vec::new(), true, now).await.unwrap();
    bench
        .store
        .submit(bench.decision(scope("c"), Operation::Cancel, Effect::Cancel(id)))
        .await
        .unwrap();
    assert_eq!(
        bench.state(id).await,
        RequestState::Running,
        "until its worker has stopped it"
    );
    assert_eq!(
        bench.store.renew(run.hold(), now.plus(LEASE)).await.unwrap(),
        Held::Yes(Intent::Cancel)
    );
    // Given back meanwhile, it does not wait for a back-off.
    bench
        .store
        .give_back(run.hold(), now.plus(LEASE), true, None, now)
        .await
        .unwrap();
    let again = bench.taken("w", now).await;
    assert_eq!(again.intent, Intent::Cancel);
    bench.ended(again.hold(), RequestState::Succeeded, now).await;
    let late = bench
        .store
        .submit(bench.decision(scope("c2"), Operation::Cancel, Effect::Cancel(id)))
        .await
        .unwrap();
    assert!(matches!(late, Submitted::Undecidable(RequestState::Succeeded)));
    assert!(bench.claim("c2").await.is_none());
}

async fn a_retry_opens_the_next_attempt_and_reserves_the_name_again(bench: Bench) {
    let id = bench.created("k", "one").await;
    let retry = |key: &str| {
        bench.decision(
            scope(key),
            Operation::Retry,
            Effect::Retry(id, ResourceId(bench.id())),
        )
    };
    assert!(matches!(
        bench.store.submit(retry("early")).await.unwrap(),
        Submitted::Undecidable(RequestState::Queued)
    ));
    let now = bench.now();
    let old = bench.taken("w", now).await.hold();
    bench.ended(old, RequestState::Failed, now).await;
    bench.created("other", "one").await;
    assert!(matches!(
        bench.store.submit(retry("r1")).await.unwrap(),
        Submitted::NameTaken(_)
    ));
    let other = bench.taken("w", bench.now()).await;
    bench.ended(other.hold(), RequestState::Failed, bench.now()).await;
    assert!(matches!(
        bench.store.submit(retry("r1")).await.unwrap(),
        Submitted::First(..)
    ));
    let request = bench.store.request(id).await.unwrap().unwrap();
    assert_eq!(
        (request.view.state, request.view.attempt),
        (RequestState::Queued, 2)
    );
    let run = bench.taken("w", bench.now()).await;
    assert!(run.touched, "what the first attempt left is looked at first");
    assert_eq!(
        bench.ended(old, RequestState::Succeeded, now).await,
        Held::Lost,
        "an earlier attempt says nothing"
    );
    bench
        .ended(run.hold(), RequestState::Succeeded, bench.now())
        .await;
    assert!(
        bench
            .store
            .resource(&name("blue"), "vm", "one")
            .await
            .unwrap()
            .is_some()
    );
}

async fn an_unknown_outcome_is_resolved_once(bench: Bench) {
    let mut holds = HashSet::new();
    for (resolution, intent) in [
        (Resolution::Adopt, Intent::Adopt),
        (Resolution::Retry, Intent::Apply),
        (Resolution::Abandon, Intent::Abandon),
    ] {
        let word = resolution.as_str();
        let id = bench.created(word, word).await;
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
        let resolve = |key: &str, forced: Option<String>| {
            let effect = Effect::Resolve {
                request: id,
                resolution,
                forced,
            };
            bench.decision(scope(key), Operation::Resolve, effect)
        };
        let key = format!("r-{word}");
        assert!(matches!(
            bench.store.submit(resolve(&key, None)).await.unwrap(),
            Submitted::First(..)
        ));
        assert!(matches!(
            bench.store.submit(resolve(&key, None)).await.unwrap(),
            Submitted::Repeat(_)
        ));
        assert!(matches!(
            bench
                .store
                .submit(resolve(&format!("{key}-2"), None))
                .await
                .unwrap(),
            Submitted::Undecidable(RequestState::Queued)
        ));
        let run = bench.taken("w", bench.now()).await;
        assert_eq!((run.intent, run.touched), (intent, true));
        bench.ended(run.hold(), RequestState::Unknown, bench.now()).await;
        let forced = resolve(&format!("{key}-3"), Some("the machine is gone".into()));
        assert!(matches!(
            bench.store.submit(forced).await.unwrap(),
            Submitted::First(..)
        ));
        assert_eq!(bench.state(id).await, RequestState::Failed);
        assert!(
            bench
                .store
                .resource(&name("blue"), "vm", word)
                .await
                .unwrap()
                .is_none()
        );
        holds.insert(run.fence);
    }
}

async fn earlier_holds_never_fit_a_run_that_was_queued_again(bench: Bench) {
    let id = bench.created("k", "one").await;
    let now = bench.now();
    let lost = bench.taken("w1", now).await.hold();
    let successor = bench.taken("w2", now.plus(LEASE)).await.hold();
    bench
        .ended(successor, RequestState::Unknown, now.plus(LEASE))
        .await;
    let effect = Effect::Resolve {
        request: id,
        resolution: Resolution::Retry,
        forced: None,
    };
    bench
        .store
        .submit(bench.decision(scope("r"), Operation::Resolve, effect))
        .await
        .unwrap();
    bench.taken("w3", bench.now()).await;
    for stale in [lost, successor] {
        assert_eq!(
            bench.ended(stale, RequestState::Failed, bench.now()).await,
            Held::Lost
        );
    }
    assert_eq!(bench.state(id).await, RequestState::Running);
}

async fn repeats_are_history_and_past_a_thousand_only_counted(bench: Bench) {
    let id = bench.created("k", "one").await;
    let repeat = || Arrived {
        request: Some(id),
        outcome: SubmissionOutcome::Replayed,
        ..bench.arrived(scope("k"), Operation::Create)
    };
    bench
        .store
        .record((0..1010).map(|_| repeat()).collect())
        .await
        .unwrap();
    let shown = bench.store.submissions(id).await.unwrap();
    assert_eq!(
        (shown.results.len(), shown.total, shown.only_counted),
        (1000, 1011, 11)
    );
    assert_eq!(shown.results[0].outcome, SubmissionOutcome::First);
    assert_eq!(shown.results[1].outcome, SubmissionOutcome::Replayed);
    // A refusal of a key that nobody claimed is kept as well.
    let refused = Arrived {
        outcome: SubmissionOutcome::Refused,
        problem: Some("invalid-parameters"),
        ..bench.arrived(scope("never"), Operation::Create)
    };
    bench.store.record(vec![refused]).await.unwrap();
    assert!(bench.claim("never").await.is_none());
}

async fn pages_are_stable_while_rows_arrive(bench: Bench) {
    for number in 0..5 {
        bench
            .created(&format!("k-{number}"), &format!("vm-{number}"))
            .await;
    }
    let names = |page: &domain::view::Page<RequestView>| {
        page.results
            .iter()
            .map(|one| one.name.to_string())
            .collect::<Vec<_>>()
    };
    let first = bench.all(2, None).await;
    assert_eq!(
        (names(&first), first.total, first.total_is.clone()),
        (vec!["vm-4".into(), "vm-3".into()], 5, None)
    );
    bench.created("new", "vm-new").await;
    let place = super::cursor::read(first.next.as_deref().unwrap());
    let second = bench.all(2, place).await;
    assert_eq!(names(&second), ["vm-2", "vm-1"]);
    let last = bench
        .all(2, super::cursor::read(second.next.as_deref().unwrap()))
        .await;
    assert_eq!((names(&last), last.next), (vec!["vm-0".to_owned()], None));
    let resources = bench.store.resources(&name("blue"), None, 4).await.unwrap();
    assert_eq!(
        (resources.results.len(), resources.total, resources.next.is_some()),
        (4, 6, true)
    );
}

async fn a_history_goes_on_where_one_left_off(bench: Bench) {
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    let lines = (0..5)
        .map(|n| EventEntry::Log {
            line: format!("line {n}"),
        })
        .collect();
    bench
        .store
        .note(run.hold(), lines, false, bench.now())
        .await
        .unwrap();
    let all = bench.store.events(id, 0, 100).await.unwrap();
    assert_eq!(
        all.iter().map(|event| event.seq).collect::<Vec<_>>(),
        (1..=7).collect::<Vec<_>>()
    );
    let rest = bench.store.events(id, 5, 1).await.unwrap();
    assert_eq!((rest.len(), rest[0].seq), (1, 6));
}

async fn people_teams_and_tokens_are_kept(bench: Bench) {
    let now = bench.now();
    assert_eq!(
        bench
            .store
            .add_principal(bench.someone("ann", PortalRole::Member, Some("blue")), now)
            .await
            .unwrap(),
        Made::NoSuchTeam
    );
    assert!(
        bench.store.principal_by_name("ann").await.unwrap().is_none(),
        "nothing half-way"
    );
    assert_eq!(bench.store.add_team(&name("blue"), now).await.unwrap(), Made::New);
    assert_eq!(
        bench.store.add_team(&name("blue"), now).await.unwrap(),
        Made::Exists
    );
    let ann = bench.someone("ann", PortalRole::Member, Some("blue"));
    assert_eq!(
        bench.store.add_principal(ann.clone(), now).await.unwrap(),
        Made::New
    );
    assert_eq!(
        bench
            .store
            .add_principal(bench.someone("ann", PortalRole::Admin, None), now)
            .await
            .unwrap(),
        Made::Exists
    );
    let kept = bench.store.principal(ann.id).await.unwrap().unwrap();
    assert_eq!(
        (kept.role, kept.teams),
        (PortalRole::Member, vec![(name("blue"), TeamRole::Member)])
    );

    let token = |id| TokenView {
        id: TokenId(id),
        label: "ci".into(),
        created_at: now,
        expires_at: now.plus(LEASE),
        last_used_at: None,
        revoked_at: None,
        token: None,
    };
    let view = token(bench.id());
    bench
        .store
        .add_token(ann.id, view.clone(), [1; 32])
        .await
        .unwrap();
    let found = bench.store.token([1; 32], now).await.unwrap();
    assert_eq!(found, Some((ann.id, view.id, "ci".into())));
    assert_eq!(bench.store.token([2; 32], now).await.unwrap(), None);
    assert_eq!(
        bench.store.token([1; 32], now.plus(LEASE)).await.unwrap(),
        None,
        "expired"
    );
    bench.store.tokens_used(vec![view.id], now).await.unwrap();
    assert_eq!(
        bench.store.tokens(ann.id).await.unwrap()[0].last_used_at,
        Some(now)
    );
    let own = Scope {
        principal: ann.id,
        ..scope("revoke")
    };
    let revoke = |scope: Scope| bench.decision(scope, Operation::TokenRevoke, Effect::TokenRevoke(view.id));
    let foreign = scope_of("-", 77, "revoke");
    assert!(matches!(
        bench.store.submit(revoke(foreign)).await.unwrap(),
        Submitted::Missing
    ));
    assert!(matches!(
        bench.store.submit(revoke(own.clone())).await.unwrap(),
        Submitted::First(..)
    ));
    assert!(matches!(
        bench.store.submit(revoke(own)).await.unwrap(),
        Submitted::Repeat(_)
    ));
    assert_eq!(bench.store.token([1; 32], now).await.unwrap(), None, "revoked");
}

async fn only_the_first_set_up_counts(bench: Bench) {
    assert!(!bench.store.has_admin().await.unwrap());
    let now = bench.now();
    let (one, two) = (
        bench.someone("root", PortalRole::Admin, Some("ops")),
        bench.someone("boot", PortalRole::Admin, Some("ops")),
    );
    let (one, two) = tokio::join!(bench.store.set_up(one, now), bench.store.set_up(two, now));
    let made: HashSet<bool> = [one.unwrap(), two.unwrap()]
        .iter()
        .map(|made| *made == Made::New)
        .collect();
    assert_eq!(made.len(), 2, "one was made and one was not");
    assert!(bench.store.has_admin().await.unwrap());
}

async fn sessions_end_and_are_swept(bench: Bench) {
    let (now, end) = (at(1000), at(2000));
    assert!(
        bench
            .store
            .save_session("s", b"a".to_vec(), end, true)
            .await
            .unwrap()
    );
    assert!(
        !bench
            .store
            .save_session("s", b"b".to_vec(), end, true)
            .await
            .unwrap(),
        "an ID is used once"
    );
    assert_eq!(
        bench.store.session("s", now).await.unwrap().as_deref(),
        Some(b"a".as_slice())
    );
    assert!(
        bench
            .store
            .save_session("s", b"c".to_vec(), end, false)
            .await
            .unwrap()
    );
    assert_eq!(
        bench.store.session("s", now).await.unwrap().as_deref(),
        Some(b"c".as_slice())
    );
    assert_eq!(bench.store.session("s", end).await.unwrap(), None);
    assert_eq!(bench.store.sweep_sessions(now, 10).await.unwrap(), 0);
    assert_eq!(bench.store.sweep_sessions(end, 10).await.unwrap(), 1);
    bench.store.delete_session("s").await.unwrap();
}

async fn a_setting_is_set_once(bench: Bench) {
    assert_eq!(bench.store.setting("check").await.unwrap(), None);
    assert_eq!(
        bench.store.set_once("check", b"one".to_vec()).await.unwrap(),
        b"one"
    );
    assert_eq!(
        bench.store.set_once("check", b"two".to_vec()).await.unwrap(),
        b"one"
    );
    bench.store.probe(bench.now()).await.unwrap();
}

async fn what_is_kept_survives_reopening(bench: Bench) {
    let id = bench.created("k", "one").await;
    let again = Sqlite::open(&bench._folder.path().join("keyturn.db"))
        .await
        .unwrap();
    assert_eq!(again.claim(&scope("k")).await.unwrap().unwrap().request, Some(id));
    // Two servers on one file still make one request of one key.
    let (here, there) = (
        bench.create(scope("both"), "two", "small"),
        bench.create(scope("both"), "two", "small"),
    );
    let (here, there) = tokio::join!(bench.store.submit(here), again.submit(there));
    let firsts = [here.unwrap(), there.unwrap()]
        .iter()
        .filter(|one| matches!(one, Submitted::First(..)))
        .count();
    assert_eq!(firsts, 1);
}
