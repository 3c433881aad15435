//! Offerings that are made of others: `steps` in `offering.yaml`, each a request of its own.
//!
//! A step waits for the steps that it names in `needs` and for those whose outputs it reads; the rest go side by side.
//! What can be told to be wrong when the catalog is loaded is told then, with its line.

use super::{
    Broken, Catalog, Mistake, Offering, ParameterSchema,
    mapping::{Mapping, Reads},
    sheet::{Members, Sheet},
    yaml::{Kind, Node, Place},
};
use domain::{name::Name, view::PartView};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The most steps of one offering.
const MOST_STEPS: usize = 20;
/// How deep offerings made of others may stand in each other.
const DEEPEST: usize = 3;
/// The most requests that one request may come to.
const MOST_REQUESTS: usize = 60;
/// The longest ID of a step.
const LONGEST_ID: usize = 40;

/// What an offering is made of.
#[derive(Debug, Clone)]
pub(crate) struct Composite {
    /// Its steps; each comes after those that it waits for.
    pub(crate) steps: Vec<Step>,
    /// Its outputs.
    pub(crate) outputs: Vec<(String, Mapping)>,
    file: String,
    /// What its outputs read, by the output.
    reads: Vec<(String, Vec<Reads>)>,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Its ID.
    pub(crate) id: String,
    /// What it asks for.
    pub(crate) offering: Name,
    /// The resource's name.
    pub(crate) name: Mapping,
    /// Its parameters.
    pub(crate) parameters: Vec<(String, Mapping)>,
    /// The steps that it waits for.
    pub(crate) needs: BTreeSet<String>,
    place: Place,
    offering_place: Place,
    parameter_places: Vec<Place>,
    reads: Vec<Reads>,
}

