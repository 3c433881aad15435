//! The checker against histories made by hand: good ones pass, and each kind of fault is found under its own promise.

use super::*;
use serde_json::json;

fn object(value: &Value) -> Object {
    value.as_object().unwrap().clone()
}

fn create(name: &str, parameters: &Value) -> Ask {
    Ask::Create { name: name.into(), parameters: object(parameters) }
}

fn told(request: &str, replayed: bool) -> Outcome {
    let (head, body) = ("202 \"l1.2\"".into(), format!("{{\"id\":\"{request}\"}}"));
    Outcome::Told(Told { request: request.into(), head, body, replayed, existing: false })
}

fn refused(status: u16, problem: &str) -> Outcome {
    Outcome::Refused { status, problem: problem.into() }
}

impl History {
    fn call(&mut self, key: &str, ask: Ask, outcome: Outcome) -> &mut Call {
        let began = 10 * self.calls.len() as u64;
        let (key, if_match) = (key.to_owned(), None);
        self.calls.push(Call { began, ended: began + 5, key, ask, if_match, outcome });
        self.calls.last_mut().unwrap()
    }

    fn request(&mut self, id: &str, action: &str, name: &str, state: &str, parameters: &Value) {
        let [id, action, name, state] = [id, action, name, state].map(str::to_owned);
        let (reason, parameters) = (None, object(parameters));
        self.end.requests.push(Request { id, action, name, state, reason, parameters });
    }

    fn effect(&mut self, deed: &str, request: &str, name: &str) {
        let [deed, request, name] = [deed, request, name].map(str::to_owned);
        let (attempt, count) = (1, None);
        self.end.ledger.push(Effect { deed, request, attempt, name, count });
    }

    fn sight(&mut self, began: u64, life: &str, version: i64, count: i64) {
        let seen = resource(life, version, count);
        self.sights.push(Sight { began, ended: began + 5, seen });
    }
}

fn resource(life: &str, version: i64, count: i64) -> Resource {
    let parameters = object(&json!({ "size": "small", "count": count }));
    let (name, made_by) = ("one".into(), "r1".into());
    Resource { life: life.into(), name, version, deleting: false, parameters, made_by }
}

/// A key with a lost answer, two repeats and a changed payload; a name that was taken; one request that was canceled.
fn good() -> History {
    let mut history = History::default();
    let small = create("one", &json!({ "size": "small" }));
    history.call("k1", small.clone(), Outcome::Unknown);
    history.call("k1", small.clone(), told("r1", true));
    history.call("k1", create("one", &json!({ "size": "large" })), refused(422, "idempotency-key-reused"));
    history.call("k1", small, told("r1", true));
    history.call("k2", create("one", &json!({ "size": "large" })), refused(409, "name-taken"));
    history.call("k3", create("two", &json!({})), told("r2", false));
    history.call("k4", Ask::Cancel { request: "r2".into() }, told("r2", false));
    history.request("r1", "create", "one", "succeeded", &json!({ "size": "small", "count": 1 }));
    history.request("r2", "create", "two", "canceled", &json!({ "size": "small", "count": 1 }));
    history.sight(15, "l1", 1, 1);
    history.end.resources.push(resource("l1", 1, 1));
    history.effect("apply", "r1", "one");
    history.effect("apply", "r2", "two");
    history.effect("destroy", "r2", "two");
    history
}

/// The same, with two disks added once under a key that was sent twice, and the end of another life.
fn changed() -> History {
    let mut history = good();
    let add = Ask::Add { name: "one".into(), count: 2 };
    history.call("k5", add.clone(), told("r3", false));
    history.call("k5", add, told("r3", true));
    history.request("r3", "add", "one", "succeeded", &json!({ "count": 2 }));
    history.effect("change", "r3", "one");
    history.sight(90, "l1", 2, 3);
    history.end.resources = vec![resource("l1", 2, 3)];
    let note = Ask::Update { name: "one".into(), patch: object(&json!({ "note": "x" })) };
    history.call("k5u", note, told("r3u", false));
    history.request("r3u", "update", "one", "succeeded", &json!({ "note": "x" }));
    history.effect("change", "r3u", "one");
    history.call("k6", create("three", &json!({})), told("r4", false));
    history.call("k7", Ask::Delete { name: "three".into() }, told("r5", false));
    history.request("r4", "create", "three", "succeeded", &json!({}));
    history.request("r5", "delete", "three", "succeeded", &json!({}));
    history.effect("apply", "r4", "three");
    history.effect("destroy", "r5", "three");
    history
}

