//! Names, lives and effects: one living resource a name, one effect a request, and nothing that ended comes back.

use super::{Ask, Case, Effect, Findings, Outcome, Promise, Resource};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let living = living(case, found);
    effects(case, found);
    things(case, &living, found);
    sights(case, found);
    for resource in living.values() {
        desired(case, resource, found);
    }
}

/// The living resource of each name, which is there exactly if more of its creates than of its deletes succeeded.
fn living<'a>(case: &Case<'a>, found: &mut Findings) -> BTreeMap<&'a str, &'a Resource> {
    let mut living = BTreeMap::new();
    for resource in &case.history.end.resources {
        if living.insert(resource.name.as_str(), resource).is_some() {
            found.add(Promise::OneLife, format!("{} lives more than once", resource.name));
        }
        match case.requests.get(resource.made_by.as_str()) {
            Some(maker)
                if maker.action == "create" && maker.name == resource.name && maker.state == "succeeded" => {}
            other => {
                let name = &resource.name;
                found.add(Promise::OneLife, format!("{name} lives, but what made it is {other:?}"));
            }
        }
    }
    // How many creates of a name there were, how many of them succeeded, and how many deletes did.
    let mut counts: BTreeMap<&str, [i64; 3]> = BTreeMap::new();
    for request in &case.history.end.requests {
        let [creates, made, deleted] = counts.entry(&request.name).or_default();
        let succeeded = i64::from(request.state == "succeeded");
        match request.action.as_str() {
            "create" => (*creates, *made) = (*creates + 1, *made + succeeded),
            "delete" => *deleted += succeeded,
            _ => {}
        }
    }
    for (name, [creates, made, deleted]) in counts {
        // A delete ends one life, which its create may not have finished.
        let lives = i64::from(living.contains_key(name));
        if made - deleted > lives {
            found.add(
                Promise::OneLife,
                format!("{name} was made {made} times and deleted {deleted} times; {lives} live"),
            );
        }
        if lives > creates - deleted {
            found.add(Promise::NoReturn, format!("{name} lives; of {creates} lives {deleted} were deleted"));
        }
    }
    living
}

/// What happened outside for each request.
fn effects(case: &Case<'_>, found: &mut Findings) {
    let mut counts: HashMap<(&str, &str), u32> = HashMap::new();
    let mut in_attempt: HashMap<(&str, u32, &str), u32> = HashMap::new();
    for effect in &case.history.end.ledger {
        *counts.entry((&effect.request, &effect.deed)).or_default() += 1;
        *in_attempt.entry((&effect.request, effect.attempt, &effect.deed)).or_default() += 1;
        if !case.requests.contains_key(effect.request.as_str()) {
            found.add(Promise::OneEffect, format!("the effect of no request: {effect:?}"));
        }
    }
    let words = |request: &str| -> HashSet<&str> {
        let retries = case
            .decisions(request)
            .filter(|call| matches!(&call.ask, Ask::Resolve { resolution, .. } if resolution == "retry"));
        retries.map(|call| call.key.as_str()).collect()
    };
    for ((request, deed), count) in counts.iter().filter(|((_, deed), _)| *deed == "again") {
        let words = words(request);
        if usize::try_from(*count).is_ok_and(|count| count > words.len()) {
            found.add(
                Promise::OneEffect,
                format!("request {request} was asked for {deed} {count} times, at the word of {words:?}"),
            );
        }
    }
    // What a person's word took back may be done again at a further word, and be taken back once more.
    let once = |(_, _, deed): &(&str, u32, &str)| *deed != "again";
    for ((request, attempt, deed), count) in in_attempt.iter().filter(|(key, count)| once(key) && **count > 1)
    {
        if usize::try_from(*count).is_ok_and(|count| count > 1 + words(request).len()) {
            found.add(
                Promise::OneEffect,
                format!("{deed} was done {count} times in attempt {attempt} of request {request}"),
            );
        }
    }
    let mut last: HashMap<&str, &Effect> = HashMap::new();
    for effect in case.history.end.ledger.iter().filter(|effect| effect.deed != "again") {
        if last.get(effect.request.as_str()).is_some_and(|before| before.deed == effect.deed) {
            found.add(Promise::OneEffect, format!("done twice, with nothing taken back between: {effect:?}"));
        }
        if effect.deed == "destroy" {
            // Whoever made it.
            last.retain(|_, before| before.name != effect.name);
        }
        last.insert(&effect.request, effect);
    }
    for request in &case.history.end.requests {
        let done = |deed| counts.get(&(request.id.as_str(), deed)).copied().unwrap_or(0);
        let state = request.state.as_str();
        let right = match (request.action.as_str(), state) {
            // The thing may be gone before its deletion comes to it.
            ("delete", _) => true,
            ("create", "succeeded") => done("apply") == done("destroy") + 1,
            // A delete that it lost against may have done the rest.
            ("create", _) if case.deleted(&request.name) => done("destroy") <= done("apply"),
            ("create", _) => done("apply") == done("destroy"),
            (_, "succeeded") => done("change") == done("undo") + 1,
            _ if case.deleted(&request.name) => done("undo") <= done("change"),
            _ => done("change") == done("undo"),
        };
        if !right {
            let (id, action) = (&request.id, &request.action);
            let done = ["apply", "destroy", "change", "undo"].map(|deed| (deed, done(deed)));
            found.add(
                Promise::OneEffect,
                format!("request {id} ({action}) is {state}, and was done {done:?}"),
            );
        }
    }
}

