//! Templates and expressions of an offering, of the calls that it makes as of the steps that it is made of: strict about
//! what is missing, bounded in what they may cost, and without a value in their errors.

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Known, escape_formatter};
use serde_json::Value;
use std::{collections::HashSet, fmt::Write};

/// How many steps of one template or expression are taken.
const FUEL: u64 = 50_000;

/// The engine, as an offering's texts need it.
#[derive(Debug)]
pub struct Texts {
    /// Headers, bodies and steps: whatever is missing is an error, and so is a null in a text.
    plain: Environment<'static>,
    /// Addresses: the same, and every value is written so that it stays one part of the address.
    addresses: Environment<'static>,
    /// What is asked of an answer: what an answer does not hold is simply not so.
    answers: Environment<'static>,
}

impl Default for Texts {
    fn default() -> Self {
        let engine = |undefined| {
            let mut engine = Environment::new();
            engine.set_undefined_behavior(undefined);
            engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
            engine.set_fuel(Some(FUEL));
            engine
        };
        let mut plain = engine(UndefinedBehavior::Strict);
        plain.set_formatter(|out, state, value| {
            if value.is_none() {
                return Err(ErrorKind::UndefinedError.into());
            }
            escape_formatter(out, state, value)
        });
        let mut addresses = engine(UndefinedBehavior::Strict);
        addresses.set_formatter(|out, _, value| {
            let text = value.to_string();
            let written = if value.is_safe() { out.write_str(&text) } else { out.write_str(&encoded(&text)) };
            written.map_err(Error::from)
        });
        Self { plain, addresses, answers: engine(UndefinedBehavior::Chainable) }
    }
}

/// A value as one part of an address (RFC 3986, 2.3). A part that would lead up the path is no value.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    let dots = matches!(text, "." | "..");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || (byte == b'.' && !dots) {
            encoded.push(char::from(byte));
        } else {
            // Writing into a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Says what is wrong without any of the values.
fn told(error: &Error) -> String {
    match error.line() {
        Some(line) if line > 1 => format!("{} (line {line})", error.kind()),
        _ => error.kind().to_string(),
    }
}

/// Says why a text cannot be read, before it has any values.
fn unreadable(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", told(error)),
        None => told(error),
    }
}

impl Texts {
    /// Whether a text is a template that can be read.
    pub fn check_template(&self, text: &str) -> Result<(), String> {
        self.plain.template_from_named_str("text", text).map(|_| ()).map_err(|error| unreadable(&error))
    }

    /// Whether a text is an expression that can be read.
    pub fn check_expression(&self, text: &str) -> Result<(), String> {
        self.answers.compile_expression(text).map(|_| ()).map_err(|error| unreadable(&error))
    }

    /// The variables that a text reads, each in steps with dots between; or why it cannot be read.
    pub(crate) fn reads(&self, shape: &Shape) -> Result<HashSet<String>, String> {
        let found = match shape {
            Shape::Value(expression) => {
                self.plain.compile_expression(expression).map(|compiled| compiled.undeclared_variables(true))
            }
            Shape::Text(template) => self
                .plain
                .template_from_named_str("text", template)
                .map(|compiled| compiled.undeclared_variables(true)),
            Shape::Plain(_) | Shape::List(_) | Shape::Map(_) => Ok(HashSet::new()),
        };
        found.map_err(|error| unreadable(&error))
    }

    /// A template with its values.
    pub(crate) fn text(&self, template: &str, known: &Known) -> Result<String, String> {
        self.plain.render_named_str("text", template, known.clone()).map_err(|error| told(&error))
    }

    /// An address with its values.
    pub(crate) fn address(&self, template: &str, known: &Known) -> Result<String, String> {
        self.addresses.render_named_str("address", template, known.clone()).map_err(|error| told(&error))
    }

    /// The value that a part of a body is.
    pub(crate) fn needed(&self, expression: &str, known: &Known) -> Result<Value, String> {
        let expression = self.plain.compile_expression(expression).map_err(|error| told(&error))?;
        let value = expression.eval(known.clone()).map_err(|error| told(&error))?;
        if value.is_undefined() {
            return Err("undefined value".into());
        }
        serde_json::to_value(&value).map_err(|_| "the value is not one of JSON".into())
    }

