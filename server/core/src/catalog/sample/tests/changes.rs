//! Updates, actions and deletes by the sample programs and the one of the tests.

use super::*;
use domain::change::changed;
use std::time::Instant;

/// A change of what `made` made: its request is told apart by a number.
fn change(offering: &Offering, made: &Job, action: &str, number: u8, asked: Value) -> Job {
    let mut id = *made.made_by.0.as_bytes();
    id[14] ^= number;
    let mut job = Job {
        request_id: RequestId(uuid::Uuid::from_bytes(id)),
        action: action.to_owned(),
        previous: made.parameters.clone(),
        input: Object::new(),
        ..made.clone()
    };
    let Value::Object(asked) = asked else { panic!("an object") };
    if let Some(action) = offering.actions.get(&Name::parse(action).unwrap()) {
        job.input = action.schema.normalise(asked).unwrap();
        job.parameters = changed(&made.parameters, &action.changes, &job.input).unwrap();
    } else {
        job.parameters.extend(asked);
    }
    job.parameters = offering.schema.normalise(job.parameters).unwrap();
    job
}

/// The same change, to be taken back.
fn back(job: &Job) -> Job {
    Job { undo: true, parameters: job.previous.clone(), previous: job.parameters.clone(), ..job.clone() }
}

fn is_before(seen: &Observation) -> bool {
    matches!(seen, Observation::Before(_))
}

/// Done twice, seen done, and refused where the thing is somebody else's; answers with the outputs.
async fn changes_once(offering: &Offering, job: &Job) -> Object {
    assert!(is_before(&observe(offering, job).await), "{job:?}");
    let other = Job { made_by: stranger(job).made_by, ..job.clone() };
    assert_eq!(observe(offering, &other).await, Observation::Foreign);
    let refused = offering.provisioner.apply(&other, &context().0).await;
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    let outputs = apply(offering, job).await;
    assert_eq!(apply(offering, job).await, outputs, "a second run does nothing");
    assert_eq!(observe(offering, job).await, Observation::Ours(outputs.clone()));
    outputs
}

/// Removed by another request than the one that made it, twice; a change finds it gone and cannot bring it back.
async fn ends(offering: &Offering, made: &Job, late: &Job) {
    let delete = change(offering, made, "delete", 0xdd, json!({}));
    assert!(matches!(observe(offering, &delete).await, Observation::Ours(_)));
    destroy(offering, &Job { made_by: stranger(made).made_by, ..delete.clone() }).await;
    assert!(matches!(observe(offering, made).await, Observation::Ours(_)), "only the maker's mark counts");
    destroy(offering, &delete).await;
    destroy(offering, &delete).await;
    assert_eq!(observe(offering, &delete).await, Observation::Absent);
    assert_eq!(observe(offering, late).await, Observation::Absent);
    let refused = offering.provisioner.apply(late, &context().0).await;
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    assert_eq!(observe(offering, made).await, Observation::Absent);
}

fn git(repository: &str, arguments: &[&str]) -> String {
    run("git", &[&["--git-dir", repository], arguments].concat()).trim_end().to_owned()
}

