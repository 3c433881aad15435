//! Quotas: what a team's resources may cost together, whoever asks at the same moment and wherever.

use super::*;
use crate::store::{AuditEntry, SecondLook};
use domain::quota::{QuotaShort, QuotaUse};

const OTHERS: &str = "green";

impl Bench {
    /// Team blue with this limit, and another without one.
    pub(super) async fn limited(self, limit: u64) -> Self {
        let now = self.now();
        assert_eq!(self.store.add_team(&name("blue"), Some(limit), now).await.unwrap(), Made::New);
        assert_eq!(self.store.add_team(&name(OTHERS), None, now).await.unwrap(), Made::New);
        self
    }

    fn costing(&self, scope: &Scope, vm: &str, takes: u32) -> Submission {
        let mut submission = self.create(scope, vm, "small");
        let Effect::Create { cost, .. } = &mut submission.effect else { panic!("not a create") };
        *cost = takes;
        submission
    }

    async fn asks(&self, key: &str, vm: &str, cost: u32) -> Submitted {
        self.store.submit(self.costing(&scope(key), vm, cost)).await.unwrap()
    }

    pub(super) async fn used(&self) -> u64 {
        self.store.quota(&name("blue")).await.unwrap().unwrap().used
    }

    pub(super) async fn set(&self, limit: Option<u64>) -> Option<QuotaUse> {
        self.set_of("blue", limit).await
    }

    async fn set_of(&self, team: &str, limit: Option<u64>) -> Option<QuotaUse> {
        self.store.set_quota(&name(team), limit, setting(team, self.now())).await.unwrap()
    }

    /// Has the work of what is due end like this.
    async fn next_ends(&self, state: RequestState) {
        let run = self.taken("w", self.now()).await;
        assert_ne!(self.ended(run.hold(), state, self.now()).await, Held::Lost);
    }

    /// Whether anything is left of a create.
    async fn left_of(&self, key: &str, vm: &str) -> bool {
        self.claim(key).await.is_some()
            || self.store.resource(&name("blue"), "vm", vm).await.unwrap().is_some()
            || self.all(1000, None).await.results.iter().any(|view| view.name.as_str() == vm)
    }
}

pub(super) fn setting(team: &str, at: Moment) -> AuditEntry {
    AuditEntry {
        at,
        actor: "command line".into(),
        channel: "cli",
        act: "team_quota",
        team: team.into(),
        target: team.into(),
        detail: String::new(),
    }
}

#[track_caller]
fn short(submitted: &Submitted) -> (u64, u64, u64) {
    match submitted {
        Submitted::QuotaExceeded(QuotaShort { used, limit, asked }) => (*used, *limit, *asked),
        other => panic!("not refused by the quota: {other:?}"),
    }
}

#[track_caller]
fn made(submitted: Submitted) -> RequestId {
    match submitted {
        Submitted::First(_, Some(id)) => id,
        other => panic!("not a first: {other:?}"),
    }
}

pub(super) async fn a_team_gets_what_fits_into_its_quota_and_no_more(bench: Bench) {
    let bench = bench.limited(10).await;
    made(bench.asks("k-1", "one", 3).await);
    made(bench.asks("k-2", "two", 5).await);
    assert_eq!(short(&bench.asks("k-3", "three", 3).await), (8, 10, 3));
    assert!(!bench.left_of("k-3", "three").await, "a refusal leaves nothing");
    assert_eq!(bench.used().await, 8);
    // Up to the last bit; and what costs nothing always has its place.
    let four = made(bench.asks("k-4", "four", 2).await);
    made(bench.asks("k-5", "five", 0).await);
    assert_eq!(short(&bench.asks("k-3", "three", 1).await), (10, 10, 1));
    // A repeat, and what is there already, meet no quota; a name that is taken is told first.
    assert!(matches!(bench.asks("k-1", "one", 3).await, Submitted::Repeat(_)));
    assert!(matches!(bench.asks("k-6", "one", 3).await, Submitted::Existing(..)));
    let other = bench.create(&scope("k-7"), "one", "large");
    assert!(matches!(bench.store.submit(other).await.unwrap(), Submitted::NameTaken(_)));
    // Once there is room the same key runs.
    let cancel = bench.decision(scope("cancel"), Operation::Cancel, Effect::Cancel(four));
    assert!(matches!(bench.store.submit(cancel).await.unwrap(), Submitted::First(..)));
    made(bench.asks("k-3", "three", 2).await);
    assert_eq!(bench.used().await, 10);
    // Others' quotas are nobody's business.
    for number in 0..12 {
        let one = bench.costing(&scope_of(OTHERS, 1, &format!("k-{number}")), &format!("vm-{number}"), 5);
        made(bench.store.submit(one).await.unwrap());
    }
}

