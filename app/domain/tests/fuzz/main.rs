//! Fuzzing of what comes from outside: keys, labels, searches, JSON, and the meaning that is made of it.
//!
//! `PROPTEST_CASES=200000 cargo test -p domain --test fuzz` runs it long. What it found before is kept in `corpus` and
//! in `regressions`, and is tried first.

#![expect(clippy::unwrap_used, reason = "a test ends where what it needs is not there")]

mod intake;
mod keys;
mod labels;
mod meaning;
mod patches;
mod searches;
mod spelling;

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use serde_json::{Map, Value};

/// As many cases as asked for, and a file beside the tests for what fails.
fn config(regressions: &'static str) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..ProptestConfig::default()
    }
}

const MOST: i64 = domain::json::MAX_SAFE_INTEGER;

/// Any number that is taken in.
fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-MOST..=MOST).prop_map(Value::from),
        (-1000..=1000_i64).prop_map(Value::from),
        // Not whole, so that no bound of whole numbers matters.
        any::<f64>()
            .prop_filter("taken in", |number| number.abs() < 9e15 && number.fract() != 0.0)
            .prop_map(Value::from),
        (-1e6..1e6_f64).prop_filter("not whole", |number| number.fract() != 0.0).prop_map(Value::from),
        (-99_999..99_999_i32, 1..6_i32)
            .prop_map(|(digits, places)| f64::from(digits) / 10_f64.powi(places))
            .prop_filter("not whole", |number| number.fract() != 0.0)
            .prop_map(Value::from),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", "\\PC{0,12}", any::<String>()]
}

/// Any value that is taken in.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any_text(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map(any_text(), any_json(), 0..5)
        .prop_map(|members| members.into_iter().collect())
}

/// Bytes that decide; when they are used up, all is zero.
fn chance() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

/// Every place in a value that holds no other values, as JSON pointers.
fn leaves(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    walk(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (place, item) in items.iter().enumerate() {
                    walk(item, &format!("{at}/{place}"), found);
                }
            }
            _ => found.push(at.to_owned()),
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}
