use super::*;
use domain::{hook::Signing, name::Name};
use serde_json::json;

fn definition(parameters: &Value) -> HookDefinition {
    HookDefinition {
        title: "pushes".into(),
        offering: Name::parse("vm").unwrap(),
        identity: "x-github-delivery".into(),
        signature: Signing::Github,
        when: None,
        name: "vm-{{ payload.repository.name | lower | replace('_', '-') }}".into(),
        parameters: parameters.as_object().unwrap().clone(),
        labels: BTreeMap::new(),
        correlation_id: None,
        sample: None,
    }
}

fn applied(definition: &HookDefinition, payload: &Value) -> Result<Meant, Vec<FieldError>> {
    let headers = BTreeMap::from([("x-github-event".to_owned(), "push".to_owned())]);
    assert!(mistakes(definition).is_empty(), "{:?}", mistakes(definition));
    apply(definition, &Event { id: "d-1", headers: &headers, payload, beyond: &BTreeSet::new() })
}

#[test]
fn only_an_expression_that_reads_a_number_beyond_what_json_carries_does_not_fit() {
    let body = br#"{
        "repository": { "name": "one", "id": 9007199254740993 }, "count": 3, "list": [1, 9007199254740993],
        "parent": { "left": [1e400], "right": 2 }
    }"#;
    let loose = domain::json::read_loosely(body).unwrap();
    let headers = BTreeMap::new();
    let event = Event { id: "d-1", headers: &headers, payload: &loose.value, beyond: &loose.beyond };
    let fine = definition(&json!({
        "count": "{{ payload.count }}", "length": "{{ payload.list | length }}", "first": "{{ payload.list | first }}",
        "right": "{{ payload['parent'].right }} of {{ payload.list[0] }}",
    }));
    let Ok(Meant::Asks(asked)) = apply(&fine, &event) else { panic!("{:?}", apply(&fine, &event)) };
    let expected = json!({ "count": 3, "length": 2, "first": 1, "right": "2 of 1" });
    assert_eq!((&asked["name"], &asked["parameters"]), (&json!("vm-one"), &expected));
    for reads in [
        "{{ payload.repository.id }}",
        "no {{ payload.repository.id }}",
        "{{ payload.repository.id | string }}",
        "{{ payload.repository.id | default(1) }}",
        "{{ payload.repository.id is defined }}",
        "{{ payload.repository.id == 9007199254740993 }}",
        "{{ payload.repository }}",
        "{{ payload.list }}",
        "{{ payload.list[1] }}",
        "{{ payload.list | last }}",
        "{{ payload.list | last | string }}",
        "no {{ payload.list | last }}",
        "{{ payload.list | join(',') }}",
        "{{ [payload.parent] }}",
        "{{ payload.parent.left | first }}",
        "{{ payload.list == [1, 2] }}",
        "{{ payload.list ~ '' }}",
        "{{ 5 in payload.list }}",
        "{{ payload.repository | string }}",
        "{{ payload }}",
    ] {
        let reading = definition(&json!({ "x": reads }));
        assert!(mistakes(&reading).is_empty(), "{reads}");
        let wrong = apply(&reading, &event).unwrap_err();
        assert_eq!(wrong.len(), 1, "{reads}");
        assert_eq!(wrong[0].pointer, "/parameters/x");
        assert!(wrong[0].detail.contains("send it as a string"), "{reads}: {}", wrong[0].detail);
    }
    for (when, counts) in [("payload.count == 3", true), ("payload.repository.id > 5", false)] {
        let hook = HookDefinition { when: Some(when.into()), ..definition(&json!({})) };
        assert_eq!(apply(&hook, &event).is_ok(), counts, "{when}");
    }
}