#[tokio::test]
async fn a_git_repository_is_changed_once_a_request_on_top_of_what_people_pushed() {
    let shop = Shop::of_samples();
    let offering = shop.offering("git-repository");
    let made = meant(&offering, "repo", json!({"description": "one"}));
    let outputs = apply(&offering, &made).await;
    let at = text(&outputs, "clone_url");
    // Somebody pushes a file of their own.
    let clone = shop.data.path().join("clone");
    let clone = clone.to_str().unwrap();
    run("git", &["clone", "--quiet", at, clone]);
    fs::write(Path::new(clone).join("code"), "code").unwrap();
    run("git", &["-C", clone, "add", "code"]);
    let person = ["-c", "user.name=Ann", "-c", "user.email=ann@localhost"];
    run("git", &[&["-C", clone][..], &person, &["commit", "--quiet", "-m", "Code"]].concat());
    run("git", &["-C", clone, "push", "--quiet", "origin", "main"]);

    let hostile = "$(touch /tmp/keyturn-was-here) -- \"two\"\nKeyturn-Request: none";
    let update =
        change(&offering, &made, "update", 1, json!({"description": hostile, "visibility": "public"}));
    assert_eq!(changes_once(&offering, &update).await, outputs);
    assert!(!Path::new("/tmp/keyturn-was-here").exists());
    assert_eq!(git(at, &["rev-list", "--count", "main"]), "3");
    assert_eq!(git(at, &["show", "main:code"]), "code", "what people pushed stays");
    assert_eq!(git(at, &["show", "main:README.md"]), format!("# repo\n\n{hostile}\n\nVisibility: public"));
    assert_eq!(git(at, &["config", "keyturn.visibility"]), "public");

    // The branch is moved away from under it; the change was done all the same.
    git(at, &["update-ref", "refs/heads/main", "main~1"]);
    assert!(matches!(observe(&offering, &update).await, Observation::Ours(_)));
    apply(&offering, &update).await;
    assert_eq!(git(at, &["rev-list", "--count", "main"]), "2");

    let standing = Job { parameters: update.parameters.clone(), ..made.clone() };
    let tag = change(&offering, &standing, "add-tag", 2, json!({"tag": "v1.0", "message": "First"}));
    changes_once(&offering, &tag).await;
    assert_eq!(git(at, &["rev-parse", "v1.0^{commit}"]), git(at, &["rev-parse", "main"]));
    assert!(git(at, &["cat-file", "tag", "v1.0"]).contains("\n\nFirst\n"));
    let again = change(&offering, &standing, "add-tag", 3, json!({"tag": "v1.0"}));
    assert!(is_before(&observe(&offering, &again).await), "another's tag is not this request's");
    let refused = offering.provisioner.apply(&again, &context().0).await;
    assert!(
        matches!(&refused, Outcome::Failed(why) if why.contains("there is a tag v1.0 already")),
        "{refused:?}"
    );
    apply(&offering, &back(&tag)).await;
    assert_eq!(git(at, &["tag"]), "");
    assert!(is_before(&observe(&offering, &tag).await));
    git(at, &["fsck", "--strict"]);
    ends(&offering, &made, &again).await;
    assert_eq!(fs::read_dir(shop.state("git-repository").join(".aside")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_change_of_a_git_repository_is_taken_back_by_a_commit_and_can_be_asked_for_again() {
    let shop = Shop::of_samples();
    let offering = shop.offering("git-repository");
    let made = meant(&offering, "repo", json!({"description": "one"}));
    let outputs = apply(&offering, &made).await;
    let at = text(&outputs, "clone_url");
    let update = change(&offering, &made, "update", 1, json!({"description": "two", "visibility": "public"}));
    apply(&offering, &back(&update)).await;
    assert_eq!(git(at, &["rev-list", "--count", "main"]), "1", "nothing was done, nothing is taken back");
    for (commits, again) in [("3", "2"), ("5", "4")] {
        apply(&offering, &update).await;
        assert_eq!(git(at, &["rev-list", "--count", "main"]), again);
        for _ in 0..2 {
            apply(&offering, &back(&update)).await;
            assert_eq!(git(at, &["rev-list", "--count", "main"]), commits);
            assert_eq!(git(at, &["show", "main:README.md"]), "# repo\n\none\n\nVisibility: private");
            assert_eq!(git(at, &["config", "keyturn.visibility"]), "private");
            assert!(is_before(&observe(&offering, &update).await));
        }
    }
    // Killed after the branch moved back and before the change was forgotten.
    let change = Path::new(at).join("keyturn-changes").join(update.request_id.to_string());
    fs::write(change.with_extension("meant"), git(at, &["rev-parse", "main~1"]) + "\n").unwrap();
    fs::write(change.with_extension("back"), git(at, &["rev-parse", "main"]) + "\n").unwrap();
    assert!(is_before(&observe(&offering, &update).await), "it is taken back");
    apply(&offering, &back(&update)).await;
    assert_eq!(git(at, &["rev-list", "--count", "main"]), "5");
    // Locks that a killed git left behind hold nobody up for long.
    for lock in ["refs/heads/main.lock", "HEAD.lock"] {
        run("touch", &["-d", "1 minute ago", Path::new(at).join(lock).to_str().unwrap()]);
    }
    apply(&offering, &update).await;
    assert_eq!(git(at, &["rev-list", "--count", "main"]), "6");
}

struct Seen {
    names: String,
    begins: String,
    ends: String,
    key: String,
}

/// What a certificate says, once it is known to be good.
fn seen(shop: &Shop, outputs: &Object) -> Seen {
    let file = |name: &str| {
        let path = shop.data.path().join(format!("{name}.pem"));
        fs::write(&path, text(outputs, name)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, authority, key) = (file("certificate"), file("ca_certificate"), file("private_key"));
    run("openssl", &["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", &authority, &certificate]);
    let shown = |what: &[&str]| run("openssl", &[&["x509", "-in", &certificate, "-noout"], what].concat());
    let key = run("openssl", &["pkey", "-in", &key, "-pubout"]);
    assert_eq!(shown(&["-pubkey"]), key, "key and certificate belong together");
    assert_eq!(text(outputs, "serial"), shown(&["-serial"]).trim().strip_prefix("serial=").unwrap());
    let moment = |what: &str| {
        let moment = shown(&[what]);
        run("date", &["-d", moment.trim().split_once('=').unwrap().1, "+%s"]).trim().to_owned()
    };
    let names = shown(&["-ext", "subjectAltName"]).lines().last().unwrap().trim().to_owned();
    Seen { names, begins: moment("-startdate"), ends: moment("-enddate"), key }
}

fn days(seen: &Seen) -> i64 {
    let (begins, ends): (i64, i64) = (seen.begins.parse().unwrap(), seen.ends.parse().unwrap());
    assert_eq!((ends - begins) % 86400, 0);
    (ends - begins) / 86400
}

#[tokio::test]
async fn a_certificate_is_extended_renewed_and_issued_anew_once_a_request() {
    let shop = Shop::of_samples();
    let tls = shop.offering("tls-certificate");
    let made = meant(&tls, "web", json!({"dns_names": ["a.test"], "days": 30}));
    let first = apply(&tls, &made).await;
    let one = seen(&shop, &first);
    assert_eq!(days(&one), 30);

    let extend = change(&tls, &made, "extend", 1, json!({"days": 7}));
    assert_eq!(extend.parameters["days"], 37);
    let two = seen(&shop, &changes_once(&tls, &extend).await);
    assert_eq!((days(&two), &two.begins, &two.key), (37, &one.begins, &one.key), "the same, but longer");

    let standing = Job { parameters: extend.parameters.clone(), ..made.clone() };
    let renew = change(&tls, &standing, "renew", 2, json!({}));
    let renewed = changes_once(&tls, &renew).await;
    let three = seen(&shop, &renewed);
    assert_eq!((days(&three), &three.names), (37, &two.names));
    assert_ne!(three.key, two.key, "a new key");
    assert!(matches!(observe(&tls, &extend).await, Observation::Ours(_)), "what was done stays done");

    let update = change(&tls, &standing, "update", 3, json!({"dns_names": ["b.test", "c.test"], "days": 10}));
    let four = seen(&shop, &changes_once(&tls, &update).await);
    assert_eq!((days(&four), four.names.as_str()), (10, "DNS:b.test, DNS:c.test"));
    assert_eq!(four.key, three.key, "names alone need no new key");
    apply(&tls, &back(&update)).await;
    assert_eq!(
        apply(&tls, &back(&update)).await,
        renewed,
        "the certificate before it holds again, as it was"
    );
    assert!(is_before(&observe(&tls, &update).await));
    let rsa = change(&tls, &standing, "update", 4, json!({"key_type": "rsa-2048"}));
    assert_ne!(seen(&shop, &changes_once(&tls, &rsa).await).key, three.key);

    // Keys that nothing can come back to are not kept.
    let place = shop.state("tls-certificate").join("certificates/team-a/web");
    assert!(!place.join("key.pem").exists());
    assert_eq!(fs::read_dir(place.join("changes")).unwrap().count(), 2);
    ends(&tls, &made, &renew).await;
    assert_eq!(fs::read_dir(shop.state("tls-certificate").join(".aside")).unwrap().count(), 0);
}

#[tokio::test]
async fn the_first_certificate_holds_again_when_its_first_change_is_taken_back() {
    let shop = Shop::of_samples();
    let tls = shop.offering("tls-certificate");
    let made = meant(&tls, "web", json!({"dns_names": ["a.test"]}));
    let first = apply(&tls, &made).await;
    let renew = change(&tls, &made, "renew", 1, json!({}));
    assert_ne!(apply(&tls, &renew).await, first);
    assert_eq!(apply(&tls, &back(&renew)).await, first);
    assert_ne!(changes_once(&tls, &renew).await, first, "and it can be asked for again");
    let long = change(&tls, &made, "update", 2, json!({"days": 825}));
    apply(&tls, &long).await;
    let mut too_short = change(&tls, &made, "extend", 3, json!({"days": 1}));
    too_short.parameters.insert("days".to_owned(), json!(0));
    let refused = tls.provisioner.apply(&too_short, &context().0).await;
    assert!(matches!(&refused, Outcome::Failed(why) if why.contains("renew it")), "{refused:?}");
}

/// Killed at two dozen points of its way, seen either before or done, and brought to its end: once each time.
#[tokio::test]
async fn a_change_killed_anywhere_and_asked_again_is_done_exactly_once() {
    let shop = Shop::of_samples();
    for (id, parameters, asked) in [
        ("git-repository", json!({}), "description"),
        ("tls-certificate", json!({"dns_names": ["a.test"]}), "days"),
    ] {
        let offering = shop.offering(id);
        let made = meant(&offering, "killed", parameters);
        let mut outputs = apply(&offering, &made).await;
        let mut standing = made.clone();
        let mut whole = Duration::ZERO;
        let mut states = [0, 0];
        for n in 0..=24_u8 {
            let value = if asked == "days" { json!(100 + n) } else { json!(format!("number {n}")) };
            let update = change(&offering, &standing, "update", n + 1, json!({asked: value}));
            if n == 0 {
                let begun = Instant::now();
                outputs = apply(&offering, &update).await;
                whole = begun.elapsed();
                standing.parameters = update.parameters;
                continue;
            }
            shop.kill_midway(id, &update, whole * u32::from(n) / 24);
            let then = match observe(&offering, &update).await {
                Observation::Before(then) => {
                    assert_eq!(then, outputs, "killed after {n}: still as before");
                    states[0] += 1;
                    None
                }
                Observation::Ours(then) => {
                    states[1] += 1;
                    Some(then)
                }
                other => panic!("killed after {n}: {other:?}"),
            };
            if n % 3 == 0 {
                // Taking it back may be killed too.
                shop.kill_midway(id, &back(&update), whole * u32::from(n % 8) / 8);
                assert_eq!(apply(&offering, &back(&update)).await, outputs);
                assert!(is_before(&observe(&offering, &update).await), "{n}");
                continue;
            }
            outputs = apply(&offering, &update).await;
            assert!(then.is_none_or(|then| then == outputs), "what was done is adopted");
            assert_eq!(observe(&offering, &update).await, Observation::Ours(outputs.clone()));
            standing.parameters = update.parameters;
        }
        assert!(states[0] > 0, "{id} {states:?}");
        if id == "git-repository" {
            let at = text(&outputs, "clone_url");
            let subjects = git(at, &["log", "--format=%s", "main"]);
            let count = |subject: &str| subjects.lines().filter(|line| *line == subject).count();
            let taken_back = count("Take the change of README.md back");
            assert_eq!(count("Change README.md"), 17 + taken_back, "{states:?}\n{subjects}");
            git(at, &["fsck", "--strict"]);
        } else {
            let done = shop.state(id).join("certificates/team-a/killed/current/done");
            assert_eq!(fs::read_to_string(done).unwrap().lines().count(), 17, "{states:?}");
            assert_eq!(days(&seen(&shop, &outputs)), 123);
        }
        assert_eq!(fs::read_dir(shop.state(id).join(".aside")).unwrap().count(), 0, "nothing is left aside");
    }
}

#[tokio::test]
async fn the_program_of_the_tests_counts_every_change() {
    let shop = Shop::of_tests();
    let vm = shop.offering("vm");
    let made = meant(&vm, "one", json!({}));
    apply(&vm, &made).await;
    let disks = change(&vm, &made, "add-disks", 1, json!({"count": 2}));
    assert_eq!(apply(&vm, &disks).await["count"], 3);
    assert!(matches!(observe(&vm, &disks).await, Observation::Ours(outputs) if outputs["count"] == 3));
    apply(&vm, &disks).await;
    let lines = || fs::read_to_string(shop.state("vm").join("ledger")).unwrap();
    let of = |job: &Job| lines().matches(&format!("change {} team-a/one ", job.request_id)).count();
    assert_eq!(of(&disks), 2, "what is run twice is counted twice");
    let lost = change(&vm, &made, "restart", 2, json!({"behaviour": "lose-answer"}));
    assert!(is_before(&observe(&vm, &lost).await));
    let outcome = vm.provisioner.apply(&lost, &context().0).await;
    assert!(matches!(outcome, Outcome::CannotTell(_)), "{outcome:?}");
    assert!(matches!(observe(&vm, &lost).await, Observation::Ours(_)));
    let fails = change(&vm, &made, "update", 3, json!({"size": "large", "behaviour": "fail"}));
    let outcome = vm.provisioner.apply(&fails, &context().0).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    apply(&vm, &back(&fails)).await;
    assert_eq!(of(&fails), 0);
    apply(&vm, &back(&disks)).await;
    assert!(lines().contains(&format!("undo {} team-a/one 1 add-disks 1 small\n", disks.request_id)));
    assert!(is_before(&observe(&vm, &disks).await));
    ends(&vm, &made, &disks).await;
    let again = stranger(&made);
    apply(&vm, &again).await;
    assert_eq!(observe(&vm, &disks).await, Observation::Foreign, "another life is not this one's");
}
