//! The guard: keys, names, and what one transaction leaves.

use super::*;

pub(super) async fn a_first_submission_leaves_the_whole_of_it(bench: Bench) {
    let id = bench.created("k", "one").await;
    let request = bench.store.request(id).await.unwrap().unwrap();
    assert_eq!(request.view.state, RequestState::Queued);
    let claim = bench.claim("k").await.unwrap();
    assert_eq!(claim.request, Some(id));
    let shown: RequestView = serde_json::from_slice(&claim.answer.body).unwrap();
    assert_eq!(shown, request.view);
    let resource = bench.store.resource(&name("blue"), "vm", "one").await.unwrap().unwrap();
    assert_eq!((resource.view.state.as_str(), resource.view.created_by.id), ("creating", id));
    assert!(bench.store.next_due().await.unwrap().is_some());
    let events = bench.store.events(id, 0, 10).await.unwrap();
    assert_eq!(events[0].entry, EventEntry::State { state: RequestState::Queued, reason: None });
    let submissions = bench.store.submissions(id).await.unwrap();
    assert_eq!((submissions.total, submissions.results[0].outcome), (1, SubmissionOutcome::First));
}

pub(super) async fn a_repeat_gets_the_first_answer_and_makes_nothing(bench: Bench) {
    let Submitted::First(first, Some(id)) =
        bench.store.submit(bench.create(&scope("k"), "one", "small")).await.unwrap()
    else {
        panic!("not a first")
    };
    // Whatever else it asks for: whether it means the same is for the guard to say.
    for vm in ["one", "two"] {
        let Submitted::Repeat(claim) =
            bench.store.submit(bench.create(&scope("k"), vm, "large")).await.unwrap()
        else {
            panic!("not a repeat")
        };
        assert_eq!((&claim.answer, claim.request), (&first, Some(id)));
    }
    assert_eq!(bench.all(10, None).await.total, 1);
    assert!(bench.store.resource(&name("blue"), "vm", "two").await.unwrap().is_none());
}

pub(super) async fn a_key_is_unique_within_its_full_scope_only(bench: Bench) {
    let scopes = [
        scope("k"),
        scope("K"),
        scope_of("green", 1, "k"),
        scope_of("blue", 2, "k"),
        scope(&"k".repeat(255)),
    ];
    for (number, scope) in scopes.into_iter().enumerate() {
        let submitted =
            bench.store.submit(bench.create(&scope, &format!("vm-{number}"), "small")).await.unwrap();
        assert!(matches!(submitted, Submitted::First(..)), "{number}");
    }
    assert!(bench.store.claimed(&scope_of("green", 2, "k")).await.unwrap().is_none());
}

pub(super) async fn of_many_at_once_exactly_one_is_first(bench: Bench) {
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                let key = format!("k-{}", number % 10);
                bench
                    .store
                    .submit(bench.create(&scope(&key), &format!("vm-{}", number % 10), "small"))
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

pub(super) async fn a_name_belongs_to_one_living_resource(bench: Bench) {
    let maker = bench.created("first", "one").await;
    let Submitted::Existing(answer, id) =
        bench.store.submit(bench.create(&scope("second"), "one", "small")).await.unwrap()
    else {
        panic!("not existing")
    };
    assert_eq!((answer.kind, id), (AnswerKind::Done, maker));
    let claim = bench.claim("second").await.unwrap();
    assert!(claim.existing && claim.request == Some(maker) && claim.command.is_some());
    let outcomes: Vec<_> =
        bench.store.submissions(maker).await.unwrap().results.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [SubmissionOutcome::First, SubmissionOutcome::Existing]);
    let other_team =
        bench.store.submit(bench.create(&scope_of("green", 1, "third"), "one", "large")).await.unwrap();
    assert!(matches!(other_team, Submitted::First(..)));
}

pub(super) async fn a_refused_name_leaves_the_key_free(bench: Bench) {
    let maker = bench.created("first", "one").await;
    let refused = bench.store.submit(bench.create(&scope("second"), "one", "large")).await.unwrap();
    let Submitted::NameTaken(holder) = refused else { panic!("{refused:?}") };
    assert_eq!((holder.request, holder.parameters), (maker, object(&json!({ "size": "small" }))));
    assert!(bench.claim("second").await.is_none());
    assert!(matches!(
        bench.store.submit(bench.create(&scope("second"), "two", "large")).await.unwrap(),
        Submitted::First(..)
    ));
}

pub(super) async fn a_bad_submission_never_fails_its_neighbours(bench: Bench) {
    // The same arrival twice breaks a primary key in the middle of a group.
    let mut group: Vec<Submission> =
        (0..8).map(|n| bench.create(&scope(&format!("k-{n}")), &format!("vm-{n}"), "small")).collect();
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
