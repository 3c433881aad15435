//! From an event's payload to what it asks for: a team's own expressions, which can read the event and nothing else.
//!
//! Only `{{ expressions }}` are known, no statements; with the filters below, a bound on steps and one on texts, so that no
//! mapping keeps the server busy. What is not there is a mistake, never an empty text.

mod beyond;
mod scan;

use beyond::Read;
use domain::{hook::HookDefinition, json::BEYOND, problem::FieldError, view::Object};
use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior, Value as Found, context,
    value::{ValueIter, ValueKind},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many steps one expression may take.
const FUEL: u64 = 10_000;
/// The longest template or expression, in bytes.
const LONGEST: usize = 1000;
/// The longest text that a filter makes, in bytes.
const LONGEST_TEXT: usize = 64 * 1024;
/// How many texts a mapping may hold, at any depth.
const MOST_TEXTS: usize = 200;
/// How deep parameters may be nested.
const DEEPEST: usize = 16;

/// What an expression can read.
const KNOWN: [&str; 3] = ["payload", "headers", "id"];

/// An event, as mappings see it.
#[derive(Debug, Clone)]
pub(crate) struct Event<'a> {
    /// Its identity.
    pub(crate) id: &'a str,
    /// The headers that may be read, by their names in lower case.
    pub(crate) headers: &'a BTreeMap<String, String>,
    /// Its payload.
    pub(crate) payload: &'a Value,
    /// Where the payload holds numbers that JSON does not carry exactly. An expression that reads one does not fit the event.
    pub(crate) beyond: &'a BTreeSet<String>,
}

/// What an event means to a hook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meant {
    /// It does not count.
    Ignored,
    /// It asks for this: name, parameters, labels and correlation ID, as in the body of a create.
    Asks(Object),
}

/// Every place of a definition that cannot work whatever the event holds.
pub(crate) fn mistakes(definition: &HookDefinition) -> Vec<FieldError> {
    let environment = environment();
    let mut wrong = Vec::new();
    if let Some(when) = &definition.when {
        put(check(&environment, "/when", when), &mut wrong);
    }
    put(check_text(&environment, "/name", &definition.name), &mut wrong);
    let mut texts = 0;
    let parameters = Value::Object(definition.parameters.clone());
    check_value(&environment, "/parameters", &parameters, (0, &mut texts), &mut wrong);
    for (key, text) in &definition.labels {
        put(check_text(&environment, &at("/labels", key), text), &mut wrong);
    }
    if let Some(text) = &definition.correlation_id {
        put(check_text(&environment, "/correlation_id", text), &mut wrong);
    }
    wrong
}

/// What the event means; or every place of the mapping that it does not fit.
pub(crate) fn apply(definition: &HookDefinition, event: &Event<'_>) -> Result<Meant, Vec<FieldError>> {
    let environment = environment();
    let (payload, read) = beyond::payload(event.payload, event.beyond);
    let mapping = Mapping {
        environment: &environment,
        event: context! { payload, headers => event.headers, id => event.id },
        read,
    };
    if let Some(when) = &definition.when {
        let counts = mapping.value("/when", when).map_err(|error| vec![error])?;
        if !counts.is_true() {
            return Ok(Meant::Ignored);
        }
    }
    let mut wrong = Vec::new();
    let mut asked = Object::new();
    let text = |pointer: &str, text: &str, wrong: &mut Vec<FieldError>| {
        mapping.text(pointer, text).map_err(|error| wrong.push(error)).ok().flatten()
    };
    if let Some(name) = text("/name", &definition.name, &mut wrong) {
        asked.insert("name".into(), name.into());
    }
    let parameters = Value::Object(definition.parameters.clone());
    asked.insert("parameters".into(), mapping.mapped("/parameters", parameters, &mut wrong));
    let mut labels = Object::new();
    for (key, template) in &definition.labels {
        if let Some(value) = text(&at("/labels", key), template, &mut wrong) {
            labels.insert(key.clone(), value.into());
        }
    }
    asked.insert("labels".into(), Value::Object(labels));
    if let Some(template) = &definition.correlation_id
        && let Some(id) = text("/correlation_id", template, &mut wrong)
    {
        asked.insert("correlation_id".into(), id.into());
    }
    if wrong.is_empty() { Ok(Meant::Asks(asked)) } else { Err(wrong) }
}

