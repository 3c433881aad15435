//! Who has to approve what, as an offering says it.

use super::*;

#[test]
fn who_has_to_approve_what_is_read_and_shown() {
    let yaml = |approval: &str| format!("{GOOD}approval: {approval}\n");
    let shelf = Shelf::with("none", &yaml("none"));
    shelf.add("short", &yaml("owner"));
    shelf.add("long", &yaml("{ by: administrator, timeout: 90m, for: [create, delete] }"));
    let catalog = shelf.load();
    assert_eq!(catalog.broken(), []);
    let shown = |id: &str| {
        serde_json::to_value(catalog.get(&name(id)).unwrap().view()).unwrap().get("approval").cloned()
    };
    assert_eq!(shown("none"), None);
    assert_eq!(
        shown("short"),
        Some(json!({ "by": "owner", "timeout_seconds": 7 * 86400, "for": ["create"] }))
    );
    assert_eq!(
        shown("long"),
        Some(json!({ "by": "administrator", "timeout_seconds": 5400, "for": ["create", "delete"] }))
    );
    let long = catalog.get(&name("long")).unwrap();
    assert!(long.approval_of("delete").is_some() && long.approval_of("update").is_none());
}

/// Each row: what stands behind `approval:`, and where in its line what is told.
#[test]
fn a_mistake_in_an_approval_is_told_with_its_place() {
    for (approval, column, told) in [
        ("boss", 11, "who decides: none, owner, administrator"),
        ("[owner]", 11, "who decides: none, owner, administrator"),
        ("{ for: [create] }", 11, "needs the field \"by\""),
        ("{ by: none }", 17, "owner or administrator"),
        ("{ by: owner, until: 7d }", 24, "no field \"until\""),
        ("{ by: owner, timeout: 31d }", 33, "at most 720h"),
        ("{ by: owner, timeout: 59s }", 33, "at least 1m"),
        ("{ by: owner, for: create }", 29, "must be a list"),
        ("{ by: owner, for: [] }", 29, "must name something"),
        ("{ by: owner, for: [update] }", 30, "does no \"update\""),
        ("{ by: owner, for: [create, delete, create] }", 46, "names \"create\" twice"),
    ] {
        let yaml = GOOD.replacen("category: Things", &format!("category: Things\napproval: {approval}"), 1);
        let mistakes = Shelf::with("thing", &yaml).mistakes();
        assert!(
            mistakes.iter().any(|(l, c, text)| (*l, *c) == (4, column) && text.contains(told)),
            "{approval:?} should tell 4:{column} {told:?}, told {mistakes:?}"
        );
    }
}
