//! Lists, histories, people, sessions: what is kept and given back.

use super::*;
use crate::clock::{Clock, SystemClock};

pub(super) async fn repeats_are_history_and_past_a_thousand_only_counted(bench: Bench) {
    let id = bench.created("k", "one").await;
    let repeat = || Arrived {
        request: Some(id),
        outcome: SubmissionOutcome::Replayed,
        ..bench.arrived(scope("k"), Operation::Create)
    };
    bench.store.record((0..1010).map(|_| repeat()).collect()).await.unwrap();
    let shown = bench.store.submissions(id).await.unwrap();
    assert_eq!((shown.results.len(), shown.total, shown.only_counted), (1000, 1011, 11));
    assert_eq!(shown.results[0].outcome, SubmissionOutcome::First);
    assert_eq!(shown.results[1].outcome, SubmissionOutcome::Replayed);
    // A refusal of a key that nobody claimed is kept as well.
    let refused = Arrived {
        outcome: SubmissionOutcome::Refused,
        problem: Some("invalid-parameters"),
        ..bench.arrived(scope("never"), Operation::Create)
    };
    bench.store.record([refused].into()).await.unwrap();
    assert!(bench.claim("never").await.is_none());
}

pub(super) async fn what_is_only_counted_stands_beside_what_is_written_down(bench: Bench) {
    let id = bench.created("k", "one").await;
    let repeat = |key| Arrived {
        outcome: SubmissionOutcome::Replayed,
        request: Some(id),
        ..bench.arrived(scope(key), Operation::Create)
    };
    let shown = async || {
        let shown = bench.store.submissions(id).await.unwrap();
        (shown.results.len(), shown.total, shown.only_counted)
    };
    bench.store.record((0..10).map(|_| repeat("k")).collect()).await.unwrap();
    let tally = |key, count| Tally { arrived: repeat(key), count };
    let waited = |mut tally: Tally| {
        tally.arrived.outcome = SubmissionOutcome::Waited;
        tally
    };
    let tallies = [tally("k", 980), waited(tally("k", 4)), tally("never", 5)];
    assert_eq!(bench.store.tally(tallies.into()).await.unwrap(), 5, "those of no claim");
    assert_eq!(shown().await, (11, 995, 984));
    // Room is for a thousand of a key in all, counted or written.
    bench.store.record((0..10).map(|_| repeat("k")).collect()).await.unwrap();
    assert_eq!(shown().await, (16, 1005, 989));
    bench.store.record([repeat("k")].into()).await.unwrap();
    assert_eq!(shown().await, (16, 1006, 990));
    let (periods, _) = bench.store.duplicates(vec![at(0), at(1_000_000_000_000_000)], 10).await.unwrap();
    let mut rules: Vec<_> = periods.iter().map(|period| (period.rule.as_str(), period.count)).collect();
    rules.sort_unstable();
    assert_eq!(rules, [("replayed", 10 + 980 + 5 + 10 + 1), ("waited", 4)]);
}

pub(super) async fn a_clock_that_servers_share_is_told(bench: Bench) {
    let shown = bench.store.time().await.unwrap();
    match bench.place {
        Place::Folder(_) => assert_eq!(shown, None),
        // The cluster runs on this machine.
        Place::Address(_) => {
            let apart = shown.unwrap().millis() - SystemClock::default().now().millis();
            assert!(apart.abs() < 60_000, "{apart}");
        }
    }
}

