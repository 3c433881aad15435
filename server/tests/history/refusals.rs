//! Refusals: each has a cause that the history shows.

use super::{Ask, Call, Case, Findings, Outcome, Promise, Told, answers::is_reused};
use std::collections::HashSet;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    for call in &case.history.calls {
        let Outcome::Refused { status, problem } = &call.outcome else { continue };
        if !is_reused(&call.outcome) && !just(case, call, *status, problem) {
            let (key, ask) = (&call.key, &call.ask);
            found.add(
                Promise::JustRefusal,
                format!("{key} ({ask:?}) was refused without a cause: {status} {problem}"),
            );
        }
    }
}

/// Whether something in the history explains the refusal.
fn just(case: &Case<'_>, call: &Call, status: u16, problem: &str) -> bool {
    // What a decision about a request needs is what the request needs.
    let decided = call.ask.decides().and_then(|request| case.requests.get(request));
    let name = call.ask.name().or(decided.map(|request| request.name.as_str()));
    let others = |fits: fn(&Ask) -> bool| {
        name.is_some_and(|name| {
            case.about(name)
                .filter(|other| {
                    other.told().is_none_or(|told| Some(told.request.as_str()) != call.ask.decides())
                })
                .any(|other| other.key != call.key && fits(&other.ask) && other.began < call.ended)
        })
    };
    let create = |ask: &Ask| matches!(ask, Ask::Create { .. });
    let delete = |ask: &Ask| matches!(ask, Ask::Delete { .. });
    let retries = |ask: &Ask| matches!(ask, Ask::Retry { .. });
    match (status, problem) {
        (409, "name-taken") => (create(&call.ask) || retries(&call.ask)) && others(create),
        (409, "deletion-in-progress") => others(delete),
        // What is still being made, or is being deleted, takes no changes; what has succeeded or failed is not canceled.
        (409, "already-decided") => match &call.ask {
            // It may have been at another end before it was opened again.
            Ask::Cancel { request } => {
                decided.is_some_and(|one| one.state != "canceled") || case.reopened(request)
            }
            // How it stood just then was seen by nobody; but nothing else stands in the way of what stays as it is.
            Ask::Retry { request } => {
                decided.is_some_and(|one| one.state != "failed" || one.action != "create")
                    || case.reopened(request)
            }
            Ask::Resolve { request, .. } => {
                decided.is_some_and(|one| one.state != "unknown") || case.reopened(request)
            }
            ask => ask.changes(),
        },
        // Refused is what is not there: nobody saw it before, or somebody may have ended it.
        (404, _) => match &call.ask {
            ask if ask.decides().is_some() => {
                let told = |told: &Told| Some(told.request.as_str()) == ask.decides();
                !case.told().any(|(other, other_told)| told(other_told) && other.ended < call.began)
            }
            ask => {
                !ask.changes()
                    || others(delete)
                    || !seen(case, call)
                    || ask.name().is_some_and(|name| case.not_made(name))
            }
        },
        // The version moved, or what was looked at was another life.
        (412, _) => call.if_match.is_some() && (others(Ask::changes) || lives(case, call) > 1),
        // More than a resource may have.
        (422, "invalid-parameters") => matches!(call.ask, Ask::Add { .. }),
        _ => false,
    }
}

/// Whether the resource that a call is about was seen before the call began.
fn seen(case: &Case<'_>, call: &Call) -> bool {
    let name = call.ask.name();
    case.history.sights.iter().any(|sight| Some(sight.seen.name.as_str()) == name && sight.ended < call.began)
}

/// How many lives the name of a call may have had: one for each create, and one for each that was opened again.
fn lives(case: &Case<'_>, call: &Call) -> usize {
    let name = call.ask.name().unwrap_or_default();
    let again =
        case.history.end.requests.iter().filter(|request| {
            request.name == name && request.action == "create" && case.reopened(&request.id)
        });
    let creates = case.about(name);
    let keys: HashSet<&str> = creates
        .filter(|other| {
            matches!(other.ask, Ask::Create { .. }) && other.told().is_some_and(|told| !told.existing)
        })
        .map(|other| other.key.as_str())
        .collect();
    keys.len() + again.count()
}