#[track_caller]
fn breaks(promise: Promise, spoil: impl FnOnce(&mut History)) {
    let mut history = changed();
    spoil(&mut history);
    let found = check(&history);
    assert!(found.iter().any(|violation| violation.promise == promise), "{promise:?}: {found:#?}");
}

#[test]
fn good_histories_break_nothing() {
    assert_eq!(check(&History::default()), []);
    assert_eq!(check(&good()), []);
    assert_eq!(check(&changed()), []);
}

#[test]
fn a_key_is_first_once_and_for_one_meaning() {
    breaks(Promise::FirstOnce, |history| {
        history.call("k3", create("two", &json!({})), told("r2", false));
    });
    breaks(Promise::FirstOnce, |history| {
        // A repeat that was over before its first began.
        history.call("k8", create("four", &json!({})), told("r8", true));
        history.call("k8", create("four", &json!({})), told("r8", false));
    });
    breaks(Promise::ChangedPayload, |history| {
        history.call("k3", create("three", &json!({})), told("r2", true));
    });
}

#[test]
fn a_repeat_gets_the_first_answer_byte_for_byte() {
    let spoils: [fn(&mut Told); 3] =
        [|told| told.body.push(' '), |told| told.head = "200".into(), |told| told.body.clear()];
    for spoil in spoils {
        breaks(Promise::SameAnswer, |history| {
            let Outcome::Told(again) = &mut history.calls[3].outcome else { panic!("told") };
            spoil(again);
        });
    }
}

#[test]
fn a_repeat_is_never_refused_and_a_changed_payload_always_is() {
    for (status, problem) in [(409, "name-taken"), (404, "not-found"), (500, "internal")] {
        breaks(Promise::HonestRepeat, |history| history.calls[3].outcome = refused(status, problem));
        breaks(Promise::ChangedPayload, |history| history.calls[2].outcome = refused(status, problem));
    }
    let reused = || refused(422, "idempotency-key-reused");
    breaks(Promise::ChangedPayload, |history| history.calls[3].outcome = reused());
    breaks(Promise::ChangedPayload, |history| history.calls[4].outcome = reused());
}

#[test]
fn a_key_makes_one_request_and_every_request_was_made_by_one() {
    breaks(Promise::OneRequest, |history| history.request("r9", "create", "nine", "failed", &json!({})));
    breaks(Promise::OneRequest, |history| {
        history.call("k8", create("two", &json!({})), told("r2", false));
    });
    breaks(Promise::OneRequest, |history| {
        history.call("k3", create("two", &json!({})), told("r4", false));
    });
}

#[test]
fn what_was_told_is_there_as_it_was_asked_for() {
    breaks(Promise::NothingLost, |history| history.end.requests.retain(|request| request.id != "r1"));
    breaks(Promise::NothingLost, |history| {
        history.end.requests[0].parameters.insert("size".into(), "large".into());
    });
    breaks(Promise::NothingLost, |history| history.end.requests[0].name = "other".into());
    // Its resource and its effect are gone.
    breaks(Promise::OneLife, |history| history.end.resources.clear());
    breaks(Promise::NothingLost, |history| history.end.ledger.retain(|effect| effect.name != "one"));
}

#[test]
fn every_request_comes_to_the_end_that_was_asked_for() {
    for state in ["failed", "running", "unknown", "canceled"] {
        breaks(Promise::RightEnd, |history| history.end.requests[0].state = state.into());
    }
    // A cancellation that was accepted holds.
    breaks(Promise::RightEnd, |history| history.end.requests[1].state = "succeeded".into());
}

/// The same, with one that failed, was opened again and succeeded, and one of which nobody could tell until it was given
/// up.
fn decided() -> History {
    let mut history = changed();
    let retry = |request: &str| Ask::Retry { request: request.into() };
    let abandon = |request: &str| Ask::Resolve { request: request.into(), resolution: "abandon".into() };
    history.call("k10", create("ten", &json!({ "behaviour": "fail-once" })), told("r10", false));
    history.call("k11", retry("r10"), told("r10", false));
    history.call("k12", create("twelve", &json!({ "behaviour": "observe-unknown" })), told("r12", false));
    history.call("k13", abandon("r12"), told("r12", false));
    history.call("k14", abandon("r12"), refused(409, "already-decided"));
    history.request("r10", "create", "ten", "succeeded", &json!({ "behaviour": "fail-once" }));
    history.request("r12", "create", "twelve", "failed", &json!({ "behaviour": "observe-unknown" }));
    history.effect("apply", "r12", "twelve");
    history.effect("destroy", "r12", "twelve");
    history.effect("apply", "r10", "ten");
    let ten = Resource { name: "ten".into(), made_by: "r10".into(), ..resource("l10", 1, 1) };
    history.end.resources.push(Resource { parameters: Object::new(), ..ten });
    history
}

