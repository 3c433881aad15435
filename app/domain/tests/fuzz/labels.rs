//! Labels as they are sent, `key:value`, and the correlation ID among them.

use super::config;
use domain::{
    correlation::{CORRELATION_LABEL, CorrelationId},
    label::{LabelError, Labels, MAX_LABEL_KEY_LENGTH, MAX_LABEL_VALUE_LENGTH, MAX_LABELS, split},
};
use proptest::prelude::*;

const CORPUS: &str = include_str!("corpus/labels.txt");

/// The rule of keys as it is written down, apart from how it is checked.
fn is_key(key: &str) -> bool {
    let known = "abcdefghijklmnopqrstuvwxyz0123456789._/-";
    (1..=MAX_LABEL_KEY_LENGTH).contains(&key.chars().count())
        && key.chars().all(|character| known.contains(character))
        && !key.starts_with("system.")
}

fn is_value(value: &str) -> bool {
    value.chars().count() <= MAX_LABEL_VALUE_LENGTH && !value.chars().any(char::is_control)
}

/// Mostly near what is taken in: at its bounds, and with what is just not.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9._/-]{1,8}",
        "[a-z0-9._/-]{60,66}",
        "system[.a-z]{0,6}",
        "[a-zA-Z0-9:é ._/-]{0,6}",
        any::<String>()
    ]
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z: ]{0,8}", "[xé]{250,260}", "\\PC{0,20}", any::<String>()]
}

#[test]
fn the_corpus_is_read_or_refused_as_it_says() {
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let (meant, sent) = line.split_once(" <- ").unwrap();
        let sent = sent.replace("\\t", "\t").replace("\\x7f", "\x7f").replace("\\u85", "\u{85}");
        let read = split(&sent).and_then(|(key, value)| {
            let mut labels = Labels::default();
            labels.add(key, value)?;
            Ok(format!("{key} = {value}"))
        });
        assert_eq!(read.unwrap_or_else(|_| "(refused)".to_owned()), meant, "{sent}");
    }
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/labels.txt"))]

    #[test]
    fn a_label_is_what_stands_before_and_behind_the_first_colon(key in any_key(), value in any_value()) {
        let sent = format!("{key}:{value}");
        let (before, behind) = split(&sent).unwrap();
        prop_assert_eq!(&format!("{before}:{behind}"), &sent);
        prop_assert!(!before.contains(':'));
        let mut labels = Labels::default();
        let added = labels.add(before, behind);
        prop_assert_eq!(added.is_ok(), is_key(before) && is_value(behind), "{:?}", added);
        // What is refused leaves nothing, and what is taken in is there as it was sent.
        let kept: Vec<_> = labels.iter().collect();
        prop_assert_eq!(kept, if added.is_ok() { vec![(before, behind)] } else { vec![] });
        if added.is_ok() {
            prop_assert_eq!(labels.add(before, behind), Ok(()));
            let other = if behind == "other" { "another" } else { "other" };
            prop_assert_eq!(labels.add(before, other), Err(LabelError::Contradiction));
        }
    }

    #[test]
    fn no_colon_is_no_label(sent in "[^:]{0,40}") {
        prop_assert_eq!(split(&sent), Err(LabelError::NoColon));
    }

    #[test]
    fn nobody_but_the_portal_sets_its_own(behind in any_key(), value in any_value(), upper in any::<bool>()) {
        let key = if upper { format!("System.{behind}") } else { format!("system.{behind}") };
        let mut labels = Labels::default();
        prop_assert!(labels.add(&key, &value).is_err());
        // Whatever stands among them, the shown correlation ID is the request's own.
        let shown = labels.shown_with("own");
        prop_assert_eq!(shown.get(CORRELATION_LABEL).map(String::as_str), Some("own"));
    }

    #[test]
    fn there_are_sixty_four_at_most(count in 60..70_usize) {
        let mut labels = Labels::default();
        let added = (0..count).filter(|number| labels.add(&format!("k{number}"), "v").is_ok()).count();
        prop_assert_eq!(added, count.min(MAX_LABELS));
    }

    #[test]
    fn a_correlation_id_is_kept_as_it_is_or_refused(text in any_value()) {
        let parsed = CorrelationId::parse(&text);
        prop_assert_eq!(parsed.is_ok(), is_value(&text) && !text.trim().is_empty());
        if let Ok(id) = parsed {
            prop_assert_eq!(id.as_str(), text);
        }
    }

    #[test]
    fn an_heir_keeps_its_own_and_takes_the_rest(own in proptest::collection::btree_map("[a-d]", "[x-z]{0,2}", 0..4), of_parent in proptest::collection::btree_map("[a-d]", "[x-z]{0,2}", 0..4)) {
        let mut labels = Labels::default();
        for (key, value) in &own {
            labels.add(key, value).unwrap();
        }
        let all = labels.inheriting(&of_parent).unwrap();
        let mut expected = of_parent;
        expected.extend(own);
        prop_assert!(all.iter().eq(expected.iter().map(|(key, value)| (key.as_str(), value.as_str()))));
    }
}
