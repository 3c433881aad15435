//! Values that are worked out when they are needed: `{{ … }}` expressions and texts with such in them, by the engine that
//! all texts of offerings have.
//!
//! A text that is one expression and nothing else keeps the type of its value, so that a number stays a number. What is
//! not there is a mistake, never an empty text.

use super::{
    sheet::Sheet,
    yaml::{Kind, Node, Place},
};
use crate::provisioner::http::texts::{Shape, Texts};
use minijinja::value::Serde;
use serde_json::Value;
use std::{collections::BTreeSet, sync::LazyLock};

/// The longest expression or text, in characters.
const LONGEST: usize = 2000;

static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::default);

/// A value that is worked out from others.
#[derive(Debug, Clone)]
pub(crate) struct Mapping(Shape);

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

impl Mapping {
    /// Reads a mapping and notes what can be told to be wrong with it already; and which variables it reads.
    pub(super) fn read(sheet: &mut Sheet, node: &Node, reads: &mut Vec<Reads>) -> Self {
        Self(shape(sheet, node, reads))
    }

    /// The variable `name`, as itself.
    pub(super) fn variable(name: &str) -> Self {
        Self(Shape::Value(name.to_owned()))
    }

    /// The variables that it reads, with dots between the steps from the outermost.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let mut read = BTreeSet::new();
        gather(&self.0, &mut read);
        read
    }

    /// The expression that is all of it, if it is one.
    pub(super) fn expression(&self) -> Option<&str> {
        match &self.0 {
            Shape::Value(expression) => Some(expression),
            _ => None,
        }
    }

    /// Its value, where these are the variables; or why it has none.
    pub(crate) fn value(&self, variables: &minijinja::Value) -> Result<Value, String> {
        self.0.filled(&TEXTS, variables)
    }
}

fn gather(shape: &Shape, read: &mut BTreeSet<String>) {
    match shape {
        Shape::List(items) => items.iter().for_each(|item| gather(item, read)),
        Shape::Map(members) => members.iter().for_each(|(_, member)| gather(member, read)),
        // It was read when the catalog was.
        one => read.extend(TEXTS.reads(one).into_iter().flatten()),
    }
}

fn shape(sheet: &mut Sheet, node: &Node, reads: &mut Vec<Reads>) -> Shape {
    match &node.kind {
        Kind::Text(text) => {
            let shape = Shape::of(text);
            if !matches!(shape, Shape::Plain(_)) && text.chars().count() > LONGEST {
                sheet.note(node.place, format!("an expression has at most {LONGEST} characters"));
            }
            match TEXTS.reads(&shape) {
                Ok(variables) => {
                    reads.extend(variables.into_iter().collect::<BTreeSet<_>>().into_iter().map(
                        |variable| Reads {
                            path: variable.split('.').map(str::to_owned).collect(),
                            place: node.place,
                        },
                    ));
                }
                Err(why) => sheet.note(node.place, format!("the expression cannot be read: {why}")),
            }
            shape
        }
        Kind::List(items) => Shape::List(items.iter().map(|item| shape(sheet, item, reads)).collect()),
        Kind::Map(members) => Shape::Map(
            members.iter().map(|member| (member.name.clone(), shape(sheet, &member.value, reads))).collect(),
        ),
        _ => Shape::Plain(node.value()),
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
