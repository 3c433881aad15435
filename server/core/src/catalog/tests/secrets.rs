//! Secret parameters in a catalog: what would give one away is a mistake, told with its place.

use super::*;

fn with_parameter(parameter: &str) -> String {
    GOOD.replace("    size: { type: string, default: small }", parameter)
}

#[test]
fn a_secret_parameter_is_known_as_one() {
    let yaml = with_parameter("    size: { type: string }\n    password: { type: string, writeOnly: true }");
    let catalog = Shelf::with("thing", &yaml).load();
    assert_eq!(catalog.broken(), []);
    let thing = catalog.get(&name("thing")).unwrap();
    assert_eq!(thing.schema.secrets().iter().collect::<Vec<_>>(), ["password"]);
    assert!(catalog.has_secrets() && !Shelf::with("thing", GOOD).load().has_secrets());
}

#[test]
fn what_would_give_a_secret_away_is_a_mistake() {
    for (parameter, part) in [
        ("    size: { type: string, writeOnly: true, default: small }", "cannot stand in the catalog"),
        ("    size: { enum: [small], writeOnly: true }", "cannot stand in the catalog"),
        ("    size: { type: boolean, writeOnly: true }", "too easily guessed"),
        (
            "    size: { type: object, properties: { pin: { type: string, writeOnly: true } } }",
            "not to a part of one",
        ),
        (
            "    size: { type: string, writeOnly: true }\n    other: { type: string, x-visible-when: { size: a } }",
            "is a secret, on which nothing may be seen to depend",
        ),
    ] {
        let found = Shelf::with("thing", &with_parameter(parameter)).mistakes();
        assert!(
            found.iter().any(|(line, _, told)| *line >= 8 && told.contains(part)),
            "{parameter}: {found:?}"
        );
    }
    let ends = with_parameter("    days: { type: integer, writeOnly: true }\n  required: [days]");
    let found = Shelf::with("thing", &format!("{ends}expiry: {{ lifetime: {{ days: days }} }}\n")).mistakes();
    assert!(found.iter().any(|(_, _, told)| told.contains("is a secret, and the end")), "{found:?}");
    let fine = Shelf::with("thing", &with_parameter("    size: { type: boolean, writeOnly: false }"));
    assert_eq!(fine.load().broken(), []);
}

#[test]
fn an_action_takes_a_secret_for_a_secret_only() {
    let offering = |change: &str, input: &str| {
        let parameters = "    size: { type: string }\n    password: { type: string, writeOnly: true }\n    \
                          pin: { type: integer, writeOnly: true }";
        let yaml = with_parameter(parameters);
        format!(
            "{yaml}updates: true\nactions:\n  turn:\n    title: Turn\n    parameters:\n      type: object\n      \
             properties: {{ to: {input} }}\n    changes: {{ {change} }}\n"
        )
    };
    let secret = "{ type: string, writeOnly: true }";
    assert_eq!(Shelf::with("thing", &offering("password: { set: to }", secret)).load().broken(), []);
    for (change, input, part) in [
        ("size: { set: to }", secret, "both must be secrets"),
        ("password: { set: to }", "{ type: string }", "both must be secrets"),
        ("pin: { add: to }", "{ type: integer, writeOnly: true }", "nothing is added to one"),
    ] {
        let found = Shelf::with("thing", &offering(change, input)).mistakes();
        assert!(found.iter().any(|(_, _, told)| told.contains(part)), "{change}: {found:?}");
    }
}

const PART: &str = "title: A part
description: Makes a part.
category: Parts
version: \"1\"
parameters:
  type: object
  properties: { note: { type: string }, password: { type: string, writeOnly: true } }
provisioner:
  exec: { program: ./provision }
";

fn whole(rest: &str) -> Shelf {
    let shelf = Shelf::with("part", PART);
    let whole = "title: A whole
description: Made of parts.
category: Wholes
version: \"1\"
parameters:
  type: object
  properties: { note: { type: string }, password: { type: string, writeOnly: true }, admin-pin: { type: string, writeOnly: true } }
steps:
  - id: one
    offering: part
";
    shelf.add("whole", &format!("{whole}{rest}"));
    shelf
}

#[test]
fn a_secret_is_handed_on_to_a_secret_as_it_is_and_to_nothing_else() {
    for fine in ["{{ parameters.password }}", "{{ parameters['admin-pin'] }}", "literal"] {
        let shelf = whole(&format!(
            "    parameters: {{ password: \"{fine}\", note: \"{{{{ parameters.note }}}}\" }}\n"
        ));
        assert_eq!(shelf.load().broken(), [], "{fine}");
    }
    for (rest, part) in [
        (
            "    parameters: { note: \"{{ parameters.password }}\" }\n",
            "would be kept in clear as \"note\" of part",
        ),
        ("    parameters: { note: \"{{ parameters }}\" }\n", "would be kept in clear"),
        ("    parameters: { note: \"{{ parameters['admin-pin'] }}\" }\n", "would be kept in clear"),
        ("    name: \"a{{ parameters.password }}\"\n", "would be kept in clear as a name"),
        ("    parameters: { password: \"{{ parameters.password }}!\" }\n", "handed on as it is"),
        ("    parameters: { password: \"{{ parameters.password | upper }}\" }\n", "handed on as it is"),
        ("outputs:\n  values: { shown: \"{{ parameters.password }}\" }\n", "as the output \"shown\""),
    ] {
        let catalog = whole(rest).load();
        let found: Vec<_> = catalog.broken().iter().flat_map(|broken| broken.mistakes.clone()).collect();
        assert!(found.iter().any(|mistake| mistake.message.contains(part)), "{rest}: {found:?}");
    }
}
