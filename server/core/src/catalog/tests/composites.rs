//! Offerings that are made of others: what is wrong with them is told when the catalog is loaded, with its line.

use super::*;

/// An offering of its own program, with a needed parameter and a secret output.
const PART: &str = "title: A part
description: Makes a part.
category: Parts
version: \"1\"
parameters:
  type: object
  required: [size]
  properties: { size: { type: integer }, note: { type: string } }
outputs:
  public: [address]
  secret: [password]
provisioner:
  exec: { program: ./provision }
";

/// Ten lines before `steps`, which begin in line 11.
const HEAD: &str = "title: A whole
description: Made of parts.
category: Wholes
version: \"1\"
parameters:
  type: object
  required: [size]
  properties:
    size: { type: integer }
    note: { type: string }
";

fn shelf(steps: &str) -> Shelf {
    let shelf = Shelf::with("part", PART);
    shelf.add("whole", &format!("{HEAD}{steps}"));
    shelf
}

/// Line and message of every mistake of the offering `whole`.
fn mistakes(steps: &str) -> Vec<(u64, String)> {
    let catalog = shelf(steps).load();
    assert!(catalog.get(&name("part")).is_some(), "{:?}", catalog.broken());
    let broken = catalog.broken().iter().find(|broken| broken.id == "whole");
    let mistakes = broken.map(|broken| broken.mistakes.clone()).unwrap_or_default();
    mistakes.into_iter().map(|mistake| (mistake.line, mistake.message)).collect()
}

#[test]
fn steps_are_ordered_by_what_they_need_and_what_they_read() {
    let steps = "steps:
  - id: last
    offering: part
    needs: [middle]
    parameters: { size: 1 }
  - id: middle
    offering: part
    parameters: { size: 2, note: \"at {{ steps.first.outputs.address }}\" }
  - id: first
    offering: part
    parameters: { size: \"{{ parameters.size }}\" }
outputs:
  values: { address: \"{{ steps.last.outputs.address }}\", password: \"{{ steps.first.outputs.password }}\" }
  secret: [password]
";
    let catalog = shelf(steps).load();
    assert_eq!(catalog.broken(), []);
    let whole = catalog.get(&name("whole")).unwrap();
    let ids: Vec<_> = whole.composite.as_ref().unwrap().steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["first", "middle", "last"]);
    assert!(!whole.updatable() && whole.secret_outputs.contains("password"));
    assert_eq!(whole.public_outputs.as_ref().unwrap().iter().collect::<Vec<_>>(), ["address"]);
}

#[test]
fn every_mistake_of_a_step_is_told_with_its_line() {
    let one = |rest: &str| format!("steps:\n  - id: one\n    offering: part\n{rest}");
    for (steps, line, part) in [
        ("steps: []\n".to_owned(), 11, "1 to 20 steps"),
        ("steps: {}\n".to_owned(), 11, "list of steps"),
        (one("    parameters: { size: 1 }\nprovisioner: { fake: {} }\n"), 15, "either"),
        (one("    parameters: { size: 1 }\nupdates: true\n"), 15, "has no \"updates\""),
        ("steps:\n  - id: one\n    offering: missing\n".to_owned(), 13, "no such offering"),
        (
            "steps:\n  - id: One-1\n    offering: part\n    parameters: { size: 1 }\n".to_owned(),
            12,
            "ID is of a to z",
        ),
        (one("    parameters: { size: 1, colour: red }\n"), 14, "no parameter \"colour\""),
        (one("    parameters: { note: x }\n"), 12, "needs the parameter \"size\""),
        (one("    parameters: { size: \"{{ parameters.sise }}\" }\n"), 14, "no parameter \"sise\""),
        (one("    parameters: { size: \"{{ oops\" }\n"), 14, "cannot be read"),
        (one("    parameters: { size: \"{{ secret }}\" }\n"), 14, "\"secret\" is not known"),
        (one("    needs: [two]\n    parameters: { size: 1 }\n"), 12, "no step \"two\""),
        (one("    parameters: { size: 1, note: \"{{ steps.two.outputs.x }}\" }\n"), 14, "no step \"two\""),
        (one("    parameters: { size: 1, note: \"{{ steps.one.outputs.address }}\" }\n"), 12, "in a circle"),
        (
            one(
                "    parameters: { size: 1 }\noutputs:\n  values:\n    a: \"{{ steps.one.outputs.adress }}\"\n",
            ),
            17,
            "no output \"adress\"",
        ),
        (
            one(
                "    parameters: { size: 1 }\noutputs:\n  values:\n    a: \"{{ steps.one.outputs.password }}\"\n",
            ),
            17,
            "is secret",
        ),
        (
            one(
                "    parameters: { size: 1 }\n  - id: two\n    offering: part\n    parameters:\n      size: 1\n      \
                 note: \"{{ steps.one.outputs.password }}\"\n",
            ),
            19,
            "is secret",
        ),
        (one("    parameters: { size: 1 }\noutputs:\n  secret: [a]\n"), 16, "has no value"),
        (
            one(
                "    parameters: { size: 1 }\n  - id: one\n    offering: part\n    parameters: { size: 1 }\n",
            ),
            15,
            "two steps",
        ),
    ] {
        let found = mistakes(&steps);
        assert!(
            found.iter().any(|(at, message)| *at == line && message.contains(part)),
            "{part:?} in line {line} of {steps}: {found:?}"
        );
    }
}

#[test]
fn offerings_made_of_others_do_not_stand_in_themselves_nor_too_deep() {
    let of = |id: &str| format!("steps:\n  - {{ id: one, offering: {id}, parameters: {{ size: 1 }} }}\n");
    let found = mistakes(&of("whole"));
    assert!(found[0].1.contains("never in themselves"), "{found:?}");

    let shelf = shelf(&of("part"));
    for (id, below) in [("second", "whole"), ("third", "second"), ("fourth", "third"), ("fifth", "fourth")] {
        shelf.add(id, &format!("{HEAD}{}", of(below)));
    }
    let catalog = shelf.load();
    let broken: Vec<_> =
        catalog.broken().iter().map(|broken| (broken.id.as_str(), broken.mistakes[0].line)).collect();
    assert_eq!(broken, [("fifth", 12), ("fourth", 12)]);
    assert!(catalog.get(&name("third")).is_some());
}

#[test]
fn a_mistake_in_a_part_is_one_of_the_whole() {
    let shelf = shelf("steps:\n  - { id: one, offering: part, parameters: { size: 1 } }\n");
    fs::write(shelf.0.path().join("part").join(OFFERING_FILE), "title: 7\n").unwrap();
    let catalog = shelf.load();
    let broken = catalog.broken();
    assert_eq!(broken.iter().map(|broken| broken.id.as_str()).collect::<Vec<_>>(), ["part", "whole"]);
    assert!(broken[1].mistakes[0].message.contains("has a mistake itself"), "{broken:?}");
}

#[test]
fn a_program_answers_its_outputs_itself() {
    let wrong = GOOD.to_owned() + "outputs: { values: { a: 1 } }\n";
    let found = Shelf::with("thing", &wrong).mistakes();
    assert!(found[0].2.contains("only an offering with \"steps\""), "{found:?}");
}
