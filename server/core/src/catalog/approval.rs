//! Who has to approve what is asked of an offering, as `approval` in `offering.yaml` says.

use super::{
    Action,
    offering::span,
    sheet::{Members, Sheet},
    yaml::{Kind, Node},
};
use domain::{
    action::{CREATE, DELETE, UPDATE},
    approval::{ApprovalNeeded, DEFAULT_TIMEOUT, Decider, LONGEST_TIMEOUT, SHORTEST_TIMEOUT},
    name::Name,
    view::OfferingApprovalView,
};
use std::collections::BTreeMap;

/// What of an offering needs somebody's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPolicy {
    /// Who gives it, and how long they have.
    pub needed: ApprovalNeeded,
    /// What needs it: `create`, `update`, `delete`, or the IDs of actions.
    pub actions: Vec<String>,
}

impl ApprovalPolicy {
    /// What a request with this action needs.
    #[must_use]
    pub fn of(&self, action: &str) -> Option<ApprovalNeeded> {
        self.actions.iter().any(|known| known == action).then_some(self.needed)
    }

    /// The policy as it travels.
    #[must_use]
    pub fn view(&self) -> OfferingApprovalView {
        OfferingApprovalView { needed: self.needed, actions: self.actions.clone() }
    }
}

/// Reads what an offering says of it; nothing where nobody has to approve anything.
pub(super) fn read(
    sheet: &mut Sheet,
    top: &Members<'_>,
    updates: bool,
    actions: &BTreeMap<Name, Action>,
) -> Option<ApprovalPolicy> {
    let node = top.get("approval")?;
    let (mut timeout, mut asked) = (DEFAULT_TIMEOUT, vec![CREATE.to_owned()]);
    let by = match &node.kind {
        Kind::Text(word) if word == "none" => return None,
        Kind::Map(_) => {
            let members = sheet.members(node, "approval", &["by", "timeout", "for"]);
            if let Some(node) = members.get("timeout") {
                timeout = span(sheet, &members, "timeout", LONGEST_TIMEOUT)?;
                if timeout < SHORTEST_TIMEOUT {
                    sheet.note(node.place, "\"timeout\" must leave at least 1m to decide");
                }
            }
            if let Some(node) = members.get("for") {
                asked = what(sheet, node, updates, actions)?;
            }
            let by = sheet.needed(&members, "by")?;
            decider(sheet, by, "by", "owner or administrator")?
        }
        _ => decider(
            sheet,
            node,
            "approval",
            "none, owner, administrator, or a mapping with \"by\", \"timeout\" and \"for\"",
        )?,
    };
    let needed = ApprovalNeeded { by, timeout_seconds: timeout.as_secs() };
    Some(ApprovalPolicy { needed, actions: asked })
}

fn decider(sheet: &mut Sheet, node: &Node, name: &str, choices: &str) -> Option<Decider> {
    let by = match &node.kind {
        Kind::Text(word) => word.parse().ok(),
        _ => None,
    };
    if by.is_none() {
        sheet.note(node.place, format!("{name:?} says who decides: {choices}"));
    }
    by
}

/// What needs approval: something that the offering does.
fn what(
    sheet: &mut Sheet,
    node: &Node,
    updates: bool,
    actions: &BTreeMap<Name, Action>,
) -> Option<Vec<String>> {
    let Kind::List(items) = &node.kind else {
        sheet.note(node.place, "\"for\" must be a list of what needs approval, such as [create, delete]");
        return None;
    };
    if items.is_empty() {
        sheet.note(
            node.place,
            "\"for\" must name something; where nothing needs approval, say `approval: none`",
        );
    }
    let known: Vec<&str> = [CREATE]
        .into_iter()
        .chain(updates.then_some(UPDATE))
        .chain([DELETE])
        .chain(actions.keys().map(Name::as_str))
        .collect();
    let mut asked: Vec<String> = Vec::new();
    for item in items {
        let Some(word) = sheet.text(item, "for", 100) else { continue };
        if asked.iter().any(|before| before == word) {
            sheet.note(item.place, format!("\"for\" names {word:?} twice"));
        } else if known.contains(&word) {
            asked.push(word.to_owned());
        } else {
            sheet.note(
                item.place,
                format!("the offering does no {word:?}; approval can be asked for {}", known.join(", ")),
            );
        }
    }
    Some(asked)
}
