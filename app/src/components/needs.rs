//! Whose approval an offering needs.

use domain::{action::CREATE, view::OfferingApprovalView};
use leptos::prelude::*;

/// Who approves what is asked of an offering; nothing where nobody has to.
#[component]
pub fn Needs(
    /// What its offering says.
    approval: Option<OfferingApprovalView>,
) -> impl IntoView {
    approval.map(|approval| view! { <p class="quiet">{needs(&approval)}</p> })
}

fn needs(approval: &OfferingApprovalView) -> String {
    let only_creates = approval.actions == [CREATE];
    let what =
        if only_creates { String::new() } else { format!(" for this: {}", approval.actions.join(", ")) };
    format!("Needs the approval of {}{what}.", approval.needed.by.title())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_for_what_unless_that_is_creates_alone() {
        let told = |actions: &[&str]| {
            let policy = serde_json::json!({ "by": "administrator", "timeout_seconds": 60, "for": actions });
            needs(&serde_json::from_value(policy).unwrap())
        };
        assert_eq!(told(&["create"]), "Needs the approval of an administrator.");
        assert_eq!(
            told(&["delete", "grow"]),
            "Needs the approval of an administrator for this: delete, grow."
        );
    }
}
