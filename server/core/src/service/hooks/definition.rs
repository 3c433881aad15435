//! What a hook is, as it is sent, checked before it is kept.

use super::super::{Inner, create::Sent, keyed::trim};
use crate::{
    catalog::Offering,
    mapping::{self, Event, Meant},
};
use domain::{
    hook::{HookDefinition, KEPT_PAYLOAD, Sample, Signing, identity_header},
    label::Labels,
    name::Name,
    problem::FieldError,
    view::Object,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The members that a hook is sent with.
pub(super) const MEMBERS: [&str; 10] = [
    "title",
    "offering",
    "identity",
    "signature",
    "when",
    "name",
    "parameters",
    "labels",
    "correlation_id",
    "sample",
];

/// The label that holds an event's identity.
pub(super) const IDENTITY_LABEL: &str = "idempotency.key";

/// The identity of a sample that is only tried.
const SAMPLE_ID: &str = "sample-event";

/// What is said of a new hook in one spelling, in which what is left out and what is meant by that are the same.
pub(super) fn with_defaults(told: &Object) -> Object {
    let mut told = spelled(told);
    told.retain(|_, value| !value.is_null());
    let signing = told.get("signature").and_then(Value::as_str).and_then(|word| word.parse::<Signing>().ok());
    if let Some(signing) = signing {
        told.entry("identity").or_insert_with(|| signing.usual_identity().into());
    }
    for member in ["parameters", "labels"] {
        told.entry(member).or_insert_with(|| Object::new().into());
    }
    told
}

/// What is to be otherwise, in one spelling: a patch of nothing within a member leaves it as it is.
pub(super) fn spelled_patch(patch: &Object) -> Object {
    let mut patch = spelled(patch);
    patch.retain(|member, value| {
        !matches!(member.as_str(), "parameters" | "labels")
            || value.as_object().is_none_or(|inner| !inner.is_empty())
    });
    patch
}

fn spelled(body: &Object) -> Object {
    let mut body = body.clone();
    trim(&mut body, &["title"]);
    for member in ["identity", "when", "correlation_id"] {
        // Where nothing stands but blanks nothing is said.
        if let Some(value) = body.get_mut(member).filter(|value| is_blank(value)) {
            *value = Value::Null;
        }
    }
    if let Some(header) = body.get("identity").and_then(Value::as_str).and_then(identity_header) {
        body.insert("identity".into(), header.into());
    }
    if let Some(Value::Object(sample)) = body.get_mut("sample") {
        let without = |value: &Value| value.as_object().is_some_and(Object::is_empty);
        if sample.get("headers").is_some_and(without) {
            sample.remove("headers");
        }
    }
    body
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn fault(pointer: &str, detail: impl std::fmt::Display) -> FieldError {
    FieldError { pointer: pointer.to_owned(), detail: detail.to_string() }
}

/// Reads member after member, and keeps what is wrong with each.
struct Reader<'b> {
    body: &'b Object,
    wrong: Vec<FieldError>,
}

impl Reader<'_> {
    fn text(&mut self, member: &str) -> Option<String> {
        match self.body.get(member) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Some(_) => {
                self.wrong.push(fault(&format!("/{member}"), "must be a string"));
                None
            }
        }
    }

    fn needed(&mut self, member: &str, what: &str) -> String {
        let before = self.wrong.len();
        let text = self.text(member);
        if text.is_none() && self.wrong.len() == before {
            self.wrong.push(fault(&format!("/{member}"), what));
        }
        text.unwrap_or_default()
    }

    fn object(&mut self, member: &str) -> Object {
        match self.body.get(member) {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(object)) => object.clone(),
            Some(_) => {
                self.wrong.push(fault(&format!("/{member}"), "must be an object"));
                Object::new()
            }
        }
    }

    fn texts(&mut self, member: &str) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for (key, value) in self.object(member) {
            match value {
                Value::Null => {}
                Value::String(text) => {
                    texts.insert(key, text);
                }
                _ => self.wrong.push(fault(&format!("/{member}/{key}"), "must be a string")),
            }
        }
        texts
    }

    fn sample(&mut self) -> Option<Sample> {
        let sample = self.body.get("sample").filter(|sample| !sample.is_null())?;
        if sample.to_string().len() > KEPT_PAYLOAD {
            self.wrong.push(fault("/sample", "a sample has at most 64 KiB"));
            return None;
        }
        let read = serde_json::from_value(sample.clone()).ok();
        if read.is_none() {
            let rule = "must be an object with the members payload and, if the mapping reads any, headers";
            self.wrong.push(fault("/sample", rule));
        }
        read
    }
}

