//! Ends of resources: kept as the run tells them, told of once by whoever comes first, and anew when they move.

use super::*;
use domain::{
    action::{DELETE, UPDATE},
    expiry::{End, Expiry},
    notification::NotificationEvent::{self, Expiring},
    view::ResourceView,
};

const DAY: Duration = Duration::from_hours(24);
const WARN: Duration = Duration::from_hours(24 * 14);
/// When things end here, and when that is told of.
const END: Moment = Moment::from_millis(10_000_000_000);
const NEAR: Moment = Moment::from_millis(10_000_000_000 - 14 * 86_400_000);

fn later(moment: Moment, seconds: i64) -> Moment {
    at(moment.millis() + seconds * 1000)
}

fn lasting(end: Option<End>) -> Ending {
    let expiry = end.map(|end| Expiry { end, warn: WARN });
    Ending { expiry, ..Ending::without_outputs(RequestState::Succeeded, None) }
}

impl Bench {
    /// A resource that ends then; its create.
    async fn lasts(&self, vm: &str, end: Option<End>) -> RequestId {
        let id = self.created(&format!("create-{vm}"), vm).await;
        self.succeeds(end, self.now()).await;
        id
    }

    /// Takes what is due and ends it with success.
    async fn succeeds(&self, end: Option<End>, now: Moment) {
        let run = self.taken("w", now).await;
        assert!(matches!(self.store.end_run(run.hold(), lasting(end), now).await.unwrap(), Held::Yes(_)));
    }

    /// Changes a resource, which ends then from now on.
    async fn renewed(&self, key: &str, vm: &str, end: Option<End>) {
        let change = self.change(key, vm, UPDATE, patch(&json!({ "note": key })));
        assert!(matches!(self.store.submit(change).await.unwrap(), Submitted::Accepted(..)));
        self.succeeds(end, self.now()).await;
    }

    async fn there(&self, vm: &str) -> ResourceView {
        self.store.resource(&name("blue"), "vm", vm).await.unwrap().expect("it lives").view
    }

    async fn near(&self, now: Moment) -> u64 {
        self.store.tell_of_ends(now, 100).await.unwrap()
    }
}

pub(super) async fn an_end_is_told_of_from_its_moment_on_once_by_one_of_many_servers(bench: Bench) {
    let told = bench.first_told("blue", &[Expiring]).await;
    let whole = bench.first_told("-", &[Expiring]).await;
    let others = bench.first_told("green", &[Expiring]).await;
    let failures = bench.first_told("blue", &[NotificationEvent::Failed]).await;
    let maker = bench.lasts("one", Some(End::At(END))).await;
    bench.lasts("endless", None).await;
    let one = bench.there("one").await;
    assert_eq!((one.expires_at, bench.there("endless").await.expires_at), (Some(END), None));
    assert_eq!(bench.near(later(NEAR, -1)).await, 0, "a second before");
    assert_eq!(bench.near(at(NEAR.millis() - 1)).await, 0);
    assert_eq!(bench.states(told).await, []);
    let servers = [bench.place.open().await, bench.place.open().await, bench.place.open().await];
    let mut looking = Vec::new();
    for server in servers.iter().chain(&servers) {
        let server = Arc::clone(server);
        looking.push(tokio::spawn(async move { server.tell_of_ends(NEAR, 100).await }));
    }
    let mut all = 0;
    for looked in looking {
        all += looked.await.unwrap().unwrap();
    }
    assert_eq!(all, 1);
    assert_eq!(bench.near(later(NEAR, 1)).await, 0, "a second after");
    assert_eq!(bench.near(later(END, 1)).await, 0);
    for of in [told, whole] {
        let page = bench.store.notification_deliveries(of, None, 100).await.unwrap();
        assert_eq!(page.results.len(), 1);
        let delivery = &page.results[0];
        assert_eq!((delivery.event, delivery.request_id), (Expiring, None));
        assert_eq!(delivery.resource.as_ref().unwrap().path(), "/teams/blue/resources/vm/one");
    }
    assert!(bench.states(others).await.is_empty() && bench.states(failures).await.is_empty());
    let taken = bench.store.take_delivery("w", NEAR, LEASE).await.unwrap().unwrap();
    let data = &taken.data["resource"];
    assert_eq!(data["expires_at"], END.to_string());
    assert_eq!((&data["id"], &data["request_id"]), (&json!(one.id), &json!(maker)));
    assert_eq!((&data["correlation_id"], &data["requested_by"]), (&json!(maker), &json!("ann")));
    // Telling is no change of the resource.
    assert_eq!(bench.there("one").await, one);
}

