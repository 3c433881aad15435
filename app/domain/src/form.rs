//! A form made from an offering's JSON Schema, and the way back: the strings of a form, typed by that schema.
//!
//! The browser and the server use the same two functions, so a form with script and one without send the same values.

use crate::view::Object;
use serde_json::Value;

/// The keyword by which an offering shows a parameter only while another has a certain value: `{"other": value}`.
pub const VISIBLE_WHEN: &str = "x-visible-when";

/// The keyword by which an offering says that a parameter cannot be changed once the resource is there.
pub const IMMUTABLE: &str = "x-immutable";

/// One input of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The parameter's name.
    pub name: String,
    /// Its title for people.
    pub title: String,
    /// What it means.
    pub help: Option<String>,
    /// What goes into it.
    pub kind: FieldKind,
    /// Whether it must be given.
    pub required: bool,
    /// What holds when it is left out.
    pub default: Option<Value>,
    /// The parameter and value that make this one appear.
    pub visible_when: Option<(String, Value)>,
    /// Whether it stays as it was when the resource was made.
    pub immutable: bool,
}

/// What goes into an input.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A line of text.
    Text {
        /// The fewest characters.
        min_length: Option<u64>,
        /// The most characters.
        max_length: Option<u64>,
        /// The regular expression it matches (ECMA-262).
        pattern: Option<String>,
    },
    /// A number.
    Number {
        /// Whether it is whole.
        whole: bool,
        /// The least.
        minimum: Option<f64>,
        /// The greatest.
        maximum: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// One of a few values.
    Choice(Vec<Value>),
    /// Several texts, a line each.
    Lines,
    /// Anything else, written as JSON.
    Json,
}

/// The inputs of a form for this schema, in the schema's order of `required`, then by name.
///
/// A schema may give an order of its own by `x-order`, a list of names.
#[must_use]
pub fn fields(schema: &Value) -> Vec<Field> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let names = |keyword: &str| -> Vec<&str> {
        schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let (order, required) = (names("x-order"), names("required"));
    let place = |name: &str| {
        let at = |list: &[&str]| list.iter().position(|known| *known == name).unwrap_or(usize::MAX);
        (at(&order), at(&required))
    };
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(name, property)| field(name, property, required.contains(&name.as_str())))
        .collect();
    fields.sort_by_key(|field| place(&field.name));
    fields
}

fn field(name: &str, property: &Value, required: bool) -> Field {
    let text = |keyword: &str| property.get(keyword).and_then(Value::as_str).map(str::to_owned);
    Field {
        name: name.to_owned(),
        title: text("title").unwrap_or_else(|| name.to_owned()),
        help: text("description"),
        kind: kind(property),
        required,
        default: property.get("default").cloned(),
        visible_when: visible_when(property),
        immutable: is_immutable(property),
    }
}

fn kind(property: &Value) -> FieldKind {
    if let Some(options) = property.get("enum").and_then(Value::as_array) {
        return FieldKind::Choice(options.clone());
    }
    let number = |keyword: &str| property.get(keyword).and_then(Value::as_f64);
    let count = |keyword: &str| property.get(keyword).and_then(Value::as_u64);
    match one_type(property) {
        Some("string") => FieldKind::Text {
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: property.get("pattern").and_then(Value::as_str).map(str::to_owned),
        },
        Some(word @ ("integer" | "number")) => FieldKind::Number {
            whole: word == "integer",
            minimum: number("minimum"),
            maximum: number("maximum"),
        },
        Some("boolean") => FieldKind::Boolean,
        Some("array") if property.pointer("/items/type").and_then(Value::as_str) == Some("string") => {
            FieldKind::Lines
        }
        _ => FieldKind::Json,
    }
}

/// The type of a value that is there: one that may also be null is left out for that.
fn one_type(property: &Value) -> Option<&str> {
    match property.get("type")? {
        Value::Array(types) => {
            let mut words = types.iter().filter_map(Value::as_str).filter(|word| *word != "null");
            words.next().filter(|_| words.next().is_none())
        }
        word => word.as_str(),
    }
}

fn visible_when(property: &Value) -> Option<(String, Value)> {
    let condition = property.get(VISIBLE_WHEN)?.as_object()?;
    condition.iter().next().map(|(name, value)| (name.clone(), value.clone()))
}

