//! Strict JSON intake (I-JSON, RFC 7493) and its canonical form (JCS, RFC 8785).
//!
//! Two bodies that mean the same must hash alike, and no two values may collapse into one. So a repeated member and a
//! number that a double cannot hold are refused while reading, before anything is claimed: whole numbers beyond 2^53 - 1,
//! whatever a double overflows on, and fractions that a double takes for a whole number, nothing among them. Other
//! fractions are the nearest double, as in every reader of I-JSON.
//!
//! What others send by their own rules, an event's payload, may hold such numbers where nobody here reads them:
//! [`read_loosely`] says where they are.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};
use std::{cell::RefCell, collections::BTreeSet, fmt};

/// The largest whole number that every JSON reader keeps exactly: 2^53 - 1 (RFC 7493, 2.2).
pub const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Why a body was not accepted as JSON, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct JsonError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// Reads one JSON value, refusing repeated members and numbers outside what RFC 7493 calls interoperable.
///
/// A whole number is kept as an integer however it is spelled (`1`, `1.0`, `1e0`).
pub fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    let value = parsed(bytes, Strict { beyond: None })?;
    // A double does not tell what it was read from.
    match literals(bytes).find(|(_, literal)| collapses(literal)) {
        None => Ok(value),
        Some((end, _)) => {
            let before = &bytes[..end];
            let line_begins = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            Err(JsonError {
                message: BEYOND_FRACTION.to_owned(),
                line: before.split(|byte| *byte == b'\n').count(),
                column: end - line_begins,
            })
        }
    }
}

/// A JSON value with what [`read`] would refuse of its numbers left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loose {
    /// The value; `null` where a number was left out.
    pub value: Value,
    /// The pointers to the numbers that were left out.
    pub beyond: BTreeSet<String>,
}

/// Reads one JSON value as [`read`] does, but leaves numbers out that it would refuse.
pub fn read_loosely(bytes: &[u8]) -> Result<Loose, JsonError> {
    // What is no JSON whatever its numbers are.
    if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        return read(bytes).map(|value| Loose { value, beyond: BTreeSet::new() });
    }
    // Those that the reader below would not see as what they are stand as one that it knows to be beyond.
    let mut plain = bytes.to_vec();
    for (end, literal) in literals(bytes).filter(|(_, literal)| overflows(literal) || collapses(literal)) {
        plain[end - literal.len()..end].fill(b' ');
        let begin = end - literal.len();
        plain[begin..].iter_mut().zip(b"1e16").for_each(|(byte, of_beyond)| *byte = *of_beyond);
    }
    let holes = RefCell::default();
    let value = parsed(&plain, Strict { beyond: Some(&holes) })?;
    Ok(Loose { value, beyond: holes.into_inner().found })
}

fn parsed(bytes: &[u8], how: Strict<'_>) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = how.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| JsonError {
        line: error.line(),
        column: error.column(),
        message: {
            let text = error.to_string();
            match text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message) {
                "number out of range" => BEYOND.to_owned(),
                message => message.to_owned(),
            }
        },
    })
}

/// The numbers of a text that is JSON, each with where it ends.
fn literals(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            if byte == b'"' {
                while let Some(&inner) = bytes.get(at).filter(|inner| **inner != b'"') {
                    at += if inner == b'\\' { 2 } else { 1 };
                }
                at += 1;
            } else if byte == b'-' || byte.is_ascii_digit() {
                let begin = at - 1;
                let goes_on = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                at += bytes[at..].iter().take_while(|byte| goes_on(byte)).count();
                return Some((at, &bytes[begin..at]));
            }
        }
        None
    })
}

/// Whether a number is a fraction that a double holds as a whole number.
fn collapses(literal: &[u8]) -> bool {
    if !literal.iter().any(|byte| b".eE".contains(byte)) {
        return false;
    }
    let text = String::from_utf8_lossy(literal);
    let read: f64 = text.parse().unwrap_or(f64::NAN);
    read.fract() == 0.0 && !is_whole(&text)
}

/// Whether a number is larger than any double.
fn overflows(literal: &[u8]) -> bool {
    String::from_utf8_lossy(literal).parse().is_ok_and(f64::is_infinite)
}

/// Whether a number, as it is written, has nothing behind its point.
fn is_whole(literal: &str) -> bool {
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = if fraction.is_empty() { whole.len() - whole.trim_end_matches('0').len() } else { 0 };
    if fraction.is_empty() && zeros == whole.len() {
        return true;
    }
    // An exponent that is too long to be read decides by its sign.
    let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
    let exponent: i64 = exponent.parse().unwrap_or(beyond);
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    exponent.saturating_add(count(zeros)) >= count(fraction.len())
}

