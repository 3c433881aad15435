//! Values that are worked out when they are needed: `{{ … }}` expressions and texts with such in them, by minijinja.
//!
//! A text that is one expression and nothing else keeps the type of its value, so that a number stays a number. What is
//! not there is a mistake, never an empty text.

use super::{
    sheet::Sheet,
    yaml::{Kind, Node, Place},
};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, escape_formatter, value::Serde};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// How many steps one expression may take.
const FUEL: u64 = 20_000;
/// The longest expression or text, in characters.
const LONGEST: usize = 2000;

/// A value that is worked out from others.
#[derive(Debug, Clone)]
pub(crate) enum Mapping {
    /// It stands as it is.
    Literal(Value),
    /// One expression; its value keeps its type.
    Expression(String),
    /// A text with expressions in it.
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// A variable that a mapping reads, in steps from the outermost, and where it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) path: Vec<String>,
    pub(super) place: Place,
}

/// Values as expressions read them.
pub(crate) fn known(values: Value) -> minijinja::Value {
    Serde(values).into()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, state, value| {
        if value.is_none() {
            return Err(minijinja::Error::new(
                ErrorKind::UndefinedError,
                "a value that is not there cannot stand in a text",
            ));
        }
        escape_formatter(out, state, value)
    });
    environment
}

/// The expression of a text that is one and nothing else.
fn only_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    (!inner.contains("{{") && !inner.contains("}}")).then_some(inner)
}

fn why(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

impl Mapping {
    /// Reads a mapping and notes what can be told to be wrong with it already; and which variables it reads.
    pub(super) fn read(sheet: &mut Sheet, node: &Node, reads: &mut Vec<Reads>) -> Self {
        match &node.kind {
            Kind::Text(text) => Self::text(sheet, node.place, text, reads),
            Kind::List(items) => {
                Self::List(items.iter().map(|item| Self::read(sheet, item, reads)).collect())
            }
            Kind::Map(members) => Self::Object(
                members
                    .iter()
                    .map(|member| (member.name.clone(), Self::read(sheet, &member.value, reads)))
                    .collect(),
            ),
            _ => Self::Literal(node.value()),
        }
    }

    fn text(sheet: &mut Sheet, place: Place, text: &str, reads: &mut Vec<Reads>) -> Self {
        if !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            return Self::Literal(Value::String(text.to_owned()));
        }
        if text.chars().count() > LONGEST {
            sheet.note(place, format!("an expression has at most {LONGEST} characters"));
        }
        let environment = environment();
        let (mapping, found) = if let Some(expression) = only_expression(text) {
            let found = environment
                .compile_expression(expression)
                .map(|compiled| compiled.undeclared_variables(true));
            (Self::Expression(expression.to_owned()), found)
        } else {
            let found =
                environment.template_from_str(text).map(|compiled| compiled.undeclared_variables(true));
            (Self::Text(text.to_owned()), found)
        };
        match found {
            Ok(variables) => {
                let sorted: BTreeSet<String> = variables.into_iter().collect();
                reads.extend(
                    sorted.into_iter().map(|variable| Reads {
                        path: variable.split('.').map(str::to_owned).collect(),
                        place,
                    }),
                );
            }
            Err(error) => sheet.note(place, format!("the expression cannot be read: {}", why(&error))),
        }
        mapping
    }

    /// The variable `name`, as itself.
    pub(super) fn variable(name: &str) -> Self {
        Self::Expression(name.to_owned())
    }

    /// Its value, where these are the variables; or why it has none.
    pub(crate) fn value(&self, variables: &minijinja::Value) -> Result<Value, String> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Expression(expression) => {
                let environment = environment();
                let value = environment
                    .compile_expression(expression)
                    .and_then(|compiled| compiled.eval(variables.clone()))
                    .map_err(|error| format!("{{{{ {expression} }}}}: {}", why(&error)))?;
                if value.is_undefined() {
                    return Err(format!("{{{{ {expression} }}}} is not there"));
                }
                serde_json::to_value(&value)
                    .map_err(|_| format!("{{{{ {expression} }}}} is no value that JSON could hold"))?
            }
            Self::Text(text) => {
                let rendered = environment().render_str(text, variables.clone());
                Value::String(rendered.map_err(|error| format!("{text:?}: {}", why(&error)))?)
            }
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.value(variables)).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, mapping)| Ok((name.clone(), mapping.value(variables)?)))
                    .collect::<Result<Map<_, _>, String>>()?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapped(value: &Value) -> Result<Value, String> {
        let yaml = serde_json::to_string(value).unwrap();
        let (mut sheet, mut reads) = (Sheet::of("x".into()), Vec::new());
        let mapping = Mapping::read(&mut sheet, &super::super::yaml::read(&yaml).unwrap(), &mut reads);
        assert_eq!(sheet.mistakes, [], "{value}");
        let variables = json!({
            "name": "one", "parameters": { "days": 30, "list": ["a", "b"], "share": 1.5, "on": true, "note": null },
        });
        mapping.value(&known(variables))
    }

    #[test]
    fn a_text_that_is_one_expression_keeps_the_type_of_its_value() {
        for (given, value) in [
            (json!("{{ parameters.days }}"), json!(30)),
            (json!("{{ parameters.days + 1 }}"), json!(31)),
            (json!("{{parameters.list}}"), json!(["a", "b"])),
            (json!("{{ parameters.share }}"), json!(1.5)),
            (json!(" {{- parameters.on -}} "), json!(true)),
            (json!("{{ parameters.note }}"), json!(null)),
            (json!("{{ parameters.note or 'x' }}"), json!("x")),
            (json!("{{ name }}-{{ parameters.days }}"), json!("one-30")),
            (json!(["{{ name }}.example.org", 7]), json!(["one.example.org", 7])),
            (json!({ "deep": { "n": "{{ parameters.days }}" } }), json!({ "deep": { "n": 30 } })),
            (json!("plain <text>"), json!("plain <text>")),
            (json!("<{{ name }}&>"), json!("<one&>")),
        ] {
            assert_eq!(mapped(&given), Ok(value), "{given}");
        }
    }

    #[test]
    fn what_is_not_there_is_a_mistake_and_never_an_empty_text() {
        for given in [
            "{{ parameters.missing }}",
            "x{{ parameters.missing }}",
            "{{ missing.deeper }}",
            "{{ parameters.missing.deeper }}",
            "x{{ parameters.note }}",
            "{% for i in range(100000) %}x{% endfor %}",
        ] {
            assert!(mapped(&json!(given)).is_err(), "{given}: {:?}", mapped(&json!(given)));
        }
    }

    #[test]
    fn a_mapping_tells_what_it_reads_and_what_is_wrong_with_it() {
        let (mut sheet, mut reads) = (Sheet::of("x".into()), Vec::new());
        let node = super::super::yaml::read("a: '{{ steps.one.outputs.path }}'\nb: '{{ oops'\n").unwrap();
        Mapping::read(&mut sheet, &node, &mut reads);
        assert_eq!(reads[0].path, ["steps", "one", "outputs", "path"]);
        assert_eq!((reads[0].place.line, sheet.mistakes.len(), sheet.mistakes[0].line), (1, 1, 2));
    }
}