pub(super) async fn a_limit_is_set_lowered_and_taken_away(bench: Bench) {
    assert_eq!(bench.set(Some(1)).await, None, "there is no such team");
    let bench = bench.limited(10).await;
    for number in 0..3 {
        made(bench.asks(&format!("k-{number}"), &format!("vm-{number}"), 2).await);
    }
    assert_eq!(bench.set(Some(4)).await, Some(QuotaUse { used: 6, limit: Some(4) }));
    assert_eq!(short(&bench.asks("k", "more", 1).await), (6, 4, 1));
    made(bench.asks("free", "free", 0).await);
    assert_eq!(
        bench.store.limits(&[name("blue"), name(OTHERS), name("none")]).await.unwrap(),
        [(name("blue"), QuotaUse { used: 6, limit: Some(4) })]
    );
    assert_eq!(bench.set(None).await, Some(QuotaUse { used: 6, limit: None }));
    made(bench.asks("k", "more", 100).await);
    // What was made without a limit counts as well once there is one.
    let one = bench.costing(&scope_of(OTHERS, 1, "k"), "one", 7);
    made(bench.store.submit(one).await.unwrap());
    assert_eq!(bench.set_of(OTHERS, Some(7)).await, Some(QuotaUse { used: 7, limit: Some(7) }));
    let two = bench.costing(&scope_of(OTHERS, 1, "k-2"), "two", 1);
    assert_eq!(short(&bench.store.submit(two).await.unwrap()), (7, 7, 1));
}

pub(super) async fn what_gives_its_name_back_gives_its_share_back(bench: Bench) {
    let bench = bench.limited(4).await;
    for state in [RequestState::Failed, RequestState::Canceled] {
        made(bench.asks(state.as_str(), "one", 4).await);
        assert_eq!(short(&bench.asks("k", "two", 1).await), (4, 4, 1), "it is being made");
        bench.next_ends(state).await;
        assert_eq!(bench.used().await, 0, "{state}");
    }
    let id = made(bench.asks("unknown", "one", 4).await);
    bench.next_ends(RequestState::Unknown).await;
    assert_eq!(short(&bench.asks("k", "two", 1).await), (4, 4, 1), "it may be there");
    let resolve = Effect::Resolve { request: id, resolution: Resolution::Adopt, forced: None, reason: None };
    let resolve = bench.decision(scope("resolve"), Operation::Resolve, resolve);
    assert!(matches!(bench.store.submit(resolve).await.unwrap(), Submitted::First(..)));
    bench.next_ends(RequestState::Succeeded).await;
    assert_eq!(short(&bench.asks("k", "two", 1).await), (4, 4, 1), "it is there");
    let delete = bench.change("delete", "one", "delete", nothing_left());
    assert!(matches!(bench.store.submit(delete).await.unwrap(), Submitted::Accepted(..)));
    assert_eq!(short(&bench.asks("k", "two", 1).await), (4, 4, 1), "it is not gone yet");
    bench.next_ends(RequestState::Succeeded).await;
    made(bench.asks("k", "two", 4).await);
}

