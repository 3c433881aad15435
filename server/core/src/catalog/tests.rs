//! Catalogs as authors write them, right and wrong.

use super::*;
use domain::view::Object;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt};

mod approval;
mod composites;
mod expiry;
mod secrets;

const GOOD: &str = "title: A thing
description: Makes a thing.
category: Things
version: \"1\"
parameters:
  type: object
  properties:
    size: { type: string, default: small }
provisioner:
  exec:
    program: ./provision
";

struct Shelf(tempfile::TempDir);

impl Shelf {
    fn with(id: &str, yaml: &str) -> Self {
        let shelf = Self(tempfile::tempdir().unwrap());
        shelf.add(id, yaml);
        shelf
    }

    fn add(&self, id: &str, yaml: &str) {
        let folder = self.0.path().join(id);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(OFFERING_FILE), yaml).unwrap();
        fs::write(folder.join("provision"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join("provision"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn load(&self) -> Catalog {
        Catalog::load(self.0.path(), &site(self.0.path()))
    }

    fn mistakes(&self) -> Vec<(u64, u64, String)> {
        let catalog = self.load();
        assert_eq!(catalog.iter().count(), 0);
        let mistakes = catalog.broken().iter().flat_map(|broken| broken.mistakes.clone());
        mistakes.map(|mistake| (mistake.line, mistake.column, mistake.message)).collect()
    }
}

fn site(data: &Path) -> Site {
    Site { guard: "/nonexistent/guard".into(), state: data.join("offerings") }
}

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("an object") };
    object
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

#[test]
fn a_good_offering_has_its_defaults() {
    let catalog = Shelf::with("thing", GOOD).load();
    assert_eq!(catalog.broken(), []);
    let thing = catalog.get(&name("thing")).unwrap();
    assert_eq!((thing.resource_type.as_str(), thing.max_tries, thing.quota_cost), ("thing", 5, 1));
    assert_eq!((thing.timeout.as_secs(), thing.duplicate_window), (600, None));
    let view = thing.view();
    assert!(view.available && view.parameters["properties"]["size"]["default"] == "small");
    assert_eq!(view.parameters["additionalProperties"], false);
}

#[test]
fn everything_that_can_be_said_is_read() {
    let yaml = format!(
        "{GOOD}resource_type: machine\napproval: none\nquota: {{ cost: 0 }}\noutputs: {{ secret: [password] }}\n\
         guard: {{ max_tries: 2, timeout: 90s, duplicate_window: 7d, retry: {{ base: 10ms, cap: 2s }} }}\n"
    );
    let shelf = Shelf::with("thing", &yaml);
    shelf.add("other", &yaml);
    let catalog = shelf.load();
    assert_eq!(catalog.broken(), []);
    assert_eq!(catalog.iter().map(|o| o.id.as_str()).collect::<Vec<_>>(), ["other", "thing"]);
    let thing = catalog.get(&name("thing")).unwrap();
    assert_eq!((thing.resource_type.as_str(), thing.max_tries, thing.quota_cost), ("machine", 2, 0));
    assert_eq!((thing.timeout.as_secs(), thing.duplicate_window.unwrap().as_secs()), (90, 7 * 86400));
    assert_eq!((thing.retry.base.as_millis(), thing.retry.cap.as_secs()), (10, 2));
    assert!(thing.secret_outputs.contains("password"));
}

/// Each row: a piece of the good offering, what stands in its place, and where and what is told.
#[test]
fn each_mistake_is_told_with_its_line_and_column() {
    let property = "    size: { type: string, default: small }";
    for (old, new, line, column, told) in [
        ("title: A thing", "titel: A thing", 1, 1, "no field \"titel\""),
        ("title: A thing", "title: 7", 1, 8, "must be a text, not a number; put it in quotes"),
        ("title: A thing", "title: ''", 1, 8, "must not be empty"),
        ("version: \"1\"", "version: 1.0", 4, 10, "put it in quotes"),
        ("category: Things", "category: Things\ncategory: Other", 4, 1, "category"),
        ("category: Things", "category: [a", 4, 8, ""),
        ("category: Things", "category: Things\nguard: { max_tries: 0 }", 4, 21, "from 1 to 100"),
        ("category: Things", "category: Things\nguard: { timeout: 10 }", 4, 19, "a time such as"),
        ("category: Things", "category: Things\nguard: { timeout: 10 minutes }", 4, 19, "a time such as"),
        ("category: Things", "category: Things\nguard: [1]", 4, 8, "must be a mapping, not a list"),
        ("category: Things", "category: Things\nquota: { costs: 1 }", 4, 10, "no field \"costs\""),
        ("category: Things", "category: Things\nresource_type: Big_Thing", 4, 16, "is a name"),
        ("category: Things", "category: Things\noutputs: { secret: password }", 4, 20, "a list of names"),
        ("type: object", "type: string", 6, 3, "must say `type: object`"),
        (property, "    size: { type: strin }", 8, 13, "parameters:"),
        (property, "    size: { type: string, minLenght: 3 }", 8, 27, "\"minLenght\" is not a keyword"),
        (property, "    size: { type: string, default: 7 }", 8, 27, "breaks its own schema"),
        (
            property,
            "    size: { type: string, default: no, enum: [yes, no] }\n    count: { type: integer, maximum: 5, default: 9 }",
            9,
            41,
            "breaks its own schema",
        ),
        (property, "    size: { $ref: 'https://example.org/x' }", 8, 13, "stay inside this schema"),
        (property, "    size: { $ref: '#/$defs/nothing' }", 8, 13, "leads nowhere"),
        (property, "    size: { type: string, pattern: '(?=a)' }", 8, 27, "without look-around"),
        (
            property,
            "    size: { type: string, x-visible-when: { colour: red } }",
            8,
            45,
            "no property \"colour\"",
        ),
        (property, "    size: { type: string, x-visible-when: colour }", 8, 27, "one property's name"),
        (
            property,
            "    size: { type: string, x-visible-when: { size: a } }",
            8,
            45,
            "cannot depend on itself",
        ),
        (
            property,
            "    size: { type: string }\n    s-a: {}\n    s_a: {}",
            10,
            5,
            "would both be KEYTURN_PARAM_S_A",
        ),
        (property, "    'size of it': { type: string }", 8, 5, "must be of letters"),
        (property, "    size: { type: string }\n  x-order: [colour]", 9, 13, "no property \"colour\""),
        ("program: ./provision", "program: ./missing", 11, 14, "is missing"),
        ("program: ./provision", "program: ./offering.yaml", 11, 14, "not executable"),
        ("program: ./provision", "program: ../thing/provision", 11, 14, "inside the offering's folder"),
        ("program: ./provision", "program: /bin/sh", 11, 14, "inside the offering's folder"),
        ("  exec:\n    program: ./provision", "  terraform: {}", 10, 3, "no field \"terraform\""),
    ] {
        let yaml = GOOD.replacen(old, new, 1);
        let mistakes = Shelf::with("thing", &yaml).mistakes();
        assert!(
            mistakes.iter().any(|(l, c, text)| (*l, *c) == (line, column) && text.contains(told)),
            "{new:?} should tell {line}:{column} {told:?}, told {mistakes:?}"
        );
        assert!(mistakes.iter().all(|(_, _, text)| text.len() < 600 && !text.contains('\n')), "{mistakes:?}");
    }
}

const ACTIONS: &str = "updates: true
actions:
  add-disks:
    title: Add disks
    description: Adds disks.
    parameters:
      type: object
      required: [count]
      properties:
        count: { type: integer, minimum: 1 }
        to: { type: string }
        half: { type: number }
    changes:
      disks: { add: count }
      size: { set: to }
  restart:
    title: Restart
";

fn with_actions() -> String {
    let more = "    size: { type: string, default: small }
    disks: { type: integer, default: 1 }
    spare: { type: integer }
    zone: { type: string, x-immutable: true }";
    GOOD.replace("    size: { type: string, default: small }", more) + ACTIONS
}

#[test]
fn actions_are_read_with_their_schemas_and_what_they_change() {
    let catalog = Shelf::with("thing", &with_actions()).load();
    assert_eq!(catalog.broken(), []);
    let thing = catalog.get(&name("thing")).unwrap();
    assert!(thing.updatable());
    let action = &thing.actions[&name("add-disks")];
    let input = action.schema.normalise(object(json!({"count": 2}))).unwrap();
    let desired = object(json!({"size": "small", "disks": 1}));
    let after = domain::change::changed(&desired, &action.changes, &input).unwrap();
    assert_eq!(json!(after), json!({"size": "small", "disks": 3}));
    let restart = &thing.actions[&name("restart")];
    assert!(restart.changes.is_empty() && restart.schema.normalise(Object::new()).is_ok());
    assert!(restart.schema.normalise(object(json!({"now": true}))).is_err(), "nothing is ignored");
    let view = json!(thing.view());
    assert_eq!(view["updatable"], true);
    assert_eq!(view["actions"][0]["id"], "add-disks");
    assert_eq!(view["actions"][0]["parameters"]["properties"]["count"]["minimum"], 1);
    assert_eq!(view["actions"][0]["changes"], json!({"disks": {"add": "count"}, "size": {"set": "to"}}));
    assert!(
        !Shelf::with("thing", GOOD).load().get(&name("thing")).unwrap().updatable(),
        "only where it is said"
    );
}

#[test]
fn what_cannot_be_changed_is_known_by_name() {
    let catalog = Shelf::with("thing", &with_actions()).load();
    let schema = &catalog.get(&name("thing")).unwrap().schema;
    let changed = |before, after| schema.changed_immutables(&object(before), &object(after));
    assert!(changed(json!({"zone": "a", "size": "s"}), json!({"zone": "a", "size": "l"})).is_empty());
    for (before, after) in [
        (json!({"zone": "a"}), json!({"zone": "b"})),
        (json!({"zone": "a"}), json!({})),
        (json!({}), json!({"zone": "a"})),
    ] {
        assert_eq!(changed(before, after), ["zone"]);
    }
}

/// Each row as above, for the offering with actions; lines are counted from `updates` as 1.
#[test]
fn each_mistake_in_an_action_is_told_with_its_line_and_column() {
    for (old, new, line, column, told) in [
        ("updates: true", "updates: yes", 1, 10, "must be true or false"),
        ("actions:", "actions: [a]\nother:", 2, 10, "a mapping from IDs to actions, not a list"),
        ("  restart:", "  delete:", 16, 3, "cannot be called \"delete\""),
        ("  restart:", "  Re_start:", 16, 3, "an action's ID is a name"),
        ("    title: Restart", "    titel: Restart", 17, 5, "no field \"titel\""),
        ("    title: Restart", "    description: Again", 17, 5, "needs the field \"title\""),
        (
            "{ type: integer, minimum: 1 }",
            "{ type: integer, minimun: 1 }",
            10,
            33,
            "an action's parameters: \"minimun\"",
        ),
        ("        half:", "        'a b':", 12, 9, "must be of letters"),
        ("        half:", "        t-o: {}\n        t_o:", 13, 9, "would both be KEYTURN_INPUT_T_O"),
        ("disks: { add: count }", "disk: { add: count }", 14, 7, "the offering has no parameter \"disk\""),
        ("disks: { add: count }", "zone: { set: to }", 14, 7, "cannot be changed"),
        ("disks: { add: count }", "spare: { add: count }", 14, 7, "or with a default"),
        ("size: { set: to }", "size: { add: count }", 15, 7, "of `type: integer`"),
        ("{ add: count }", "{ add: counts }", 14, 21, "the action has no parameter \"counts\""),
        ("{ add: count }", "{ add: half }", 14, 21, "must be of `type: integer`"),
        ("{ add: count }", "{ add: count, set: to }", 14, 14, "exactly one of set and add"),
        ("{ add: count }", "{ take: count }", 14, 16, "no field \"take\""),
        ("{ add: count }", "count", 14, 14, "a change must be a mapping"),
        (
            "zone: { type: string, x-immutable: true }",
            "zone: { type: string, x-immutable: sure }",
            -3,
            27,
            "true or false",
        ),
        (
            "zone: { type: string,",
            "zone: { type: object, properties: { a: { x-immutable: true } },",
            -3,
            46,
            "belongs to a parameter itself",
        ),
    ] {
        let yaml = with_actions();
        assert!(yaml.contains(old), "{old}");
        let start = yaml.lines().position(|line| line == "updates: true").unwrap();
        let line = u64::try_from(i64::try_from(start).unwrap() + line).unwrap();
        let mistakes = Shelf::with("thing", &yaml.replacen(old, new, 1)).mistakes();
        assert!(
            mistakes.iter().any(|(l, c, text)| (*l, *c) == (line, column) && text.contains(told)),
            "{new:?} should tell {line}:{column} {told:?}, told {mistakes:?}"
        );
    }
}

#[test]
fn many_mistakes_are_told_at_once_in_their_order() {
    let yaml = GOOD
        .replace("title: A thing", "titel: A thing")
        .replace("default: small", "default: 1")
        .replace("./provision", "./missing");
    let lines: Vec<u64> =
        Shelf::with("thing", &yaml).mistakes().into_iter().map(|(line, _, _)| line).collect();
    assert_eq!(lines, [1, 1, 8, 11]);
}

#[test]
fn a_program_may_not_lead_outside_by_a_link() {
    let shelf = Shelf::with("thing", GOOD);
    fs::remove_file(shelf.0.path().join("thing/provision")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", shelf.0.path().join("thing/provision")).unwrap();
    assert!(shelf.mistakes()[0].2.contains("inside the offering's folder"));
}

#[test]
fn a_broken_folder_leaves_the_rest_working() {
    let shelf = Shelf::with("thing", GOOD);
    shelf.add("Bad_Name", GOOD);
    shelf.add("wrong", "a: [");
    fs::create_dir(shelf.0.path().join("empty")).unwrap();
    fs::create_dir(shelf.0.path().join(".git")).unwrap();
    fs::write(shelf.0.path().join("README.md"), "a file").unwrap();
    let catalog = shelf.load();
    assert!(catalog.get(&name("thing")).is_some());
    let broken: Vec<_> = catalog.broken().iter().map(|broken| broken.id.as_str()).collect();
    assert_eq!(broken, ["Bad_Name", "empty", "wrong"]);
    let shown = catalog.broken()[1].mistakes[0].to_string();
    assert!(
        shown.ends_with("empty/offering.yaml:1:1: every offering's folder needs a file offering.yaml"),
        "{shown}"
    );
    let nowhere = Catalog::load(Path::new("/nonexistent/catalog"), &site(Path::new("/nonexistent")));
    assert!(nowhere.iter().next().is_none() && nowhere.broken().len() == 1);
}

#[test]
fn the_sample_catalog_loads_without_mistakes_and_is_written_once() {
    let data = tempfile::tempdir().unwrap();
    let folder = Catalog::sample(data.path()).unwrap();
    let catalog = Catalog::load(&folder, &site(data.path()));
    assert_eq!(catalog.broken(), []);
    assert_eq!(
        catalog.iter().map(|o| o.id.as_str()).collect::<Vec<_>>(),
        ["git-repository", "service-starter", "tls-certificate"]
    );
    let program = folder.join("tls-certificate/provision");
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    let written = fs::metadata(&program).unwrap().modified().unwrap();
    fs::write(folder.join("git-repository/provision"), "changed").unwrap();
    Catalog::sample(data.path()).unwrap();
    assert_eq!(fs::metadata(&program).unwrap().modified().unwrap(), written);
    assert_ne!(fs::read_to_string(folder.join("git-repository/provision")).unwrap(), "changed");
    assert_eq!(fs::read_dir(folder.join("git-repository")).unwrap().count(), 2);
}

#[test]
fn the_catalog_of_tests_loads_without_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/catalog");
    let catalog = Catalog::load(&folder, &site(&folder));
    assert_eq!(catalog.broken(), []);
    assert!(catalog.get(&name("vm")).is_some() && catalog.get(&name("fast")).is_some());
}

#[test]
fn a_span_of_time_has_a_unit() {
    for (text, millis) in
        [("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000), ("7d", 604_800_000)]
    {
        assert_eq!(duration(text).map(|span| span.as_millis()), Some(millis), "{text}");
    }
    for bad in ["", "10", "s", "-1s", "1.5h", "1 h", "1w", "99999999999999999999s", "18446744073709551615d"] {
        assert_eq!(duration(bad), None, "{bad}");
    }
}
