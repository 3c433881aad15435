//! States, channels and outcomes in words.

use domain::{
    action::Kind,
    state::RequestState,
    submission::{Channel, SubmissionOutcome},
};
use leptos::prelude::*;

/// A request's state: a sign, a word and a colour.
#[component]
pub fn State(
    /// The state.
    state: RequestState,
) -> impl IntoView {
    let class = format!("state state-{}", state.as_str());
    view! {
        <span class=class>
            <span aria-hidden="true">{sign(state)}</span>
            " "
            {word(state)}
        </span>
    }
}

fn sign(state: RequestState) -> &'static str {
    match state {
        RequestState::PendingApproval => "◔",
        RequestState::Queued => "○",
        RequestState::Running => "◐",
        RequestState::Succeeded => "✓",
        RequestState::Failed => "✕",
        RequestState::Canceled | RequestState::Rejected => "⊘",
        RequestState::Unknown => "?",
    }
}

/// The state as people read it.
#[must_use]
pub fn word(state: RequestState) -> &'static str {
    match state {
        RequestState::PendingApproval => "waits for approval",
        RequestState::Queued => "queued",
        RequestState::Running => "running",
        RequestState::Succeeded => "succeeded",
        RequestState::Failed => "failed",
        RequestState::Canceled => "canceled",
        RequestState::Rejected => "rejected",
        RequestState::Unknown => "unknown",
    }
}

/// What the state means for the person, of a request that does this to its resource.
#[must_use]
pub fn meaning(state: RequestState, kind: Kind) -> &'static str {
    match state {
        RequestState::PendingApproval => "It waits for a decision. Nothing of it is carried out before that.",
        RequestState::Queued => "It was accepted and waits for a worker.",
        RequestState::Running => "A worker carries it out.",
        RequestState::Succeeded => "It was carried out.",
        RequestState::Failed => match kind {
            Kind::Create => "It was not carried out, and its name is free again.",
            Kind::Update | Kind::Action => "It was not carried out; the resource is as it was before.",
            Kind::Delete => "It was not deleted.",
        },
        RequestState::Canceled => match kind {
            Kind::Create => "It was stopped. Its name is free again.",
            Kind::Update | Kind::Action => "It was stopped; the resource is as it was before.",
            Kind::Delete => "It was stopped. Nothing was deleted.",
        },
        RequestState::Rejected => match kind {
            Kind::Create => "It was decided against. Nothing was made, and its name is free again.",
            Kind::Update | Kind::Action => "It was decided against. Nothing was changed.",
            Kind::Delete => "It was decided against. Nothing was deleted; the resource stays.",
        },
        RequestState::Unknown => match kind {
            Kind::Create => "Nobody can tell what became of it, so it holds its name until somebody decides.",
            Kind::Update | Kind::Action => {
                "Nobody can tell whether it was carried out. Somebody has to decide."
            }
            Kind::Delete => "Nobody can tell whether it was deleted. Somebody has to decide.",
        },
    }
}

/// The channel as people read it.
#[must_use]
pub fn door(channel: Channel) -> &'static str {
    match channel {
        Channel::Api => "API",
        Channel::Form => "form",
        Channel::Hook => "hook",
        Channel::Composite => "another request's step",
    }
}

/// What an arrival's outcome means.
#[must_use]
pub fn outcome(outcome: SubmissionOutcome) -> &'static str {
    match outcome {
        SubmissionOutcome::First => "made the request",
        SubmissionOutcome::Replayed => "a repeat: got the first answer",
        SubmissionOutcome::Waited => "a repeat at the same moment: waited, got the first answer",
        SubmissionOutcome::Mismatched => "same key, something else: refused",
        SubmissionOutcome::Existing => "another key, already there: got this request",
        SubmissionOutcome::Refused => "refused: nothing changed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_create_that_came_to_nothing_frees_its_name() {
        for state in [RequestState::Failed, RequestState::Canceled, RequestState::Rejected] {
            assert!(meaning(state, Kind::Create).contains("name is free again"), "{state}");
            for kind in [Kind::Update, Kind::Action, Kind::Delete] {
                assert!(!meaning(state, kind).contains("name"), "{state} {kind:?}");
            }
        }
    }
}
