//! What the handlers' descriptions have in common and do not say each by itself: what each status means, and how any call
//! may be refused before its handler is asked.

use serde_json::{Map, Value, json};

/// What a status means where a description does not say more.
fn meaning(status: &str) -> &'static str {
    match status {
        "200" => "Done, or shown",
        "201" => "Made, or a repeat of what was",
        "202" => "Taken in, or a repeat of what was",
        "204" => "Done; there is nothing to show",
        "400" => "The key, the body or the address is not well-formed",
        "401" => "Nobody is logged in, the token is none, or the signature is wrong",
        "403" => "Seen, but not the caller's to do",
        "404" => "Not there, or not for the caller to see",
        "408" => "The body did not arrive in time",
        "409" => "Another call with this key is at work, or what is there now does not allow it",
        "410" => "Its time is over",
        "412" => "If-Match names another version than there is",
        "413" => "The body is too large",
        "415" => "The body is not JSON in UTF-8",
        "422" => "The key was used for something else, or a value does not fit",
        "428" => "If-Match is missing",
        "429" => "Too many calls; see Retry-After",
        "503" => "Nothing can be read or written now; see Retry-After",
        _ => "See the problem",
    }
}

/// Headers of answers: what each says, and the schema of its value.
fn headers() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "Location": { "description": "Where the request, or what was made, is shown", "schema": text() },
        "Idempotency-Replayed": {
            "description": "Says that this is the first answer to the key, given again",
            "schema": { "type": "string", "enum": ["true"] },
        },
        "Keyturn-Request-State": { "description": "Of a repeat: where its request stands now", "schema": text() },
        "Keyturn-Outcome": {
            "description": "Says that what was asked for was there, or over, already",
            "schema": { "type": "string", "enum": ["existing"] },
        },
        "Idempotency-Key-Expires": {
            "description": "Until when at least a repeat gets this answer; it counts from the end of the request",
            "schema": { "type": "string", "format": "date-time" },
        },
        "Retry-After": {
            "description": "After how many seconds the same may be sent again, where that may help",
            "schema": { "type": "integer", "minimum": 1 },
        },
    })
}

/// The headers that an answer with this status may have.
fn headers_of(status: &str, guarded: bool) -> &'static [&'static str] {
    const KEYED: &[&str] = &[
        "Idempotency-Replayed",
        "Idempotency-Key-Expires",
        "Keyturn-Request-State",
        "Keyturn-Outcome",
        "Location",
    ];
    match status {
        "409" | "429" | "503" => &["Retry-After"],
        // Where there is nothing to show, there is no place for it either, and no request.
        "204" if guarded => &KEYED[..2],
        _ if guarded && status.starts_with('2') => KEYED,
        _ => &[],
    }
}

/// Whether an operation's answers are kept under a key, which is a header's or an event's.
fn is_guarded(path: &str, operation: &Value) -> bool {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    path == "/api/v1/hooks/{id}"
        || parameters
            .into_iter()
            .flatten()
            .any(|one| one["in"] == "header" && one["name"] == "Idempotency-Key")
}

fn with_headers(responses: &mut Map<String, Value>, guarded: bool) {
    for (status, response) in responses {
        let names = headers_of(status, guarded);
        let Some(response) = response.as_object_mut().filter(|_| !names.is_empty()) else { continue };
        let declared = response.entry("headers").or_insert_with(|| json!({}));
        for name in names {
            if let Some(declared) = declared.as_object_mut() {
                declared.insert((*name).into(), json!({ "$ref": format!("#/components/headers/{name}") }));
            }
        }
    }
}

/// The document with a description of every response, the headers of answers, and the refusals that any call of its kind may
/// meet.
pub(super) fn complete(document: &mut Value) {
    if let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) {
        components.insert("headers".into(), headers());
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let mut common: Vec<&str> = Vec::new();
            if operation.get("security").is_some() {
                common.extend(["401", "429", "503"]);
            }
            if method != "get" && path.starts_with("/api/") {
                common.extend(["408", "413", "415", "503"]);
            }
            let guarded = is_guarded(path, operation);
            if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
                describe(responses, &common);
                with_headers(responses, guarded);
            }
        }
    }
}

