//! What was accepted is there at the end, was made by one key, and came to the end it was asked for.

use super::{Ask, Call, Case, Findings, Object, Outcome, Promise, Told};
use std::collections::{BTreeSet, HashMap};

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let makers = makers(case, found);
    for request in &case.history.end.requests {
        if !makers.contains_key(request.id.as_str()) {
            let (id, action, name) = (&request.id, &request.action, &request.name);
            found.add(Promise::OneRequest, format!("request {id} ({action} {name}) was made by no key"));
        }
    }
    for (call, told) in case.told() {
        kept(case, call, told, found);
    }
    let cancels = cancels(case);
    for request in &case.history.end.requests {
        let behaves = |how: &str| {
            request.action == "create" && request.parameters.get("behaviour").is_some_and(|word| word == how)
        };
        let asked = if behaves("fail") { "failed" } else { "succeeded" };
        let cancels = cancels.get(request.id.as_str());
        // A delete wins over whatever else is under way, and what was not made is not changed.
        let loses = request.action != "delete" && case.deleted(&request.name);
        let for_nothing = request.action != "create" && case.not_made(&request.name);
        // What fails the first time does so until somebody opens it again; and a person may give up what nobody can tell.
        let opened = case
            .decisions(&request.id)
            .any(|call| matches!(call.ask, Ask::Retry { .. }) && call.told().is_some());
        let given_up = case
            .decisions(&request.id)
            .any(|call| matches!(&call.ask, Ask::Resolve { resolution, .. } if resolution == "abandon"));
        let right = match request.state.as_str() {
            "canceled" => cancels.is_some() || loses || for_nothing,
            "failed" if for_nothing || (loses && request.action != "create") => true,
            "failed" if given_up || (behaves("fail-once") && !opened) => true,
            state => state == asked && !cancels.is_some_and(|certain| *certain),
        };
        if !right {
            let (id, name, state) = (&request.id, &request.name, &request.state);
            found.add(
                Promise::RightEnd,
                format!("request {id} ({name}) is {state}, asked for was {asked}; {cancels:?}"),
            );
        }
        // Who was told that it is being stopped learns that it was done all the same.
        let stopped = case
            .decisions(&request.id)
            .any(|call| matches!(call.ask, Ask::Cancel { .. }) && call.told().is_some());
        if stopped && request.state == "succeeded" && request.reason.is_none() && !case.reopened(&request.id)
        {
            let (id, name) = (&request.id, &request.name);
            found.add(
                Promise::RightEnd,
                format!("request {id} ({name}) was to be stopped and succeeded, and does not say so"),
            );
        }
    }
}

/// Which key made each request.
fn makers<'a>(case: &Case<'a>, found: &mut Findings) -> HashMap<&'a str, &'a str> {
    let mut makers: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    let mut made: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (call, told) in case.told() {
        if call.ask.makes_a_request() && !told.existing {
            makers.entry(&told.request).or_default().insert(&call.key);
            made.entry(&call.key).or_default().insert(&told.request);
        }
    }
    for (request, keys) in makers.iter().filter(|(_, keys)| keys.len() > 1) {
        found.add(Promise::OneRequest, format!("request {request} was made by {keys:?}"));
    }
    for (key, requests) in made.iter().filter(|(_, requests)| requests.len() > 1) {
        found.add(Promise::OneRequest, format!("{key} made {requests:?}"));
    }
    makers.into_iter().filter_map(|(request, keys)| Some((request, keys.into_iter().next()?))).collect()
}

/// The request of a success is there, and is what was asked for.
fn kept(case: &Case<'_>, call: &Call, told: &Told, found: &mut Findings) {
    let key = &call.key;
    let Some(request) = case.requests.get(told.request.as_str()) else {
        found.add(
            Promise::NothingLost,
            format!("{key} was told of request {}, which is not there", told.request),
        );
        return;
    };
    let fits = match &call.ask {
        ask if ask.decides().is_some() => ask.decides() == Some(&told.request),
        ask if told.existing => ask.name() == Some(&request.name),
        Ask::Create { name, parameters } => {
            request.action == "create" && request.name == *name && holds(&request.parameters, parameters)
        }
        Ask::Update { name, .. } => request.action == "update" && request.name == *name,
        Ask::Delete { name } => request.action == "delete" && request.name == *name,
        Ask::Add { name, .. } => {
            request.name == *name && !["create", "update", "delete"].contains(&request.action.as_str())
        }
        Ask::Cancel { .. } | Ask::Retry { .. } | Ask::Resolve { .. } => false,
    };
    if !fits {
        found.add(
            Promise::NothingLost,
            format!("{key} ({:?}) was told of another request: {request:?}", call.ask),
        );
    }
    if let Ask::Create { name, parameters } = &call.ask
        && told.existing
        && !case.about(name).any(|other| other.ask.changes())
        && !holds(&request.parameters, parameters)
    {
        found.add(
            Promise::NothingLost,
            format!("{key} counts as there already, with other parameters: {request:?}"),
        );
    }
}

/// Whether everything that was sent stands in what is kept, which has defaults beside it.
fn holds(kept: &Object, sent: &Object) -> bool {
    sent.iter().all(|(name, value)| kept.get(name) == Some(value))
}

/// The requests that somebody tried to cancel, and whether they must be canceled for that. An action or a delete that is
/// done by then stays done, and so does what was told to be stopped already, by a delete that then removes it; and where
/// nobody could tell what became of it, a person decided.
fn cancels<'a>(case: &Case<'a>) -> HashMap<&'a str, bool> {
    let mut cancels: HashMap<&str, bool> = HashMap::new();
    for call in &case.history.calls {
        if let Ask::Cancel { request } = &call.ask
            && !matches!(call.outcome, Outcome::Refused { .. })
        {
            let can_be_undone = case.requests.get(request.as_str()).is_some_and(|request| {
                ["create", "update"].contains(&request.action.as_str()) && !case.deleted(&request.name)
            });
            let certain = can_be_undone && call.told().is_some() && !case.reopened(request);
            *cancels.entry(request).or_default() |= certain;
        }
    }
    cancels
}
