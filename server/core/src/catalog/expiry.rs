//! When an offering's resources end, and how long before that somebody is told.

use super::{
    ParameterSchema,
    offering::span,
    sheet::{Members, Sheet},
    yaml::Kind,
};
use domain::{
    expiry::{End, Expiry},
    time::Moment,
    view::Object,
};
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};

/// The longest time to live, and before an end, that can be said; a hundred years.
const LONGEST: Duration = Duration::from_hours(24 * 36_500);
/// How long before the end somebody is told where the offering does not say.
const WARN: Duration = Duration::from_hours(24 * 14);
const DAY: Duration = Duration::from_hours(24);

/// What an offering says of the end of its resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiryRule {
    /// Where the end is read.
    pub ends: Ends,
    /// How long before it somebody is told.
    pub warn: Duration,
}

/// Where the end of a resource is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ends {
    /// In an output, as RFC 3339 writes it.
    Output(String),
    /// It is so long after the resource was made.
    After(Duration),
    /// It is so many days after the resource was made as this parameter says.
    Days(String),
}

impl ExpiryRule {
    /// The end of a resource with these outputs and parameters; or why it cannot be told.
    pub(crate) fn of(&self, outputs: &Object, parameters: &Object) -> Result<Expiry, String> {
        let end = match &self.ends {
            Ends::Output(name) => {
                let text = outputs.get(name).ok_or_else(|| format!("there is no output {name}"))?;
                let moment = text.as_str().and_then(|text| text.parse::<Moment>().ok());
                End::At(
                    moment.ok_or_else(|| format!("the output {name} is not a time as RFC 3339 writes it"))?,
                )
            }
            Ends::After(span) => End::After(*span),
            Ends::Days(name) => {
                let days = parameters.get(name).and_then(Value::as_f64);
                let days = days.ok_or_else(|| format!("the parameter {name} is not a number of days"))?;
                End::After(DAY.mul_f64(days.clamp(0.0, 36_500.0)))
            }
        };
        Ok(Expiry { end, warn: self.warn })
    }
}

/// Reads what an offering says of it, if it does.
pub(super) fn read(
    sheet: &mut Sheet,
    top: &Members<'_>,
    public: Option<&BTreeSet<String>>,
    schema: Option<&ParameterSchema>,
) -> Option<ExpiryRule> {
    let node = top.get("expiry")?;
    let members = sheet.members(node, "expiry", &["output", "lifetime", "warn"]);
    let warn = match members.get("warn") {
        Some(_) => span(sheet, &members, "warn", LONGEST)?,
        None => WARN,
    };
    let ends = match (members.get("output"), members.get("lifetime")) {
        (Some(output), None) => {
            let name = sheet.text(output, "output", 100)?;
            if !public.is_some_and(|public| public.contains(name)) {
                sheet.note(
                    output.place,
                    format!(
                        "the end is read in the output {name:?}, which \"outputs\" must list under \"public\""
                    ),
                );
                return None;
            }
            Ends::Output(name.to_owned())
        }
        (None, Some(lifetime)) if matches!(lifetime.kind, Kind::Map(_)) => {
            let of = sheet.members(lifetime, "lifetime", &["days"]);
            let days = sheet.needed(&of, "days")?;
            let name = sheet.text(days, "days", 100)?;
            if schema.is_some_and(|schema| !(schema.is_whole(name) && schema.is_always_there(name))) {
                let rule = "must be of `type: integer`, and required or with a default";
                sheet.note(days.place, format!("to say how many days, the parameter {name:?} {rule}"));
                return None;
            }
            if schema.is_some_and(|schema| schema.secrets().contains(name)) {
                sheet.note(
                    days.place,
                    format!("the parameter {name:?} is a secret, and the end of a resource is seen"),
                );
                return None;
            }
            Ends::Days(name.to_owned())
        }
        (None, Some(lifetime)) => {
            let span = span(sheet, &members, "lifetime", LONGEST)?;
            if warn >= span {
                let rule = "must be shorter than the lifetime, or it warns as soon as the resource is made";
                sheet.note(lifetime.place, format!("\"warn\" (14d if it is not said) {rule}"));
                return None;
            }
            Ends::After(span)
        }
        _ => {
            if matches!(node.kind, Kind::Map(_)) {
                sheet.note(node.place, "\"expiry\" must have exactly one of output and lifetime");
            }
            return None;
        }
    };
    Some(ExpiryRule { ends, warn })
}