    /// What an answer holds, if it does.
    pub(crate) fn found(&self, expression: &str, known: &Known) -> Result<Option<Value>, String> {
        let expression = self.answers.compile_expression(expression).map_err(|error| told(&error))?;
        let value = expression.eval(known.clone()).map_err(|error| told(&error))?;
        if value.is_undefined() || value.is_none() {
            return Ok(None);
        }
        serde_json::to_value(&value).map(Some).map_err(|_| "the value is not one of JSON".into())
    }

    /// Whether an answer is as the expression says.
    pub(crate) fn is_so(&self, expression: &str, known: &Known) -> Result<bool, String> {
        let expression = self.answers.compile_expression(expression).map_err(|error| told(&error))?;
        expression.eval(known.clone()).map(|value| value.is_true()).map_err(|error| told(&error))
    }
}

/// A body in which any text may be a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// As it stands.
    Plain(Value),
    /// A text with values in it.
    Text(String),
    /// One value, of whatever kind it is.
    Value(String),
    /// A list of such.
    List(Vec<Shape>),
    /// Members of such.
    Map(Vec<(String, Shape)>),
}

impl Shape {
    /// Reads a text: a template that is nothing but one `{{ … }}` stands for the value itself.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        match inner {
            Some(inner) if !inner.contains("{{") && !inner.contains("}}") => {
                let inner = inner.strip_prefix('-').unwrap_or(inner);
                Self::Value(inner.strip_suffix('-').unwrap_or(inner).trim().to_owned())
            }
            _ if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) => Self::Text(text.to_owned()),
            _ => Self::Plain(text.into()),
        }
    }

    /// The body with its values.
    pub(crate) fn filled(&self, texts: &Texts, known: &Known) -> Result<Value, String> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(template) => {
                texts.text(template, known).map_err(|why| format!("{template:?}: {why}"))?.into()
            }
            Self::Value(expression) => {
                texts.needed(expression, known).map_err(|why| format!("{{{{ {expression} }}}}: {why}"))?
            }
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.filled(texts, known)).collect::<Result<_, _>>()?)
            }
            Self::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, shape)| Ok((name.clone(), shape.filled(texts, known)?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(value: &Value) -> Known {
        Known::from(minijinja::value::Serde(value))
    }

    #[test]
    fn a_value_stays_one_part_of_an_address() {
        let texts = Texts::default();
        let known = known(&json!({ "name": "../a b?x=1#y", "dots": "..", "base": "http://x.test/a" }));
        let address = texts.address("{{ base|safe }}/{{ name }}/{{ dots }}", &known).unwrap();
        assert_eq!(address, "http://x.test/a/..%2Fa%20b%3Fx%3D1%23y/%2E%2E");
    }

    #[test]
    fn a_body_keeps_the_kinds_of_its_values_and_cannot_be_broken_out_of() {
        let texts = Texts::default();
        let known = known(&json!({ "name": "a\",\"admin\":true", "count": 3, "list": [1] }));
        let shape = Shape::Map(vec![
            ("name".into(), Shape::of("vm-{{ name }}")),
            ("count".into(), Shape::of(" {{ count }} ")),
            ("all".into(), Shape::List(vec![Shape::of("{{ list }}"), Shape::of("plain")])),
        ]);
        let body = shape.filled(&texts, &known).unwrap();
        assert_eq!(body, json!({ "name": "vm-a\",\"admin\":true", "count": 3, "all": [[1], "plain"] }));
    }

    #[test]
    fn what_is_missing_is_an_error_without_values_and_an_answer_may_lack_anything() {
        let texts = Texts::default();
        let known = known(&json!({ "secrets": { "token": "hunter2" }, "body": null, "status": 200 }));
        for template in ["{{ nothing }}", "{{ secrets.token.x.y }}", "{{ secrets.token + 1 }}"] {
            let error = texts.text(template, &known).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(texts.needed("secrets.nothing", &known).is_err());
        assert!(!texts.is_so("body.state == 'done'", &known).unwrap());
        assert!(texts.is_so("status in [200, 201]", &known).unwrap());
        assert_eq!(texts.found("body.id", &known).unwrap(), None);
        assert!(texts.check_template("{{ a").is_err() && texts.check_expression("a ==").is_err());
    }

    #[test]
    fn a_template_that_would_not_end_is_stopped() {
        let texts = Texts::default();
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(texts.text(endless, &known(&json!({}))).is_err());
    }
}
