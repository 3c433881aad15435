//! Merge patches (RFC 7396): how a change of what a resource is meant to be is written, and how it is told afterwards.

use crate::view::Object;
use serde_json::Value;

/// What `target` becomes by `patch`: members of the patch replace, objects merge, `null` removes.
#[must_use]
pub fn merged(target: &Object, patch: &Object) -> Object {
    let mut result = target.clone();
    for (name, change) in patch {
        match change {
            Value::Null => {
                result.remove(name);
            }
            Value::Object(inner) => {
                let empty = Object::new();
                let before = result.get(name).and_then(Value::as_object).unwrap_or(&empty);
                let after = merged(before, inner);
                result.insert(name.clone(), Value::Object(after));
            }
            other => {
                result.insert(name.clone(), other.clone());
            }
        }
    }
    result
}

/// The smallest patch that turns `before` into `after`. Values inside of parameters are never null (an explicit null is
/// an absent member), so there is always one.
#[must_use]
pub fn between(before: &Object, after: &Object) -> Object {
    let mut patch = Object::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match (before.get(name), value) {
            (Some(known), value) if known == value => {}
            (Some(Value::Object(known)), Value::Object(value)) => {
                patch.insert(name.clone(), Value::Object(between(known, value)));
            }
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: &Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_examples_of_rfc_7396_hold() {
        for (target, patch, result) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            assert_eq!(merged(&object(&target), &object(&patch)), object(&result), "{target} {patch}");
        }
    }

    fn parameters() -> impl Strategy<Value = Object> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..5_i64).prop_map(Value::from)];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[abc]", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        proptest::collection::btree_map("[abc]", value, 0..4)
            .prop_map(|members| members.into_iter().collect())
    }

    proptest! {
        #[test]
        fn what_lies_between_leads_from_one_to_the_other(before in parameters(), after in parameters()) {
            prop_assert_eq!(merged(&before, &between(&before, &after)), after.clone());
            prop_assert!(between(&after, &after).is_empty());
        }
    }
}
