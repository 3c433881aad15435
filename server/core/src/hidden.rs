//! Secret parameters: taken out of parameters, with a mark in their place, and put back for who carries a request out.
//!
//! The marks are what is compared: for the same name, for a likely duplicate, for what a change changes. So they are made
//! with a key of the database's own, which stays when the portal's keys are exchanged.

use domain::{
    hidden, json,
    name::Name,
    view::{EventEntry, Object},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The shortest secret that is looked for in what is said, in bytes: to mask shorter ones would garble everything and hide
/// nothing.
pub(crate) const SHORTEST_VEILED: usize = 4;

/// The key by which marks are made.
#[derive(Clone, Copy)]
pub(crate) struct MarkingKey(pub(crate) [u8; 32]);

impl fmt::Debug for MarkingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkingKey(…)")
    }
}

/// Makes marks: the same for the same secret of one team and offering.
#[derive(Debug, Clone)]
pub(crate) struct Marking {
    pub(crate) key: MarkingKey,
    pub(crate) team: Name,
    pub(crate) offering: Name,
}

impl Marking {
    /// The mark of a secret.
    pub(crate) fn of(&self, secret: &Value) -> String {
        let what = serde_json::json!([self.team, self.offering, secret]);
        hidden::mark(blake3::keyed_hash(&self.key.0, &json::canonical(&what)).as_bytes())
    }
}

/// Secrets by their marks, and the names under which they may stand.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    /// Names among the resource's parameters.
    parameters: BTreeSet<String>,
    /// Names among an action's own parameters.
    input: BTreeSet<String>,
    values: BTreeMap<String, Value>,
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hidden").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

/// A secret of which only the mark is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unknown;

impl Hidden {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Takes the secrets of these names out of a resource's parameters, or out of a patch of them.
    pub(crate) fn take(&mut self, names: &BTreeSet<String>, object: &mut Object, marking: &Marking) {
        let taken = taken(&mut self.values, names, object, marking);
        self.parameters.extend(taken);
    }

    /// Takes the secrets of these names out of an action's own parameters.
    pub(crate) fn take_input(&mut self, names: &BTreeSet<String>, object: &mut Object, marking: &Marking) {
        let taken = taken(&mut self.values, names, object, marking);
        self.input.extend(taken);
    }

    /// Knows what the other knows as well.
    pub(crate) fn extend(&mut self, other: Self) {
        self.parameters.extend(other.parameters);
        self.input.extend(other.input);
        self.values.extend(other.values);
    }

    /// Puts the secrets back into a resource's parameters, where they stood or have these names. Only there, since a mark
    /// that somebody copied to another place must not become the secret.
    pub(crate) fn reveal(&self, names: &BTreeSet<String>, object: &mut Object) -> Result<(), Unknown> {
        revealed(&self.values, self.parameters.iter().chain(names), object)
    }

    /// The same in an action's own parameters.
    pub(crate) fn reveal_input(&self, names: &BTreeSet<String>, object: &mut Object) -> Result<(), Unknown> {
        revealed(&self.values, self.input.iter().chain(names), object)
    }

    /// The secrets.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.values()
    }

    /// The texts that must not stand in anything that a program says.
    pub(crate) fn texts(&self) -> Vec<String> {
        texts(self.values.values())
    }
}

/// Every text and number anywhere in values that are secret, line by line since a log has lines. Very short ones are left
/// out: to look for them would garble everything and hide nothing.
pub(crate) fn texts<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<String> {
    let mut texts = Vec::new();
    for value in values {
        gather(value, &mut texts);
    }
    // What holds another goes first.
    texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();
    texts
}

fn taken(
    values: &mut BTreeMap<String, Value>,
    names: &BTreeSet<String>,
    object: &mut Object,
    marking: &Marking,
) -> Vec<String> {
    let mut taken = Vec::new();
    for name in names {
        let Some(value) = object.get_mut(name).filter(|value| !value.is_null() && !hidden::is_mark(value))
        else {
            continue;
        };
        let mark = marking.of(value);
        values.insert(mark.clone(), std::mem::replace(value, Value::String(mark)));
        taken.push(name.clone());
    }
    taken
}