/// Reads `steps` and the values of the outputs.
pub(super) fn read(
    sheet: &mut Sheet,
    top: &Members<'_>,
    values: Option<&Node>,
    parameters: Option<&ParameterSchema>,
) -> Option<Composite> {
    let node = top.get("steps")?;
    let Kind::List(items) = &node.kind else {
        sheet.note(node.place, format!("\"steps\" must be a list of steps, not {}", node.word()));
        return None;
    };
    if items.is_empty() || items.len() > MOST_STEPS {
        sheet.note(node.place, format!("an offering has 1 to {MOST_STEPS} steps"));
    }
    for field in ["updates", "actions"] {
        if let Some(node) = top.get(field)
            && !matches!(node.kind, Kind::Bool(false))
        {
            sheet.note(
                node.place,
                format!("an offering with steps has no {field:?}: change what its steps made instead"),
            );
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    for item in items {
        if let Some(step) = step(sheet, item, parameters) {
            if steps.iter().any(|known| known.id == step.id) {
                sheet.note(step.place, format!("there are two steps {:?}", step.id));
            }
            steps.push(step);
        }
    }
    let (mut outputs, mut reads) = (Vec::new(), Vec::new());
    match values.map(|node| (node, &node.kind)) {
        None => {}
        Some((_, Kind::Map(members))) => {
            for member in members {
                let mut read = Vec::new();
                let mapping = Mapping::read(sheet, &member.value, &mut read);
                variables(sheet, &read, parameters);
                outputs.push((member.name.clone(), mapping));
                reads.push((member.name.clone(), read));
            }
        }
        Some((node, _)) => {
            sheet.note(node.place, "\"values\" must be a mapping from outputs to their values");
        }
    }
    let ids: BTreeSet<String> = steps.iter().map(|step| step.id.clone()).collect();
    for step in &mut steps {
        for (read, place) in read_steps(&step.reads) {
            if ids.contains(read) {
                step.needs.insert(read.to_owned());
            } else {
                sheet.note(place, format!("there is no step {read:?}"));
            }
        }
        for need in step.needs.iter().filter(|need| !ids.contains(*need)) {
            if !step.reads.iter().any(|read| read.path.get(1) == Some(need)) {
                sheet.note(step.place, format!("\"needs\": there is no step {need:?}"));
            }
        }
        step.needs.retain(|need| ids.contains(need));
    }
    for (read, place) in reads.iter().flat_map(|(_, reads)| read_steps(reads)) {
        if !ids.contains(read) {
            sheet.note(place, format!("there is no step {read:?}"));
        }
    }
    let steps = in_order(sheet, steps);
    Some(Composite { steps, outputs, file: sheet.file.clone(), reads })
}

/// The steps that are read, each with its place.
fn read_steps(reads: &[Reads]) -> impl Iterator<Item = (&str, Place)> {
    reads
        .iter()
        .filter(|read| read.path[0] == "steps")
        .filter_map(|read| read.path.get(1).map(|step| (step.as_str(), read.place)))
}

fn step(sheet: &mut Sheet, node: &Node, parameters: Option<&ParameterSchema>) -> Option<Step> {
    let members = sheet.members(node, "a step", &["id", "offering", "name", "parameters", "needs"]);
    let id = sheet.needed_text(&members, "id", LONGEST_ID).map(str::to_owned);
    if let (Some(id), Some(node)) = (&id, members.get("id")) {
        let begins = id.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            sheet.note(node.place, "a step's ID is of a to z, 0 to 9 and `_`, and begins with a letter");
        }
    }
    let offering = sheet.needed(&members, "offering").and_then(|node| {
        let text = sheet.text(node, "offering", 100)?;
        let name = Name::parse(text).map_err(|rule| sheet.note(node.place, format!("\"offering\": {rule}")));
        name.ok().map(|name| (name, node.place))
    });
    let mut reads = Vec::new();
    let name = match members.get("name") {
        None => Mapping::variable("name"),
        Some(node) => Mapping::read(sheet, node, &mut reads),
    };
    let (mut mapped, mut parameter_places) = (Vec::new(), Vec::new());
    match members.get("parameters").map(|node| (node, &node.kind)) {
        None => {}
        Some((_, Kind::Map(members))) => {
            for member in members {
                mapped.push((member.name.clone(), Mapping::read(sheet, &member.value, &mut reads)));
                parameter_places.push(member.place);
            }
        }
        Some((node, _)) => sheet.note(node.place, "a step's \"parameters\" must be a mapping"),
    }
    variables(sheet, &reads, parameters);
    let mut needs = BTreeSet::new();
    match members.get("needs").map(|node| (node, &node.kind)) {
        None => {}
        Some((_, Kind::List(items))) => {
            for item in items {
                needs.extend(sheet.text(item, "needs", LONGEST_ID).map(str::to_owned));
            }
        }
        Some((node, _)) => sheet.note(node.place, "\"needs\" must be a list of steps"),
    }
    let (offering, offering_place) = offering?;
    let place = node.place;
    Some(Step {
        id: id?,
        offering,
        name,
        parameters: mapped,
        needs,
        place,
        offering_place,
        parameter_places,
        reads,
    })
}

/// Notes what is read that will not be there.
fn variables(sheet: &mut Sheet, reads: &[Reads], parameters: Option<&ParameterSchema>) {
    for Reads { path, place } in reads {
        let second = path.get(1).map(String::as_str);
        match (path[0].as_str(), second) {
            ("parameters", Some(name)) => {
                if parameters.is_some_and(|schema| schema.property(name).is_none()) {
                    sheet.note(*place, format!("the offering has no parameter {name:?}"));
                }
            }
            ("steps", Some(_)) if path.get(2).is_some_and(|what| what != "outputs") => {
                sheet.note(*place, "of a step only its outputs are known, as steps.<id>.outputs.<name>");
            }
            ("name" | "team" | "correlation_id" | "request_id" | "parameters" | "steps", _) => {}
            (other, _) => sheet.note(
                *place,
                format!("{other:?} is not known; there are name, team, correlation_id, request_id, parameters and steps"),
            ),
        }
    }
}

/// The steps, each after those that it waits for; a circle is a mistake.
fn in_order(sheet: &mut Sheet, mut steps: Vec<Step>) -> Vec<Step> {
    let mut ordered: Vec<Step> = Vec::with_capacity(steps.len());
    while !steps.is_empty() {
        let is_next = |step: &Step| step.needs.iter().all(|need| ordered.iter().any(|done| done.id == *need));
        let Some(next) = steps.iter().position(is_next) else {
            let ids: Vec<&str> = steps.iter().map(|step| step.id.as_str()).collect();
            sheet.note(
                steps[0].place,
                format!("the steps {} wait for each other in a circle", ids.join(", ")),
            );
            return ordered;
        };
        ordered.push(steps.remove(next));
    }
    ordered
}

/// Takes offerings out of the catalog whose steps do not fit what else is in it, until the rest does.
pub(super) fn settle(catalog: &mut Catalog, folder: &Path) {
    loop {
        let wrong: Vec<(Name, Vec<Mistake>)> = catalog
            .offerings
            .values()
            .filter_map(|offering| {
                let mistakes = mistakes(catalog, offering, offering.composite.as_deref()?);
                (!mistakes.is_empty()).then(|| (offering.id.clone(), mistakes))
            })
            .collect();
        if wrong.is_empty() {
            catalog.broken.sort_by(|one, other| one.id.cmp(&other.id));
            return;
        }
        for (id, mistakes) in wrong {
            catalog.offerings.remove(&id);
            catalog.broken.push(Broken { id: id.to_string(), folder: folder.join(id.as_str()), mistakes });
        }
    }
}

fn mistakes(catalog: &Catalog, offering: &Offering, composite: &Composite) -> Vec<Mistake> {
    let mut sheet = Sheet::of(composite.file.clone());
    let mut of_steps: BTreeMap<&str, &Offering> = BTreeMap::new();
    for step in &composite.steps {
        let Some(child) = catalog.get(&step.offering) else {
            let is_broken = catalog.broken.iter().any(|broken| broken.id == step.offering.as_str());
            let what =
                if is_broken { "the offering has a mistake itself" } else { "there is no such offering" };
            sheet.note(step.offering_place, format!("{}: {what}", step.offering));
            continue;
        };
        of_steps.insert(&step.id, child);
        for ((name, mapping), place) in step.parameters.iter().zip(&step.parameter_places) {
            if child.schema.property(name).is_none() {
                sheet.note(*place, format!("the offering {} has no parameter {name:?}", child.id));
            } else if let Some(secret) = reads_secret(&offering.schema, mapping) {
                if !child.schema.secrets().contains(name) {
                    sheet.note(*place, in_clear(secret, &format!("{name:?} of {}", child.id)));
                } else if step.handed_on(name).is_none() {
                    sheet.note(*place, as_it_is(secret));
                }
            }
        }
        if let Some(secret) = reads_secret(&offering.schema, &step.name) {
            sheet.note(step.place, in_clear(secret, "a name"));
        }
        let needed = child.schema.value().get("required").and_then(serde_json::Value::as_array);
        for name in needed.into_iter().flatten().filter_map(serde_json::Value::as_str) {
            if !step.parameters.iter().any(|(given, _)| given == name) {
                sheet.note(step.place, format!("the offering {} needs the parameter {name:?}", child.id));
            }
        }
    }
    for step in &composite.steps {
        outputs(&mut sheet, &of_steps, &step.reads, false);
    }
    for (output, mapping) in &composite.outputs {
        if let Some(secret) = reads_secret(&offering.schema, mapping) {
            let place = composite.steps.first().map_or(Place::START, |step| step.place);
            sheet.note(place, in_clear(secret, &format!("the output {output:?}")));
        }
    }
    for (output, reads) in &composite.reads {
        outputs(&mut sheet, &of_steps, reads, offering.secret_outputs.contains(output));
    }
    if sheet.mistakes.is_empty() {
        let place = composite.steps.first().map_or(Place::START, |step| step.place);
        match size(catalog, offering, DEEPEST) {
            None => sheet.note(
                place,
                format!(
                    "offerings with steps stand in each other at most {DEEPEST} deep, and never in themselves"
                ),
            ),
            Some(requests) if requests > MOST_REQUESTS => {
                sheet.note(
                    place,
                    format!("it would come to {requests} requests; the most is {MOST_REQUESTS}"),
                );
            }
            Some(_) => {}
        }
    }
    sheet.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    sheet.mistakes
}

/// The secret parameter that a mapping reads, if any.
fn reads_secret<'s>(schema: &'s ParameterSchema, mapping: &Mapping) -> Option<&'s str> {
    if schema.secrets().is_empty() {
        return None;
    }
    let variables = mapping.variables();
    let reads = |secret: &&String| {
        variables.iter().any(|variable| {
            let mut way = variable.split('.');
            way.next() == Some("parameters") && way.next().is_none_or(|name| name == secret.as_str())
        })
    };
    schema.secrets().iter().find(reads).map(String::as_str)
}

