//! YAML with the place of every value, so that a mistake found later still knows its line.

use domain::json;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use std::fmt;

/// Where something stands, from line 1 and column 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    /// The beginning of a file.
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

impl From<serde_saphyr::Location> for Place {
    fn from(location: serde_saphyr::Location) -> Self {
        Self { line: location.line().max(1), column: location.column().max(1) }
    }
}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// One member of a mapping.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) value: Node,
}

/// Reads one document.
///
/// Words such as `no` stay words, and an alias that grows without bound is stopped.
pub(super) fn read(text: &str) -> Result<Node, (Place, String)> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 50_000,
            max_nodes: 20_000,
            max_aliases: 100,
            max_anchors: 100,
            max_depth: 64,
            max_documents: 1,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| {
        let place = error.location().map_or(Place::START, Place::from);
        let message = error.without_snippet().to_string();
        // The place is told once, before the message.
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
        (place, message.lines().next().unwrap_or_default().to_owned())
    })
}

impl Node {
    /// The value as JSON.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(yes) => Value::Bool(*yes),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Map(members) => Value::Object(
                members.iter().map(|m| (m.name.clone(), m.value.value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The place of what a JSON pointer (RFC 6901) leads to, or of the deepest part of the way that is there.
    pub(super) fn place_of(&self, pointer: &str) -> Place {
        let (mut node, mut place) = (self, self.place);
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.kind {
                Kind::Map(members) => {
                    members.iter().find(|member| member.name == step).map(|m| (&m.value, m.place))
                }
                Kind::List(items) => {
                    step.parse().ok().and_then(|at: usize| items.get(at)).map(|item| (item, item.place))
                }
                _ => None,
            };
            match next {
                Some(next) => (node, place) = next,
                None => break,
            }
        }
        place
    }

    /// What kind of value this is, for people.
    pub(super) fn word(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self { place: spanned.referenced.into(), kind: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(yes))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Kind, E> {
        exact(&Number::from(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Kind, E> {
        exact(&Number::from(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Kind, E> {
        exact(&Number::from_f64(number).ok_or_else(|| E::custom("a number must be finite"))?)
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Kind, E> {
        Ok(Kind::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut members: Vec<Member> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            if members.iter().any(|member| member.name == key.value) {
                return Err(A::Error::custom(format!("{:?} is given twice", key.value)));
            }
            members.push(Member { name: key.value, place: key.referenced.into(), value: map.next_value()? });
        }
        Ok(Kind::Map(members))
    }
}

/// The number as submissions spell it: `1.0` is `1`, and what a double cannot hold exactly is refused.
fn exact<E: serde::de::Error>(number: &Number) -> Result<Kind, E> {
    match json::read(number.to_string().as_bytes()) {
        Ok(Value::Number(number)) => Ok(Kind::Number(number)),
        Ok(_) => Err(E::custom("not a number")),
        Err(error) => Err(E::custom(error.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_value_knows_its_place_and_words_stay_words() {
        let node = read("a: no\nb:\n  - 1.0\n  - c: yes\n    d: true\n'e/f': ~\n").unwrap();
        assert_eq!(node.value(), json!({"a": "no", "b": [1, {"c": "yes", "d": true}], "e/f": null}));
        assert_eq!(node.place_of("/b/1/d"), Place { line: 5, column: 5 });
        assert_eq!(node.place_of("/b/0"), Place { line: 3, column: 5 });
        assert_eq!(node.place_of("/e~1f/deeper"), Place { line: 6, column: 1 });
        assert_eq!(node.place_of(""), Place::START);
    }

    #[test]
    fn broken_yaml_is_refused_with_its_place() {
        for (text, line) in [
            ("a: 1\nb: [1, 2\n", 2..4),
            ("a: 1\nb: 2\na: 3\n", 3..4),
            ("a: 1\n\tb: 2\n", 1..3),
            ("a: 9007199254740993\n", 1..2),
            ("a: 1\n---\nb: 1\n", 1..4),
            ("", 1..2),
            ("a: .inf\n", 1..2),
        ] {
            let result = read(text);
            if text.is_empty() {
                assert!(matches!(result, Err(_) | Ok(Node { kind: Kind::Null, .. })));
                continue;
            }
            let (place, message) = result.map(|node| node.value()).unwrap_err();
            assert!(line.contains(&place.line), "{text:?}: {place:?} {message}");
            assert!(
                !message.is_empty() && !message.contains('\n') && !message.contains(" line "),
                "{message}"
            );
        }
    }

    #[test]
    fn aliases_cannot_grow_without_bound() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        text.extend((1..9).map(|n| {
            let before = vec![format!("*a{}", n - 1); 10].join(", ");
            format!("a{n}: &a{n} [{before}]\n")
        }));
        assert!(read(&text).is_err());
    }
}
