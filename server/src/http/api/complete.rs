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

/// The document with a description of every response, and the refusals that any call of its kind may meet.
pub(super) fn complete(document: &mut Value) {
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
            if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
                describe(responses, &common);
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