pub(super) async fn pages_are_stable_while_rows_arrive(bench: Bench) {
    for number in 0..5 {
        bench.created(&format!("k-{number}"), &format!("vm-{number}")).await;
    }
    let names = |page: &domain::view::Page<RequestView>| {
        page.results.iter().map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    let first = bench.all(2, None).await;
    assert_eq!(
        (names(&first), first.total, first.total_is.clone()),
        (vec!["vm-4".into(), "vm-3".into()], 5, None)
    );
    bench.created("new", "vm-new").await;
    let place = crate::store::cursor::read(first.next.as_deref().unwrap());
    let second = bench.all(2, place).await;
    assert_eq!(names(&second), ["vm-2", "vm-1"]);
    let last = bench.all(2, crate::store::cursor::read(second.next.as_deref().unwrap())).await;
    assert_eq!((names(&last), last.next), (vec!["vm-0".to_owned()], None));
    let resources = bench.store.resources(&name("blue"), None, 4).await.unwrap();
    assert_eq!((resources.results.len(), resources.total, resources.next.is_some()), (4, 6, true));
}

pub(super) async fn a_history_goes_on_where_one_left_off(bench: Bench) {
    let id = bench.created("k", "one").await;
    let run = bench.taken("w", bench.now()).await;
    let lines = (0..5).map(|n| EventEntry::Log { line: format!("line {n}") }).collect();
    bench.store.note(run.hold(), lines, false, bench.now()).await.unwrap();
    let all = bench.store.events(id, 0, 100).await.unwrap();
    assert_eq!(all.iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    let rest = bench.store.events(id, 5, 1).await.unwrap();
    assert_eq!((rest.len(), rest[0].seq), (1, 6));
}

pub(super) async fn no_text_is_too_strange_to_keep_or_to_look_for(bench: Bench) {
    let strange = "NUL \0, quotes \"'`, a\\u0000, %_\\, \u{1f600}, e\u{301}";
    let mut create = bench.create(&scope("k"), "one", "small");
    let Effect::Create { request, .. } = &mut create.effect else { panic!() };
    let (id, parameters) = (request.view.id, object(&json!({ "note": strange })));
    request.view.parameters = parameters.clone();
    bench.store.submit(create).await.unwrap();
    let run = bench.taken("w", bench.now()).await;
    let line = EventEntry::Log { line: strange.into() };
    bench.store.note(run.hold(), vec![line.clone()], true, bench.now()).await.unwrap();
    let ending = Ending::without_outputs(RequestState::Failed, Some(strange.into()));
    bench.store.end_run(run.hold(), ending, bench.now()).await.unwrap();
    let kept = bench.store.request(id).await.unwrap().unwrap().view;
    assert_eq!(kept.parameters, parameters);
    assert_eq!(kept.reason.unwrap(), strange.replace('\0', "\u{fffd}"));
    assert!(bench.store.events(id, 0, 10).await.unwrap().iter().any(|event| event.entry == line));
    // Whatever is looked for, what is not there is not found.
    assert!(bench.store.principal_by_name(strange).await.unwrap().is_none());
    assert!(bench.store.session(strange, bench.now()).await.unwrap().is_none());
    assert!(bench.store.resource(&name("blue"), strange, strange).await.unwrap().is_none());
    for place in ["offering", "action", "name", "correlation_id"] {
        let search = Search::read([(format!("filters[{place}][EQUALS]"), strange)]).unwrap();
        let list = RequestList { search, ..everything() };
        assert_eq!(bench.store.requests(list).await.unwrap().total, 0);
    }
    let nowhere = RequestList { scope: ListScope::Teams(Vec::new()), ..everything() };
    assert_eq!(bench.store.requests(nowhere).await.unwrap().total, 0);
}

pub(super) async fn people_teams_and_tokens_are_kept(bench: Bench) {
    let now = bench.now();
    assert_eq!(
        bench.store.add_principal(bench.someone("ann", PortalRole::Member, Some("blue")), now).await.unwrap(),
        Made::NoSuchTeam
    );
    assert!(bench.store.principal_by_name("ann").await.unwrap().is_none(), "nothing half-way");
    assert!(!bench.store.has_team(&name("blue")).await.unwrap());
    assert_eq!(bench.store.add_team(&name("blue"), None, now).await.unwrap(), Made::New);
    assert!(bench.store.has_team(&name("blue")).await.unwrap());
    assert_eq!(bench.store.add_team(&name("blue"), None, now).await.unwrap(), Made::Exists);
    let ann = bench.someone("ann", PortalRole::Member, Some("blue"));
    assert_eq!(bench.store.add_principal(ann.clone(), now).await.unwrap(), Made::New);
    assert_eq!(
        bench.store.add_principal(bench.someone("ann", PortalRole::Admin, None), now).await.unwrap(),
        Made::Exists
    );
    let kept = bench.store.principal(ann.id).await.unwrap().unwrap();
    assert_eq!((kept.role, kept.teams), (PortalRole::Member, vec![(name("blue"), TeamRole::Member)]));

    let token = |id| TokenView {
        id: TokenId(id),
        label: "ci".into(),
        created_at: now,
        expires_at: now.plus(LEASE),
        last_used_at: None,
        revoked_at: None,
        token: None,
        note: None,
    };
    let view = token(bench.id());
    bench.store.add_token(ann.id, view.clone(), [1; 32]).await.unwrap();
    let found = bench.store.bearer([1; 32], now).await.unwrap().unwrap();
    assert_eq!((found.principal.id, found.token, found.label.as_str()), (ann.id, view.id, "ci"));
    assert_eq!(found.principal.teams, bench.store.principal(ann.id).await.unwrap().unwrap().teams);
    let nobody = async |digest, now| bench.store.bearer([digest; 32], now).await.unwrap().is_none();
    assert!(nobody(2, now).await);
    assert!(nobody(1, now.plus(LEASE)).await, "expired");
    bench.store.tokens_used(vec![view.id], now).await.unwrap();
    assert_eq!(bench.store.tokens(ann.id).await.unwrap()[0].last_used_at, Some(now));
    let own = Scope { principal: ann.id, ..scope("revoke") };
    let revoke = |scope: Scope| bench.decision(scope, Operation::TokenRevoke, Effect::TokenRevoke(view.id));
    let foreign = scope_of("-", 77, "revoke");
    assert!(matches!(bench.store.submit(revoke(foreign)).await.unwrap(), Submitted::Missing));
    assert!(matches!(bench.store.submit(revoke(own.clone())).await.unwrap(), Submitted::First(..)));
    assert!(matches!(bench.store.submit(revoke(own)).await.unwrap(), Submitted::Repeat(_)));
    assert!(nobody(1, now).await, "revoked");
}

pub(super) async fn only_the_first_set_up_counts(bench: Bench) {
    assert!(!bench.store.has_admin().await.unwrap());
    let now = bench.now();
    let (one, two) = (
        bench.someone("root", PortalRole::Admin, Some("ops")),
        bench.someone("boot", PortalRole::Admin, Some("ops")),
    );
    let (one, two) = tokio::join!(bench.store.set_up(one, now), bench.store.set_up(two, now));
    let made: HashSet<bool> = [one.unwrap(), two.unwrap()].iter().map(|made| *made == Made::New).collect();
    assert_eq!(made.len(), 2, "one was made and one was not");
    assert!(bench.store.has_admin().await.unwrap());
}

pub(super) async fn sessions_end_and_are_swept(bench: Bench) {
    let (now, end) = (at(1000), at(2000));
    assert!(bench.store.save_session("s", b"a".to_vec(), end, true).await.unwrap());
    assert!(!bench.store.save_session("s", b"b".to_vec(), end, true).await.unwrap(), "an ID is used once");
    assert_eq!(bench.store.session("s", now).await.unwrap().as_deref(), Some(b"a".as_slice()));
    assert!(bench.store.save_session("s", b"c".to_vec(), end, false).await.unwrap());
    assert_eq!(bench.store.session("s", now).await.unwrap().as_deref(), Some(b"c".as_slice()));
    assert_eq!(bench.store.session("s", end).await.unwrap(), None);
    assert_eq!(bench.store.sweep_sessions(now, 10).await.unwrap(), 0);
    assert_eq!(bench.store.sweep_sessions(end, 10).await.unwrap(), 1);
    bench.store.delete_session("s").await.unwrap();
}

pub(super) async fn a_setting_is_set_once(bench: Bench) {
    assert_eq!(bench.store.setting("check").await.unwrap(), None);
    assert_eq!(bench.store.set_once("check", b"one".to_vec()).await.unwrap(), b"one");
    assert_eq!(bench.store.set_once("check", b"two".to_vec()).await.unwrap(), b"one");
    bench.store.probe(bench.now()).await.unwrap();
}

pub(super) async fn what_is_kept_survives_reopening(bench: Bench) {
    let id = bench.created("k", "one").await;
    let again = bench.place.open().await;
    assert_eq!(again.claimed(&scope("k")).await.unwrap().unwrap().0.request, Some(id));
    // Two servers on one database still make one request of one key.
    let (here, there) =
        (bench.create(&scope("both"), "two", "small"), bench.create(&scope("both"), "two", "small"));
    let (here, there) = tokio::join!(bench.store.submit(here), again.submit(there));
    let firsts =
        [here.unwrap(), there.unwrap()].iter().filter(|one| matches!(one, Submitted::First(..))).count();
    assert_eq!(firsts, 1);
}