/// Whether the parameter of this schema stays as it was when the resource was made.
#[must_use]
pub fn is_immutable(property: &Value) -> bool {
    property.get(IMMUTABLE) == Some(&Value::Bool(true))
}

/// Whether the parameter of this schema applies while the others have these values (defaults included).
#[must_use]
pub fn applies(property: &Value, parameters: &Object) -> bool {
    visible_when(property).is_none_or(|(other, value)| parameters.get(&other) == Some(&value))
}

/// The parameters that a form's strings mean.
///
/// `sent` gives what the form holds for a parameter (nothing when it is absent, as an unticked box is). A string that
/// does not fit its type stays a string, so that the schema's own check names it; fields that do not apply are left
/// out.
#[must_use]
pub fn typed(schema: &Value, sent: impl Fn(&str) -> Option<String>) -> Object {
    let fields = fields(schema);
    let mut parameters = Object::new();
    for field in &fields {
        let text = sent(&field.name);
        if text.as_deref().is_none_or(|text| text == "false") && may_say_nothing(field, &fields) {
            continue;
        }
        if let Some(value) = typed_value(field, text) {
            parameters.insert(field.name.clone(), value);
        }
    }
    remove_hidden(&fields, &mut parameters);
    parameters
}

/// Whether an unticked box says nothing, as a caller who leaves the parameter out: where nothing holds instead, nothing has
/// to be given, and nothing depends on its being `false`.
fn may_say_nothing(field: &Field, fields: &[Field]) -> bool {
    let no = Some((field.name.clone(), Value::Bool(false)));
    field.kind == FieldKind::Boolean
        && field.default.is_none()
        && !field.required
        && !fields.iter().any(|other| other.visible_when == no)
}

/// What a resource's parameters become by a form that was opened with `before`.
///
/// Only what was touched changes: an input that still shows what stood there (which a line of text cannot always do, as
/// line breaks get lost in it) leaves it alone, so does a field of those `kept` when it is empty, and so does everything
/// that the form has no input for. A touched input that is empty takes the parameter away; one that does not apply any
/// more goes with it.
#[must_use]
pub fn edited(
    schema: &Value,
    before: &Object,
    sent: impl Fn(&str) -> Option<String>,
    kept: impl Fn(&str) -> bool,
) -> Object {
    let mut after = before.clone();
    let fields = fields(schema);
    for field in fields.iter().filter(|field| !field.immutable) {
        let (standing, text) = (before.get(&field.name), sent(&field.name));
        let is_empty = text.as_deref().is_none_or(|text| text.trim().is_empty());
        let untouched = match &field.kind {
            FieldKind::Boolean => standing.is_none() && text.is_none(),
            kind => {
                let shows = standing.map(shown).unwrap_or_default();
                let holds = text.as_deref().unwrap_or_default();
                as_shown(kind, &shows) == as_shown(kind, holds) || in_one_line(kind, &shows) == holds
            }
        };
        if untouched || (is_empty && kept(&field.name)) {
            continue;
        }
        match typed_value(field, text) {
            Some(value) => after.insert(field.name.clone(), value),
            None => after.remove(&field.name),
        };
    }
    remove_hidden(&fields, &mut after);
    after
}

/// A text as an input of this kind gives it back.
fn as_shown(kind: &FieldKind, text: &str) -> String {
    match kind {
        FieldKind::Lines | FieldKind::Json | FieldKind::Text { .. } => {
            text.replace("\r\n", "\n").replace('\r', "\n")
        }
        _ => text.replace(['\r', '\n'], ""),
    }
}

/// A text as a single line shows it: there line breaks get lost.
fn in_one_line(kind: &FieldKind, text: &str) -> String {
    match kind {
        FieldKind::Text { .. } => text.replace(['\r', '\n'], ""),
        _ => as_shown(kind, text),
    }
}

/// Takes away what does not apply, and what does not apply without that.
fn remove_hidden(fields: &[Field], parameters: &mut Object) {
    loop {
        let hidden =
            |field: &&Field| parameters.contains_key(&field.name) && hides(field, fields, parameters);
        let hidden: Vec<&Field> = fields.iter().filter(hidden).collect();
        if hidden.is_empty() {
            return;
        }
        for field in hidden {
            parameters.remove(&field.name);
        }
    }
}

