//! What the browser keeps of an opened form, so that a reload, Back and a login in between bring it back: in the tab's
//! own storage, under the form's ID, for the person who filled it in, without secrets.

use super::{machine::Machine, outgoing::Values, subject::Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One kept form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Who filled it in.
    pub(crate) user: String,
    /// The address of the form.
    pub(crate) path: String,
    /// Whether it was sent and nobody can tell yet whether it arrived.
    pub(crate) sent: bool,
    /// The request it led to.
    pub(crate) request: Option<String>,
    /// What was typed, without secrets.
    pub(crate) values: Values,
    /// The fields of the secrets that were typed, now or before the form last came back.
    #[serde(default)]
    pub(crate) secrets: BTreeSet<String>,
}

impl Kept {
    /// What is worth keeping now.
    pub(crate) fn of(
        machine: &Machine,
        subject: &Subject,
        user: &str,
        values: &Values,
        lost: &BTreeSet<String>,
    ) -> Self {
        let open =
            |field: &str| field.strip_prefix("p.").is_none_or(|parameter| !subject.is_secret(parameter));
        let typed = values.iter().filter(|(field, text)| !open(field) && !text.is_empty());
        Self {
            user: user.to_owned(),
            path: subject.path(),
            sent: machine.may_have_arrived(),
            request: machine.request().map(str::to_owned),
            values: values
                .iter()
                .filter(|(field, _)| open(field))
                .map(|(f, v)| (f.clone(), v.clone()))
                .collect(),
            secrets: typed.map(|(field, _)| field).chain(lost).cloned().collect(),
        }
    }

    /// Reads a kept form back for this person and address; another's is not shown.
    pub(crate) fn read(text: &str, subject: &Subject, user: &str) -> Option<Self> {
        let kept: Self = serde_json::from_str(text).ok()?;
        (kept.user == user && kept.path == subject.path()).then_some(kept)
    }
}

/// The key in the tab's storage.
pub(crate) fn place(id: &str) -> String {
    format!("keyturn.form.{id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject() -> Subject {
        let offering = serde_json::from_value(json!({
            "id": "vm", "title": "VM", "description": "", "category": "c", "version": "1", "resource_type": "vm",
            "parameters": {"properties": {"key": {"format": "password"}, "size": {}}},
            "guard": {"max_tries": 3, "timeout_seconds": 60}, "available": true
        }));
        Subject::create(offering.unwrap())
    }

    #[test]
    fn a_kept_form_comes_back_for_the_same_person_without_secrets() {
        let values = [("name", "one"), ("p.size", "small"), ("p.key", "hush")];
        let values: Values = values.map(|(field, text)| (field.into(), text.into())).into();
        let kept =
            Kept::of(&Machine::open("id".into(), true, None), &subject(), "ann", &values, &BTreeSet::new());
        assert!(kept.sent && !kept.values.contains_key("p.key"));
        assert_eq!(kept.secrets, ["p.key".to_owned()].into(), "what is to be typed again is known");
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("hush"));
        assert_eq!(Kept::read(&text, &subject(), "ann"), Some(kept));
        assert_eq!(Kept::read(&text, &subject(), "bob"), None);
        assert_eq!(Kept::read("{", &subject(), "ann"), None);
    }
}