pub(super) async fn an_end_that_moves_is_told_of_anew_and_one_that_stays_is_not(bench: Bench) {
    let told = bench.first_told("blue", &[Expiring]).await;
    bench.lasts("one", Some(End::At(END))).await;
    assert_eq!(bench.near(NEAR).await, 1);
    bench.renewed("same", "one", Some(End::At(END))).await;
    assert_eq!(bench.near(later(END, 1)).await, 0, "told of already");
    let put_off = later(END, 86_400);
    bench.renewed("later", "one", Some(End::At(put_off))).await;
    assert_eq!(bench.there("one").await.expires_at, Some(put_off));
    assert_eq!(bench.near(later(NEAR, 86_399)).await, 0);
    assert_eq!(bench.near(later(NEAR, 86_400)).await, 1);
    // Back to where it was: that it was told of once holds nothing up, and the first telling still counts.
    bench.renewed("back", "one", Some(End::At(END))).await;
    assert_eq!(bench.near(END).await, 1);
    assert_eq!(bench.states(told).await.len(), 2);
    // Nobody knows its end any more.
    bench.renewed("endless", "one", None).await;
    assert_eq!((bench.there("one").await.expires_at, bench.near(at(i64::MAX / 2)).await), (None, 0));
    // A change that fails moves no end, and does not tell again.
    bench.renewed("again", "one", Some(End::At(put_off))).await;
    let change = bench.change("fails", "one", UPDATE, patch(&json!({ "note": "no" })));
    bench.store.submit(change).await.unwrap();
    let run = bench.taken("w", bench.now()).await;
    bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    assert_eq!(bench.there("one").await.expires_at, Some(put_off));
    assert_eq!((bench.near(put_off).await, bench.near(put_off).await), (1, 0));
}

pub(super) async fn what_is_deleted_is_never_told_of(bench: Bench) {
    let told = bench.first_told("blue", &[Expiring]).await;
    for vm in ["one", "two"] {
        bench.lasts(vm, Some(End::At(END))).await;
        let delete = bench.change(&format!("delete-{vm}"), vm, DELETE, nothing_left());
        assert!(matches!(bench.store.submit(delete).await.unwrap(), Submitted::Accepted(..)));
        assert_eq!(bench.near(later(END, 1)).await, 0, "it is being deleted");
        let run = bench.taken("w", bench.now()).await;
        let failed = vm == "two";
        let state = if failed { RequestState::Failed } else { RequestState::Succeeded };
        bench.ended(run.hold(), state, bench.now()).await;
        // One that is there again ends as before.
        assert_eq!(bench.near(later(END, 1)).await, u64::from(failed));
    }
    // Another life of the same name has an end of its own.
    bench.created("once-more", "one").await;
    assert_eq!(bench.near(later(END, 1)).await, 0, "it is not there yet");
    bench.succeeds(Some(End::At(END)), bench.now()).await;
    assert_eq!(bench.near(later(END, 1)).await, 1);
    assert_eq!(bench.states(told).await.len(), 2);
}

