//! What can be wrong with an offering's schema beyond what the compiler of schemas says: each mistake with its place.
//!
//! JSON Schema ignores a keyword that it does not know, so a mistyped rule would silently not hold. Here it is a
//! mistake, unless it begins with `x-`.

use super::schema::{fill, options, short};
use domain::{
    form::{IMMUTABLE, VISIBLE_WHEN},
    hidden::{self, WRITE_ONLY},
};
use jsonschema::{ValidatorMap, error::ValidationErrorKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A mistake: where (RFC 6901, inside the schema) and what.
pub(super) type Found = (String, String);

/// The one dialect that is understood.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];

/// Keywords whose value is a list of schemas.
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value names schemas.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "dependentSchemas"];

/// Keywords with anything else.
const PLAIN: &[&str] = &[
    "$schema",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$comment",
    "$vocabulary",
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "examples",
    "format",
    "contentEncoding",
    "contentMediaType",
];

/// Everything wrong with the schema of an offering's parameters.
pub(super) fn mistakes(schema: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        found.push((String::new(), "the schema of parameters must say `type: object`".to_owned()));
    }
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        found.push((error.instance_path().as_str().to_owned(), explain(error.kind(), &error.to_string())));
    }
    walk(schema, schema, "", &mut found);
    if let Some(keywords) = schema.as_object() {
        order(keywords, &mut found);
    }
    if !found.is_empty() {
        return found;
    }
    // Only a schema without faults so far can be compiled; what is left are references that lead nowhere.
    match options().build(schema).and_then(|_| options().build_map(schema)) {
        Ok(compiled) => defaults(&compiled, schema, schema, "", &mut found),
        Err(error) => found.push((error.instance_path().as_str().to_owned(), error.to_string())),
    }
    found
}

fn explain(kind: &ValidationErrorKind, text: &str) -> String {
    match kind {
        ValidationErrorKind::AnyOf { .. } => {
            "this is not a valid value of the keyword (draft 2020-12)".to_owned()
        }
        _ => text.chars().take(300).collect(),
    }
}

/// Looks at one schema and everything inside it that is a schema.
fn walk(root: &Value, schema: &Value, at: &str, found: &mut Vec<Found>) {
    let Some(keywords) = schema.as_object() else {
        return;
    };
    for (keyword, value) in keywords {
        let here = step(at, keyword);
        match keyword.as_str() {
            "$schema" if value != DIALECT => {
                found.push((here, format!("only {DIALECT} is understood; leave `$schema` out")));
            }
            "$ref" | "$dynamicRef" if !value.as_str().is_some_and(|target| target.starts_with('#')) => {
                found.push((here, "a reference must stay inside this schema and begin with `#`".to_owned()));
            }
            "$ref" if leads_nowhere(root, value) => {
                found.push((here, "the reference leads nowhere in this schema".to_owned()));
            }
            "pattern" => pattern(value, here, found),
            VISIBLE_WHEN => {}
            IMMUTABLE => immutable(value, at, here, found),
            WRITE_ONLY => secret(keywords, value, at, here, found),
            word if ONE.contains(&word) => walk(root, value, &here, found),
            word if LIST.contains(&word) => {
                for (n, part) in value.as_array().into_iter().flatten().enumerate() {
                    walk(root, part, &step(&here, &n.to_string()), found);
                }
            }
            word if NAMED.contains(&word) => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    let here = step(&here, name);
                    if word == "patternProperties" {
                        pattern(&json!(name), here.clone(), found);
                    }
                    walk(root, part, &here, found);
                }
            }
            word if PLAIN.contains(&word) || word.starts_with("x-") => {}
            word => found.push((here, format!("{word:?} is not a keyword of JSON Schema (draft 2020-12)"))),
        }
    }
    conditions(keywords, at, found);
}

fn leads_nowhere(root: &Value, target: &Value) -> bool {
    let pointer =
        target.as_str().and_then(|target| target.strip_prefix('#')).filter(|way| way.starts_with('/'));
    pointer.is_some_and(|pointer| root.pointer(pointer).is_none())
}

/// Patterns must compile for an engine whose time grows only with the text: no look-around, no back-references.
fn pattern(value: &Value, at: String, found: &mut Vec<Found>) {
    let Some(text) = value.as_str() else { return };
    if options().build(&json!({"pattern": text})).is_err() {
        let hint = "the pattern is not a regular expression without look-around and back-references";
        found.push((at, hint.to_owned()));
    }
}

/// Only a whole parameter is kept from being changed, not a part of one.
fn immutable(value: &Value, at: &str, here: String, found: &mut Vec<Found>) {
    if !value.is_boolean() {
        found.push((here, format!("`{IMMUTABLE}` must be true or false")));
    } else if at.strip_prefix("/properties/").is_none_or(|name| name.contains('/')) {
        found.push((here, format!("`{IMMUTABLE}` belongs to a parameter itself, not to a part of one")));
    }
}

