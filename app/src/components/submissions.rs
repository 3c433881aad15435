//! The arrivals of one request.

use super::{
    listing::Cell,
    moment::{When, apart},
    state::{door, outcome},
};
use domain::{
    submission::SubmissionOutcome,
    time::Moment,
    view::{SubmissionView, SubmissionsView},
};
use leptos::prelude::*;

/// Every arrival of a request, oldest first.
#[component]
pub fn Submissions(
    /// The arrivals.
    submissions: SubmissionsView,
) -> impl IntoView {
    let only_counted = submissions.only_counted;
    let first = first(&submissions.results);
    let rows = submissions.results.into_iter().map(|row| view! { <Row first=first row/> }).collect_view();
    view! {
        <div class="table" role="group" aria-label="Submissions" tabindex="0">
            <table class="blocks" role="table">
                <thead role="rowgroup">
                    <tr role="row">
                        <th scope="col" role="columnheader">"Arrived"</th>
                        <th scope="col" role="columnheader">"Outcome"</th>
                        <th scope="col" role="columnheader">"Asked for"</th>
                        <th scope="col" role="columnheader">"By"</th>
                        <th scope="col" role="columnheader">"Key"</th>
                    </tr>
                </thead>
                <tbody role="rowgroup">{rows}</tbody>
            </table>
        </div>
        {(only_counted > 0).then(|| view! {
            <p class="quiet">{only_counted} " more were counted only: one key keeps a bounded history."</p>
        })}
    }
}

#[component]
fn Row(first: Option<Moment>, row: SubmissionView) -> impl IntoView {
    let later = first.map(|first| row.at.millis() - first.millis()).filter(|later| *later > 0);
    let sender = match (&row.token, &row.address) {
        (Some(token), Some(address)) => format!("token {token}, from {address}"),
        (Some(token), None) => format!("token {token}"),
        (None, Some(address)) => format!("from {address}"),
        (None, None) => String::new(),
    };
    let meaning = match row.outcome {
        SubmissionOutcome::First if decides(&row.operation) => "taken in",
        other => outcome(other),
    };
    view! {
        <tr role="row">
            <Cell label="Arrived">
                <When at=row.at/>
                {later.map(|later| view! { <br/> <span class="quiet">{apart(later)} " after the first"</span> })}
            </Cell>
            <Cell label="Outcome">
                <strong>{row.outcome.as_str()}</strong>
                <br/>
                <span class="quiet">{meaning}{row.problem.map(|problem| format!(" ({problem})"))}</span>
            </Cell>
            <Cell label="Asked for">{row.operation}</Cell>
            <Cell label="By">
                {row.sent_by} " by " {door(row.channel)}
                <br/>
                <span class="quiet">{sender}</span>
            </Cell>
            <Cell label="Key"><code class="key">{row.key}</code></Cell>
        </tr>
    }
}

/// When the one arrived that made the request. What was refused under its key before has no part in it.
fn first(rows: &[SubmissionView]) -> Option<Moment> {
    let made = |row: &&SubmissionView| row.outcome == SubmissionOutcome::First && !decides(&row.operation);
    rows.iter().find(made).map(|row| row.at)
}

/// Whether this operation is a decision about a request, not the request itself.
fn decides(operation: &str) -> bool {
    ["cancel", "retry", "resolve", "approve", "reject"].contains(&operation)
}

/// How many arrivals there were and what became of them, as `4 arrivals: 1 first, 3 replayed`; decisions are counted
/// apart.
#[must_use]
pub fn tally(submissions: &SubmissionsView) -> String {
    let outcomes = [
        SubmissionOutcome::First,
        SubmissionOutcome::Replayed,
        SubmissionOutcome::Waited,
        SubmissionOutcome::Existing,
        SubmissionOutcome::Mismatched,
        SubmissionOutcome::Refused,
    ];
    let parts = outcomes.into_iter().filter_map(|outcome| {
        let decision = |row: &&SubmissionView| outcome == SubmissionOutcome::First && decides(&row.operation);
        let rows = submissions.results.iter().filter(|row| row.outcome == outcome);
        let count = rows.filter(|row| !decision(row)).count();
        (count > 0).then(|| format!("{count} {}", outcome.as_str()))
    });
    let mut parts: Vec<String> = parts.collect();
    let taken_in = |row: &&SubmissionView| row.outcome == SubmissionOutcome::First && decides(&row.operation);
    match submissions.results.iter().filter(taken_in).count() {
        0 => {}
        1 => parts.push("1 decision".to_owned()),
        many => parts.push(format!("{many} decisions")),
    }
    if submissions.only_counted > 0 {
        parts.push(format!("{} only counted", submissions.only_counted));
    }
    let arrivals = if submissions.total == 1 { "arrival" } else { "arrivals" };
    format!("{} {arrivals}: {}", submissions.total, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(outcome: &str) -> serde_json::Value {
        json!({"id": "01890a5d-ac96-774b-bcce-b302099a8057", "key": "k", "request_id": null, "operation": "create",
               "outcome": outcome, "problem": null, "channel": "form", "sent_by": "ann", "token": null,
               "address": null, "correlation_id": null, "at": "2026-01-31T12:00:00.000Z"})
    }

    #[test]
    fn the_first_is_the_one_that_made_the_request() {
        let mut cancel = row("first");
        cancel["operation"] = json!("cancel");
        let mut made = row("first");
        made["at"] = json!("2026-01-31T12:00:09.000Z");
        let rows: Vec<SubmissionView> =
            serde_json::from_value(json!([row("refused"), cancel, made, row("replayed")])).unwrap();
        assert_eq!(first(&rows), Some(rows[2].at));
        assert_eq!(first(&rows[..2]), None);
    }

    #[test]
    fn arrivals_are_counted_by_outcome() {
        let submissions = json!({"results": [row("first"), row("replayed"), row("replayed")], "total": 7, "only_counted": 4});
        let submissions = serde_json::from_value(submissions).unwrap();
        assert_eq!(tally(&submissions), "7 arrivals: 1 first, 2 replayed, 4 only counted");
        let mut cancel = row("first");
        cancel["operation"] = json!("cancel");
        let rows = [row("first"), cancel.clone(), cancel];
        let submissions =
            serde_json::from_value(json!({"results": rows, "total": 3, "only_counted": 0})).unwrap();
        assert_eq!(tally(&submissions), "3 arrivals: 1 first, 2 decisions");
    }
}
