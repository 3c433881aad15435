//! Refusals: each has a cause that the history shows.

use super::{Ask, Call, Case, Findings, Outcome, Promise, answers::is_reused};
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
    let others = |fits: fn(&Ask) -> bool| {
        call.ask.name().is_some_and(|name| {
            case.about(name)
                .any(|other| other.key != call.key && fits(&other.ask) && other.began < call.ended)
        })
    };
    let create = |ask: &Ask| matches!(ask, Ask::Create { .. });
    let delete = |ask: &Ask| matches!(ask, Ask::Delete { .. });
    match (status, problem) {
        (409, "name-taken") => create(&call.ask) && others(create),
        (409, "deletion-in-progress") => others(delete),
        // What is still being made, or is being deleted, takes no changes; what has succeeded or failed is not canceled.
        (409, "already-decided") => match &call.ask {
            Ask::Cancel { request } => {
                case.requests.get(request.as_str()).is_some_and(|one| one.state != "canceled")
            }
            ask => ask.changes(),
        },
        // Refused is what is not there: nobody saw it before, or somebody may have ended it.
        (404, _) => match &call.ask {
            Ask::Cancel { request } => {
                !case.told().any(|(other, told)| told.request == *request && other.ended < call.began)
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

/// How many lives the name of a call may have had.
fn lives(case: &Case<'_>, call: &Call) -> usize {
    let creates = case.about(call.ask.name().unwrap_or_default());
    let keys: HashSet<&str> = creates
        .filter(|other| {
            matches!(other.ask, Ask::Create { .. }) && other.told().is_some_and(|told| !told.existing)
        })
        .map(|other| other.key.as_str())
        .collect();
    keys.len()
}
