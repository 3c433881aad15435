//! The grammar of searches: every address is understood or refused by name, within its bounds, and spells itself.

use super::config;
use domain::search::{
    Field, MAX_FILTERS, MAX_TEXT_LENGTH, MAX_VALUE_LENGTH, MAX_VALUES, Operator, Search, Values, decoded,
    encoded, label, parameter,
};
use proptest::prelude::*;

/// Values of every kind: what fields hold, texts full of the grammar's own characters, and ones at the bounds. `İ` is
/// longer in lower case.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "(SUCCESS|failed|Paused|api|create|2026-01-31T12:00:00Z|0190aaaa-0000-7000-8000-000000000000)",
        "[a-c,\" ]{0,12}",
        "[%_\\\\'\\]\\[&=+?#]{0,8}",
        "\\PC{0,10}",
        any::<String>(),
        "[xé]{1020,1028}",
        "İ{500,530}",
        proptest::collection::vec("[a-b,\"]{0,3}", 95..105).prop_map(|values| values.join(",")),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        4 => proptest::sample::select(Field::ALL.to_vec()).prop_map(|field| field.to_string()),
        1 => "(labels|parameters)",
        1 => "[a-z_\\[\\]]{0,8}",
    ]
    .boxed();
    let operator =
        proptest::sample::select(Operator::ALL.to_vec()).prop_map(|operator| operator.to_string()).boxed();
    let known = (field.clone(), operator.clone())
        .prop_map(|(field, operator)| format!("filters[{field}][{operator}]"));
    let inner = (field, operator, "(\\PC{0,6}|DOMAIN|system.correlationId)")
        .prop_map(|(field, operator, key)| format!("filters[{field}][{operator}][{key}]"));
    prop_oneof![
        4 => known,
        2 => inner,
        1 => "[a-z._/-]{1,8}".prop_map(|key| label(&key)),
        1 => "(\\PC{0,6}|DOMAIN)".prop_map(|name| parameter(&name)),
        1 => "(q|size|cursor)",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/searches.txt"))]

    #[test]
    fn what_is_understood_is_within_bounds_and_spells_itself(pairs in proptest::collection::vec((any_name(), any_value()), 0..5)) {
        let search = match Search::read(pairs.iter().map(|(name, value)| (name, value))) {
            Ok(search) => search,
            Err(refused) => {
                // By the name of one of them, and with a rule.
                let mut names = pairs.iter().map(|(name, _)| name.chars().take(80).collect::<String>());
                prop_assert!(names.any(|name| name == refused.parameter), "{}", refused);
                prop_assert!(!refused.rule.is_empty());
                return Ok(());
            }
        };
        prop_assert_eq!(&Search::read_query(&search.query()).unwrap(), &search, "{}", search.query());
        for filter in search.filters() {
            let Values::Texts(texts) = filter.values else { continue };
            prop_assert!(texts.len() <= MAX_VALUES);
            prop_assert!(texts.iter().all(|text| (1..=MAX_VALUE_LENGTH).contains(&text.chars().count())));
        }
        let mut asked = search.labels().values().chain(search.parameters().values());
        prop_assert!(asked.all(|value| value.chars().count() <= MAX_VALUE_LENGTH));
        prop_assert!(search.text().is_none_or(|text| (1..=MAX_TEXT_LENGTH).contains(&text.chars().count())));
        prop_assert!(search.filters().count() + search.labels().len() + search.parameters().len() <= MAX_FILTERS);
    }

    #[test]
    fn a_value_is_taken_as_it_is(value in "\\PC{1,40}", key in "[a-z]{1,4}") {
        // No character of a value is anything but itself, on the whole way through an address.
        let name = Field::Name.compared(Operator::Contains);
        let pairs = [(name.clone(), value.clone()), (label(&key), value.clone()), (parameter(&key), value.clone())];
        let search = Search::read_query(&encoded(&pairs)).unwrap();
        prop_assert_eq!(search.get(&name), Some(value.clone()));
        prop_assert_eq!(&search.labels()[&key], &value);
        prop_assert_eq!(&search.parameters()[&key], &value);
    }

    #[test]
    fn a_list_holds_what_was_listed(values in proptest::collection::vec("[a-b,\" \\\\]{1,5}", 1..6)) {
        // Spelled by hand: every one in quotation marks.
        let spelled: Vec<String> = values.iter().map(|value| format!("\"{}\"", value.replace('"', "\"\""))).collect();
        let search = Search::read([(Field::Name.compared(Operator::In), spelled.join(","))]).unwrap();
        let read = search.filters().next().map(|filter| filter.values.clone());
        prop_assert_eq!(read, Some(Values::Texts(values)));
    }

    #[test]
    fn pairs_survive_an_address(pairs in proptest::collection::vec((".{0,8}", ".{0,8}"), 0..5)) {
        prop_assert_eq!(decoded(&encoded(&pairs)), pairs);
    }

    #[test]
    fn any_bytes_are_an_address(query in "[%0-9a-fA-F+&=?;\\[\\]]{0,40}") {
        for (name, value) in decoded(&query) {
            prop_assert!(name.len() + value.len() <= 3 * query.len());
        }
        let _ = Search::read_query(&query);
    }
}
