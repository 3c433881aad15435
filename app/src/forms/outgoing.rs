//! From what is typed to what is sent: the same for the form with script and for the plain post.

use domain::{
    form,
    label::{self, SentLabels},
    name::Name,
    problem::FieldError,
    view::{Object, OfferingView},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is typed, by field: `team`, `name`, `labels`, `correlation_id`, `p.<parameter>`, and what a form holds about the
/// resource that it changes.
pub type Values = BTreeMap<String, String>;

/// The field that holds a parameter.
#[must_use]
pub fn parameter_field(parameter: &str) -> String {
    format!("p.{parameter}")
}

/// Where a form's values stand against an offering's parameters: typed by its schema, without those that do not apply.
#[must_use]
pub fn parameters(offering: &OfferingView, values: &Values) -> Object {
    form::typed(&offering.parameters, |parameter| values.get(&parameter_field(parameter)).cloned())
}

/// The body of a create, from what is typed. Refused here is only what cannot be written into a body; the service
/// checks the rest.
pub fn body(offering: &OfferingView, values: &Values) -> Result<Object, Vec<FieldError>> {
    let given = |field: &str| values.get(field).map(String::as_str).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut misfit = |pointer: &str, detail: String| {
        wrong.push(FieldError { pointer: pointer.to_owned(), detail });
    };
    if let Err(rule) = Name::parse(given("name")) {
        misfit("/name", rule.to_string());
    }
    let mut body = Object::new();
    body.insert("offering".to_owned(), json!(offering.id));
    body.insert("name".to_owned(), json!(given("name")));
    body.insert("parameters".to_owned(), Value::Object(parameters(offering, values)));
    let mut sent = SentLabels::default();
    for line in given("labels").lines().map(str::trim).filter(|line| !line.is_empty()) {
        let added = label::split(line).and_then(|(key, value)| sent.add(key.trim(), value.trim()));
        if let Err(rule) = added {
            misfit("/labels", format!("{line}: {rule}"));
        }
    }
    let correlation = given("correlation_id").trim();
    if !correlation.is_empty()
        && let Err(rule) = sent.correlate(correlation)
    {
        misfit("/correlation_id", rule.to_string());
    }
    let (labels, correlation) = sent.into_parts();
    if !labels.is_empty() {
        body.insert("labels".to_owned(), json!(labels));
    }
    if let Some(correlation) = correlation {
        body.insert("correlation_id".to_owned(), json!(correlation.as_str()));
    }
    if wrong.is_empty() { Ok(body) } else { Err(wrong) }
}

/// The field that a problem's pointer is about, if it is one of the form's.
#[must_use]
pub fn field_of(pointer: &str) -> Option<String> {
    let mut parts =
        pointer.strip_prefix('/')?.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    match (parts.next()?.as_str(), parts.next()) {
        ("parameters", Some(parameter)) => Some(parameter_field(&parameter)),
        (field @ ("name" | "team" | "labels" | "correlation_id"), _) => Some(field.to_owned()),
        _ => None,
    }
}

/// Whether this schema takes the parameter as a secret: never kept, never shown again.
#[must_use]
pub fn is_secret(schema: &Value, parameter: &str) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(parameter));
    let looks = |property: &Value| property.get("format").and_then(Value::as_str) == Some("password");
    is_write_only(schema, parameter) || property.is_some_and(looks)
}

/// Whether this schema marks the parameter as a secret, for which a mark stands wherever parameters are kept or shown.
#[must_use]
pub fn is_write_only(schema: &Value, parameter: &str) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(parameter));
    property.is_some_and(domain::hidden::is_write_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering() -> OfferingView {
        serde_json::from_value(json!({
            "id": "vm", "title": "VM", "description": "", "category": "c", "version": "1", "resource_type": "vm",
            "parameters": {"type": "object", "properties": {
                "count": {"type": "integer"}, "key": {"type": "string", "writeOnly": true}
            }},
            "guard": {"max_tries": 3, "timeout_seconds": 60}, "available": true
        }))
        .unwrap()
    }

    fn typed(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(field, text)| ((*field).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn what_is_left_empty_is_not_sent() {
        let values = typed(&[("name", "one"), ("p.count", "2"), ("labels", "\n"), ("correlation_id", " ")]);
        let sent = Value::Object(body(&offering(), &values).unwrap());
        assert_eq!(sent, json!({"offering": "vm", "name": "one", "parameters": {"count": 2}}));
    }

    #[test]
    fn labels_are_read_a_line_each() {
        let values = typed(&[("name", "one"), ("labels", "env:prod\r\nurl: http://x \n")]);
        assert_eq!(body(&offering(), &values).unwrap()["labels"], json!({"env": "prod", "url": "http://x"}));
    }

    #[test]
    fn a_correlation_id_among_the_labels_is_one_and_may_not_differ_from_the_field_for_it() {
        let labels = "env:prod\nsystem.correlationId: Q-1";
        for beside in ["", "Q-1"] {
            let values = typed(&[("name", "one"), ("labels", labels), ("correlation_id", beside)]);
            let sent = body(&offering(), &values).unwrap();
            assert_eq!((&sent["labels"], &sent["correlation_id"]), (&json!({"env": "prod"}), &json!("Q-1")));
        }
        let values = typed(&[("name", "one"), ("labels", labels), ("correlation_id", "Q-2")]);
        let wrong = body(&offering(), &values).unwrap_err();
        let told: Vec<_> =
            wrong.iter().map(|error| (error.pointer.as_str(), error.detail.as_str())).collect();
        assert_eq!(told, [("/correlation_id", "differs from the label system.correlationId")]);
    }

    #[test]
    fn every_label_that_does_not_fit_is_named() {
        let values = typed(&[("name", "one"), ("labels", "no colon\nenv:prod\nsystem.owner:me")]);
        let wrong = body(&offering(), &values).unwrap_err();
        let told: Vec<_> = wrong.iter().map(|error| error.detail.split(": ").next().unwrap()).collect();
        assert_eq!(told, ["no colon", "system.owner:me"]);
    }

    #[test]
    fn each_misfit_is_named_at_its_place() {
        let values = typed(&[("name", "No"), ("labels", "no colon"), ("correlation_id", &"x".repeat(300))]);
        let wrong = body(&offering(), &values).unwrap_err();
        let places: Vec<_> = wrong.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(places, ["/name", "/labels", "/correlation_id"]);
    }

    #[test]
    fn a_pointer_leads_to_its_field() {
        assert_eq!(field_of("/parameters/dns_names/0").as_deref(), Some("p.dns_names"));
        assert_eq!(field_of("/parameters/a~1b").as_deref(), Some("p.a/b"));
        assert_eq!(field_of("/name").as_deref(), Some("name"));
        assert_eq!(field_of("/parameters"), None);
        assert_eq!(field_of("/offering"), None);
        assert_eq!(field_of(""), None);
    }

    #[test]
    fn a_write_only_parameter_is_a_secret() {
        assert!(is_secret(&offering().parameters, "key"));
        assert!(!is_secret(&offering().parameters, "count"));
    }
}
