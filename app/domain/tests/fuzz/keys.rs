//! Keys as they are sent: quoted or bare, whatever the bytes.

use super::config;
use domain::key::{KeyError, MAX_KEY_LENGTH, SubmissionKey};
use proptest::prelude::*;

const CORPUS: &str = include_str!("corpus/keys.txt");

fn quoted(key: &str) -> String {
    format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn the_corpus_is_read_or_refused_as_it_says() {
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let (meant, sent) = line.split_once(" <- ").unwrap();
        let read =
            SubmissionKey::parse(sent.as_bytes()).map_or("(refused)".to_owned(), |key| key.to_string());
        assert_eq!(read, meant, "{sent}");
    }
}

proptest! {
    #![proptest_config(config("tests/fuzz/regressions/keys.txt"))]

    #[test]
    fn quoted_and_bare_are_one_key(key in "[!#-~][!-~]{0,254}") {
        let bare = SubmissionKey::parse(key.as_bytes()).unwrap();
        prop_assert_eq!(bare.as_str(), &key);
        prop_assert_eq!(SubmissionKey::parse(quoted(&key).as_bytes()), Ok(bare.clone()));
        prop_assert_eq!(SubmissionKey::parse(format!(" \t{} ", quoted(&key)).as_bytes()), Ok(bare));
    }

    #[test]
    fn whatever_comes_is_a_key_of_visible_characters_or_refused(pick in any::<prop::sample::Index>(), edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..8)) {
        let texts: Vec<&str> = CORPUS.lines().filter_map(|line| Some(line.split_once(" <- ")?.1)).collect();
        let mut bytes = pick.get(&texts).as_bytes().to_vec();
        for (place, byte, insert) in edits {
            let at = place.index(bytes.len() + 1);
            if insert || at == bytes.len() {
                bytes.insert(at, byte);
            } else {
                bytes[at] = byte;
            }
        }
        if let Ok(key) = SubmissionKey::parse(&bytes) {
            let text = key.as_str();
            prop_assert!((1..=MAX_KEY_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(SubmissionKey::parse(quoted(text).as_bytes()), Ok(key.clone()));
            // Bare it is itself, quoted it is what stands between the quotes: nothing else is ever cut off.
            let sent = bytes.trim_ascii();
            let bare = sent.first() != Some(&b'"');
            let whole = if bare { sent == text.as_bytes() } else { sent.len() >= text.len() + 2 };
            prop_assert!(whole);
        }
    }

    #[test]
    fn a_blank_or_an_invisible_byte_within_spoils_a_key(key in "[!#-~][!-~]{1,80}", place in any::<prop::sample::Index>(), byte in prop_oneof![0..=0x20_u8, 0x7f..=0xff_u8]) {
        let at = 1 + place.index(key.len() - 1);
        let mut bytes = key.into_bytes();
        bytes.insert(at, byte);
        prop_assert_eq!(SubmissionKey::parse(&bytes), Err(KeyError::NotVisibleAscii));
    }

    #[test]
    fn an_open_quote_or_something_behind_the_closing_one_is_refused(key in "[!-~]{0,80}", behind in "[!-~]{1,10}") {
        let mut open = quoted(&key);
        open.pop();
        let ends_open = SubmissionKey::parse(open.as_bytes());
        prop_assert_eq!(ends_open, Err(KeyError::BadQuoting));
        prop_assert_eq!(SubmissionKey::parse(format!("{}{behind}", quoted(&key)).as_bytes()), Err(KeyError::BadQuoting));
    }
}
