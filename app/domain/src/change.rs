//! How an action changes what a resource is meant to be: worked out once, when the request is accepted, so that neither
//! a repeat nor a second run of a program ever adds twice.

use crate::{json::MAX_SAFE_INTEGER, problem::FieldError, view::Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What an action does to one desired parameter; it names the action's own parameter that says how much or what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It becomes what the action's parameter says; without that parameter it stays.
    Set(String),
    /// The action's parameter, a whole number, is added to it.
    Add(String),
}

impl Change {
    /// The action's parameter that it uses.
    #[must_use]
    pub fn input(&self) -> &str {
        let (Self::Set(input) | Self::Add(input)) = self;
        input
    }
}

/// What an action does to the desired parameters, by their names. An action without any only runs its program.
pub type Changes = BTreeMap<String, Change>;

/// The desired parameters after the action; every fault stands at the action's parameter that caused it.
///
/// Only whole numbers are added, so nothing is rounded. What comes out is not yet checked against the offering's
/// schema; [`at_input`] tells the faults of that check in the words of the action.
pub fn changed(desired: &Object, changes: &Changes, input: &Object) -> Result<Object, Vec<FieldError>> {
    let (mut after, mut errors) = (desired.clone(), Vec::new());
    for (name, change) in changes {
        let Some(given) = input.get(change.input()) else { continue };
        let value = match change {
            Change::Set(_) => Ok(given.clone()),
            Change::Add(_) => {
                sum(desired.get(name), given).map(Value::from).map_err(|why| format!("{name} {why}"))
            }
        };
        match value {
            Ok(value) => {
                after.insert(name.clone(), value);
            }
            Err(detail) => errors.push(FieldError { pointer: place(change.input()), detail }),
        }
    }
    if errors.is_empty() { Ok(after) } else { Err(errors) }
}

fn sum(standing: Option<&Value>, given: &Value) -> Result<i64, &'static str> {
    let standing = match standing {
        None => return Err("has no value to add to"),
        Some(value) => value.as_i64().ok_or("is not a whole number, so nothing can be added to it")?,
    };
    let given = given.as_i64().ok_or("can only be changed by a whole number")?;
    let reach = -MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER;
    standing
        .checked_add(given)
        .filter(|sum| reach.contains(sum))
        .ok_or("would be beyond what a number can carry")
}

/// A fault of a desired parameter, told at the action's parameter that caused it; others stay where they are.
#[must_use]
pub fn at_input(changes: &Changes, error: FieldError) -> FieldError {
    let step =
        error.pointer.strip_prefix("/parameters/").map(|way| way.split('/').next().unwrap_or_default());
    let name = step.map(|step| step.replace("~1", "/").replace("~0", "~"));
    match name.and_then(|name| changes.get(&name).map(|change| (name, change))) {
        Some((name, change)) => FieldError {
            pointer: place(change.input()),
            detail: format!("{name} would break a rule: it {}", error.detail),
        },
        None => error,
    }
}

fn place(name: &str) -> String {
    format!("/parameters/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("an object") };
        object
    }

    fn changes() -> Changes {
        serde_json::from_value(json!({"disks": {"add": "count"}, "size": {"set": "to"}})).unwrap()
    }

    fn after(desired: Value, input: Value) -> Result<Value, Vec<FieldError>> {
        changed(&object(desired), &changes(), &object(input)).map(Value::Object)
    }

    #[test]
    fn an_action_changes_only_what_it_names() {
        let standing = json!({"disks": 2, "size": "small", "note": "x"});
        for (input, meant) in [
            (json!({"count": 3}), json!({"disks": 5, "size": "small", "note": "x"})),
            (json!({"count": -1, "to": "large"}), json!({"disks": 1, "size": "large", "note": "x"})),
            (json!({"reason": "none"}), standing.clone()),
        ] {
            assert_eq!(after(standing.clone(), input.clone()), Ok(meant), "{input}");
        }
    }

    #[test]
    fn what_cannot_be_added_is_told_at_the_actions_parameter() {
        for (desired, count, told) in [
            (json!({}), json!(1), "no value to add to"),
            (json!({"disks": "2"}), json!(1), "not a whole number"),
            (json!({"disks": 0.5}), json!(1), "not a whole number"),
            (json!({"disks": 2}), json!(0.5), "by a whole number"),
            (json!({"disks": MAX_SAFE_INTEGER}), json!(1), "beyond"),
            (json!({"disks": -MAX_SAFE_INTEGER}), json!(-1), "beyond"),
            (json!({"disks": i64::MAX}), json!(i64::MAX), "beyond"),
        ] {
            let errors = after(desired.clone(), json!({"count": count})).unwrap_err();
            assert!(errors.len() == 1 && errors[0].pointer == "/parameters/count", "{desired} {errors:?}");
            assert!(errors[0].detail.starts_with("disks ") && errors[0].detail.contains(told), "{errors:?}");
        }
    }

    #[test]
    fn a_fault_of_the_outcome_is_told_where_it_was_caused() {
        let fault =
            |pointer: &str| FieldError { pointer: pointer.into(), detail: "must be at most 8".into() };
        let told = at_input(&changes(), fault("/parameters/disks"));
        assert_eq!(told.pointer, "/parameters/count");
        assert_eq!(told.detail, "disks would break a rule: it must be at most 8");
        assert_eq!(at_input(&changes(), fault("/parameters/note")), fault("/parameters/note"));
        assert_eq!(at_input(&changes(), fault("")), fault(""));
    }

    proptest! {
        #[test]
        fn adding_is_exact(standing in -MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER, given in -MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER) {
            let meant = i128::from(standing) + i128::from(given);
            match after(json!({"disks": standing}), json!({"count": given})) {
                Ok(after) => prop_assert_eq!(i128::from(after["disks"].as_i64().unwrap()), meant),
                Err(_) => prop_assert!(meant.abs() > i128::from(MAX_SAFE_INTEGER)),
            }
        }
    }
}
