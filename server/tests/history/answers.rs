//! What a key's calls are told: one first, then the same answer again, and to nobody who means something else.

use super::{Call, Case, Findings, Outcome, Promise, Told};

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    for (key, calls) in &case.keys {
        let told: Vec<(&Call, &Told)> = calls.iter().filter_map(|call| Some((*call, call.told()?))).collect();
        if let Some((first_call, first)) = told.first() {
            firsts(key, &told, found);
            same(key, first_call, first, &told, found);
            afterwards(key, calls, &told, found);
        } else if calls.iter().any(|call| is_reused(&call.outcome)) {
            found.add(
                Promise::ChangedPayload,
                format!("{key} counts as used, but nothing was accepted with it"),
            );
        }
    }
}

/// One call at most was the first, and a repeat has something that it repeats.
fn firsts(key: &str, told: &[(&Call, &Told)], found: &mut Findings) {
    let firsts: Vec<_> = told.iter().filter(|(_, told)| !told.replayed).collect();
    if firsts.len() > 1 {
        let requests: Vec<&str> = firsts.iter().map(|(_, told)| told.request.as_str()).collect();
        found.add(Promise::FirstOnce, format!("{key} was first {} times: {requests:?}", firsts.len()));
    }
    if let Some((first, _)) = firsts.first()
        && let Some((early, _)) = told.iter().find(|(call, told)| told.replayed && call.ended < first.began)
    {
        let (began, ended) = (first.began, early.ended);
        found.add(Promise::FirstOnce, format!("{key} was repeated at {ended}, before its first at {began}"));
    }
}

/// Every success has the same meaning and the same answer.
fn same(key: &str, first_call: &Call, first: &Told, told: &[(&Call, &Told)], found: &mut Findings) {
    for (call, again) in &told[1..] {
        if call.ask != first_call.ask {
            let (one, other) = (&first_call.ask, &call.ask);
            found.add(Promise::ChangedPayload, format!("{key} was accepted for {one:?} and for {other:?}"));
        }
        if (&again.head, &again.body) != (&first.head, &first.body) {
            let (one, other) = (first.shown(), again.shown());
            found.add(Promise::SameAnswer, format!("{key} was answered {one} and {other}"));
        }
    }
}

/// Once a key was accepted, its repeats succeed and everything else is refused for being something else.
fn afterwards(key: &str, calls: &[&Call], told: &[(&Call, &Told)], found: &mut Findings) {
    let Some(accepted) = told.iter().map(|(call, _)| call.ended).min() else { return };
    let meaning = &told[0].0.ask;
    for call in calls {
        let Outcome::Refused { status, problem } = &call.outcome else { continue };
        let honest = call.ask == *meaning;
        if honest && is_reused(&call.outcome) {
            found.add(
                Promise::ChangedPayload,
                format!("{key} was refused as changed, and was not: {meaning:?}"),
            );
        } else if honest && call.began > accepted {
            found.add(Promise::HonestRepeat, format!("a repeat of {key} was refused: {status} {problem}"));
        } else if !honest && call.began > accepted && !is_reused(&call.outcome) {
            let ask = &call.ask;
            found.add(
                Promise::ChangedPayload,
                format!("{key} stands for {meaning:?}, but {ask:?} was refused as {status} {problem}"),
            );
        }
    }
}

pub(super) fn is_reused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { status: 422, problem } if problem == "idempotency-key-reused")
}

impl Told {
    fn shown(&self) -> String {
        let kind = if self.replayed { "again" } else { "first" };
        format!("[{kind}: {} {}]", self.head, self.body)
    }
}
