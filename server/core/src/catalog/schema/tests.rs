//! What is sent and what comes of it, row by row.

use super::*;
use serde_json::json;

fn schema() -> ParameterSchema {
    ParameterSchema::compile(&json!({
        "type": "object",
        "required": ["size", "reason"],
        "$defs": {"disk": {"type": "object", "properties": {
            "gb": {"type": "integer", "minimum": 1, "default": 10}, "fast": {"type": "boolean", "default": false}}}},
        "properties": {
            "size": {"enum": ["small", "large"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
            "public": {"type": "boolean", "default": false},
            "reason": {"type": "string", "minLength": 3, "x-visible-when": {"public": true}},
            "audience": {"type": "string", "default": "all", "x-visible-when": {"public": true}},
            "network": {"type": "object", "additionalProperties": false, "properties": {
                "zone": {"type": "string", "default": "a"}, "vlan": {"type": ["integer", "null"]}}},
            "disk": {"$ref": "#/$defs/disk"},
            "disks": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/disk"}},
            "host": {"type": "string", "pattern": "^[a-z]+$"},
            "mail": {"type": "string", "format": "email"},
            "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}
        }
    }))
    .unwrap()
}

fn normal(sent: Value) -> Result<Value, Vec<(String, String)>> {
    let Value::Object(sent) = sent else { panic!("not an object") };
    let errors =
        |errors: Vec<FieldError>| errors.into_iter().map(|error| (error.pointer, error.detail)).collect();
    schema().normalise(sent).map(Value::Object).map_err(errors)
}

#[test]
fn what_fits_gets_its_defaults() {
    let small = json!({"size": "small", "count": 1, "public": false});
    for (sent, meant) in [
        (json!({"size": "small"}), small.clone()),
        (json!({"size": "small", "count": 1, "public": false}), small.clone()),
        (json!({"size": "small", "count": null, "host": null, "reason": null}), small.clone()),
        (
            json!({"size": "large", "public": true, "reason": "because"}),
            json!({"size": "large", "count": 1, "public": true, "reason": "because", "audience": "all"}),
        ),
        (
            json!({"size": "small", "network": {"vlan": null}, "disk": {}, "disks": [{"gb": 2}, {}]}),
            json!({"size": "small", "count": 1, "public": false, "network": {"zone": "a"},
                   "disk": {"gb": 10, "fast": false},
                   "disks": [{"gb": 2, "fast": false}, {"gb": 10, "fast": false}]}),
        ),
    ] {
        assert_eq!(normal(sent.clone()), Ok(meant), "{sent}");
    }
}

#[test]
fn what_does_not_fit_is_told_at_its_place_by_its_rule() {
    for (sent, pointer, rule) in [
        (json!({}), "/parameters/size", "is needed (required)"),
        (json!({"size": null}), "/parameters/size", "is needed (required)"),
        (json!({"size": "huge"}), "/parameters/size", "must be one of small, large (enum)"),
        (json!({"size": "small", "count": 0}), "/parameters/count", "must be at least 1 (minimum)"),
        (json!({"size": "small", "count": 101}), "/parameters/count", "must be at most 100 (maximum)"),
        (json!({"size": "small", "count": "1"}), "/parameters/count", "must be of the type integer (type)"),
        (json!({"size": "small", "count": 1.5}), "/parameters/count", "must be of the type integer (type)"),
        (
            json!({"size": "small", "host": "Ab"}),
            "/parameters/host",
            "must match the pattern ^[a-z]+$ (pattern)",
        ),
        (
            json!({"size": "small", "host": "ab\n"}),
            "/parameters/host",
            "must match the pattern ^[a-z]+$ (pattern)",
        ),
        (json!({"size": "small", "mail": "nobody"}), "/parameters/mail", "must be a valid email (format)"),
        (
            json!({"size": "small", "tags": ["a", "a"]}),
            "/parameters/tags",
            "must not hold the same entry twice (uniqueItems)",
        ),
        (json!({"size": "small", "tags": [1]}), "/parameters/tags/0", "must be of the type string (type)"),
        (
            json!({"size": "small", "disks": [{}, {}, {}]}),
            "/parameters/disks",
            "must have at most 2 entries (maxItems)",
        ),
        (json!({"size": "small", "disk": {"gb": 0}}), "/parameters/disk/gb", "must be at least 1 (minimum)"),
        (
            json!({"size": "small", "network": {"zon": "b"}}),
            "/parameters/network/zon",
            "\"zon\" is not a parameter of this offering",
        ),
        (
            json!({"size": "small", "siez": "small"}),
            "/parameters/siez",
            "\"siez\" is not a parameter of this offering",
        ),
        (
            json!({"size": "small", "reason": "because"}),
            "/parameters/reason",
            "applies only while public is true; leave it out (x-visible-when)",
        ),
        (json!({"size": "small", "public": true}), "/parameters/reason", "is needed (required)"),
        (
            json!({"size": "small", "public": true, "reason": "x"}),
            "/parameters/reason",
            "must have at least 3 characters (minLength)",
        ),
        (
            json!({"size": "small", "public": true, "reason": "a\u{0}bc"}),
            "/parameters/reason",
            "must not hold the character U+0000",
        ),
    ] {
        assert_eq!(normal(sent.clone()), Err(vec![(pointer.to_owned(), rule.to_owned())]), "{sent}");
    }
}

#[test]
fn a_message_repeats_nothing_long() {
    let long = "x".repeat(5000);
    let sent =
        json!({"size": long, "host": format!("{long}!"), "mail": long, long.clone(): 1, "count": long});
    for (pointer, detail) in normal(sent).unwrap_err() {
        assert!(pointer.len() < 200 && detail.len() < 300, "{pointer}: {detail}");
    }
    let mut many = Object::new();
    many.extend((0..500).map(|n| (format!("unknown{n}"), json!(1))));
    assert_eq!(schema().normalise(many).unwrap_err().len(), MAX_ERRORS);
}

#[test]
fn a_schema_keeps_what_it_says_about_other_parameters() {
    let open = json!({"type": "object", "additionalProperties": true});
    let sent = Object::from_iter([("anything".to_owned(), json!(1))]);
    assert!(ParameterSchema::compile(&open).unwrap().normalise(sent.clone()).is_ok());
    let silent = ParameterSchema::compile(&json!({"type": "object"})).unwrap();
    assert!(silent.normalise(sent.clone()).is_err());
    assert_eq!(ParameterSchema::compile(silent.value()).unwrap().value(), silent.value());
    let composed = json!({"type": "object", "allOf": [{"properties": {"anything": {"default": 2}}}]});
    let composed = ParameterSchema::compile(&composed).unwrap();
    assert!(composed.normalise(sent).is_ok());
    assert_eq!(composed.normalise(Object::new()).unwrap()["anything"], 2);
}

#[test]
fn what_cannot_be_compiled_is_refused_and_nothing_is_fetched() {
    for bad in [
        json!(true),
        json!({"type": "string"}),
        json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/schema.json"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        json!({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
    ] {
        assert!(ParameterSchema::compile(&bad).is_err(), "{bad}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer", "default": 1}}});
    let schema = ParameterSchema::compile(&schema).unwrap();
    let sent = Object::from_iter([("next".to_owned(), json!({"next": {}}))]);
    assert_eq!(json!(schema.normalise(sent).unwrap()), json!({"n": 1, "next": {"n": 1, "next": {"n": 1}}}));
}