/// What stands outside at each name, told from the ledger: never two at once, and at the end what lives.
fn things(case: &Case<'_>, living: &BTreeMap<&str, &Resource>, found: &mut Findings) {
    let mut standing: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for effect in &case.history.end.ledger {
        let (name, stands) = (effect.name.as_str(), standing.get(effect.name.as_str()).copied());
        match (effect.deed.as_str(), stands) {
            ("apply", None) => {
                standing.insert(name, &effect.request);
            }
            ("apply", Some(other)) => {
                found.add(Promise::OneLife, format!("{effect:?}, while what {other} made stands there"));
            }
            ("destroy", Some(_)) => {
                standing.remove(name);
            }
            (_, None) => found.add(Promise::NoReturn, format!("{effect:?}, where nothing stands")),
            _ => {}
        }
        if let (Some(count), "apply" | "change" | "undo") = (effect.count, effect.deed.as_str()) {
            counts.insert(name, count);
        }
    }
    for (name, resource) in living {
        let meant = resource.parameters.get("count").and_then(serde_json::Value::as_i64);
        if let Some(count) = counts.get(name).filter(|count| meant != Some(**count)) {
            found.add(Promise::Desired, format!("count {count} stands at {name}, meant to be is {meant:?}"));
        }
    }
    let names: HashSet<&str> = standing.keys().chain(living.keys()).copied().collect();
    for name in names {
        let lives = living.get(name).map(|resource| resource.made_by.as_str());
        let stands = standing.get(name).copied();
        if lives != stands {
            let promise = if lives.is_some() { Promise::NothingLost } else { Promise::NoReturn };
            found.add(
                promise,
                format!("at {name} stands what {stands:?} made, and what {lives:?} made lives"),
            );
        }
    }
}