pub(super) async fn a_retry_takes_its_share_again_or_is_refused(bench: Bench) {
    let bench = bench.limited(5).await;
    let id = made(bench.asks("k", "one", 3).await);
    bench.next_ends(RequestState::Failed).await;
    let other = made(bench.asks("other", "two", 3).await);
    let retry =
        |key: &str| bench.decision(scope(key), Operation::Retry, Effect::Retry(id, ResourceId(bench.id())));
    assert_eq!(short(&bench.store.submit(retry("r")).await.unwrap()), (3, 5, 3));
    assert_eq!((bench.state(id).await, bench.used().await), (RequestState::Failed, 3));
    assert!(bench.claim("r").await.is_none());
    assert!(bench.store.resource(&name("blue"), "vm", "one").await.unwrap().is_none(), "the name is free");
    let cancel = bench.decision(scope("cancel"), Operation::Cancel, Effect::Cancel(other));
    assert!(matches!(bench.store.submit(cancel).await.unwrap(), Submitted::First(..)));
    assert!(matches!(bench.store.submit(retry("r")).await.unwrap(), Submitted::First(..)));
    assert_eq!(
        (bench.state(id).await, bench.used().await),
        (RequestState::Queued, 3),
        "what it cost at first"
    );
    assert!(matches!(bench.store.submit(retry("r")).await.unwrap(), Submitted::Repeat(_)));
}

pub(super) async fn what_has_no_place_is_not_asked_about(bench: Bench) {
    let bench = bench.limited(2).await;
    let looked = |key: &str, vm: &str, takes: u32| {
        let mut submission = bench.costing(&scope(key), vm, takes);
        let Effect::Create { second_look, .. } = &mut submission.effect else { panic!("not a create") };
        *second_look = Some(SecondLook { parameters: [1; 32], since: at(0), askable: true, confirmed: None });
        submission
    };
    made(bench.store.submit(looked("k-1", "one", 1)).await.unwrap());
    assert_eq!(short(&bench.store.submit(looked("k-2", "two", 2)).await.unwrap()), (1, 2, 2));
    assert!(matches!(bench.store.submit(looked("k-2", "two", 1)).await.unwrap(), Submitted::Suspected(_)));
    assert_eq!(bench.used().await, 1);
}

/// Submits all of these at once; what came of each, in their order.
async fn at_once(store: &Arc<dyn Store>, these: Vec<Submission>) -> Vec<Submitted> {
    let tasks: Vec<_> = these
        .into_iter()
        .map(|one| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.submit(one).await })
        })
        .collect();
    let mut came = Vec::new();
    for task in tasks {
        came.push(task.await.unwrap().unwrap());
    }
    came
}

pub(super) async fn teams_with_and_without_a_limit_are_decided_together(bench: Bench) {
    let bench = bench.limited(7).await;
    bench.store.add_team(&name("red"), Some(3), bench.now()).await.unwrap();
    let mut all = Vec::new();
    for number in 0..20 {
        for team in ["blue", OTHERS, "red"] {
            let mut one =
                bench.costing(&scope_of(team, 1, &format!("k-{number}")), &format!("vm-{number}"), 1);
            let Effect::Create { second_look, .. } = &mut one.effect else { panic!("not a create") };
            // Some of them by themselves, after the others.
            *second_look = (number % 4 == 0).then(|| SecondLook {
                parameters: [u8::try_from(number).unwrap(); 32],
                since: at(0),
                askable: true,
                confirmed: None,
            });
            all.push((team, one));
        }
    }
    let (teams, these): (Vec<&str>, Vec<Submission>) = all.into_iter().unzip();
    let came = at_once(&bench.store, these).await;
    let firsts = |wanted: &str| {
        let of_team = teams.iter().zip(&came).filter(|(team, _)| **team == wanted);
        let firsts = of_team.clone().filter(|(_, came)| matches!(came, Submitted::First(..))).count();
        of_team.filter(|(_, came)| !matches!(came, Submitted::First(..))).for_each(|(_, came)| {
            short(came);
        });
        firsts
    };
    assert_eq!((firsts("blue"), firsts(OTHERS), firsts("red")), (7, 20, 3));
    for (team, used) in [("blue", 7), (OTHERS, 20), ("red", 3)] {
        assert_eq!(bench.store.quota(&name(team)).await.unwrap().unwrap().used, used);
    }
    assert_eq!(bench.all(1000, None).await.total, 30, "of the others nothing is left");
    let mut runs = 0;
    while bench.store.take_run("w", bench.now(), LEASE).await.unwrap().is_some() {
        runs += 1;
    }
    assert_eq!(runs, 30);
}

