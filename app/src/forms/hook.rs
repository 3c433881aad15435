//! A hook as a form shows it: each part a text, and the way back to what the API takes.

use domain::{hook::HookDefinition, view::Object};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How the names of fields begin that hold the mapping of one parameter.
pub const PARAMETER: &str = "p.";

/// What a form holds, by field.
type Values = BTreeMap<String, String>;

/// The fields of a hook that is there.
#[must_use]
pub fn values(definition: &HookDefinition) -> Values {
    let mut values = Values::new();
    let mut put = |name: &str, text: String| values.insert(name.to_owned(), text);
    put("title", definition.title.clone());
    put("offering", definition.offering.to_string());
    put("signature", definition.signature.to_string());
    put("identity", definition.identity.clone());
    put("when", definition.when.clone().unwrap_or_default());
    put("name", definition.name.clone());
    put("correlation_id", definition.correlation_id.clone().unwrap_or_default());
    let labels: Vec<String> = definition.labels.iter().map(|(key, text)| format!("{key}: {text}")).collect();
    put("labels", labels.join("\n"));
    if let Some(sample) = &definition.sample {
        put("sample_headers", headers_text(&sample.headers));
        put("sample", pretty(&sample.payload.to_string()));
    }
    for (name, value) in &definition.parameters {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        put(&format!("{PARAMETER}{name}"), text);
    }
    values
}

/// The hook that a form describes, as the API takes it; or the field that cannot be read, and why.
///
/// `schema` is that of the offering's parameters: a value for one that is no text is read as JSON where it is some.
pub fn body(values: &Values, schema: &Value) -> Result<Object, (&'static str, String)> {
    let text = |name: &str| values.get(name).map(|text| text.trim()).unwrap_or_default();
    let mut parameters = Object::new();
    for (field, value) in values {
        let Some(name) = field.strip_prefix(PARAMETER).filter(|_| !value.trim().is_empty()) else { continue };
        let property = schema.get("properties").and_then(|known| known.get(name));
        parameters.insert(name.to_owned(), written(value, property));
    }
    let mut body = Object::new();
    for name in ["title", "offering", "signature", "identity", "when", "name", "correlation_id"] {
        // What is empty goes: a patch says so by null.
        body.insert(name.to_owned(), if text(name).is_empty() { Value::Null } else { text(name).into() });
    }
    body.insert("parameters".into(), Value::Object(parameters));
    body.insert("labels".into(), pairs(text("labels")).map_err(|why| ("labels", why))?);
    let sample = if text("sample").is_empty() {
        Value::Null
    } else {
        let headers = pairs(text("sample_headers")).map_err(|why| ("sample_headers", why))?;
        let payload = domain::json::read(text("sample").as_bytes());
        json!({ "headers": headers, "payload": payload.map_err(|error| ("sample", error.to_string()))? })
    };
    body.insert("sample".into(), sample);
    Ok(body)
}

/// A test event that a form describes, as the API takes it.
pub fn test_body(values: &Values, send: bool) -> Result<Object, (&'static str, String)> {
    let text = |name: &str| values.get(name).map(|text| text.trim()).unwrap_or_default();
    let headers = pairs(text("headers")).map_err(|why| ("headers", why))?;
    let payload =
        domain::json::read(text("payload").as_bytes()).map_err(|error| ("payload", error.to_string()))?;
    let mut body = Object::new();
    body.insert("headers".into(), headers);
    body.insert("payload".into(), payload);
    body.insert("send".into(), send.into());
    Ok(body)
}

/// A parameter's mapping as it was typed. Numbers, lists and the like are themselves, unless the parameter is a text.
fn written(typed: &str, property: Option<&Value>) -> Value {
    let kind = property.and_then(|property| property.get("type"));
    let is_text = match kind {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    let fixed = domain::json::read(typed.trim().as_bytes()).ok().filter(|value| !is_text && !value.is_null());
    fixed.unwrap_or_else(|| typed.trim().replace("\r\n", "\n").into())
}

/// Lines of `name: text`.
fn pairs(lines: &str) -> Result<Value, String> {
    let mut object = Object::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, text) =
            line.split_once(':').ok_or_else(|| format!("write name: value on each line, not {line:?}"))?;
        object.insert(name.trim().to_owned(), text.trim().into());
    }
    Ok(Value::Object(object))
}

/// Headers as lines.
#[must_use]
pub fn headers_text(headers: &BTreeMap<String, String>) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
}

/// JSON in lines, for people; other text as it is.
#[must_use]
pub fn pretty(text: &str) -> String {
    let value = serde_json::from_str::<Value>(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_comes_back_from_its_form_as_it_was() {
        let definition: HookDefinition = serde_json::from_value(json!({
            "title": "pushes", "offering": "vm", "identity": "webhook-id", "signature": "standard",
            "when": "payload.x", "name": "vm-{{ payload.x }}",
            "parameters": { "count": 3, "note": "3", "size": "{{ payload.size }}", "tags": ["a", "{{ id }}"] },
            "labels": { "order": "{{ payload.a }}: {{ payload.b }}" },
            "sample": { "headers": { "x-kind": "a: b" }, "payload": { "x": null } },
        }))
        .unwrap();
        let schema =
            json!({ "properties": { "note": { "type": "string" }, "count": { "type": "integer" } } });
        let mut body = body(&values(&definition), &schema).unwrap();
        assert_eq!(body.remove("correlation_id"), Some(Value::Null));
        let back: HookDefinition = serde_json::from_value(Value::Object(body)).unwrap();
        assert_eq!(back, definition);
    }

    #[test]
    fn what_cannot_be_read_is_told_at_its_field() {
        let with = |name: &str, text: &str| Values::from([(name.to_owned(), text.to_owned())]);
        assert_eq!(body(&with("labels", "no colon"), &json!({})).unwrap_err().0, "labels");
        assert_eq!(body(&with("sample", "{"), &json!({})).unwrap_err().0, "sample");
        assert_eq!(test_body(&with("payload", "{"), false).unwrap_err().0, "payload");
    }
}