/// What was seen of resources: versions grow and mean one thing each, and an older life never follows a newer.
fn sights(case: &Case<'_>, found: &mut Findings) {
    let mut meant: HashMap<(&str, i64), &Resource> = HashMap::new();
    let at_the_end = case.history.end.resources.iter();
    for seen in case.history.sights.iter().map(|sight| &sight.seen).chain(at_the_end) {
        let before = *meant.entry((&seen.life, seen.version)).or_insert(seen);
        if before.parameters != seen.parameters {
            let (one, other) = (&before.parameters, &seen.parameters);
            let (name, version) = (&seen.name, seen.version);
            found.add(Promise::Versions, format!("version {version} of {name} is {one:?} and {other:?}"));
        }
        if before.made_by != seen.made_by {
            found.add(
                Promise::NoReturn,
                format!("a life of {} has two makers: {before:?}, {seen:?}", seen.name),
            );
        }
    }
    let mut of_name: BTreeMap<&str, Vec<(u64, u64, &Resource)>> = BTreeMap::new();
    for sight in &case.history.sights {
        of_name.entry(&sight.seen.name).or_default().push((sight.began, sight.ended, &sight.seen));
    }
    for resource in &case.history.end.resources {
        of_name.entry(&resource.name).or_default().push((u64::MAX, u64::MAX, resource));
    }
    for (name, looks) in of_name {
        versions(name, &looks, found);
        successors(name, &looks, found);
    }
}

/// A look never shows an older version than one that ended before it began.
fn versions(name: &str, looks: &[(u64, u64, &Resource)], found: &mut Findings) {
    let (mut by_begin, mut by_end) = (looks.to_vec(), looks.to_vec());
    by_begin.sort_by_key(|(began, ..)| *began);
    by_end.sort_by_key(|(_, ended, _)| *ended);
    let (mut newest, mut earlier) = (HashMap::<&str, i64>::new(), by_end.into_iter().peekable());
    for (began, _, seen) in by_begin {
        while let Some((.., before)) = earlier.next_if(|(_, ended, _)| *ended < began) {
            let version = newest.entry(&before.life).or_insert(before.version);
            *version = before.version.max(*version);
        }
        if let Some(newest) = newest.get(seen.life.as_str()).filter(|newest| **newest > seen.version) {
            let version = seen.version;
            found.add(
                Promise::Versions,
                format!("version {version} of {name} was seen after version {newest}"),
            );
        }
    }
}

/// Of two lives of a name one is over before the other is seen.
fn successors(name: &str, looks: &[(u64, u64, &Resource)], found: &mut Findings) {
    // When each life was first seen for certain, and when it was last looked at.
    let mut lives: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (began, ended, seen) in looks {
        let (first, last) = lives.entry(&seen.life).or_insert((*ended, *began));
        (*first, *last) = ((*first).min(*ended), (*last).max(*began));
    }
    for (one, (first, last)) in &lives {
        for (other, (other_first, other_last)) in
            lives.range::<str, _>((std::ops::Bound::Excluded(*one), std::ops::Bound::Unbounded))
        {
            if first < other_last && other_first < last {
                found.add(Promise::NoReturn, format!("lives {one} and {other} of {name} were seen in turns"));
            }
        }
    }
}

/// What a resource that lives at the end is meant to be: its `count` is what it began with and all that was added to this
/// life of it, each once.
fn desired(case: &Case<'_>, resource: &Resource, found: &mut Findings) {
    let Some(maker) = case.requests.get(resource.made_by.as_str()) else { return };
    let mut keys = HashSet::new();
    let mut count = maker.parameters.get("count").and_then(serde_json::Value::as_i64);
    for call in case.about(&resource.name) {
        if let (Ask::Add { count: added, .. }, Outcome::Told(told)) = (&call.ask, &call.outcome)
            // The entity tag of the answer names the life.
            && told.head.contains(&resource.life)
            && keys.insert(&call.key)
            && case.requests.get(told.request.as_str()).is_some_and(|request| request.state == "succeeded")
        {
            count = count.map(|count| count + added);
        }
    }
    if resource.parameters.get("count").and_then(serde_json::Value::as_i64) != count {
        let (name, is) = (&resource.name, &resource.parameters);
        found.add(
            Promise::Desired,
            format!("{name} is meant to be {is:?}, but its changes make count {count:?}"),
        );
    }
}