/// Only a whole parameter is kept secret, not a part of one; and what the catalog says is no secret.
fn secret(keywords: &Map<String, Value>, value: &Value, at: &str, here: String, found: &mut Vec<Found>) {
    if *value != Value::Bool(true) {
        return;
    }
    if at.strip_prefix("/properties/").is_none_or(|name| name.contains('/')) {
        found.push((here, format!("`{WRITE_ONLY}` belongs to a parameter itself, not to a part of one")));
        return;
    }
    for word in ["default", "const", "enum", "examples"] {
        if keywords.contains_key(word) {
            found.push((step(at, word), format!("a secret (`{WRITE_ONLY}`) cannot stand in the catalog")));
        }
    }
    if let Some(Value::String(kind)) = keywords.get("type")
        && ["boolean", "null"].contains(&kind.as_str())
    {
        found.push((
            step(at, "type"),
            format!("a value of the type {kind} is too easily guessed to be a secret"),
        ));
    }
}

/// Each condition of a property must name a sibling, and must not be a rule of the sibling's own.
fn conditions(keywords: &Map<String, Value>, at: &str, found: &mut Vec<Found>) {
    let properties = keywords.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let Some(condition) = property.get(VISIBLE_WHEN) else {
            continue;
        };
        let here = step(&step(&step(at, "properties"), name), VISIBLE_WHEN);
        let members = condition.as_object().filter(|members| members.len() == 1);
        let Some((other, _)) = members.and_then(|members| members.iter().next()) else {
            found.push((here, format!("`{VISIBLE_WHEN}` must be one property's name and its value")));
            continue;
        };
        if other == name {
            found.push((step(&here, other), "a property cannot depend on itself".to_owned()));
        } else if !properties.is_some_and(|known| known.contains_key(other)) {
            found.push((step(&here, other), format!("there is no property {other:?} beside this one")));
        } else if properties.and_then(|known| known.get(other)).is_some_and(hidden::is_write_only) {
            found.push((
                step(&here, other),
                format!("{other:?} is a secret, on which nothing may be seen to depend"),
            ));
        } else if circular(properties, name) {
            found.push((here, "these conditions depend on each other in a circle".to_owned()));
        }
    }
    for (n, name) in list(keywords, "required").enumerate() {
        let closed = keywords.get("additionalProperties") == Some(&Value::Bool(false));
        if closed && properties.is_some_and(|known| !known.contains_key(name)) {
            found.push((
                step(&step(at, "required"), &n.to_string()),
                format!("there is no property {name:?}"),
            ));
        }
    }
}

fn circular(properties: Option<&Map<String, Value>>, name: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut at = name;
    while seen.insert(at) {
        let condition = properties.and_then(|known| known.get(at)?.get(VISIBLE_WHEN)?.as_object());
        match condition.and_then(|condition| condition.keys().next()) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

/// `x-order` lists properties in the order of the form.
fn order(keywords: &Map<String, Value>, found: &mut Vec<Found>) {
    let properties = keywords.get("properties").and_then(Value::as_object);
    match keywords.get("x-order") {
        None | Some(Value::Array(_)) => {}
        Some(_) => found.push(("/x-order".to_owned(), "`x-order` must be a list of names".to_owned())),
    }
    for (n, name) in list(keywords, "x-order").enumerate() {
        if !properties.is_some_and(|known| known.contains_key(name)) {
            found.push((format!("/x-order/{n}"), format!("there is no property {name:?}")));
        }
    }
}

fn list<'v>(keywords: &'v Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'v str> {
    keywords.get(keyword).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Every default must fit the schema that it stands in.
fn defaults(compiled: &ValidatorMap, root: &Value, schema: &Value, at: &str, found: &mut Vec<Found>) {
    let Some(keywords) = schema.as_object() else {
        return;
    };
    if let Some(default) = keywords.get("default") {
        let here = step(at, "default");
        if default.is_null() {
            found.push((here, "a default of null means nothing; leave it out".to_owned()));
        } else {
            let mut default = default.clone();
            if let Value::Object(members) = &mut default {
                fill(root, schema, members, 0);
            }
            let part = compiled.get(&format!("#{at}"));
            if let Some(error) = part.and_then(|part| part.validate(&default).err()) {
                let error: String = error.to_string().chars().take(300).collect();
                found.push((here, format!("the default {} breaks its own schema: {error}", short(&default))));
            }
        }
    }
    for (keyword, value) in keywords {
        let here = step(at, keyword);
        match keyword.as_str() {
            word if ONE.contains(&word) => defaults(compiled, root, value, &here, found),
            word if LIST.contains(&word) => {
                for (n, part) in value.as_array().into_iter().flatten().enumerate() {
                    defaults(compiled, root, part, &step(&here, &n.to_string()), found);
                }
            }
            word if NAMED.contains(&word) => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    defaults(compiled, root, part, &step(&here, name), found);
                }
            }
            _ => {}
        }
    }
}

fn step(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}
