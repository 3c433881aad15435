//! The key: the identifier that a sender made for its submission.

use std::fmt;

/// The longest key, in characters (which are bytes, since keys are ASCII).
pub const MAX_KEY_LENGTH: usize = 255;

/// A sender-made identifier of a submission: 1 to 255 visible ASCII characters, case-sensitive.
///
/// Spelled as a structured-field string (RFC 8941, 3.3.3: `"…"` with `\"` and `\\`) or bare; both spell the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubmissionKey(String);

/// Why a key was not accepted. Nothing is claimed for such a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No key, or an empty or blank one.
    #[error(
        "send an Idempotency-Key of your own making with this call; a repeat with the same key is then answered with the first result"
    )]
    Missing,
    /// More than [`MAX_KEY_LENGTH`] characters.
    #[error("the key has more than 255 characters")]
    TooLong,
    /// A blank, control or non-ASCII character.
    #[error("the key may hold visible ASCII characters only, without blanks")]
    NotVisibleAscii,
    /// A quoted key that does not end, or escapes something other than `"` and `\`.
    #[error(
        "the quoted key is not a structured-field string: it needs a closing quote, and only \\\" and \\\\ are escapes"
    )]
    BadQuoting,
    /// More than one key with one submission.
    #[error("the key was sent more than once")]
    Repeated,
}

impl SubmissionKey {
    /// Reads a key as it was sent in a header or a form field.
    pub fn parse(sent: &[u8]) -> Result<Self, KeyError> {
        let text = sent.trim_ascii();
        let bare = match text {
            [] => return Err(KeyError::Missing),
            [b'"', rest @ ..] => unquote(rest)?,
            _ => text.to_vec(),
        };
        Self::checked(bare)
    }

    /// Reads the one key among the values of a header that may be absent or sent twice.
    pub fn parse_only<'a>(sent: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, KeyError> {
        Self::parse(only(sent)?)
    }

    /// Reads an identifier that has one spelling, as the one value of a header: quotation marks are characters of it.
    pub fn verbatim_only<'a>(sent: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, KeyError> {
        Self::checked(only(sent)?.trim_ascii().to_vec())
    }

    fn checked(bare: Vec<u8>) -> Result<Self, KeyError> {
        if bare.trim_ascii().is_empty() {
            return Err(KeyError::Missing);
        }
        if !bare.iter().all(u8::is_ascii_graphic) {
            return Err(KeyError::NotVisibleAscii);
        }
        if bare.len() > MAX_KEY_LENGTH {
            return Err(KeyError::TooLong);
        }
        String::from_utf8(bare).map(Self).map_err(|_| KeyError::NotVisibleAscii)
    }

    /// The key itself, unquoted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The one value of a header that may be absent or sent twice.
fn only<'a>(sent: impl IntoIterator<Item = &'a [u8]>) -> Result<&'a [u8], KeyError> {
    let mut values = sent.into_iter();
    let first = values.next().ok_or(KeyError::Missing)?;
    if values.next().is_some() { Err(KeyError::Repeated) } else { Ok(first) }
}

fn unquote(rest: &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut key = Vec::with_capacity(rest.len());
    let mut bytes = rest.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' if bytes.as_slice().is_empty() => return Ok(key),
            b'"' => return Err(KeyError::BadQuoting),
            b'\\' => match bytes.next() {
                Some(&escaped @ (b'"' | b'\\')) => key.push(escaped),
                _ => return Err(KeyError::BadQuoting),
            },
            other => key.push(other),
        }
    }
    Err(KeyError::BadQuoting)
}

impl fmt::Display for SubmissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(sent: &str) -> Result<String, KeyError> {
        SubmissionKey::parse(sent.as_bytes()).map(|key| key.0)
    }

    #[test]
    fn quoted_and_bare_spell_the_same_key() {
        assert_eq!(parse("\"abc\""), parse("abc"));
        assert_eq!(parse(r#""a\"b\\c""#), Ok(r#"a"b\c"#.into()));
        assert_eq!(parse(r#"a"b\c"#), Ok(r#"a"b\c"#.into()));
        assert_eq!(parse("  padded\t"), Ok("padded".into()));
    }

    #[test]
    fn what_has_one_spelling_keeps_its_quotation_marks() {
        let verbatim = |sent: &str| SubmissionKey::verbatim_only([sent.as_bytes()]).map(|key| key.0);
        assert_eq!(verbatim("\"e1\""), Ok("\"e1\"".into()));
        assert_eq!(verbatim("\"open"), Ok("\"open".into()));
        assert_eq!(verbatim(" e1 "), Ok("e1".into()));
        assert_eq!((verbatim(""), verbatim("a b")), (Err(KeyError::Missing), Err(KeyError::NotVisibleAscii)));
        assert_eq!(SubmissionKey::verbatim_only([]), Err(KeyError::Missing));
        assert_eq!(SubmissionKey::verbatim_only([b"a".as_slice(), b"a"]), Err(KeyError::Repeated));
    }

    #[test]
    fn a_missing_key_is_told_from_a_bad_one() {
        for missing in ["", "   ", "\"\"", "\"  \""] {
            assert_eq!(parse(missing), Err(KeyError::Missing), "{missing:?}");
        }
        for bad in ["a b", "a\tb", "a\0b", "é", "🔑", "\"a b\"", "\"é\""] {
            assert_eq!(parse(bad), Err(KeyError::NotVisibleAscii), "{bad:?}");
        }
        for bad in ["\"", "\"open", "\"a\"b\"", "\"a\\n\""] {
            assert_eq!(parse(bad), Err(KeyError::BadQuoting), "{bad:?}");
        }
        let twice: [&[u8]; 2] = [b"a", b"a"];
        assert_eq!(SubmissionKey::parse_only(twice), Err(KeyError::Repeated));
        assert_eq!(SubmissionKey::parse_only([]), Err(KeyError::Missing));
    }

    #[test]
    fn a_long_key_is_refused_and_never_cut() {
        assert!(parse(&"k".repeat(255)).is_ok());
        assert!(parse(&format!("\"{}\"", "k".repeat(255))).is_ok());
        for length in [256, 2048, 8000] {
            assert_eq!(parse(&"k".repeat(length)), Err(KeyError::TooLong));
        }
    }

    #[test]
    fn letter_case_is_kept() {
        assert_ne!(parse("AbCdEf01"), parse("aBcDeF01"));
        assert_eq!(parse("../x"), Ok("../x".into()));
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_visible_ascii_and_survives_quoting(sent in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = SubmissionKey::parse(&sent) {
                prop_assert!(!key.0.is_empty() && key.0.len() <= MAX_KEY_LENGTH);
                prop_assert!(key.0.bytes().all(|b| b.is_ascii_graphic()));
                let quoted = format!("\"{}\"", key.0.replace('\\', "\\\\").replace('"', "\\\""));
                prop_assert_eq!(SubmissionKey::parse(quoted.as_bytes()), Ok(key));
            }
        }

        #[test]
        fn every_visible_key_is_its_own(a in "[!#-~][!-~]{0,254}", b in "[!#-~][!-~]{0,254}") {
            let (one, two) = (parse(&a).unwrap(), parse(&b).unwrap());
            prop_assert_eq!(a == b, one == two);
        }
    }
}