fn describe(responses: &mut Map<String, Value>, common: &[&str]) {
    for status in common {
        responses.entry(*status).or_insert_with(|| {
            let problem = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
            json!({ "content": { "application/problem+json": problem } })
        });
    }
    for (status, response) in responses {
        let Some(response) = response.as_object_mut() else { continue };
        let said = response.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !said && !response.contains_key("$ref") {
            response.insert("description".into(), meaning(status).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use std::collections::HashSet;

    fn document() -> Value {
        serde_json::from_str(&super::super::document()).unwrap()
    }

    /// Every operation, by method and path.
    fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
        let mut all = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                all.push((format!("{method} {path}"), path.as_str(), operation));
            }
        }
        all
    }

    fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_is_valid() {
        let document = document();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let operations = operations(&document);
        let mut ids = HashSet::new();
        for (name, path, operation) in &operations {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{name}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(!responses.is_empty(), "{name}");
            for (status, response) in responses {
                assert!(status.len() == 3 && status.parse::<u16>().is_ok(), "{name} {status}");
                let said = response["description"].as_str().is_some_and(|text| !text.is_empty());
                assert!(said, "{name} {status} has no description");
            }
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let of = |place: &str| -> HashSet<String> {
                let those = parameters.iter().filter(|one| one["in"] == place);
                those.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
            };
            let in_path: HashSet<String> = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}').map(str::to_owned))
                .collect();
            assert_eq!(of("path"), in_path, "{name}");
            let places = ["path", "query", "header", "cookie"].map(|place| of(place).len());
            assert_eq!(places.iter().sum::<usize>(), parameters.len(), "{name} says a parameter twice");
            for one in &parameters {
                assert!(one["in"] != "path" || one["required"] == true, "{name} {one}");
            }
        }
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn every_call_says_how_it_may_be_refused_before_it_is_read() {
        let document = document();
        for (name, path, operation) in operations(&document) {
            let says = |status: &str| operation["responses"].get(status).is_some();
            if operation.get("security").is_some() {
                assert!(["401", "429", "503"].into_iter().all(says), "{name}");
            }
            if path.starts_with("/api/") && !name.starts_with("get ") {
                assert!(["408", "413", "415", "503"].into_iter().all(says), "{name}");
            }
        }
        assert!(document["paths"]["/api/v1/callbacks/{id}"]["post"]["responses"].get("410").is_some());
    }

    #[test]
    fn answers_declare_the_headers_that_they_may_have() {
        let document = document();
        let declares = |operation: &Value, status: &str, name: &str| {
            let place = format!("/responses/{status}/headers/{name}/$ref");
            operation.pointer(&place).is_some_and(|to| to == &format!("#/components/headers/{name}"))
        };
        let mut guarded = 0;
        for (name, path, operation) in operations(&document) {
            let responses = operation["responses"].as_object().unwrap();
            for status in responses.keys().filter(|status| ["409", "429", "503"].contains(&status.as_str())) {
                assert!(declares(operation, status, "Retry-After"), "{name} {status}");
            }
            let keyed = operation["parameters"].to_string().contains("\"Idempotency-Key\"");
            let event = path == "/api/v1/hooks/{id}";
            guarded += usize::from(keyed || event);
            for status in responses.keys().filter(|status| status.starts_with('2')) {
                for header in ["Idempotency-Replayed", "Idempotency-Key-Expires"] {
                    assert_eq!(
                        declares(operation, status, header),
                        keyed || event,
                        "{name} {status} {header}"
                    );
                }
                for header in ["Location", "Keyturn-Request-State", "Keyturn-Outcome"] {
                    let shows = (keyed || event) && status != "204";
                    assert_eq!(declares(operation, status, header), shows, "{name} {status} {header}");
                }
            }
        }
        assert!(guarded > 20, "{guarded}");
        let change = &document["paths"]["/api/v1/teams/{team}/resources/{type}/{name}"]["patch"];
        assert!(change["responses"]["202"]["headers"].get("ETag").is_some());
    }

    #[test]
    fn every_answer_has_a_media_type_that_is_sent_and_a_dry_run_shares_its() {
        let document = document();
        let known = [
            "application/json",
            "application/problem+json",
            "text/event-stream",
            "text/csv",
            "text/plain",
            "application/x-ndjson",
        ];
        for (name, _, operation) in operations(&document) {
            for (status, response) in operation["responses"].as_object().unwrap() {
                for kind in response["content"].as_object().into_iter().flat_map(|content| content.keys()) {
                    assert!(known.contains(&kind.as_str()), "{name} {status} {kind}");
                }
            }
        }
        for place in [
            "/paths/~1api~1v1~1teams~1{team}~1requests/post",
            "/paths/~1api~1v1~1teams~1{team}~1resources~1{type}~1{name}/delete",
        ] {
            let content = &document.pointer(place).unwrap()["responses"]["200"]["content"];
            let schema = &content["application/json"]["schema"]["$ref"];
            let either = document.pointer(schema.as_str().unwrap().trim_start_matches('#')).unwrap();
            let one_of: Vec<&Value> =
                either["oneOf"].as_array().unwrap().iter().map(|one| &one["$ref"]).collect();
            assert_eq!(
                one_of,
                ["#/components/schemas/RequestView", "#/components/schemas/PlanView"],
                "{place}"
            );
        }
    }

    #[test]
    fn what_a_hook_needs_is_what_the_api_demands() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let required = serde_json::json!(["title", "offering", "signature", "name"]);
        assert_eq!(schemas["HookDefinition"]["required"], required);
        // A patch needs nothing, and may say of a hook whatever its making may.
        assert!(schemas["HookPatch"].get("required").is_none());
        let members = |name: &str| {
            let all = schemas[name]["properties"].as_object().unwrap().keys().cloned();
            all.collect::<std::collections::BTreeSet<String>>()
        };
        assert_eq!(members("HookPatch"), members("HookDefinition"));
    }

    #[test]
    fn what_a_create_may_say_is_described() {
        let document = document();
        let create = &document["components"]["schemas"]["NewRequest"];
        let members: HashSet<&str> =
            create["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let known =
            ["offering", "name", "parameters", "labels", "correlation_id", "parent_id", "confirm_duplicate"];
        assert_eq!(members, HashSet::from(known));
        assert_eq!(create["required"], serde_json::json!(["offering", "name"]));
        let labels = create["properties"]["labels"].to_string();
        assert!(labels.contains("array") && labels.contains("object"), "{labels}");
    }
}