pub(super) async fn who_is_refused_stands_in_nobodys_way(bench: Bench) {
    let bench = bench.limited(1).await;
    let mut all = Vec::new();
    for number in 0..16 {
        // The first of each two has no place; the second wants its key or its name, and has one since it costs nothing.
        let (key, vm) = (format!("k-{number}"), format!("vm-{number}"));
        all.push(bench.costing(&scope(&key), &vm, 2));
        let same_name = number % 2 == 0;
        let other = if same_name { format!("other-{number}") } else { key };
        let vm = if same_name { vm } else { format!("other-{number}") };
        let mut second = bench.costing(&scope(&other), &vm, 0);
        let Effect::Create { request, .. } = &mut second.effect else { panic!("not a create") };
        request.view.parameters = object(&json!({ "size": "other" }));
        second.meaning = meaning(77);
        all.push(second);
    }
    let came = at_once(&bench.store, all).await;
    for (place, came) in came.into_iter().enumerate() {
        match (place % 2, came) {
            // Unless the second came first, as between any two.
            (0, Submitted::NameTaken(_) | Submitted::Repeat(_)) => {}
            (0, came) => assert_eq!(short(&came), (0, 1, 2)),
            (_, came) => drop(made(came)),
        }
    }
    assert_eq!((bench.used().await, bench.all(1000, None).await.total), (0, 16));
}

pub(super) async fn repeats_of_what_is_refused_are_refused_alike(bench: Bench) {
    let bench = bench.limited(1).await;
    made(bench.asks("first", "one", 1).await);
    for round in 0..4 {
        let (taken, short_of) = (format!("taken-{round}"), format!("short-{round}"));
        let mut all = Vec::new();
        for number in 0..8 {
            // The same name with other parameters, what has no place, and under each key something else now and then.
            all.push(bench.create(&scope(&taken), "one", if number == 5 { "larger" } else { "large" }));
            let mut one = bench.costing(&scope(&short_of), if number == 5 { "three" } else { "two" }, 1);
            one.meaning = meaning(if number == 5 { 77 } else { 7 });
            all.push(one);
        }
        for (place, came) in at_once(&bench.store, all).await.into_iter().enumerate() {
            match (place % 2, came) {
                (0, Submitted::NameTaken(_)) => {}
                (_, came) => assert_eq!(short(&came), (1, 1, 1)),
            }
        }
        assert!(bench.claim(&taken).await.is_none() && bench.claim(&short_of).await.is_none());
    }
    assert_eq!(bench.all(1000, None).await.total, 1);
}

pub(super) async fn of_many_at_once_at_two_stores_exactly_as_many_as_fit_are_made(bench: Bench) {
    let bench = bench.limited(10).await;
    let there = bench.place.open().await;
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for number in 0..32 {
        here.push(bench.costing(&scope(&format!("here-{number}")), &format!("here-{number}"), 1));
        elsewhere.push(bench.costing(&scope(&format!("there-{number}")), &format!("there-{number}"), 1));
    }
    let (here, elsewhere) = tokio::join!(at_once(&bench.store, here), at_once(&there, elsewhere));
    let all: Vec<Submitted> = here.into_iter().chain(elsewhere).collect();
    let firsts = all.iter().filter(|came| matches!(came, Submitted::First(..))).count();
    for refused in all.iter().filter(|came| !matches!(came, Submitted::First(..))) {
        assert_eq!(short(refused), (10, 10, 1));
    }
    assert_eq!((firsts, bench.used().await, bench.all(1000, None).await.total), (10, 10, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_waits_for_what_is_in_the_middle_of_being_made() {
    let bench = Arc::new(Bench::postgres().await.limited(1).await);
    bench.set(None).await;
    let (mut making, mut looking) = (bench.aside().await, bench.aside().await);
    // Another server, in a transaction that looked at the team when it had no limit.
    sqlx::raw_sql(
        "BEGIN; INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at, cost)
         VALUES (gen_random_uuid(), 'blue', 'vm', 'one', 'vm', 'creating', '{}', gen_random_uuid(), 1, 1, 5)",
    )
    .execute(&mut making)
    .await
    .unwrap();
    let setting = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.set(Some(5)).await })
    };
    bench.waiting(&mut looking, 1).await;
    sqlx::query("COMMIT").execute(&mut making).await.unwrap();
    assert_eq!(setting.await.unwrap(), Some(QuotaUse { used: 5, limit: Some(5) }));
    assert_eq!(short(&bench.asks("k", "two", 1).await), (5, 5, 1));
}