#[test]
fn decisions_are_carried_out_and_said_to_be() {
    let with = |spoil: fn(&mut History)| {
        let mut history = decided();
        spoil(&mut history);
        check(&history).into_iter().map(|violation| violation.promise).collect::<Vec<_>>()
    };
    assert_eq!(check(&decided()), []);
    let state = |history: &mut History, id: &str, state: &str| {
        let request = history.end.requests.iter_mut().find(|request| request.id == id).unwrap();
        state.clone_into(&mut request.state);
    };
    // A retry that was accepted and came to nothing.
    let lost = with(|history| {
        let request = history.end.requests.iter_mut().find(|request| request.id == "r10").unwrap();
        "failed".clone_into(&mut request.state);
    });
    assert!(lost.contains(&Promise::RightEnd), "{lost:?}");
    // Nobody gave it up, and it failed.
    let nobody = with(|history| history.calls.retain(|call| !["k13", "k14"].contains(&call.key.as_str())));
    assert_eq!(nobody, [Promise::RightEnd]);
    // The decision was told, and it is as open as before.
    let mut open = decided();
    state(&mut open, "r12", "unknown");
    assert!(check(&open).iter().any(|violation| violation.promise == Promise::RightEnd));
    // Twice in one attempt, or about another request than was meant.
    let twice = with(|history| {
        history.effect("destroy", "r10", "ten");
        history.effect("apply", "r10", "ten");
    });
    assert_eq!(twice, [Promise::OneEffect]);
    let other = with(|history| {
        let call = history.calls.iter_mut().find(|call| call.key == "k11").unwrap();
        call.outcome = told("r12", false);
    });
    assert!(other.contains(&Promise::NothingLost), "{other:?}");
    // A retry is refused while there is nothing to be tried again, and for no other reason.
    let refused = with(|history| {
        history.call("k15", Ask::Retry { request: "r10".into() }, refused(409, "name-taken"));
    });
    assert_eq!(refused, [Promise::JustRefusal]);
}

#[test]
fn what_nobody_can_tell_of_is_asked_for_again_only_by_a_persons_word() {
    let with = |words: usize, times: usize| {
        let mut history = decided();
        for word in 0..words {
            let retry = Ask::Resolve { request: "r12".into(), resolution: "retry".into() };
            // However often one and the same word is sent, it counts once.
            for replayed in [false, true] {
                history.call(&format!("word-{word}"), retry.clone(), told("r12", replayed));
            }
        }
        let destroyed = history.end.ledger.iter().position(|effect| effect.request == "r12").unwrap() + 1;
        for _ in 0..times {
            history.effect("again", "r12", "twelve");
            let again = history.end.ledger.pop().unwrap();
            history.end.ledger.insert(destroyed, again);
        }
        check(&history).into_iter().map(|violation| violation.promise).collect::<Vec<_>>()
    };
    for (words, times) in [(0, 0), (1, 0), (1, 1), (3, 2)] {
        assert_eq!(with(words, times), [], "{words} {times}");
    }
    for (words, times) in [(0, 1), (1, 2)] {
        assert_eq!(with(words, times), [Promise::OneEffect], "{words} {times}");
    }
}

#[test]
fn what_a_person_took_back_is_done_again_only_by_a_further_word() {
    let with = |words: usize, deeds: &[&str]| {
        let mut history = decided();
        for word in 0..words {
            let retry = Ask::Resolve { request: "r12".into(), resolution: "retry".into() };
            history.call(&format!("word-{word}"), retry, told("r12", false));
        }
        for deed in deeds {
            history.effect(deed, "r12", "twelve");
        }
        check(&history).into_iter().map(|violation| violation.promise).collect::<Vec<_>>()
    };
    assert_eq!(with(1, &["apply", "destroy"]), []);
    assert!(with(0, &["apply", "destroy"]).contains(&Promise::OneEffect), "nobody let it be done again");
    assert!(with(3, &["apply", "apply", "destroy"]).contains(&Promise::OneEffect), "nothing was taken back");
}