/// Whether a field does not apply while the others have these values, or their defaults.
fn hides(field: &Field, fields: &[Field], parameters: &Object) -> bool {
    field.visible_when.as_ref().is_some_and(|(other, value)| {
        let standing = parameters
            .get(other)
            .or_else(|| fields.iter().find(|field| field.name == *other).and_then(|f| f.default.as_ref()));
        standing != Some(value)
    })
}

fn typed_value(field: &Field, sent: Option<String>) -> Option<Value> {
    if field.kind == FieldKind::Boolean {
        return Some(Value::Bool(sent.is_some_and(|text| text != "false")));
    }
    let text = sent.filter(|text| !text.trim().is_empty())?;
    Some(match &field.kind {
        // A browser without script ends lines as mail does.
        FieldKind::Text { .. } => Value::String(text.replace("\r\n", "\n")),
        FieldKind::Boolean => Value::String(text),
        FieldKind::Number { .. } => match crate::json::read(text.trim().as_bytes()) {
            Ok(number @ Value::Number(_)) => number,
            _ => Value::String(text),
        },
        FieldKind::Choice(options) => {
            options.iter().find(|option| shown(option) == text).cloned().unwrap_or(Value::String(text))
        }
        FieldKind::Lines => {
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect()
        }
        FieldKind::Json => crate::json::read(text.as_bytes()).unwrap_or(Value::String(text)),
    })
}

