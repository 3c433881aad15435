//! Payloads with numbers that JSON does not carry exactly: they may stand there, and no expression may read one, by its name
//! or with all that is around it.

use super::{at, said};
use domain::json::BEYOND;
use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value as Found};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether one of the numbers was read since somebody asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Read(Arc<AtomicBool>);

impl Read {
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A payload as expressions see it; reading one of the numbers `beyond`, if there are any, is noted.
pub(super) fn payload(payload: &Value, beyond: &BTreeSet<String>) -> (Found, Option<Read>) {
    if beyond.is_empty() {
        return (Found::from(Serde(payload)), None);
    }
    let read = Read::default();
    let whole = Whole { payload: payload.clone(), beyond: beyond.clone(), read: read.clone() };
    (Arc::new(whole).part(String::new()).unwrap_or_default(), Some(read))
}

#[derive(Debug)]
struct Whole {
    payload: Value,
    beyond: BTreeSet<String>,
    read: Read,
}

impl Whole {
    fn part(self: &Arc<Self>, pointer: String) -> Option<Found> {
        if self.beyond.contains(&pointer) {
            self.read.0.store(true, Ordering::Relaxed);
            return Some(said(BEYOND).into());
        }
        let value = self.payload.pointer(&pointer)?;
        let below = format!("{pointer}/");
        let holds_some =
            self.beyond.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below));
        Some(if holds_some {
            Found::from_object(Part { whole: Arc::clone(self), pointer })
        } else {
            Found::from(Serde(value))
        })
    }
}

/// An object or a list that holds such a number somewhere.
#[derive(Debug)]
struct Part {
    whole: Arc<Whole>,
    pointer: String,
}

impl Part {
    fn value(&self) -> Option<&Value> {
        self.whole.payload.pointer(&self.pointer)
    }
}

impl Object for Part {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.value().is_some_and(Value::is_array) { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Found) -> Option<Found> {
        let part = match self.repr() {
            ObjectRepr::Seq => key.as_usize()?.to_string(),
            _ => key.as_str()?.to_owned(),
        };
        self.whole.part(at(&self.pointer, &part))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.value() {
            Some(Value::Array(items)) => Enumerator::Seq(items.len()),
            Some(Value::Object(members)) => {
                Enumerator::Values(members.keys().map(|name| Found::from(name.as_str())).collect())
            }
            _ => Enumerator::Empty,
        }
    }
}