fn in_clear(secret: &str, place: &str) -> String {
    format!(
        "the parameter {secret:?} is a secret (`writeOnly`) and would be kept in clear as {place}; only a step's parameter \
         that is a secret itself may take it up"
    )
}

fn as_it_is(secret: &str) -> String {
    format!("a secret is handed on as it is: \"{{{{ parameters.{secret} }}}}\" and nothing else")
}

/// Notes outputs that are read but not there, and secret ones that would not stay secret.
fn outputs(sheet: &mut Sheet, of_steps: &BTreeMap<&str, &Offering>, reads: &[Reads], stays_secret: bool) {
    for Reads { path, place } in reads {
        let [first, step, _, output, ..] = path.as_slice() else { continue };
        let Some(child) = of_steps.get(step.as_str()).filter(|_| first == "steps") else { continue };
        let is_secret = child.secret_outputs.contains(output);
        let is_known = is_secret || child.public_outputs.as_ref().is_none_or(|names| names.contains(output));
        if !is_known {
            sheet.note(*place, format!("the offering {} has no output {output:?}", child.id));
        } else if is_secret && !stays_secret {
            sheet.note(
                *place,
                format!(
                    "the output {output:?} of {} is secret and would be kept in clear here; only an output that is \
                     itself under \"secret\" may take it up",
                    child.id
                ),
            );
        }
    }
}