/// A value as an input shows it.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["size"],
            "properties": {
                "count": {"type": "integer", "default": 1},
                "size": {"enum": ["small", "large"]},
                "names": {"type": "array", "items": {"type": "string"}},
                "public": {"type": "boolean", "default": false},
                "ratio": {"type": "number"},
                "reason": {"type": "string", "x-visible-when": {"public": true}},
                "extra": {"type": "object"}
            }
        })
    }

    fn typed_from(pairs: &[(&str, &str)]) -> Value {
        Value::Object(typed(&schema(), |name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        }))
    }

    #[test]
    fn strings_of_a_form_are_typed_by_the_schema() {
        let sent = [
            ("count", " 3 "),
            ("size", "large"),
            ("names", "a\r\n\n b "),
            ("public", "on"),
            ("ratio", "0.5"),
            ("reason", "because"),
            ("extra", "{\"a\":1}"),
        ];
        assert_eq!(
            typed_from(&sent),
            json!({"count": 3, "size": "large", "names": ["a", "b"], "public": true, "ratio": 0.5,
                   "reason": "because", "extra": {"a": 1}})
        );
    }

    #[test]
    fn what_does_not_fit_is_kept_for_the_check_and_what_is_hidden_is_not_sent() {
        assert_eq!(
            typed_from(&[("count", "three"), ("reason", "x")]),
            json!({"count": "three", "public": false})
        );
        assert_eq!(typed_from(&[]), json!({"public": false}));
    }

    #[test]
    fn an_unticked_box_says_no_only_where_that_says_something() {
        let schema = json!({"required": ["must"], "properties": {
            "must": {"type": "boolean"}, "usual": {"type": "boolean", "default": true}, "may": {"type": "boolean"},
            "decides": {"type": "boolean"}, "why": {"type": "string", "x-visible-when": {"decides": false}}}});
        let typed_with = |text: Option<&str>| Value::Object(typed(&schema, |_| text.map(str::to_owned)));
        for unticked in [None, Some("false")] {
            let mut sent = typed_with(unticked);
            sent.as_object_mut().unwrap().remove("why");
            assert_eq!(sent, json!({"must": false, "usual": false, "decides": false}), "{unticked:?}");
        }
        assert_eq!(typed_with(Some("on"))["may"], json!(true));
    }

    #[test]
    fn what_hangs_on_a_hidden_field_is_hidden_too() {
        let schema = json!({"properties": {
            "depth": {"type": "integer", "x-visible-when": {"mode": "deep"}},
            "kind": {"enum": ["plain", "archive"]},
            "mode": {"enum": ["deep", "flat"], "x-visible-when": {"kind": "archive"}},
        }});
        let typed_as = |kind: &str| {
            let kind = kind.to_owned();
            Value::Object(typed(&schema, |name| match name {
                "kind" => Some(kind.clone()),
                "mode" => Some("deep".into()),
                _ => Some("3".into()),
            }))
        };
        assert_eq!(typed_as("plain"), json!({"kind": "plain"}));
        assert_eq!(typed_as("archive"), json!({"kind": "archive", "mode": "deep", "depth": 3}));
    }

    #[test]
    fn what_may_be_null_is_typed_like_what_may_not() {
        let schema = json!({"properties": {
            "note": {"type": ["string", "null"]}, "count": {"type": ["null", "integer"]}, "any": {"type": ["string", "integer"]},
        }});
        let typed = |text: &str| Value::Object(typed(&schema, |_| Some(text.to_owned())));
        assert_eq!(typed("12"), json!({"note": "12", "count": 12, "any": 12}));
        assert_eq!(typed(""), json!({}));
    }

    /// The parameters after a form that shows `before` was sent with these inputs changed.
    fn edited_with(before: &Value, changed: &[(&str, Option<&str>)]) -> Value {
        let mut schema = schema();
        schema["properties"]["zone"] = json!({"type": "string", "x-immutable": true});
        schema["properties"]["key"] = json!({"type": "string"});
        let Value::Object(before) = before else { panic!("an object") };
        let mut sent: std::collections::BTreeMap<&str, String> = before
            .iter()
            .filter(|(name, value)| *name != "key" && **value != json!(false))
            .map(|(name, value)| {
                (name.as_str(), shown(value).replace('\n', if name == "names" { "\r\n" } else { "" }))
            })
            .collect();
        for (name, text) in changed {
            match text {
                Some(text) => sent.insert(name, (*text).to_owned()),
                None => sent.remove(name),
            };
        }
        Value::Object(edited(&schema, before, |name| sent.get(name).cloned(), |name| name == "key"))
    }

    #[test]
    fn a_form_that_is_sent_as_it_was_opened_changes_nothing() {
        let before = json!({"size": "gone-from-the-list", "count": 3, "names": ["a", " b ", ""], "public": true,
            "ratio": 0.1, "reason": "two\nlines ", "extra": {"a": [1, {"b": 2}]}, "zone": "a", "key": "secret",
            "not-in-the-form": {"x": 1}});
        assert_eq!(edited_with(&before, &[]), before);
        assert_eq!(
            edited_with(&json!({"size": "small", "public": false}), &[]),
            json!({"size": "small", "public": false})
        );
        assert_eq!(edited_with(&json!({"size": "small"}), &[]), json!({"size": "small"}));
    }

    #[test]
    fn only_what_was_touched_changes() {
        let before = json!({"size": "small", "count": 3, "names": ["a"], "public": true, "reason": "x",
            "extra": {"a": 1, "b": 2}, "zone": "a", "key": "secret"});
        for (changed, name, value) in [
            (vec![("count", Some("4"))], "count", json!(4)),
            (vec![("count", Some(" "))], "count", Value::Null),
            (vec![("count", Some("four"))], "count", json!("four")),
            (vec![("size", Some("large"))], "size", json!("large")),
            (vec![("names", Some("a\r\nb"))], "names", json!(["a", "b"])),
            (vec![("reason", Some("x\r\n\r\ny"))], "reason", json!("x\n\ny")),
            (vec![("extra", Some("{\"a\": 1}"))], "extra", json!({"a": 1})),
            (vec![("key", Some("new"))], "key", json!("new")),
            (vec![("ratio", Some("0.5"))], "ratio", json!(0.5)),
            (vec![("zone", Some("b"))], "zone", json!("a")),
        ] {
            let mut meant = before.clone();
            meant[name] = value;
            assert_eq!(edited_with(&before, &changed), crate::json::without_nulls(meant), "{changed:?}");
        }
        let hidden = json!({"size": "small", "count": 3, "names": ["a"], "public": false, "extra": {"a": 1, "b": 2},
            "zone": "a", "key": "secret"});
        assert_eq!(
            edited_with(&before, &[("public", None)]),
            hidden,
            "what does not apply any more goes too"
        );
    }

    #[test]
    fn required_fields_come_first() {
        assert_eq!(fields(&schema())[0].name, "size");
        assert!(fields(&schema())[0].required);
    }
}
