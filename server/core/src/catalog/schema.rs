//! An offering's parameter schema, compiled: fills defaults and checks what was sent.

use domain::{form, hidden, json, problem::FieldError, view::Object};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator, error::ValidationErrorKind as Broken};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many faults of one submission are told.
const MAX_ERRORS: usize = 50;

/// The longest value or name of the sender's that a message repeats, in characters.
const MAX_ECHO: usize = 80;

/// The longest way to a faulty value, in bytes.
const MAX_POINTER: usize = 400;

/// How deep defaults are filled; a schema may refer to itself.
const MAX_DEPTH: u32 = 64;

/// A JSON Schema (draft 2020-12) of an object, ready for use.
#[derive(Debug)]
pub struct ParameterSchema {
    value: Value,
    validator: Validator,
    secrets: BTreeSet<String>,
}

/// The options under which every schema here is compiled: nothing is fetched, patterns take linear time.
pub(super) fn options() -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
}

impl ParameterSchema {
    /// Compiles a schema; the reason of a refusal is for whoever wrote it.
    ///
    /// Where the schema does not say what becomes of parameters that it does not name, they are refused, so that a
    /// mistyped name is not silently ignored.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("the schema of parameters must say `type: object`".to_owned());
        }
        let mut value = schema.clone();
        if let Some(keywords) = value.as_object_mut()
            && !["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|word| keywords.contains_key(*word))
        {
            // Only the second sees properties named in parts such as allOf.
            let parts = ["allOf", "anyOf", "oneOf", "if", "dependentSchemas", "$ref", "$dynamicRef"];
            let composed = parts.iter().any(|word| keywords.contains_key(*word));
            let word = if composed { "unevaluatedProperties" } else { "additionalProperties" };
            keywords.insert(word.to_owned(), Value::Bool(false));
        }
        let validator = options().build(&value).map_err(|error| error.to_string())?;
        let secrets = value.get("properties").and_then(Value::as_object).into_iter().flatten();
        let secrets = secrets.filter(|(_, property)| hidden::is_write_only(property));
        let secrets = secrets.map(|(name, _)| name.clone()).collect();
        Ok(Self { value, validator, secrets })
    }

    /// The schema itself.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The names of the parameters that are secrets.
    #[must_use]
    pub fn secrets(&self) -> &BTreeSet<String> {
        &self.secrets
    }

    /// What was sent, with defaults filled in, if it fits the schema; otherwise every value that does not.
    ///
    /// An explicit `null` is the same as nothing. A parameter that does not apply (`x-visible-when`) gets no default,
    /// and is refused when it was sent.
    pub fn normalise(&self, parameters: Object) -> Result<Object, Vec<FieldError>> {
        let Value::Object(mut parameters) = json::without_nulls(Value::Object(parameters)) else {
            return Ok(Object::new());
        };
        let mut errors = Vec::new();
        fill(&self.value, &self.value, &mut parameters, 0);
        refuse_hidden(&self.value, &self.value, &parameters, "/parameters", &mut errors);
        let parameters = Value::Object(parameters);
        refuse_nul(&parameters, "/parameters", &mut errors);
        for error in self.validator.iter_errors(&parameters) {
            if errors.len() >= MAX_ERRORS {
                break;
            }
            self.explain(&error, &parameters, &mut errors);
        }
        errors.truncate(MAX_ERRORS);
        match parameters {
            Value::Object(parameters) if errors.is_empty() => Ok(parameters),
            _ => Err(errors),
        }
    }

    /// What is wrong with this value of a parameter, whatever the others are.
    #[must_use]
    pub fn misfits(&self, name: &str, value: &Value) -> Vec<FieldError> {
        let alone = Value::Object([(name.to_owned(), value.clone())].into_iter().collect());
        let mut errors = Vec::new();
        for error in self.validator.iter_errors(&alone) {
            // Rules about several parameters say nothing of one of them.
            if error.schema_path().as_str().starts_with("/properties/") && errors.len() < MAX_ERRORS {
                self.explain(&error, &alone, &mut errors);
            }
        }
        errors
    }

    /// The names of the parameters that are not the same before and after although they cannot be changed.
    #[must_use]
    pub fn changed_immutables(&self, before: &Object, after: &Object) -> Vec<String> {
        let known = self.value.get("properties").and_then(Value::as_object).into_iter().flatten();
        known
            .filter(|(name, property)| form::is_immutable(property) && before.get(*name) != after.get(*name))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The names of the parameters that the schema knows.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.value.get("properties").and_then(Value::as_object).into_iter().flat_map(Object::keys)
    }

    /// Whether a parameter of this name may be sent at all, as far as that is plain.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let closed = self.value.get("additionalProperties") == Some(&Value::Bool(false));
        !closed || self.property(name).is_some()
    }

    /// The schema of one parameter, where the schema names it.
    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        self.value.get("properties")?.get(name)
    }

    /// Whether a parameter is always a whole number.
    pub(super) fn is_whole(&self, name: &str) -> bool {
        let property = self.property(name);
        let is_whole = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("integer");
        property.is_some_and(|found| is_whole(found) || target(&self.value, found).is_some_and(is_whole))
    }

    /// Whether a parameter that applies is always there: needed, or with a default.
    pub(super) fn is_always_there(&self, name: &str) -> bool {
        let needed = self.value.get("required").and_then(Value::as_array).into_iter().flatten();
        let has_default = |schema: &Value| schema.get("default").is_some();
        needed.into_iter().any(|needed| needed == name)
            || self.property(name).is_some_and(|found| {
                has_default(found) || target(&self.value, found).is_some_and(has_default)
            })
    }

    /// What a broken rule means, at the place where a form shows it.
    fn explain(&self, error: &ValidationError<'_>, parameters: &Value, errors: &mut Vec<FieldError>) {
        let at = error.instance_path().as_str();
        let pointer = format!("/parameters{at}");
        match error.kind() {
            Broken::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                if !self.is_hidden(error.schema_path().as_str(), name, parameters.pointer(at)) {
                    errors.push(fault(child(&pointer, name), "is needed (required)"));
                }
            }
            Broken::AdditionalProperties { unexpected } | Broken::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    let pointer =
                        if name.chars().count() > MAX_ECHO { pointer.clone() } else { child(&pointer, name) };
                    errors.push(fault(
                        pointer,
                        format!("{} is not a parameter of this offering", quoted(name)),
                    ));
                }
            }
            kind => errors.push(fault(pointer, self.rule(kind, error.schema_path().as_str()))),
        }
    }

    /// Whether the missing property is one that does not apply, which nobody could send.
    fn is_hidden(&self, rule: &str, name: &str, object: Option<&Value>) -> bool {
        let schema = rule.strip_suffix("/required").and_then(|pointer| self.value.pointer(pointer));
        let property = schema.and_then(|schema| schema.get("properties")).and_then(|known| known.get(name));
        match (property, object.and_then(Value::as_object)) {
            (Some(property), Some(object)) => !form::applies(property, object),
            _ => false,
        }
    }

    fn rule(&self, kind: &Broken, pointer: &str) -> String {
        // What the schema says there; it is the catalog's text, not the sender's, so it may be shown, shortened.
        let says = || self.value.pointer(pointer).map(short).unwrap_or_default();
        match kind {
            Broken::Type { .. } => format!("must be of the type {} (type)", says()),
            Broken::Enum { options } => format!("must be one of {} (enum)", listed(options)),
            Broken::Constant { expected_value } => format!("must be {} (const)", short(expected_value)),
            Broken::Minimum { limit } => format!("must be at least {limit} (minimum)"),
            Broken::Maximum { limit } => format!("must be at most {limit} (maximum)"),
            Broken::ExclusiveMinimum { limit } => format!("must be more than {limit} (exclusiveMinimum)"),
            Broken::ExclusiveMaximum { limit } => format!("must be less than {limit} (exclusiveMaximum)"),
            Broken::MultipleOf { .. } => format!("must be a multiple of {} (multipleOf)", says()),
            Broken::MinLength { limit } => format!("must have at least {limit} characters (minLength)"),
            Broken::MaxLength { limit } => format!("must have at most {limit} characters (maxLength)"),
            Broken::MinItems { limit } => format!("must have at least {limit} entries (minItems)"),
            Broken::MaxItems { limit } => format!("must have at most {limit} entries (maxItems)"),
            Broken::MinProperties { limit } => format!("must have at least {limit} members (minProperties)"),
            Broken::MaxProperties { limit } => format!("must have at most {limit} members (maxProperties)"),
            Broken::UniqueItems => "must not hold the same entry twice (uniqueItems)".to_owned(),
            Broken::Pattern { .. } => format!("must match the pattern {} (pattern)", says()),
            Broken::Format { format } => format!("must be a valid {format} (format)"),
            Broken::AdditionalItems { .. } | Broken::UnevaluatedItems { .. } => {
                "has more entries than it may have (items)".to_owned()
            }
            Broken::AnyOf { .. } => "fits none of the allowed shapes (anyOf)".to_owned(),
            Broken::OneOfNotValid { .. } => "fits none of the allowed shapes (oneOf)".to_owned(),
            Broken::OneOfMultipleValid { .. } => {
                "fits more than one of the allowed shapes (oneOf)".to_owned()
            }
            Broken::Not { .. } => "has a value that is not allowed (not)".to_owned(),
            Broken::Contains => "lacks an entry that it must have (contains)".to_owned(),
            Broken::PropertyNames { .. } => {
                "has a member whose name is not allowed (propertyNames)".to_owned()
            }
            Broken::FalseSchema => "is not allowed here".to_owned(),
            other => format!("breaks the rule {:?}", other.keyword()),
        }
    }
}

