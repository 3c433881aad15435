//! What an offering does with a resource that is there, as `actions` in `offering.yaml` says.

use super::{
    ParameterSchema,
    offering::schema,
    sheet::{Members, Sheet},
    yaml::{Kind, Member, Node},
};
use crate::provisioner::exec::INPUT;
use domain::{
    change::{Change, Changes},
    form,
    name::Name,
    view::ActionView,
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// Words that mean something else where an action's ID is read: in a request's `action`, in addresses and to programs.
const TAKEN: &[&str] = &[
    "create", "update", "delete", "cancel", "retry", "resolve", "approve", "reject", "observe", "apply",
    "destroy",
];

/// The most actions of one offering.
const MAX_ACTIONS: usize = 50;

/// Something that an offering does with a resource.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its title.
    pub title: String,
    /// What it does.
    pub description: String,
    /// The schema of its own parameters.
    pub schema: Arc<ParameterSchema>,
    /// How it changes the resource's desired parameters; empty when it only runs the program.
    pub changes: Changes,
}

impl Action {
    /// The action as it travels.
    #[must_use]
    pub fn view(&self, id: &Name) -> ActionView {
        ActionView {
            id: id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            parameters: self.schema.value().clone(),
            changes: self.changes.clone(),
        }
    }
}

/// Reads all actions; `parameters` is the offering's own schema, if that is without mistakes.
pub(super) fn read(
    sheet: &mut Sheet,
    top: &Members<'_>,
    parameters: Option<&ParameterSchema>,
) -> BTreeMap<Name, Action> {
    let mut actions = BTreeMap::new();
    let Some(node) = top.get("actions") else {
        return actions;
    };
    let Kind::Map(members) = &node.kind else {
        sheet.note(
            node.place,
            format!("\"actions\" must be a mapping from IDs to actions, not {}", node.word()),
        );
        return actions;
    };
    if members.len() > MAX_ACTIONS {
        sheet.note(node.place, format!("an offering has at most {MAX_ACTIONS} actions"));
    }
    for member in members {
        let id = id(sheet, member);
        let action = action(sheet, &member.value, parameters);
        if let (Some(id), Some(action)) = (id, action) {
            actions.insert(id, action);
        }
    }
    actions
}

fn id(sheet: &mut Sheet, member: &Member) -> Option<Name> {
    if TAKEN.contains(&member.name.as_str()) {
        sheet.note(
            member.place,
            format!("an action cannot be called {:?}, which is the portal's own word", member.name),
        );
        return None;
    }
    Name::parse(&member.name)
        .map_err(|rule| sheet.note(member.place, format!("an action's ID is a name, and {rule}")))
        .ok()
}

fn action(sheet: &mut Sheet, node: &Node, parameters: Option<&ParameterSchema>) -> Option<Action> {
    let members = sheet.members(node, "an action", &["title", "description", "parameters", "changes"]);
    let title = sheet.needed_text(&members, "title", 100);
    if let (Some(node), true) = (members.get("title"), title.is_some_and(|title| title.contains('\n'))) {
        sheet.note(node.place, "\"title\" must be one line");
    }
    let description = members.get("description").map(|node| sheet.text(node, "description", 2000));
    let input = match members.get("parameters") {
        Some(node) => schema(sheet, node, "an action's parameters", INPUT),
        None => ParameterSchema::compile(&json!({ "type": "object" })).ok(),
    };
    let changes = members
        .get("changes")
        .map_or_else(Changes::new, |node| changes(sheet, node, input.as_ref(), parameters));
    Some(Action {
        title: title?.to_owned(),
        description: description.map_or(Some(""), |text| text)?.trim().to_owned(),
        schema: Arc::new(input?),
        changes,
    })
}

/// Reads how an action changes parameters: both names must be known, and only whole numbers are added.
fn changes(
    sheet: &mut Sheet,
    node: &Node,
    input: Option<&ParameterSchema>,
    parameters: Option<&ParameterSchema>,
) -> Changes {
    let mut changes = Changes::new();
    let Kind::Map(members) = &node.kind else {
        sheet.note(
            node.place,
            format!("\"changes\" must be a mapping from parameters to changes, not {}", node.word()),
        );
        return changes;
    };
    for member in members {
        let name = &member.name;
        let known = sheet.members(&member.value, "a change", &["set", "add"]);
        let (word, from) = match (known.get("set"), known.get("add")) {
            (Some(from), None) => ("set", from),
            (None, Some(from)) => ("add", from),
            _ => {
                if matches!(member.value.kind, Kind::Map(_)) {
                    sheet.note(member.value.place, "a change must have exactly one of set and add");
                }
                continue;
            }
        };
        let Some(source) = sheet.text(from, word, 100) else { continue };
        if let Some(schema) = parameters {
            if schema.property(name).is_none() {
                sheet.note(member.place, format!("the offering has no parameter {name:?}"));
            } else if schema.property(name).is_some_and(form::is_immutable) {
                sheet.note(
                    member.place,
                    format!("the parameter {name:?} is {} and cannot be changed", form::IMMUTABLE),
                );
            } else if word == "add" && schema.secrets().contains(name) {
                sheet.note(member.place, format!("{name:?} is a secret, and nothing is added to one"));
            } else if word == "add" && !(schema.is_whole(name) && schema.is_always_there(name)) {
                let rule = "must be of `type: integer`, and required or with a default";
                sheet.note(member.place, format!("to be added to, the parameter {name:?} {rule}"));
            }
        }
        if let Some(schema) = input {
            if schema.property(source).is_none() {
                sheet.note(from.place, format!("the action has no parameter {source:?}"));
            } else if word == "add" && !schema.is_whole(source) {
                sheet.note(
                    from.place,
                    format!("to be added, the action's parameter {source:?} must be of `type: integer`"),
                );
            }
        }
        if let (Some(input), Some(parameters)) = (input, parameters)
            && input.secrets().contains(source) != parameters.secrets().contains(name)
            && input.property(source).is_some()
            && parameters.property(name).is_some()
        {
            let rule = "both must be secrets (`writeOnly`), or neither";
            sheet.note(from.place, format!("{source:?} becomes {name:?}: {rule}"));
        }
        let change =
            if word == "add" { Change::Add(source.to_owned()) } else { Change::Set(source.to_owned()) };
        changes.insert(name.clone(), change);
    }
    changes
}