#[test]
fn what_was_done_before_it_could_be_stopped_says_so() {
    let canceled = |reason: Option<&str>| {
        let mut history = changed();
        history.call("k8", Ask::Cancel { request: "r3".into() }, told("r3", false));
        let request = history.end.requests.iter_mut().find(|request| request.id == "r3").unwrap();
        request.reason = reason.map(str::to_owned);
        check(&history).into_iter().map(|violation| violation.promise).collect::<Vec<_>>()
    };
    assert_eq!(canceled(Some("It was done before it could be stopped.")), []);
    assert_eq!(canceled(None), [Promise::RightEnd]);
}

#[test]
fn a_name_belongs_to_one_living_resource() {
    breaks(Promise::OneLife, |history| history.end.resources.push(resource("l2", 1, 1)));
    breaks(Promise::OneLife, |history| history.end.resources[0].made_by = "r2".into());
    breaks(Promise::OneLife, |history| {
        history.call("k8", create("one", &json!({})), told("r8", false));
        history.request("r8", "create", "one", "succeeded", &json!({}));
    });
    breaks(Promise::OneLife, |history| history.effect("apply", "r4", "one"));
}

#[test]
fn a_request_has_one_effect() {
    breaks(Promise::OneEffect, |history| history.effect("apply", "r1", "one"));
    breaks(Promise::OneEffect, |history| history.effect("apply", "nobody", "five"));
    breaks(Promise::OneEffect, |history| history.effect("change", "r3", "one"));
    breaks(Promise::OneEffect, |history| history.end.ledger.retain(|effect| effect.request != "r3"));
    // What was canceled after its effect is undone.
    breaks(Promise::OneEffect, |history| history.end.ledger.retain(|effect| effect.deed != "destroy"));
    // A change that was canceled is taken back, unless a delete took all of it.
    breaks(Promise::OneEffect, |history| history.end.requests[2].state = "canceled".into());
}

#[test]
fn what_ended_never_comes_back() {
    breaks(Promise::NoReturn, |history| {
        history.end.resources.push(Resource {
            name: "three".into(),
            made_by: "r4".into(),
            ..resource("l4", 1, 1)
        });
    });
    breaks(Promise::NoReturn, |history| history.effect("change", "r3", "three"));
    breaks(Promise::NoReturn, |history| {
        history.sight(100, "l2", 1, 1);
        history.sight(110, "l1", 2, 3);
    });
}

#[test]
fn versions_grow_and_mean_one_thing() {
    breaks(Promise::Versions, |history| history.sight(100, "l1", 1, 1));
    breaks(Promise::Versions, |history| history.sight(100, "l1", 2, 4));
    // Two looks at the same time may see either.
    let mut history = changed();
    history.sight(89, "l1", 1, 1);
    assert_eq!(check(&history), []);
}

#[test]
fn what_was_added_counts_once() {
    breaks(Promise::Desired, |history| history.end.resources = vec![resource("l1", 3, 5)]);
    breaks(Promise::Desired, |history| history.end.resources = vec![resource("l1", 3, 1)]);
    breaks(Promise::Desired, |history| history.end.ledger[0].count = Some(1));
}

#[test]
fn a_refusal_has_its_cause() {
    breaks(Promise::JustRefusal, |history| {
        history.call("k8", create("free", &json!({})), refused(409, "name-taken"));
    });
    for (status, problem) in [(400, "invalid-json"), (401, "unauthenticated"), (500, "internal")] {
        breaks(Promise::JustRefusal, |history| history.calls[4].outcome = refused(status, problem));
    }
    let cancel = |request: &str| Ask::Cancel { request: request.into() };
    breaks(Promise::JustRefusal, |history| {
        history.call("k8", cancel("r2"), refused(409, "already-decided"));
    });
    breaks(Promise::JustRefusal, |history| {
        history.call("k8", cancel("r1"), refused(404, "not-found"));
    });
    breaks(Promise::JustRefusal, |history| {
        history.call("k8", Ask::Delete { name: "one".into() }, refused(409, "deletion-in-progress"));
    });
    breaks(Promise::JustRefusal, |history| {
        history.call("k8", Ask::Add { name: "one".into(), count: 1 }, refused(412, "stale"));
    });
}