/// The canonical bytes of a value (RFC 8785).
///
/// Values read by [`read`] cannot fail here; a value made otherwise with a number beyond doubles yields no bytes.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    serde_jcs::to_vec(value).unwrap_or_default()
}

/// The value without object members that are `null`: an explicit `null` and an absent optional member mean the same.
#[must_use]
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The numbers that were left out so far, and the place that is read.
#[derive(Debug, Default)]
struct Holes {
    at: Vec<String>,
    found: BTreeSet<String>,
}

/// How a value is read: numbers beyond what JSON carries are an error, or left out.
#[derive(Clone, Copy)]
struct Strict<'h> {
    beyond: Option<&'h RefCell<Holes>>,
}

impl Strict<'_> {
    fn beyond<E: serde::de::Error>(self) -> Result<Value, E> {
        let Some(holes) = self.beyond else { return Err(E::custom(BEYOND)) };
        let holes = &mut *holes.borrow_mut();
        let pointer = holes.at.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")));
        holes.found.insert(pointer.collect());
        Ok(Value::Null)
    }

    fn enter(self, part: impl FnOnce() -> String) {
        if let Some(holes) = self.beyond {
            holes.borrow_mut().at.push(part());
        }
    }

    fn leave(self) {
        if let Some(holes) = self.beyond {
            holes.borrow_mut().at.pop();
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

const BEYOND_FRACTION: &str =
    "a fraction that JSON does not carry: it would become a whole number; send it as a string";

/// Why a number is refused that JSON does not carry exactly.
pub const BEYOND: &str = "a number beyond what JSON carries exactly (whole numbers reach to 9007199254740991); send it as a string";

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "checked to be whole and small"
)]
fn number(value: f64) -> Option<Value> {
    if value.abs() > MAX_SAFE_INTEGER as f64 {
        return None;
    }
    if value.fract() == 0.0 {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value < -MAX_SAFE_INTEGER { self.beyond() } else { Ok(Value::from(value)) }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) if value <= MAX_SAFE_INTEGER => Ok(Value::from(value)),
            _ => self.beyond(),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        number(value).map_or_else(|| self.beyond(), Ok)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        loop {
            self.enter(|| array.len().to_string());
            let item = items.next_element_seed(self)?;
            self.leave();
            let Some(item) = item else { break };
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<MemberName>()? {
            if object.contains_key(&name.0) {
                return Err(A::Error::custom(format!("the member {:?} is given twice", name.0)));
            }
            self.enter(|| name.0.clone());
            let value = members.next_value_seed(self)?;
            self.leave();
            object.insert(name.0, value);
        }
        Ok(Value::Object(object))
    }
}