pub(super) async fn a_time_to_live_counts_from_when_it_was_made(bench: Bench) {
    bench.created("create", "one").await;
    let made = at(5_000_000);
    bench.succeeds(Some(End::After(DAY * 30)), made).await;
    assert_eq!(bench.there("one").await.expires_at, Some(made.plus(DAY * 30)));
    assert_eq!(bench.near(later(made.plus(DAY * 16), -1)).await, 0);
    assert_eq!(bench.near(made.plus(DAY * 16)).await, 1);
    let change = bench.change("week", "one", UPDATE, patch(&json!({ "days": 37 })));
    bench.store.submit(change).await.unwrap();
    bench.succeeds(Some(End::After(DAY * 37)), made.plus(DAY * 20)).await;
    assert_eq!(bench.there("one").await.expires_at, Some(made.plus(DAY * 37)));
    assert_eq!(bench.near(later(made.plus(DAY * 23), -1)).await, 0);
    assert_eq!(bench.near(made.plus(DAY * 23)).await, 1);
}

pub(super) async fn ends_are_told_of_in_bounded_batches_the_nearest_first(bench: Bench) {
    let told = bench.first_told("blue", &[Expiring]).await;
    for (number, vm) in ["one", "two", "three", "four", "five"].into_iter().enumerate() {
        let seconds = i64::try_from(number).unwrap();
        bench.lasts(vm, Some(End::At(later(END, -seconds)))).await;
    }
    let mut batches = Vec::new();
    for _ in 0..4 {
        batches.push(bench.store.tell_of_ends(NEAR, 2).await.unwrap());
        if batches.len() == 1 {
            let page = bench.store.notification_deliveries(told, None, 100).await.unwrap();
            let mut first: Vec<String> =
                page.results.iter().map(|one| one.resource.as_ref().unwrap().name.to_string()).collect();
            first.sort();
            assert_eq!(first, ["five", "four"]);
        }
    }
    assert_eq!(batches, [2, 2, 1, 0]);
    assert_eq!(bench.states(told).await.len(), 5);
}

/// A create that waits for approval.
fn waiting(mut create: Submission) -> Submission {
    if let Effect::Create { request, .. } = &mut create.effect {
        request.view.state = RequestState::PendingApproval;
    }
    create
}

pub(super) async fn what_waits_for_approval_is_told_of_once_and_not_begun(bench: Bench) {
    let told = bench.first_told("blue", &[NotificationEvent::PendingApproval]).await;
    let mut expected = HashSet::new();
    let mut tasks = Vec::new();
    // At once, so that they come in groups; with repeats, refusals and others that need no approval among them.
    for number in 0..24 {
        let (key, vm) = (format!("k-{number}"), format!("vm-{number}"));
        let create = waiting(bench.create(&scope(&key), &vm, "small"));
        let repeat = waiting(bench.create(&scope(&key), &vm, "small"));
        let taken = waiting(bench.create(&scope(&format!("other-{number}")), &vm, "other-size"));
        let queued = bench.create(&scope(&format!("q-{number}")), &format!("queued-{number}"), "small");
        for create in [create, repeat, taken, queued] {
            let store = Arc::clone(&bench.store);
            tasks.push(tokio::spawn(async move {
                let waits = matches!(&create.effect, Effect::Create { request, .. }
                    if request.view.state == RequestState::PendingApproval);
                match store.submit(create).await.unwrap() {
                    Submitted::First(_, id) if waits => id,
                    _ => None,
                }
            }));
        }
    }
    for task in tasks {
        expected.extend(task.await.unwrap());
    }
    assert_eq!(expected.len(), 24);
    let page = bench.store.notification_deliveries(told, None, 100).await.unwrap();
    let about: Vec<RequestId> = page.results.iter().map(|one| one.request_id.unwrap()).collect();
    assert_eq!((about.len(), about.iter().copied().collect::<HashSet<_>>()), (24, expected.clone()));
    // Nothing of it is begun before somebody decides, and to stop it is to end it.
    for _ in 0..24 {
        let run = bench.taken("w", bench.now()).await;
        assert!(!expected.contains(&run.request.view.id));
    }
    assert!(bench.store.take_run("w", bench.now(), LEASE).await.unwrap().is_none());
    let one = about[0];
    bench.store.submit(bench.decision(scope("stop"), Operation::Cancel, Effect::Cancel(one))).await.unwrap();
    assert_eq!(bench.state(one).await, RequestState::Canceled);
}
