//! What an offering says of the end of its resources.

use super::*;
use domain::{
    expiry::{End, Expiry},
    time::Moment,
};
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

fn thing(expiry: &str) -> String {
    let with = "    size: { type: string, default: small }\n    days: { type: integer, default: 30 }\n    \
                maybe: { type: integer }\n    half: { type: number, default: 1 }";
    let good = GOOD.replacen("    size: { type: string, default: small }", with, 1);
    format!("{good}outputs: {{ public: [not_after], secret: [hidden] }}\nexpiry: {expiry}\n")
}

fn rule(expiry: &str) -> ExpiryRule {
    let catalog = Shelf::with("thing", &thing(expiry)).load();
    assert_eq!(catalog.broken(), [], "{expiry}");
    catalog.get(&name("thing")).unwrap().expiry.clone().unwrap()
}

#[test]
fn an_end_is_read_in_an_output_a_parameter_or_the_offering() {
    let (outputs, parameters) =
        (object(json!({ "not_after": "2030-01-31T12:00:00+02:00" })), object(json!({ "days": 37 })));
    let of = |expiry: &str| rule(expiry).of(&outputs, &parameters).unwrap();
    let end: Moment = "2030-01-31T10:00:00Z".parse().unwrap();
    let (after, at) = (|days| End::After(DAY * days), End::At(end));
    for (yaml, end, warn) in [
        ("{ output: not_after }", at, DAY * 14),
        ("{ output: not_after, warn: 36h }", at, DAY * 3 / 2),
        ("{ lifetime: 30d }", after(30), DAY * 14),
        ("{ lifetime: { days: days }, warn: 2d }", after(37), DAY * 2),
    ] {
        assert_eq!(of(yaml), Expiry { end, warn }, "{yaml}");
    }
    assert_eq!(Shelf::with("thing", GOOD).load().get(&name("thing")).unwrap().expiry, None);
}

#[test]
fn what_cannot_be_told_is_said_and_nothing_is_made_up() {
    let read = rule("{ output: not_after }");
    for not_after in
        [json!("tomorrow"), json!("2030-01-31"), json!("2030-02-31T00:00:00Z"), json!(7), json!(null)]
    {
        let told = read.of(&object(json!({ "not_after": not_after })), &Object::new()).unwrap_err();
        assert!(told.contains("not_after"), "{told}");
    }
    assert!(read.of(&Object::new(), &Object::new()).unwrap_err().contains("no output not_after"));
    // No number of days is too strange to be shown as a moment.
    let counted = rule("{ lifetime: { days: days } }");
    for (days, end) in [(-5_i64, 0), (0, 0), (i64::MAX, 36_500)] {
        let expiry = counted.of(&Object::new(), &object(json!({ "days": days }))).unwrap();
        assert_eq!(expiry.end, End::After(DAY * end));
    }
}

#[test]
fn mistakes_about_ends_are_told_with_their_place() {
    for (expiry, column, told) in [
        ("{}", 9, "exactly one of output and lifetime"),
        ("{ output: not_after, lifetime: 30d }", 9, "exactly one of output and lifetime"),
        ("{ warn: 14d }", 9, "exactly one of output and lifetime"),
        ("30d", 9, "must be a mapping"),
        ("{ output: not_before }", 19, "must list under \"public\""),
        ("{ output: hidden }", 19, "must list under \"public\""),
        ("{ output: 7 }", 19, "must be a text"),
        ("{ lifetime: soon }", 21, "a time such as"),
        ("{ lifetime: 0d }", 21, "a time such as"),
        ("{ lifetime: 40000d }", 21, "a time such as"),
        ("{ lifetime: 14d }", 21, "must be shorter than the lifetime"),
        ("{ lifetime: 30d, warn: 30d }", 21, "must be shorter than the lifetime"),
        ("{ lifetime: 30d, warn: never }", 32, "a time such as"),
        ("{ lifetime: {} }", 21, "needs the field \"days\""),
        ("{ lifetime: { days: size } }", 29, "must be of `type: integer`"),
        ("{ lifetime: { days: half } }", 29, "must be of `type: integer`"),
        ("{ lifetime: { days: maybe } }", 29, "required or with a default"),
        ("{ lifetime: { days: nothing } }", 29, "must be of `type: integer`"),
        ("{ lifetime: { weeks: days } }", 23, "no field \"weeks\""),
        ("{ ends: 30d }", 11, "no field \"ends\""),
    ] {
        let mistakes = Shelf::with("thing", &thing(expiry)).mistakes();
        assert!(
            mistakes.iter().any(|(l, c, text)| (*l, *c) == (16, column) && text.contains(told)),
            "{expiry} should tell 16:{column} {told:?}, told {mistakes:?}"
        );
    }
    // Without a list of outputs nobody can tell whether it will be there.
    let mistakes = Shelf::with("thing", &format!("{GOOD}expiry: {{ output: not_after }}\n")).mistakes();
    assert!(mistakes.iter().any(|(_, _, text)| text.contains("must list under \"public\"")), "{mistakes:?}");
}