fn revealed<'n>(
    values: &BTreeMap<String, Value>,
    names: impl Iterator<Item = &'n String>,
    object: &mut Object,
) -> Result<(), Unknown> {
    let mut known = Ok(());
    for name in names {
        let Some(value) = object.get_mut(name).filter(|value| hidden::is_mark(value)) else { continue };
        match value.as_str().and_then(|mark| values.get(mark)) {
            Some(secret) => *value = secret.clone(),
            None => known = Err(Unknown),
        }
    }
    known
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let quoted = value.to_string();
            let lines = text.lines().map(str::trim).chain([quoted.trim_matches('"')]);
            // The frame of a PEM file is no secret.
            let frame =
                |line: &str| line.starts_with("-----") && line.ends_with("-----") && !line.contains('\\');
            texts.extend(
                lines.filter(|line| line.len() >= SHORTEST_VEILED && !frame(line)).map(str::to_owned),
            );
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => members.values().for_each(|member| gather(member, texts)),
        Value::Number(number) => {
            texts.extend(Some(number.to_string()).filter(|text| text.len() >= SHORTEST_VEILED));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// A value without the secrets in it.
pub(crate) fn veiled_value(value: Value, secrets: &[String]) -> Value {
    match value {
        Value::String(text) => veiled(text, secrets).into(),
        Value::Number(number) if secrets.contains(&number.to_string()) => "***".into(),
        Value::Array(items) => items.into_iter().map(|item| veiled_value(item, secrets)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (veiled(name, secrets), veiled_value(value, secrets)))
            .collect(),
        other => other,
    }
}

/// Takes the secrets out of what is told of a request's work.
pub(crate) fn veil_entry(entry: &mut EventEntry, secrets: &[String]) {
    let text = match entry {
        EventEntry::Log { line } => line,
        EventEntry::Step { detail, .. } => detail,
        EventEntry::State { reason: Some(reason), .. } => reason,
        EventEntry::State { reason: None, .. } => return,
    };
    *text = veiled(std::mem::take(text), secrets);
}

/// A text without the secrets in it. Where it was cut short, which `…` at its end says, that may have been amid a secret.
pub(crate) fn veiled(text: String, secrets: &[String]) -> String {
    let text = secrets.iter().fold(text, |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text }
    });
    let Some(kept) = text.strip_suffix('…') else { return text };
    let begun = |secret: &String| {
        let ends = |end: &usize| secret.get(..*end).is_some_and(|begin| kept.ends_with(begin));
        (1..secret.len()).rev().find(ends)
    };
    match secrets.iter().filter_map(begun).max() {
        Some(begun) => format!("{}***…", kept.get(..kept.len() - begun).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: &Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn marking(team: &str) -> Marking {
        Marking {
            key: MarkingKey([3; 32]),
            team: Name::parse(team).unwrap(),
            offering: Name::parse("db").unwrap(),
        }
    }

    #[test]
    fn what_is_taken_out_comes_back_at_its_own_place_only() {
        let whole = object(&json!({ "password": "hunter22", "pin": 123_456, "note": "x" }));
        let (mut hidden, mut open, secret) =
            (Hidden::default(), whole.clone(), names(&["password", "pin", "none"]));
        hidden.take(&secret, &mut open, &marking("alpha"));
        assert!(!Value::Object(open.clone()).to_string().contains("hunter22"));
        assert!(hidden::is_mark(&open["password"]) && hidden::is_mark(&open["pin"]) && open["note"] == "x");
        // Somebody who sees the mark copies it to where it would be shown.
        let mut copied = open.clone();
        copied.insert("note".into(), open["password"].clone());
        hidden.reveal(&BTreeSet::new(), &mut copied).unwrap();
        assert_eq!((&copied["password"], &copied["note"]), (&whole["password"], &open["password"]));
        let mut again = open.clone();
        hidden.take(&secret, &mut again, &marking("alpha"));
        assert_eq!(again, open, "a mark is not hidden once more");
        assert_eq!(Hidden::default().reveal(&secret, &mut open.clone()), Err(Unknown));
    }

    #[test]
    fn the_same_secret_has_the_same_mark_in_one_team_only() {
        let mark = |team: &str, value: Value| marking(team).of(&value);
        assert_eq!(mark("alpha", json!("x")), mark("alpha", json!("x")));
        assert_eq!(mark("alpha", json!(1)), mark("alpha", json!(1.0)));
        assert_ne!(mark("alpha", json!("x")), mark("beta", json!("x")));
        assert_ne!(mark("alpha", json!("1")), mark("alpha", json!(1)));
    }

    #[test]
    fn texts_to_veil_are_found_wherever_they_stand() {
        let mut hidden = Hidden::default();
        let mut open =
            object(&json!({ "s": { "deep": ["line one\nline two", 12_345_678, "abc", "say \"hi\" now"] } }));
        hidden.take(&names(&["s"]), &mut open, &marking("alpha"));
        let said =
            "line one, then line two: 12345678 abc say \"hi\" now {\"x\":\"say \\\"hi\\\" now\"}".to_owned();
        assert_eq!(veiled(said, &hidden.texts()), "***, then ***: *** abc *** {\"x\":\"***\"}");
        assert!(!format!("{hidden:?}").contains("line"));
    }

    #[test]
    fn a_secret_that_a_text_was_cut_amid_shows_no_beginning() {
        let secrets = ["canary-4711".to_owned(), "can-opener".to_owned(), "éclair".to_owned()];
        for (text, shown) in [
            ("with canary-47…", "with ***…"),
            ("with can…", "with ***…"),
            ("with c…", "with ***…"),
            ("with é…", "with ***…"),
            ("with canary-4711…", "with ***…"),
            ("canary-4711 with …", "*** with …"),
            ("with canary", "with canary"),
        ] {
            assert_eq!(veiled(text.to_owned(), &secrets), shown, "{text}");
        }
    }
}
