//! Changes under a key of what is no create and no change of a resource: decisions about a request, tokens, hooks, and where
//! a team is told. All of them are read, passed through the guard, and shown with their secret once, by the same few lines.

use super::{Arrival, Inner};
use crate::{
    Answer, Answered, Caller, Error, Result, guard,
    settings::read_span,
    store::{Effect, Submission, Turn},
};
use domain::{
    command::{Command, Operation},
    json,
    problem::ProblemKind,
    view::Object,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::Duration;

/// What is to be done, to what, and how.
pub(super) struct Wish {
    operation: Operation,
    target: String,
    /// The body as it was sent.
    sent: Object,
    /// The same in one spelling, in which a default that is left out is the same as one that is sent.
    meant: Object,
}

impl Wish {
    /// One whose body can be spelled in one way only.
    pub(super) fn new(operation: Operation, target: String, sent: Object) -> Self {
        Self { operation, target, meant: sent.clone(), sent }
    }

    /// What is to be done.
    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// The same, whose body means this.
    pub(super) fn meaning(self, meant: Object) -> Self {
        Self { meant, ..self }
    }
}

/// Takes the blanks around texts away, which are not kept either.
pub(super) fn trim(body: &mut Object, members: &[&str]) {
    for member in members {
        if let Some(Value::String(text)) = body.get_mut(*member) {
            *text = text.trim().to_owned();
        }
    }
}

/// Gives a span the spelling that all of its length have; where none was sent, the usual one is meant.
pub(super) fn spell_span(body: &mut Object, member: &str, usual: Duration) {
    let span = match body.get(member) {
        None => Some(usual),
        Some(sent) => sent.as_str().and_then(read_span),
    };
    // What is none is refused, or is no repeat of what was taken in.
    if let Some(span) = span {
        body.insert(member.to_owned(), format!("{}ms", span.as_millis()).into());
    }
}

/// A body that may be absent, with these members only; a null is an absent member, and an absent body.
pub(super) fn object(body: &[u8], known: &[&str]) -> Result<Object> {
    if body.trim_ascii().is_empty() {
        return Ok(Object::new());
    }
    match json::read(body)? {
        Value::Null => Ok(Object::new()),
        body => only(json::without_nulls(body), known),
    }
}

/// A body with these members only, in which a null is a value.
pub(super) fn members(body: &[u8], known: &[&str]) -> Result<Object> {
    only(json::read(body)?, known)
}

fn only(body: Value, known: &[&str]) -> Result<Object> {
    let Value::Object(body) = body else {
        return Err(Error::new(ProblemKind::InvalidJson, "The body must be one JSON object."));
    };
    match body.keys().find(|member| !known.contains(&member.as_str())) {
        None => Ok(body),
        Some(unknown) => {
            let known = if known.is_empty() {
                "There are none here".to_owned()
            } else {
                format!("Known members: {}", known.join(", "))
            };
            Err(Error::new(
                ProblemKind::InvalidJson,
                format!("The member {unknown:?} is not known. {known}."),
            ))
        }
    }
}

/// What people call a thing: `/label` of a body, which says `what`.
pub(super) fn label(sent: Option<&Value>, what: &str) -> Result<String> {
    let fits = |text: &str| (1..=100).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    match sent {
        Some(Value::String(text)) if fits(text.trim()) => Ok(text.trim().to_owned()),
        _ => Err(Error::field("/label", format!("1 to 100 characters that say {what}"))),
    }
}

/// The answer with what only the first one shows: a repeat is given what was stored.
pub(super) fn shown_once<View: Serialize + DeserializeOwned>(
    mut answered: Answered,
    shown: impl FnOnce(View) -> View,
) -> Result<Answered> {
    if !answered.replayed {
        let stored = serde_json::from_slice(&answered.answer.body).map_err(Error::internal)?;
        let Answer { kind, location, .. } = answered.answer;
        answered.answer = Answer::showing(kind, location, &shown(stored))?;
    }
    Ok(answered)
}

impl Inner {
    /// Passes what is wished through the guard. Whether it fits and whether the caller `may` counts for a first only: a
    /// repeat was understood before.
    pub(super) async fn keyed(
        &self,
        caller: &Caller,
        team: &str,
        arrival: &Arrival,
        wish: Wish,
        may: impl Fn() -> Result<()>,
        effect: Result<Effect>,
    ) -> Result<Answered> {
        let Wish { operation, target, sent, meant } = wish;
        let arrived = self.arrived(caller, team, arrival.key()?, operation, self.clock.now());
        let hashed = serde_json::json!({ "operation": operation.as_str(), "target": target, "body": sent });
        let command = Command::on(operation, target, meant);
        let effect = match effect {
            Ok(effect) => effect,
            Err(error) => {
                let error = may().err().unwrap_or(error);
                return self.refused(arrived, &command, &hashed, error).await;
            }
        };
        let meaning = guard::meaning(&self.keys, &command, &hashed);
        let submission =
            Submission { arrived, meaning, command: Some(command.clone()), effect, turn: Turn::default() };
        self.guarded(submission, &command, &hashed, may).await
    }
}