fn asked(definition: &HookDefinition, payload: &Value) -> Object {
    match applied(definition, payload) {
        Ok(Meant::Asks(asked)) => asked,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_single_expression_keeps_its_type_and_a_text_is_a_text() {
    let mut hook = definition(&json!({
        "count": "{{ payload.count }}",
        "text": "{{ payload.count }} of them",
        "tags": "{{ payload.tags }}",
        "deep": { "list": ["{{ payload.on }}", 5, null] },
        "none": "{{ payload.none }}",
        "bytes": "{{- payload.count | times(1024) -}}",
        "negative": "{{ -payload.count }}",
        "dict": "{{ {\"a\": {\"b\": 1}} }}",
        "fixed": true,
    }));
    hook.labels = BTreeMap::from([
        ("event".to_owned(), "{{ headers['x-github-event'] }}".to_owned()),
        ("absent".to_owned(), "{{ payload.none }}".to_owned()),
    ]);
    hook.correlation_id = Some("delivery-{{ id }}".into());
    let payload = json!({
        "repository": { "name": "My_Repo" }, "count": 3, "tags": ["x", "y"], "on": false, "none": null
    });
    assert_eq!(
        Value::Object(asked(&hook, &payload)),
        json!({
            "name": "vm-my-repo",
            "parameters": {
                "count": 3, "text": "3 of them", "tags": ["x", "y"], "deep": { "list": [false, 5, null] },
                "none": null, "bytes": 3072, "negative": -3, "dict": { "a": { "b": 1 } }, "fixed": true,
            },
            "labels": { "event": "push" },
            "correlation_id": "delivery-d-1",
        })
    );
}

#[test]
fn a_condition_says_which_events_count() {
    let hook = HookDefinition {
        when: Some(
            "headers['x-github-event'] == 'push' and payload.ref is startingwith 'refs/heads/'".into(),
        ),
        name: "one".into(),
        ..definition(&json!({}))
    };
    assert!(matches!(applied(&hook, &json!({ "ref": "refs/heads/main" })), Ok(Meant::Asks(_))));
    assert_eq!(applied(&hook, &json!({ "ref": "refs/tags/v1" })), Ok(Meant::Ignored));
}

#[test]
fn what_the_event_lacks_is_told_with_its_place() {
    let hook = HookDefinition {
        when: Some("payload.action != 'closed'".into()),
        ..definition(&json!({ "size": "{{ payload.size }}", "note": "for {{ payload.who.name }}" }))
    };
    let wrong = applied(&hook, &json!({ "who": null, "action": "opened" })).unwrap_err();
    let pointers: Vec<&str> = wrong.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/name", "/parameters/note", "/parameters/size"], "{wrong:?}");
    assert!(wrong[2].detail.contains("payload.size"), "{wrong:?}");
    // Also inside of a list or an object.
    for text in ["{{ [payload.nope] }}", "{{ {'a': {'b': payload.nope}} }}"] {
        let nested = HookDefinition { name: "one".into(), ..definition(&json!({ "tags": text })) };
        let wrong = applied(&nested, &json!({})).unwrap_err();
        assert_eq!(wrong[0].pointer, "/parameters/tags", "{wrong:?}");
    }
    // Nothing is a word of its own, neither is a whole object.
    let odd = HookDefinition { name: "vm-{{ payload.x }}".into(), ..definition(&json!({})) };
    for payload in [json!({ "x": null }), json!({ "x": {} }), json!({ "x": [1] }), json!({})] {
        assert!(applied(&odd, &payload).is_err(), "{payload}");
    }
}

#[test]
fn what_cannot_work_is_found_when_it_is_saved() {
    let mistaken = |text: &str| {
        let hook = HookDefinition { name: text.to_owned(), ..definition(&json!({})) };
        let wrong = mistakes(&hook);
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert_eq!(wrong[0].pointer, "/name");
        wrong[0].detail.clone()
    };
    assert!(mistaken("vm-{{ payload.x | shell }}").contains("no filter \"shell\""));
    assert!(mistaken("{{ payload.x | shell }}").contains("no filter \"shell\""));
    assert!(mistaken("{{ payload.x is odd }}").contains("no test \"odd\""));
    assert!(mistaken("{{ playload.x }}").contains("playload"));
    assert!(mistaken("{{ range(10) }}").contains("range"));
    assert!(mistaken("{% for x in payload %}{{ x }}{% endfor %}").contains("no {% statements %}"));
    assert!(mistaken("{{ payload.x * 5 }}").contains("times"));
    for broken in ["{{ payload. }}", "{{ payload", "{{ }}", "vm-{{ 'a }}", "a{{ (1 }}", &"x".repeat(1001)] {
        mistaken(broken);
    }
    // Quoted texts are texts.
    for good in ["{{ '| shell' }}", "a-{{ \"}} * is odd\" }}-b", "{{ payload.is.x | default('*') }}"] {
        let hook = HookDefinition { name: good.to_owned(), ..definition(&json!({})) };
        assert!(mistakes(&hook).is_empty(), "{good}: {:?}", mistakes(&hook));
    }
    let nested =
        HookDefinition { when: Some("payload..x".into()), ..definition(&json!({ "a": ["{{ b }}"] })) };
    let pointers: Vec<String> = mistakes(&nested).into_iter().map(|error| error.pointer).collect();
    assert_eq!(pointers, ["/when", "/parameters/a/0"]);
}

#[test]
fn no_mapping_keeps_the_server_busy() {
    let long = "x".repeat(60_000);
    let payload = json!({ "x": long, "repository": { "name": "a" } });
    for text in [
        "{{ payload.x | replace('x', payload.x) }}",
        "{{ payload.x ~ payload.x ~ payload.x }}-",
        "{{ [payload.x, payload.x] | join(payload.x) }}",
    ] {
        let hook = HookDefinition { name: text.to_owned(), ..definition(&json!({})) };
        let wrong = applied(&hook, &payload).unwrap_err();
        assert!(wrong[0].detail.contains("64 KiB"), "{text}: {}", wrong[0].detail);
    }
}