fn fault(mut pointer: String, detail: impl Into<String>) -> FieldError {
    // Names of the sender's make up the way; a part of the way that is long is left out.
    while pointer.len() > MAX_POINTER {
        let parent = pointer.rfind('/').unwrap_or(0);
        pointer.truncate(parent);
    }
    FieldError { pointer, detail: detail.into() }
}

fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A name of the sender's, safe to show: escaped, and not longer than need be.
fn quoted(name: &str) -> String {
    let start: String = name.chars().take(MAX_ECHO).collect();
    if start.len() < name.len() { format!("{start:?}…") } else { format!("{start:?}") }
}

/// A value of the schema's, shortened.
pub(super) fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => listed(&Value::Array(items.clone())),
        other => other.to_string(),
    };
    let start: String = text.chars().take(200).collect();
    if start.len() < text.len() { format!("{start}…") } else { start }
}

fn listed(options: &Value) -> String {
    let items = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown: Vec<String> = items.iter().take(20).map(form::shown).collect();
    let more = if items.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The part of the same schema that a `$ref` leads to.
fn target<'s>(root: &'s Value, schema: &Value) -> Option<&'s Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// Fills in the defaults of an object's properties that are absent and apply, then those inside its members.
pub(super) fn fill(root: &Value, schema: &Value, object: &mut Object, depth: u32) {
    if depth >= MAX_DEPTH {
        return;
    }
    for part in parts(root, schema) {
        fill(root, part, object, depth + 1);
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    // A default may make another property apply; every round fills at least one, so this ends.
    loop {
        let before = object.len();
        for (name, property) in properties {
            if !object.contains_key(name) && form::applies(property, object) {
                let default = property.get("default").or_else(|| target(root, property)?.get("default"));
                if let Some(default) = default.filter(|default| !default.is_null()) {
                    object.insert(name.clone(), json::without_nulls(default.clone()));
                }
            }
        }
        if object.len() == before {
            break;
        }
    }
    for (name, property) in properties {
        if let Some(value) = object.get_mut(name) {
            fill_value(root, property, value, depth + 1);
        }
    }
}

fn fill_value(root: &Value, schema: &Value, value: &mut Value, depth: u32) {
    match value {
        Value::Object(object) => fill(root, schema, object, depth),
        Value::Array(items) if depth < MAX_DEPTH => {
            let of_items = schema.get("items").or_else(|| target(root, schema)?.get("items"));
            if let Some(of_items) = of_items {
                for item in items {
                    fill_value(root, of_items, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// The other schemas that always hold beside this one.
fn parts<'s>(root: &'s Value, schema: &'s Value) -> impl Iterator<Item = &'s Value> {
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    target(root, schema).into_iter().chain(all)
}

fn refuse_hidden(root: &Value, schema: &Value, object: &Object, pointer: &str, errors: &mut Vec<FieldError>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        let Some(value) = object.get(name) else { continue };
        let pointer = child(pointer, name);
        if !form::applies(property, object) {
            let condition = property.get(form::VISIBLE_WHEN).and_then(Value::as_object);
            let (other, needed) =
                condition.and_then(|c| c.iter().next()).map_or(("", ""), |(o, _)| (o, "other"));
            let needed = condition.and_then(|c| c.get(other)).map_or_else(|| needed.to_owned(), short);
            errors.push(fault(
                pointer,
                format!("applies only while {other} is {needed}; leave it out ({})", form::VISIBLE_WHEN),
            ));
            continue;
        }
        if let Value::Object(members) = value {
            refuse_hidden(root, property, members, &pointer, errors);
            if let Some(target) = target(root, property) {
                refuse_hidden(root, target, members, &pointer, errors);
            }
        }
    }
}

/// Neither databases nor environments can carry the character U+0000.
fn refuse_nul(value: &Value, pointer: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(text) if text.contains('\0') => {
            errors.push(fault(pointer.to_owned(), "must not hold the character U+0000"));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                refuse_nul(item, &child(pointer, &at.to_string()), errors);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if name.contains('\0') {
                    errors.push(fault(
                        pointer.to_owned(),
                        "has a member whose name holds the character U+0000",
                    ));
                }
                let long = name.chars().count() > MAX_ECHO;
                let pointer = if long { pointer.to_owned() } else { child(pointer, name) };
                refuse_nul(member, &pointer, errors);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
