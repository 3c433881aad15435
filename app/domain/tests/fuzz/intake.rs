//! JSON from outside: whatever comes, the reader answers; and what it takes in has one value for every reader.

use super::{any_json, chance, config, leaves, spelling::spelled};
use domain::json::{canonical, read};
use proptest::prelude::*;
use serde_json::Value;

/// Texts that are near the edges; a line each.
const CORPUS: &str = include_str!("corpus/json.txt");

/// Something that cannot be spelled, put in place of a leaf.
const MARK: &str = "here comes what is not taken in";

/// A text with `spoiled` in place of one leaf.
fn with(value: &Value, pick: prop::sample::Index, spoiled: &str) -> String {
    let mut marked = value.clone();
    *marked.pointer_mut(pick.get(&leaves(value))).unwrap() = MARK.into();
    marked.to_string().replace(&format!("\"{MARK}\""), spoiled)
}

#[test]
fn the_corpus_is_read_or_refused_as_it_says() {
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let (verdict, text) = line.split_once(' ').unwrap();
        let result = read(text.as_bytes());
        assert_eq!(result.is_ok(), verdict == "read", "{text}: {result:?}");
        if let Ok(value) = result {
            let once = canonical(&value);
            assert_eq!(canonical(&read(&once).unwrap()), once, "{text}");
        }
    }
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/intake.txt"))]

    #[test]
    fn whatever_comes_is_answered(pick in any::<prop::sample::Index>(), edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..12)) {
        let texts: Vec<&str> = CORPUS.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        let mut bytes = pick.get(&texts).as_bytes().to_vec();
        for (place, byte, edit) in edits {
            let at = place.index(bytes.len() + 1);
            match edit {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ if at < bytes.len() => bytes[at] = byte,
                _ => {}
            }
        }
        if let Ok(value) = read(&bytes) {
            // What the strict reader takes in, any reader takes in.
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
            let once = canonical(&value);
            prop_assert!(!once.is_empty());
            prop_assert_eq!(canonical(&read(&once).unwrap()), once);
        }
    }

    #[test]
    fn a_member_given_twice_is_refused_wherever_it_stands(value in any_json(), pick in any::<prop::sample::Index>(), name in "\\PC{0,6}", chance in chance()) {
        let mut bytes = chance.into_iter();
        let mut spell = || spelled(&Value::from(name.as_str()), &mut || bytes.next().unwrap_or(0));
        let twice = format!("{{{}:1,\"between\":[],{}:2}}", spell(), spell());
        let text = with(&value, pick, &twice);
        // A name that is one of the two others is given twice as well.
        prop_assert!(read(text.as_bytes()).is_err(), "{}", text);
    }

    #[test]
    fn half_a_character_is_refused_wherever_it_stands(value in any_json(), pick in any::<prop::sample::Index>(), half in 0xd800..0xe000_u32, high in any::<bool>()) {
        let low = half >= 0xdc00;
        let text = if high && !low { format!("\"\\u{half:04x}\\u0041\"") } else { format!("\"x\\u{half:04X}\"") };
        prop_assert!(read(with(&value, pick, &text).as_bytes()).is_err());
    }

    #[test]
    fn a_number_that_others_would_round_is_refused_wherever_it_stands(value in any_json(), pick in any::<prop::sample::Index>(), beyond in (1_u64 << 53)..=u64::MAX, spelled in 0..4_u8) {
        let number = match spelled {
            0 => beyond.to_string(),
            1 => format!("-{beyond}"),
            2 => format!("{beyond}.0"),
            _ => format!("{beyond}e{}", beyond % 300),
        };
        prop_assert!(read(with(&value, pick, &number).as_bytes()).is_err(), "{}", number);
    }

    #[test]
    fn any_depth_is_answered(depth in 0..20_000_usize, arrays in any::<bool>(), closed in any::<bool>()) {
        let (open, close) = if arrays { ("[", "]") } else { ("{\"a\":", "}") };
        let mut text = open.repeat(depth) + "1";
        if closed {
            text.push_str(&close.repeat(depth));
        }
        if let Ok(value) = read(text.as_bytes()) {
            prop_assert_eq!(canonical(&value), text.as_bytes());
        }
    }
}