struct MemberName(String);

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(MemberName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canon(text: &str) -> Vec<u8> {
        canonical(&read(text.as_bytes()).unwrap())
    }

    #[test]
    fn spellings_of_one_value_are_one_value() {
        assert_eq!(
            canon(r#"{"a":1,"b":{"c":2,"d":3}}"#),
            canon("{ \"b\" : {\r\n \"d\":3, \"c\":2 },\t\"a\":1 }")
        );
        assert_eq!(canon("1"), canon("1.0"));
        assert_eq!(canon("1"), canon("1e0"));
        assert_eq!(canon("-0"), canon("0.0"));
        assert_eq!(canon(r#""é""#), canon(r#""\u00e9""#));
    }

    #[test]
    fn different_values_stay_different() {
        assert_ne!(canon("1"), canon(r#""1""#));
        assert_ne!(canon(r#"["x","y"]"#), canon(r#"["y","x"]"#));
        assert_ne!(canon("0.1"), canon("0.2"));
    }

    #[test]
    fn numbers_that_would_collapse_are_refused() {
        for beyond in [
            "9007199254740992",
            "9007199254740993",
            "9007199254740993.0",
            "-9007199254740992",
            "18446744073709551616",
            "1e16",
            "1e400",
            "-1e400",
            "-9223372036854775808",
        ] {
            assert!(read(beyond.as_bytes()).is_err(), "{beyond}");
        }
        assert!(read(b"9007199254740991").is_ok() && read(b"-9007199254740991").is_ok());
    }

    #[test]
    fn what_is_refused_of_numbers_may_be_sent_as_a_string_and_stands_at_its_place() {
        for beyond in [
            "9007199254740991.4",
            "4503599627370497.5",
            "-4503599627370497.6",
            "45035996273704975e-1",
            "0.99999999999999999999",
            "1e-400",
            "-1e-99999999999999999999",
            "1e400",
            "1e99999999999999999999",
        ] {
            let error = read(format!("{{\"a\":\n [{beyond}]}}").as_bytes()).unwrap_err();
            assert!(error.message.contains("as a string") && error.line == 2, "{beyond}: {error}");
        }
        for fine in [
            "0.1",
            "1.0",
            "1e0",
            "1.50e1",
            "100e-2",
            "0.30000000000000004",
            "0e99999999999999999999",
            "-0.0e-400",
            "-0e-5",
            "5e-324",
            "4503599627370495.5",
            "9007199254740991.0",
            "\"9007199254740991.4\"",
            "\"\\\" 9007199254740991.4\"",
        ] {
            assert!(read(fine.as_bytes()).is_ok(), "{fine}");
        }
        assert_eq!(read(b"1.50e1").unwrap(), 15);
    }

    #[test]
    fn numbers_beyond_what_json_carries_are_left_out_where_they_are_when_they_may_stand() {
        let text = r#"{
            "id": 9007199254740993, "list": [1, -9007199254740992, {"a/b~": 1e400}], "text": "1e400",
            "tiny": 1e-400, "near": 9007199254740991.4, "half": 0.5, "none": null, "whole": 1.0
        }"#;
        let loose = read_loosely(text.as_bytes()).unwrap();
        let beyond = ["/id", "/list/1", "/list/2/a~1b~0", "/near", "/tiny"];
        assert_eq!(loose.beyond, beyond.map(str::to_owned).into());
        let value = serde_json::json!({
            "id": null, "list": [1, null, {"a/b~": null}], "text": "1e400",
            "tiny": null, "near": null, "half": 0.5, "none": null, "whole": 1
        });
        assert_eq!(loose.value, value);
        assert_eq!(read_loosely(b"1e309").unwrap().beyond, BTreeSet::from([String::new()]));
        for wrong in [r#"{"a":1,"a":2}"#, "[01e400]", "[1e400", "[1e400] x", "", "[\n-1e+]"] {
            assert_eq!(
                read_loosely(wrong.as_bytes()).unwrap_err().line,
                if wrong.contains('\n') { 2 } else { 1 },
                "{wrong}"
            );
        }
        assert!(read_loosely("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn a_repeated_member_is_refused_with_its_place() {
        for twice in
            [r#"{"size":"small","size":"large"}"#, r#"{"x":{"a":1,"\u0061":2}}"#, r#"[{"k":1,"k":1}]"#]
        {
            assert!(read(twice.as_bytes()).unwrap_err().message.contains("twice"), "{twice}");
        }
        let error = read(b"{\n \"a\": tru }").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(read(b"{} x").is_err() && read(b"").is_err() && read(br#""\ud800""#).is_err());
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn an_explicit_null_is_an_absent_member_and_a_null_item_stays() {
        let value = read(br#"{"a":null,"b":{"c":null},"d":[null,{"e":null}]}"#).unwrap();
        assert_eq!(canonical(&without_nulls(value)), br#"{"b":{},"d":[null,{}]}"#);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point_of_reading(value in any_json()) {
            let once = canonical(&read(value.to_string().as_bytes()).unwrap());
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(&once, &canonical(&read(pretty.as_bytes()).unwrap()));
            prop_assert_eq!(&once, &canonical(&read(&once).unwrap()));
        }

        #[test]
        fn different_values_have_different_canonical_forms(a in any_json(), b in any_json()) {
            let (a, b) = (read(a.to_string().as_bytes()).unwrap(), read(b.to_string().as_bytes()).unwrap());
            prop_assert_eq!(a == b, canonical(&a) == canonical(&b));
        }

        #[test]
        fn a_number_is_kept_as_what_it_is_near_or_refused(digits in "[1-9][0-9]{0,24}", point in 0_usize..25, exponent in -30_i64..30) {
            let point = point.min(digits.len());
            let whole = if point == 0 { "0" } else { &digits[..point] };
            let literal = format!("{whole}.{}0e{exponent}", &digits[point..]);
            let scale = exponent - i64::try_from(digits.len() - point).unwrap();
            let zeros = digits.len() - digits.trim_end_matches('0').len();
            let fraction = scale + i64::try_from(zeros).unwrap() < 0;
            match read(literal.as_bytes()) {
                // A fraction is never taken for a whole number, nor the other way round.
                Ok(number) => prop_assert_eq!(number.as_i64().is_none(), fraction, "{}", literal),
                Err(error) => prop_assert!(error.message.contains("as a string"), "{}: {}", literal, error),
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (strict, loose) = (read(&bytes), read_loosely(&bytes));
            if let Ok(value) = strict {
                prop_assert_eq!(loose, Ok(Loose { value, beyond: BTreeSet::new() }));
            }
        }
    }
}
