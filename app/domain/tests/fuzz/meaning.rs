//! The canonical form, over which fingerprints are taken: equal for equal meanings, and for no others.

use super::{any_json, any_object, any_text, chance, config, leaves, spelling::spelled};
use domain::{
    command::{Command, Operation},
    json::{canonical, read, without_nulls},
    label::Labels,
    name::Name,
};
use proptest::prelude::*;
use serde_json::Value;

fn meaning(text: &str) -> Vec<u8> {
    canonical(&without_nulls(read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))))
}

fn spelling(value: &Value, chance: &[u8]) -> String {
    let mut bytes = chance.iter().copied();
    spelled(value, &mut || bytes.next().unwrap_or(0))
}

fn any_command() -> impl Strategy<Value = Command> {
    let name = || proptest::option::of("[a-c]{1,2}".prop_map(|text| Name::parse(&text).unwrap()));
    let operation = prop_oneof![Just(Operation::Create), Just(Operation::Cancel), Just(Operation::Retry)];
    let labels = proptest::collection::btree_map("[a-b]{1,2}", "[a-b]{0,2}", 0..3).prop_map(|pairs| {
        let mut labels = Labels::default();
        for (key, value) in pairs {
            labels.add(&key, &value).unwrap();
        }
        labels
    });
    let correlation = proptest::option::of("[a-b]{1,2}");
    let target = proptest::option::of("[a-b]{1,2}");
    (operation, target, name(), name(), any_object(), labels, correlation).prop_map(
        |(operation, target, offering, name, parameters, labels, correlation_id)| Command {
            operation,
            target,
            action: None,
            offering,
            name,
            parameters,
            labels,
            correlation_id,
            parent_id: None,
        },
    )
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/meaning.txt"))]

    #[test]
    fn every_spelling_has_one_meaning(value in any_json(), chance in chance()) {
        let text = spelling(&value, &chance);
        prop_assert_eq!(meaning(&text), meaning(&value.to_string()), "{}", text);
    }

    #[test]
    fn one_changed_leaf_is_another_meaning(value in any_json(), pick in any::<prop::sample::Index>(), new in any_json(), chance in chance()) {
        let mut changed = value.clone();
        let places = leaves(&value);
        *changed.pointer_mut(pick.get(&places)).unwrap() = new;
        let (one, other) = (without_nulls(value.clone()), without_nulls(changed.clone()));
        let same = meaning(&spelling(&value, &chance)) == meaning(&spelling(&changed, &chance));
        prop_assert_eq!(same, one == other);
    }

    #[test]
    fn an_explicit_null_is_an_absent_member(members in any_object(), name in any_text()) {
        let mut with = members.clone();
        with.entry(name).or_insert(Value::Null);
        prop_assert_eq!(meaning(&Value::from(members).to_string()), meaning(&Value::from(with).to_string()));
    }

    #[test]
    fn commands_differ_in_what_is_named_or_are_the_same(one in any_command(), two in any_command(), mixed in any::<u8>()) {
        // Mostly alike, so that single differences are met.
        let other = Command {
            operation: if mixed & 1 == 0 { one.operation } else { two.operation },
            target: if mixed & 2 == 0 { one.target.clone() } else { two.target },
            action: if mixed & 128 == 0 { None } else { Some("add".into()) },
            offering: if mixed & 4 == 0 { one.offering.clone() } else { two.offering },
            name: if mixed & 8 == 0 { one.name.clone() } else { two.name },
            parameters: if mixed & 16 == 0 { one.parameters.clone() } else { two.parameters },
            labels: if mixed & 32 == 0 { one.labels.clone() } else { two.labels },
            correlation_id: if mixed & 64 == 0 { one.correlation_id.clone() } else { two.correlation_id },
            parent_id: None,
        };
        let differs = one.differences(&other);
        prop_assert_eq!(one == other, differs.is_empty(), "{:?}", differs);
        prop_assert_eq!(one == other, one.canonical() == other.canonical());
        prop_assert!(!one.canonical().is_empty());
    }
}
