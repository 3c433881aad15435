//! Changes as they are sent: merge patches and the versions they are about.

use super::{any_object, config};
use domain::{
    etag::{IfMatch, Version},
    merge::{between, merged},
};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// The algorithm of RFC 7396, section 2, as it stands there.
fn as_the_rfc_says(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut target = if let Value::Object(target) = target { target } else { Map::new() };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(&name);
        } else {
            let before = target.remove(&name).unwrap_or(Value::Null);
            target.insert(name, as_the_rfc_says(before, value));
        }
    }
    Value::Object(target)
}

fn without_nulls(members: Map<String, Value>) -> Map<String, Value> {
    let Value::Object(members) = domain::json::without_nulls(Value::Object(members)) else {
        return Map::new();
    };
    members
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/patches.txt"))]

    #[test]
    fn a_patch_does_what_the_rfc_says_and_twice_does_no_more(target in any_object(), patch in any_object()) {
        let once = merged(&target, &patch);
        prop_assert_eq!(Value::from(once.clone()), as_the_rfc_says(Value::from(target), Value::from(patch.clone())));
        prop_assert_eq!(&merged(&once, &patch), &once);
    }

    #[test]
    fn what_lies_between_leads_there(before in any_object(), after in any_object(), patch in any_object()) {
        let (before, after) = (without_nulls(before), without_nulls(after));
        prop_assert_eq!(merged(&before, &between(&before, &after)), after.clone());
        // Also where the two are alike.
        let near = merged(&before, &without_nulls(patch));
        prop_assert_eq!(merged(&before, &between(&before, &near)), near);
    }

    #[test]
    fn a_list_of_tags_matches_what_it_names_and_no_header_is_too_odd(
        number in any::<i64>(), odd in proptest::collection::vec(any::<u8>(), 0..40), others in proptest::collection::vec("[!#-~]{0,8}", 0..4), place in any::<prop::sample::Index>(),
    ) {
        let version = Version { resource: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), number };
        let mut tags: Vec<String> = others.iter().map(|tag| format!("\"{tag}\"")).collect();
        prop_assert!(tags.is_empty() || !IfMatch::read([tags.join(",").as_bytes()]).matches(version));
        tags.insert(place.index(tags.len() + 1), version.to_string());
        prop_assert!(IfMatch::read([tags.join(" , ").as_bytes()]).matches(version));
        prop_assert!(IfMatch::read(tags.iter().map(String::as_bytes)).matches(version));
        // Random bytes never spell this version.
        let read = IfMatch::read([odd.as_slice()]);
        prop_assert!(read == IfMatch::Any || !read.matches(version));
        prop_assert!(!read.to_string().is_empty());
    }
}