/// How many requests one of the offering comes to; nothing where it stands in itself or too deep.
fn size(catalog: &Catalog, offering: &Offering, deepest: usize) -> Option<usize> {
    let Some(composite) = &offering.composite else { return Some(1) };
    let below = deepest.checked_sub(1)?;
    composite.steps.iter().try_fold(1, |sum: usize, step| {
        let child = catalog.get(&step.offering)?;
        Some(sum.saturating_add(size(catalog, child, below)?))
    })
}

impl Step {
    /// The parent's parameter that becomes this parameter as it is, if that is all that there is to it.
    pub(crate) fn handed_on(&self, parameter: &str) -> Option<&str> {
        let (_, mapping) = self.parameters.iter().find(|(name, _)| name == parameter)?;
        let way = mapping.expression()?.strip_prefix("parameters")?;
        let quoted = ["'", "\""].into_iter().find_map(|quote| {
            way.strip_prefix('[')?.strip_prefix(quote)?.strip_suffix(']')?.strip_suffix(quote)
        });
        let name = quoted.or_else(|| way.strip_prefix('.'))?;
        let is_name = |char: char| {
            char.is_ascii_alphanumeric() || char == '_' || (quoted.is_some() && "-.".contains(char))
        };
        name.chars().all(is_name).then_some(name)
    }
}

impl Composite {
    /// Its steps as they travel.
    pub(super) fn parts(&self) -> impl Iterator<Item = PartView> {
        self.steps.iter().map(|step| PartView {
            step: step.id.clone(),
            offering: step.offering.clone(),
            needs: step.needs.iter().cloned().collect(),
        })
    }
}

#[cfg(test)]
impl Composite {
    /// What a text with `steps` and the values of `outputs` says, for tests.
    pub(crate) fn parsed(text: &str) -> Self {
        let mut sheet = Sheet::of("test".into());
        let node = super::yaml::read(text).unwrap();
        let top = sheet.members(&node, "a test", &["steps", "outputs"]);
        let composite = read(&mut sheet, &top, top.get("outputs"), None);
        assert_eq!(sheet.mistakes, []);
        composite.unwrap()
    }
}
