//! Plans: what a caller does step by step, drawn from dice alone, so that the same seed asks for the same.
//!
//! What has to be known first, such as which request to cancel, is drawn as a number and chosen when its time comes.

use crate::history::{Ask, Dice, Object};
use serde_json::{Value, json};
use std::time::Duration;

/// One step of a caller.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) deed: Deed,
    pub(super) delivery: Delivery,
    /// Whether it is sent again until there is an answer, as a sender does that is in earnest.
    pub(super) insists: bool,
    /// Whether the end of the request is waited for, so that however long this goes on, what waits stays bounded.
    pub(super) waits: bool,
    /// What comes before the next step.
    pub(super) pause: Duration,
}

/// What is done in a step. A number chooses among what was sent or told before.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// A submission under a key of its own.
    Ask(Ask),
    /// One that was sent before, spelled in another way.
    Again(u64),
    /// The key of one that was sent before, with another meaning.
    Other(u64),
    /// The end of a request.
    Cancel(u64),
    /// Once more what had this name before, under another key.
    Anew(u64),
    /// Other parameters for a resource, for the version that it has now or one that it had.
    Update(u64),
    /// More of a resource.
    Add(u64),
    /// The end of a resource.
    Delete(u64),
    /// What a person decides about a request that failed, or of which nobody can tell.
    Decide(u64),
    /// A look at a resource.
    Look(u64),
}

/// How a call is delivered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delivery {
    Once,
    /// Twice at the same time, to any of the servers.
    Twice,
    /// The caller hangs up after this time.
    Lost(Duration),
}

/// The plan of one caller.
pub(super) struct Plan {
    dice: Dice,
    who: u64,
    step: u64,
}

impl Plan {
    pub(super) fn of(dice: &Dice, who: u64) -> Self {
        Self { dice: dice.of(who), who, step: 0 }
    }

    pub(super) fn next(&mut self) -> Step {
        self.step += 1;
        let dice = &mut self.dice;
        let pick = dice.next();
        let deed = match dice.below(32) {
            0..10 => Deed::Ask(self.create()),
            10..13 => Deed::Again(pick),
            13..15 => Deed::Other(pick),
            15..17 => Deed::Cancel(pick),
            17 => Deed::Anew(pick),
            18..20 => Deed::Update(pick),
            20..23 => Deed::Add(pick),
            23..25 => Deed::Delete(pick),
            25..29 => Deed::Decide(pick),
            _ => Deed::Look(pick),
        };
        let dice = &mut self.dice;
        let delivery = match dice.below(8) {
            0 | 1 => Delivery::Twice,
            2 => Delivery::Lost(Duration::from_micros(dice.below(20_000))),
            _ => Delivery::Once,
        };
        Step {
            deed,
            delivery,
            insists: dice.below(4) > 0,
            waits: dice.below(3) == 0,
            pause: Duration::from_millis(dice.below(500)),
        }
    }

    /// Mostly a name of its own; sometimes one that others want as well.
    fn create(&mut self) -> Ask {
        let dice = &mut self.dice;
        if dice.below(4) == 0 {
            let name = format!("shared-{}-{}", self.step / 8, dice.below(3));
            let parameters = if dice.below(3) == 0 { json!({ "size": "large" }) } else { json!({}) };
            return Ask::Create { name, parameters: object(parameters) };
        }
        let mut parameters = match dice.below(20) {
            0 => json!({ "behaviour": "fail" }),
            1 | 2 => json!({ "behaviour": "fail-once" }),
            3 => json!({ "behaviour": "retry-once" }),
            4 | 5 => json!({ "behaviour": "lose-answer" }),
            6 => json!({ "behaviour": "crash" }),
            7 => json!({ "behaviour": "cannot-tell" }),
            8 => json!({ "behaviour": "observe-unknown" }),
            _ => json!({ "count": 1 + dice.below(3), "note": "é \"quoted\"" }),
        };
        if dice.below(2) == 0 {
            parameters["seconds"] = json!(f64::from(u32::try_from(1 + dice.below(40)).unwrap()) / 100.0);
        }
        Ask::Create { name: format!("own-{}-{}", self.who, self.step), parameters: object(parameters) }
    }
}

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("an object: {value}") };
    object
}

/// Another meaning than this one.
pub(super) fn other_than(ask: &Ask, pick: u64) -> Ask {
    match ask {
        Ask::Create { name, parameters } => {
            let (mut name, mut parameters) = (name.clone(), parameters.clone());
            match pick % 3 {
                0 => name.push_str("-x"),
                1 => drop(parameters.insert("tags".into(), json!(["another"]))),
                _ => drop(parameters.insert("count".into(), json!(77))),
            }
            Ask::Create { name, parameters }
        }
        Ask::Update { name, patch } => {
            let mut patch = patch.clone();
            patch.insert("tags".into(), json!(["another"]));
            Ask::Update { name: name.clone(), patch }
        }
        Ask::Add { name, count } => Ask::Add { name: name.clone(), count: count + 1 },
        Ask::Delete { name } => Ask::Delete { name: format!("{name}-x") },
        Ask::Cancel { request } | Ask::Retry { request } | Ask::Resolve { request, .. } => {
            Ask::Create { name: format!("not-{}", &request[..8]), parameters: Object::new() }
        }
    }
}

/// A value, spelled in one of the many ways that mean the same.
pub(super) fn spelled(value: &Value, dice: &mut Dice) -> String {
    let blank = [" ", "", "\r\n\t", ""][usize::try_from(dice.below(4)).unwrap()];
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let length = u64::try_from(members.len()).unwrap().max(1);
            members.rotate_left(usize::try_from(dice.below(length)).unwrap());
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| {
                    format!("{}{blank}:{}", spelled(&Value::from(name.as_str()), dice), spelled(value, dice))
                })
                .collect();
            format!("{{{blank}{}{blank}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| spelled(item, dice)).collect();
            format!("[{blank}{}]", items.join(","))
        }
        Value::Number(number) if number.is_i64() => {
            format!("{number}{}", ["", ".0", "e0", "00e-2"][usize::try_from(dice.below(4)).unwrap()])
        }
        Value::String(text) if dice.below(4) == 0 => {
            let escaped: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{}\"", escaped.concat())
        }
        other => other.to_string(),
    }
}
