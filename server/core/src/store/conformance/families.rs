//! Families: steps, chains, and a parent that is woken by its steps.

use super::*;

/// A create that a step of this request asks for.
fn step_of(bench: &Bench, run: &Run, step: &str, vm: &str) -> Submission {
    let mut submission = bench.create(&scope(&format!("{}/{step}", run.request.view.id)), vm, "small");
    submission.arrived.channel = Channel::Composite;
    let Effect::Create { request, .. } = &mut submission.effect else { panic!("a create") };
    request.view.channel = Channel::Composite;
    request.view.parent_id = Some(run.request.view.id);
    submission.effect = Effect::Step(run.hold(), Box::new(submission.effect.clone()));
    submission
}

async fn asked(bench: &Bench, run: &Run, step: &str, vm: &str) -> RequestId {
    match bench.store.submit(step_of(bench, run, step, vm)).await.unwrap() {
        Submitted::First(_, Some(id)) => id,
        other => panic!("not a first: {other:?}"),
    }
}

/// A run that is given back to wait for an hour.
async fn waits(bench: &Bench, run: &Run, now: Moment) {
    let hour = Duration::from_hours(1);
    let held = bench.store.give_back(run.hold(), Intent::Apply, hour, false, None, now).await.unwrap();
    assert_eq!(held, Held::Yes(Intent::Apply));
}

pub(super) async fn the_end_of_a_step_wakes_its_parent(bench: Bench) {
    for (end, wakes) in [
        (RequestState::Succeeded, true),
        (RequestState::Failed, true),
        (RequestState::Unknown, true),
        (RequestState::Running, false),
    ] {
        let parent = bench.created(&format!("{end}"), &format!("parent-{end}").replace('_', "-")).await;
        let run = bench.taken("w1", bench.now()).await;
        assert_eq!(run.request.view.id, parent);
        let child = asked(&bench, &run, "one", &format!("child-{end}").replace('_', "-")).await;
        waits(&bench, &run, bench.now()).await;
        let step = bench.taken("w1", bench.now()).await;
        assert_eq!(step.request.view.id, child, "the parent waits");
        if end != RequestState::Running {
            bench.ended(step.hold(), end, bench.now()).await;
        }
        let taken = bench.store.take_run("w2", bench.now(), LEASE).await.unwrap();
        assert_eq!(taken.as_ref().map(|run| run.request.view.id), wakes.then_some(parent), "{end}");
        if let Some(run) = taken {
            bench.ended(run.hold(), RequestState::Succeeded, bench.now()).await;
        }
    }
}

pub(super) async fn a_step_that_ends_while_its_parent_is_held_is_not_missed(bench: Bench) {
    bench.created("k", "parent").await;
    let run = bench.taken("w1", bench.now()).await;
    asked(&bench, &run, "one", "one").await;
    let step = bench.taken("w2", bench.now()).await;
    bench.ended(step.hold(), RequestState::Succeeded, bench.now()).await;
    assert!(bench.store.take_run("w2", bench.now(), LEASE).await.unwrap().is_none(), "it is held");
    waits(&bench, &run, bench.now()).await;
    let run = bench.taken("w2", bench.now()).await;
    // That has been seen now: the next wait lasts.
    waits(&bench, &run, bench.now()).await;
    assert!(bench.store.take_run("w2", bench.now(), LEASE).await.unwrap().is_none());
}

pub(super) async fn only_a_step_wakes_whom_it_names_as_parent(bench: Bench) {
    let parent = bench.created("k", "parent").await;
    let run = bench.taken("w1", bench.now()).await;
    waits(&bench, &run, bench.now()).await;
    let mut other = bench.create(&scope("other"), "other", "small");
    let Effect::Create { request, .. } = &mut other.effect else { panic!("a create") };
    request.view.parent_id = Some(parent);
    bench.store.submit(other).await.unwrap();
    let other = bench.taken("w1", bench.now()).await;
    bench.ended(other.hold(), RequestState::Succeeded, bench.now()).await;
    assert!(bench.store.take_run("w1", bench.now(), LEASE).await.unwrap().is_none());
    assert_eq!(bench.store.steps_of(parent).await.unwrap().len(), 0);
}

pub(super) async fn who_lost_the_parents_run_asks_for_no_step(bench: Bench) {
    let parent = bench.created("k", "parent").await;
    let lost = bench.taken("w1", bench.now()).await;
    let later = bench.now().plus(LEASE);
    let run = bench.taken("w2", later).await;
    let submission = step_of(&bench, &lost, "one", "one");
    assert!(matches!(bench.store.submit(submission).await.unwrap(), Submitted::TooLate(_)));
    let key = format!("{parent}/one");
    assert!(bench.claim(&key).await.is_none(), "the key stays free");
    let child = asked(&bench, &run, "one", "one").await;
    let again = bench.store.submit(step_of(&bench, &run, "one", "one")).await.unwrap();
    assert!(matches!(again, Submitted::Repeat(claim) if claim.request == Some(child)));
    let steps = bench.store.steps_of(parent).await.unwrap();
    assert_eq!(steps.iter().map(|one| one.step.as_str()).collect::<Vec<_>>(), ["one"]);
}

pub(super) async fn a_chain_is_found_from_any_of_it_and_within_bounds(bench: Bench) {
    let root = bench.created("root", "root").await;
    let mut below = Vec::new();
    for (number, parent) in [(0, None), (1, None), (2, Some(0)), (3, Some(2))] {
        let mut submission = bench.create(&scope(&format!("k{number}")), &format!("n{number}"), "small");
        let Effect::Create { request, .. } = &mut submission.effect else { panic!("a create") };
        request.view.parent_id = Some(parent.map_or(root, |at: usize| below[at]));
        let Submitted::First(_, Some(id)) = bench.store.submit(submission).await.unwrap() else {
            panic!("a first")
        };
        below.push(id);
    }
    let all = [root, below[0], below[2], below[3], below[1]];
    for of in all {
        let chain = bench.store.chain(of, 50).await.unwrap().unwrap();
        assert_eq!(chain.results.iter().map(|one| one.id).collect::<Vec<_>>(), all);
        assert_eq!(chain.results.iter().map(|one| one.depth).collect::<Vec<_>>(), [0, 1, 2, 3, 1]);
        assert!(!chain.more);
    }
    for of in all {
        let chain = bench.store.chain(of, 2).await.unwrap().unwrap();
        assert!(
            chain.more && chain.results.len() == 2 && chain.results.iter().any(|one| one.id == of)
                || of == root
        );
        assert_eq!(chain.results[0].id, root);
    }
    assert!(bench.store.chain(RequestId(bench.id()), 50).await.unwrap().is_none());
}