fn environment() -> Environment<'static> {
    use minijinja::{filters, tests};
    let mut known = Environment::empty();
    known.set_undefined_behavior(UndefinedBehavior::Strict);
    known.set_fuel(Some(FUEL));
    known.set_formatter(|out, state, value| match value.kind() {
        ValueKind::None => Err(said("the value is null, which is no text")),
        ValueKind::Map | ValueKind::Seq => {
            Err(said("the value is an object or a list, which is no text; name a member of it"))
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    known.add_filter("lower", filters::lower);
    known.add_filter("upper", filters::upper);
    known.add_filter("trim", filters::trim);
    known.add_filter("default", filters::default);
    known.add_filter("d", filters::default);
    known.add_filter("length", filters::length);
    known.add_filter("first", filters::first);
    known.add_filter("last", filters::last);
    known.add_filter("int", filters::int);
    known.add_filter("float", filters::float);
    known.add_filter("bool", filters::bool);
    known.add_filter("string", filters::string);
    known.add_filter("abs", filters::abs);
    known.add_filter("round", filters::round);
    known.add_filter("replace", replace);
    known.add_filter("split", split);
    known.add_filter("join", join);
    known.add_filter("times", times);
    known.add_test("defined", tests::is_defined);
    known.add_test("undefined", tests::is_undefined);
    known.add_test("none", tests::is_none);
    known.add_test("string", tests::is_string);
    known.add_test("number", tests::is_number);
    known.add_test("boolean", tests::is_boolean);
    known.add_test("startingwith", tests::is_startingwith);
    known.add_test("endingwith", tests::is_endingwith);
    known
}

/// The names of the filters and tests of [`environment`].
const FILTERS: [&str; 18] = [
    "lower", "upper", "trim", "default", "d", "length", "first", "last", "int", "float", "bool", "string",
    "abs", "round", "replace", "split", "join", "times",
];
const TESTS: [&str; 8] =
    ["defined", "undefined", "none", "string", "number", "boolean", "startingwith", "endingwith"];

fn said(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

fn bounded(length: usize) -> Result<(), Error> {
    if length <= LONGEST_TEXT { Ok(()) } else { Err(said("the text grows beyond 64 KiB")) }
}

#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
fn replace(text: String, from: String, to: String) -> Result<String, Error> {
    if from.is_empty() {
        return Err(said("replace needs something to look for"));
    }
    bounded(text.len())?;
    bounded(text.len() + text.matches(&from).count() * to.len())?;
    Ok(text.replace(&from, &to))
}

#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
fn split(text: String, by: String) -> Result<Vec<String>, Error> {
    bounded(text.len())?;
    if by.is_empty() {
        return Err(said("split needs something to split at"));
    }
    Ok(text.split(&by).map(str::to_owned).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
fn join(parts: Vec<String>, with: Option<String>) -> Result<String, Error> {
    let with = with.unwrap_or_default();
    bounded(parts.iter().map(|part| part.len() + with.len()).sum())?;
    Ok(parts.join(&with))
}

fn times(number: Found, by: Found) -> Result<Found, Error> {
    if let (Some(number), Some(by)) = (number.as_i64(), by.as_i64()) {
        return number.checked_mul(by).map(Found::from).ok_or_else(|| said("the product is too large"));
    }
    match (f64::try_from(number), f64::try_from(by)) {
        (Ok(number), Ok(by)) => Ok((number * by).into()),
        _ => Err(said("times multiplies numbers")),
    }
}

/// The place of a member.
fn at(pointer: &str, member: &str) -> String {
    format!("{pointer}/{}", member.replace('~', "~0").replace('/', "~1"))
}

fn put(checked: Result<(), FieldError>, wrong: &mut Vec<FieldError>) {
    if let Err(error) = checked {
        wrong.push(error);
    }
}

/// The single expression that a text is, if it is one.
fn single<'t>(environment: &Environment<'_>, text: &'t str) -> Option<&'t str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    environment.compile_expression(inner).is_ok().then_some(inner)
}

/// Checks an expression by itself.
fn check(environment: &Environment<'_>, pointer: &str, expression: &str) -> Result<(), FieldError> {
    fits(pointer, expression)?;
    scan::expression(expression).map_err(|what| fault(pointer, what))?;
    let compiled =
        environment.compile_expression(expression).map_err(|error| told(pointer, expression, &error))?;
    let mut unknown: Vec<String> = compiled
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !KNOWN.contains(&name.as_str()))
        .collect();
    unknown.sort();
    match unknown.first() {
        None => Ok(()),
        Some(name) => Err(fault(
            pointer,
            format!("{name:?} is not known here; an expression reads payload, headers and id"),
        )),
    }
}

/// Checks a text with expressions in it.
fn check_text(environment: &Environment<'_>, pointer: &str, text: &str) -> Result<(), FieldError> {
    fits(pointer, text)?;
    if let Some(expression) = single(environment, text) {
        return check(environment, pointer, expression);
    }
    let expressions = scan::template(text).map_err(|what| fault(pointer, what))?;
    for expression in expressions {
        check(environment, pointer, expression)?;
    }
    environment
        .template_from_named_str("mapping", text)
        .map(|_| ())
        .map_err(|error| told(pointer, text, &error))
}

fn check_value(
    environment: &Environment<'_>,
    pointer: &str,
    value: &Value,
    (depth, texts): (usize, &mut usize),
    wrong: &mut Vec<FieldError>,
) {
    if depth > DEEPEST {
        wrong.push(fault(pointer, "is nested too deeply"));
        return;
    }
    match value {
        Value::String(text) => {
            *texts += 1;
            if *texts == MOST_TEXTS + 1 {
                wrong.push(fault(pointer, format!("a mapping holds at most {MOST_TEXTS} texts")));
            } else if *texts <= MOST_TEXTS {
                put(check_text(environment, pointer, text), wrong);
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                check_value(environment, &at(pointer, &place.to_string()), item, (depth + 1, texts), wrong);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                check_value(environment, &at(pointer, name), member, (depth + 1, texts), wrong);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn fits(pointer: &str, text: &str) -> Result<(), FieldError> {
    if text.len() <= LONGEST {
        return Ok(());
    }
    Err(fault(pointer, format!("an expression or template has at most {LONGEST} bytes")))
}

fn fault(pointer: &str, detail: impl Into<String>) -> FieldError {
    FieldError { pointer: pointer.to_owned(), detail: detail.into() }
}

/// What the library says of a mistake, with the place in the text.
fn told(pointer: &str, source: &str, error: &Error) -> FieldError {
    let mut detail = match error.kind() {
        ErrorKind::UndefinedError => "the event does not have this value".to_owned(),
        ErrorKind::OutOfFuel => "the expression takes too many steps".to_owned(),
        kind => kind.to_string(),
    };
    if let Some(more) = error.detail() {
        detail = format!("{detail}: {more}");
    }
    // Spans of an expression count from its own beginning.
    let snippet =
        error.range().and_then(|range| source.get(range)).map(str::trim).filter(|it| !it.is_empty());
    if let Some(snippet) = snippet {
        let snippet: String = snippet.chars().take(100).collect();
        detail = format!("{detail}, at {snippet}");
    } else if let Some(line) = error.line() {
        detail = format!("{detail}, in line {line}");
    }
    fault(pointer, detail)
}

/// Whether something in it is not there. Payloads are bounded in depth when they are read.
fn lacks(found: &Found, depth: usize) -> bool {
    let any = |mut parts: ValueIter| parts.any(|part| lacks(&part, depth + 1));
    match found.kind() {
        ValueKind::Undefined => true,
        _ if depth > DEEPEST => false,
        ValueKind::Seq => found.try_iter().is_ok_and(any),
        ValueKind::Map => found.try_iter().is_ok_and(|mut names| {
            names.any(|name| found.get_item(&name).is_ok_and(|part| lacks(&part, depth + 1)))
        }),
        _ => false,
    }
}

/// A definition's environment with the event that it reads.
struct Mapping<'e> {
    environment: &'e Environment<'e>,
    event: Found,
    /// Whether a number was read that JSON does not carry exactly.
    read: Option<Read>,
}

impl Mapping<'_> {
    /// Refuses what was worked out with a number that JSON does not carry exactly, or holds one.
    fn carries(&self, pointer: &str, source: &str, found: Option<&Found>) -> Result<(), FieldError> {
        let Some(read) = &self.read else { return Ok(()) };
        // To write it down reads all of it.
        let _ = found.map(serde_json::to_value);
        if read.take() {
            let shown: String = source.trim().chars().take(100).collect();
            return Err(fault(pointer, format!("{BEYOND}, at {shown}")));
        }
        Ok(())
    }

    /// The value of an expression.
    fn value(&self, pointer: &str, expression: &str) -> Result<Found, FieldError> {
        let compiled = self
            .environment
            .compile_expression(expression)
            .map_err(|error| told(pointer, expression, &error))?;
        let found = compiled.eval(&self.event);
        self.carries(pointer, expression, found.as_ref().ok())?;
        let found = found.map_err(|error| told(pointer, expression, &error))?;
        if lacks(&found, 0) {
            let shown: String = expression.trim().chars().take(100).collect();
            return Err(fault(pointer, format!("the event does not have this value, at {shown}")));
        }
        Ok(found)
    }

    /// A text as a template's value; nothing where it is a single expression whose value is null.
    fn text(&self, pointer: &str, template: &str) -> Result<Option<String>, FieldError> {
        if let Some(expression) = single(self.environment, template)
            && self.value(pointer, expression)?.is_none()
        {
            return Ok(None);
        }
        self.rendered(pointer, template).map(Some)
    }

    fn rendered(&self, pointer: &str, template: &str) -> Result<String, FieldError> {
        let compiled = self
            .environment
            .template_from_named_str("mapping", template)
            .map_err(|error| told(pointer, template, &error))?;
        let text = compiled.render(&self.event);
        self.carries(pointer, template, None)?;
        let text = text.map_err(|error| told(pointer, template, &error))?;
        if text.len() > LONGEST_TEXT {
            return Err(fault(pointer, "the text grows beyond 64 KiB"));
        }
        Ok(text)
    }

    /// A value with the expressions in its texts worked out.
    fn mapped(&self, pointer: &str, value: Value, wrong: &mut Vec<FieldError>) -> Value {
        match value {
            Value::String(text) => {
                let worked_out = match single(self.environment, &text) {
                    Some(expression) => self.value(pointer, expression).and_then(|found| {
                        serde_json::to_value(found).map_err(|error| fault(pointer, error.to_string()))
                    }),
                    None => self.rendered(pointer, &text).map(Value::String),
                };
                worked_out.unwrap_or_else(|error| {
                    wrong.push(error);
                    Value::Null
                })
            }
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                items
                    .map(|(place, item)| self.mapped(&at(pointer, &place.to_string()), item, wrong))
                    .collect()
            }
            Value::Object(members) => {
                let mut object = Object::new();
                for (name, member) in members {
                    let member = self.mapped(&at(pointer, &name), member, wrong);
                    object.insert(name, member);
                }
                Value::Object(object)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