impl Inner {
    /// What is said of a hook; or every place where that cannot work.
    pub(super) fn hook_definition(&self, body: &Object) -> Result<HookDefinition, Vec<FieldError>> {
        let mut reader = Reader { body, wrong: Vec::new() };
        let title = reader.needed("title", "say what the hook is for").trim().to_owned();
        if title.chars().count() > 100 || title.chars().any(char::is_control) {
            reader.wrong.push(fault("/title", "1 to 100 characters that say what the hook is for"));
        }
        let offering = reader.needed("offering", "name the offering");
        let signature = match reader.needed("signature", "say how events are signed").parse::<Signing>() {
            Ok(signature) => signature,
            Err(rule) => {
                if !reader.wrong.iter().any(|error| error.pointer == "/signature") {
                    reader.wrong.push(fault("/signature", rule));
                }
                Signing::Standard
            }
        };
        let identity = reader.text("identity").unwrap_or_else(|| signature.usual_identity().to_owned());
        let identity = identity_header(&identity).unwrap_or_else(|| {
            let rule =
                "must be the name of the header that holds an identity of the event, such as webhook-id";
            reader.wrong.push(fault("/identity", rule));
            String::new()
        });
        let labels = reader.texts("labels");
        for key in labels.keys() {
            let rule = Labels::default().add(key, "").err().map(|error| error.to_string());
            let own = (key == IDENTITY_LABEL).then(|| "holds the event's identity already".to_owned());
            if let Some(rule) = rule.or(own) {
                reader.wrong.push(fault("/labels", format!("{key}: {rule}")));
            }
        }
        let name = reader.needed("name", "say how the resource is to be named, as app-{{ payload.id }}");
        let (when, correlation_id) = (reader.text("when"), reader.text("correlation_id"));
        let (parameters, sample) = (reader.object("parameters"), reader.sample());
        let mut wrong = reader.wrong;
        let offering = self.offering_of(&offering, &mut wrong);
        if let Some(found) = &offering {
            for name in found.schema.secrets().iter().filter(|name| parameters.contains_key(*name)) {
                let rule =
                    format!("{name:?} is a secret of the offering {}, which no event can give", found.id);
                wrong.push(fault("/parameters", rule));
            }
            let required =
                found.schema.value().get("required").and_then(Value::as_array).into_iter().flatten();
            for name in
                required.filter_map(Value::as_str).filter(|name| found.schema.secrets().contains(*name))
            {
                let rule = format!("needs its parameter {name:?}, a secret, which no event can give");
                wrong.push(fault("/offering", rule));
            }
            for name in parameters.keys().filter(|name| !found.schema.allows(name)) {
                let rule = format!("{name:?} is not a parameter of the offering {}", found.id);
                wrong.push(fault("/parameters", rule));
            }
            // What no event decides is known to fit or not to fit now.
            let fixed = parameters.iter().filter(|(_, value)| !value.is_null() && !is_mapped(value));
            let fixed = fixed.filter(|(name, _)| !found.schema.secrets().contains(*name));
            wrong.extend(fixed.flat_map(|(name, value)| found.schema.misfits(name, value)));
        }
        let Some(offering) = offering else { return Err(wrong) };
        let id = offering.id.clone();
        let definition = HookDefinition {
            title,
            offering: id,
            identity,
            signature,
            when,
            name,
            parameters,
            labels,
            correlation_id,
            sample,
        };
        wrong.extend(mapping::mistakes(&definition));
        if wrong.is_empty() {
            wrong = tried(&definition, &offering);
        }
        if wrong.is_empty() { Ok(definition) } else { Err(wrong) }
    }

    fn offering_of(&self, id: &str, wrong: &mut Vec<FieldError>) -> Option<Arc<Offering>> {
        if id.is_empty() {
            return None;
        }
        let found = Name::parse(id).ok().and_then(|id| self.catalog.get(&id).map(Arc::clone));
        if found.is_none() {
            wrong.push(fault("/offering", format!("there is no offering {id}")));
        }
        found
    }
}

/// Whether an expression stands anywhere in a value.
fn is_mapped(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(is_mapped),
        Value::Object(members) => members.values().any(is_mapped),
        _ => false,
    }
}

/// What is wrong with the mapping for the sample, if there is one.
fn tried(definition: &HookDefinition, offering: &Offering) -> Vec<FieldError> {
    let Some(sample) = &definition.sample else { return Vec::new() };
    // A sample is kept as JSON that was read, so nothing of it is beyond.
    let beyond = BTreeSet::new();
    let event = Event { id: SAMPLE_ID, headers: &sample.headers, payload: &sample.payload, beyond: &beyond };
    let wrong = match mapping::apply(definition, &event) {
        Ok(Meant::Ignored) => return Vec::new(),
        Ok(Meant::Asks(asked)) => match asked_for(definition, SAMPLE_ID, asked) {
            Ok(sent) => sent.command(&offering.schema).err().unwrap_or_default(),
            Err(error) => vec![fault("/parameters", error.detail)],
        },
        Err(wrong) => wrong,
    };
    wrong
        .into_iter()
        .map(|error| FieldError { detail: format!("with the sample: {}", error.detail), ..error })
        .collect()
}

/// What an event asks for, as a create that was sent.
pub(super) fn asked_for(definition: &HookDefinition, id: &str, mut asked: Object) -> crate::Result<Sent> {
    asked.insert("offering".into(), definition.offering.as_str().into());
    if let Some(Value::Object(labels)) = asked.get_mut("labels") {
        labels.insert(IDENTITY_LABEL.into(), id.into());
    }
    // What was worked out has to be as exact as what is sent.
    Sent::read(Value::Object(asked).to_string().as_bytes(), Vec::new())
}
