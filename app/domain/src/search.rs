//! How requests are searched: one query object for list, count, page and export, read from an address and written back
//! into one.
//!
//! `filters[<field>][<OPERATOR>]=value` compares a field, `filters[labels][EQUALS][<key>]=value` a label and
//! `filters[parameters][EQUALS][<name>]=value` a parameter; `q` is free text, `size` and `cursor` say which page. Filters
//! are all to hold at once. Values are taken literally; no character is a wildcard or an escape. `IN` and `NOT_IN` take
//! several values with commas between; a value that holds a comma, or begins with a quotation mark, stands in quotation
//! marks, where a quotation mark is written twice (RFC 4180). A parameter's value is compared as text: a text as it is, a
//! number, `true` and `false` as JSON writes them.

mod spelling;
#[cfg(test)]
mod tests;
mod words;

pub use spelling::{decoded, encoded, ill_encoded};
pub use words::{Field, Operator};

use crate::{
    correlation::CORRELATION_LABEL,
    id::RequestId,
    label::{MAX_LABEL_KEY_LENGTH, MAX_LABEL_VALUE_LENGTH},
    state::RequestState,
    submission::Channel,
    time::Moment,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};
use uuid::Uuid;

/// The most rows of one page.
pub const LARGEST_PAGE: u32 = 1000;
/// How many rows a page has when nothing else is said.
pub const USUAL_PAGE: u32 = 50;
/// The longest value of one filter, in characters.
pub const MAX_VALUE_LENGTH: usize = 1024;
/// The longest free text, in characters.
pub const MAX_TEXT_LENGTH: usize = 256;
/// The most values of one `IN`.
pub const MAX_VALUES: usize = 100;
/// The most filters of one search.
pub const MAX_FILTERS: usize = 64;

/// The rule that a query breaks whose bytes, decoded, are no text.
pub const NOT_UTF8: &str = "is not UTF-8 once it is decoded";

/// A parameter of a search that is not understood: which one, and the rule that it broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The query parameter {parameter:?} {rule}.")]
pub struct SearchError {
    /// The parameter, as far as it is worth repeating.
    pub parameter: String,
    /// What is wrong with it.
    pub rule: String,
}

/// A place in a list: the next page begins after it. Opaque to clients, and stable while rows arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The creation time of the last row before it.
    pub at: Moment,
    /// The ID of that row.
    pub id: Uuid,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.at.millis(), self.id.simple())
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (millis, id) = text.split_once('-').ok_or(NoCursor)?;
        let millis = i64::from_str_radix(millis, 16).map_err(|_| NoCursor)?;
        Ok(Self { at: Moment::from_millis(millis), id: Uuid::try_parse(id).map_err(|_| NoCursor)? })
    }
}

/// The text is not a place in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not what an earlier page gave as next")]
pub struct NoCursor;

/// What a field is compared with; one value, or several for `IN` and `NOT_IN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// States that there are.
    States(Vec<RequestState>),
    /// Texts, or parts of one.
    Texts(Vec<String>),
    /// IDs of requests.
    Ids(Vec<RequestId>),
    /// Moments.
    Moments(Vec<Moment>),
}

/// One comparison of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter<'s> {
    /// The field.
    pub field: Field,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub values: &'s Values,
}

impl Filter<'_> {
    /// The states that this filter of the state lets through.
    #[must_use]
    pub fn states(&self) -> Vec<RequestState> {
        let through = |state: &RequestState| match self.values {
            Values::States(states) => {
                states.contains(state) != matches!(self.operator, Operator::NotEquals | Operator::NotIn)
            }
            Values::Texts(texts) => texts.iter().any(|text| match self.operator {
                Operator::Contains | Operator::StartsWith => {
                    state.words().any(|word| self.operator.holds(word, text))
                }
                // In the order of our words, by whichever word the place in it is named.
                _ => {
                    let ours = text.parse().map_or(text.as_str(), |state: RequestState| state.as_str());
                    self.operator.holds(state.as_str(), ours)
                }
            }),
            Values::Ids(_) | Values::Moments(_) => false,
        };
        RequestState::ALL.into_iter().filter(through).collect()
    }

    /// The values as an address spells them.
    #[must_use]
    pub fn spelled(&self) -> String {
        let texts: Vec<String> = match self.values {
            Values::States(states) => states.iter().map(ToString::to_string).collect(),
            Values::Texts(texts) => texts.clone(),
            Values::Ids(ids) => ids.iter().map(ToString::to_string).collect(),
            Values::Moments(moments) => moments.iter().map(ToString::to_string).collect(),
        };
        if self.operator.takes_several() { spelling::list(&texts) } else { texts.concat() }
    }
}

/// A search among requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Search {
    filters: BTreeMap<(Field, Operator), Values>,
    labels: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
    text: Option<String>,
    size: u32,
    cursor: Option<Cursor>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            filters: BTreeMap::new(),
            labels: BTreeMap::new(),
            parameters: BTreeMap::new(),
            text: None,
            size: USUAL_PAGE,
            cursor: None,
        }
    }
}

impl Search {
    /// The search that the pairs of an address spell. Every pair is understood or refused by name.
    pub fn read<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, SearchError> {
        let mut search = Self::default();
        let mut sized = false;
        for (name, value) in pairs {
            let name = name.as_ref();
            if name == "size" && std::mem::replace(&mut sized, true) {
                return Err(wrong(name, "is given more than once"));
            }
            search.add(name, value.as_ref())?;
        }
        Ok(search)
    }

    /// The same of a form, which sends fields that nobody filled in: pairs without a value are left out.
    pub fn read_filled<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, SearchError> {
        Self::read(pairs.into_iter().filter(|(_, value)| !value.as_ref().is_empty()))
    }

    /// The search that an address' query spells, encoded as there, without the question mark.
    pub fn read_query(query: &str) -> Result<Self, SearchError> {
        match ill_encoded(query) {
            Some(part) => Err(wrong(part, NOT_UTF8)),
            None => Self::read(decoded(query)),
        }
    }

    /// Adds one pair of an address; refused where it is not understood or was there before.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), SearchError> {
        match name {
            "q" => return self.add_text(value),
            "size" => {
                let size = value.parse().ok().filter(|size| (1..=LARGEST_PAGE).contains(size));
                self.size = size.ok_or_else(|| wrong(name, "is a whole number from 1 to 1000"))?;
                return Ok(());
            }
            "cursor" => {
                let cursor = value.parse().map_err(|error: NoCursor| wrong(name, &error.to_string()))?;
                return once(name, self.cursor.replace(cursor).is_none());
            }
            _ => {}
        }
        let inner = name.strip_prefix("filters[").and_then(|rest| rest.strip_suffix(']'));
        let (field, rest) = inner.and_then(|inner| inner.split_once("][")).ok_or_else(|| unknown(name))?;
        // Each value of a list has that bound for itself.
        let listed = !matches!(field, "labels" | "parameters") && rest.ends_with("IN");
        if value.chars().count() > MAX_VALUE_LENGTH && !listed {
            return Err(wrong(name, "has a value of more than 1024 characters"));
        }
        if self.filters.len() + self.labels.len() + self.parameters.len() >= MAX_FILTERS {
            return Err(wrong(name, "is one filter too many; a search has at most 64"));
        }
        match field {
            "labels" => self.add_label(name, rest, value),
            "parameters" => self.add_parameter(name, rest, value),
            _ => self.add_filter(name, field, rest, value),
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), SearchError> {
        if text.is_empty() {
            return Err(wrong("q", "is empty; leave it out to find everything"));
        }
        if text.chars().count() > MAX_TEXT_LENGTH {
            return Err(wrong("q", "has more than 256 characters"));
        }
        once("q", self.text.replace(text.to_owned()).is_none())
    }

    fn add_label(&mut self, name: &str, rest: &str, value: &str) -> Result<(), SearchError> {
        let key = equal_to(name, rest, "labels")?;
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
        let known = key == CORRELATION_LABEL
            || (1..=MAX_LABEL_KEY_LENGTH).contains(&key.len())
                && key.bytes().all(allowed)
                && !key.starts_with("system.");
        if !known {
            return Err(wrong(name, "names a label that there cannot be"));
        }
        if value.chars().count() > MAX_LABEL_VALUE_LENGTH {
            return Err(wrong(name, "has a value of more than 256 characters"));
        }
        once(name, self.labels.insert(key.to_owned(), value.to_owned()).is_none())
    }

    fn add_parameter(&mut self, name: &str, rest: &str, value: &str) -> Result<(), SearchError> {
        let parameter = equal_to(name, rest, "parameters")?;
        if parameter.is_empty() {
            return Err(wrong(name, "names no parameter"));
        }
        once(name, self.parameters.insert(parameter.to_owned(), value.to_owned()).is_none())
    }

    fn add_filter(
        &mut self,
        name: &str,
        field: &str,
        operator: &str,
        value: &str,
    ) -> Result<(), SearchError> {
        let field: Field = field.parse().map_err(|()| {
            wrong(
                name,
                &format!("names no field; there are {}, labels and parameters", words::list(&Field::ALL)),
            )
        })?;
        let operator: Operator = operator.parse().map_err(|()| {
            wrong(name, &format!("names no operator; there are {}", words::list(&Operator::ALL)))
        })?;
        let values = values(field, operator, value).map_err(|rule| wrong(name, &rule))?;
        once(name, self.filters.insert((field, operator), values).is_none())
    }

    /// Takes one parameter out; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.pairs();
        let after: Vec<_> = before.iter().filter(|(known, _)| known != name).cloned().collect();
        let found = after.len() < before.len();
        // What was read once is read again.
        if let (true, Ok(search)) = (found, Self::read(after)) {
            *self = search;
        }
        found
    }

    /// The value of one parameter as an address spells it, before encoding.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.pairs().into_iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The pairs of an address that spell this search, in one order. What is usual is left out.
    #[must_use]
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        pairs.extend(self.text.clone().map(|text| ("q".to_owned(), text)));
        pairs.extend(self.filters().map(|filter| (filter.field.compared(filter.operator), filter.spelled())));
        pairs.extend(self.labels.iter().map(|(key, value)| (label(key), value.clone())));
        pairs.extend(self.parameters.iter().map(|(name, value)| (parameter(name), value.clone())));
        if self.size != USUAL_PAGE {
            pairs.push(("size".to_owned(), self.size.to_string()));
        }
        pairs.extend(self.cursor.map(|cursor| ("cursor".to_owned(), cursor.to_string())));
        pairs
    }

    /// This search as an address' query, encoded, without the question mark; empty where everything is usual.
    #[must_use]
    pub fn query(&self) -> String {
        encoded(&self.pairs())
    }

    /// The comparisons of fields.
    pub fn filters(&self) -> impl Iterator<Item = Filter<'_>> {
        self.filters.iter().map(|((field, operator), values)| Filter {
            field: *field,
            operator: *operator,
            values,
        })
    }

    /// The labels that are to be there. The correlation ID may be among them.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// The parameters that are to be there, with their values as texts.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The free text that something of a request is to hold, in any case.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// How many rows a page has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where the page begins.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// Whether it finds everything that one may see.
    #[must_use]
    pub fn finds_all(&self) -> bool {
        self.filters.is_empty() && self.labels.is_empty() && self.parameters.is_empty() && self.text.is_none()
    }

    /// The same search with pages of another size, which is brought between 1 and 1000.
    #[must_use]
    pub fn with_size(self, size: u32) -> Self {
        Self { size: size.clamp(1, LARGEST_PAGE), ..self }
    }

    /// The same search from another place on.
    #[must_use]
    pub fn from(self, cursor: Option<Cursor>) -> Self {
        Self { cursor, ..self }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.query())
    }
}

impl TryFrom<String> for Search {
    type Error = SearchError;
    fn try_from(query: String) -> Result<Self, SearchError> {
        Self::read_query(&query)
    }
}

impl From<Search> for String {
    fn from(search: Search) -> Self {
        search.query()
    }
}

/// The parameter that asks for a label.
#[must_use]
pub fn label(key: &str) -> String {
    format!("filters[labels][EQUALS][{key}]")
}

/// The parameter that asks for a parameter of the request.
#[must_use]
pub fn parameter(name: &str) -> String {
    format!("filters[parameters][EQUALS][{name}]")
}

/// A JSON value as searches compare it; nothing for what is compared with nothing: `null`, lists and objects.
#[must_use]
pub fn comparable(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => {
            String::from_utf8(crate::json::canonical(value)).ok()
        }
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}

/// A parameter's value as searches compare it: a list is found by each of its values, all else by itself.
#[must_use]
pub fn comparables(value: &serde_json::Value) -> BTreeSet<String> {
    let values = match value {
        serde_json::Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    values.iter().filter_map(comparable).collect()
}

/// The key after the one operator that labels and parameters know.
fn equal_to<'n>(name: &str, rest: &'n str, field: &str) -> Result<&'n str, SearchError> {
    rest.strip_prefix("EQUALS][").ok_or_else(|| {
        wrong(name, &format!("is not how {field} are asked for; write filters[{field}][EQUALS][name]=value"))
    })
}

fn values(field: Field, operator: Operator, value: &str) -> Result<Values, String> {
    let several = operator.takes_several();
    let whole = matches!(operator, Operator::Equals | Operator::NotEquals | Operator::In | Operator::NotIn);
    let mut texts = if several { spelling::listed(value)? } else { vec![value.to_owned()] };
    if matches!(field, Field::State | Field::ParentId) && !whole {
        // Before the bounds are looked at: some are longer so.
        texts = texts.iter().map(|text| text.to_lowercase()).collect();
    }
    if texts.len() > MAX_VALUES {
        return Err("has more than 100 values".to_owned());
    }
    if texts.iter().any(String::is_empty) {
        return Err("has an empty value; leave it out to find everything".to_owned());
    }
    if texts.iter().any(|text| text.chars().count() > MAX_VALUE_LENGTH) {
        return Err("has a value of more than 1024 characters".to_owned());
    }
    if field.is_time() {
        return texts
            .iter()
            .map(|text| moment(operator, text.trim()))
            .collect::<Result<_, _>>()
            .map(Values::Moments);
    }
    match field {
        Field::State if whole => {
            let states: Result<Vec<RequestState>, _> = texts.iter().map(|text| text.trim().parse()).collect();
            let rule =
                || format!("names a state that there is not; there are {}", words::list(&RequestState::ALL));
            states.map(Values::States).map_err(|_| rule())
        }
        Field::ParentId if whole => {
            let ids: Result<Vec<RequestId>, _> =
                texts.iter().map(|text| text.trim().to_ascii_lowercase().parse()).collect();
            ids.map(Values::Ids).map_err(|_| "is not the ID of a request".to_owned())
        }
        Field::Channel if whole => {
            let words: Result<Vec<Channel>, _> =
                texts.iter().map(|text| text.trim().to_ascii_lowercase().parse()).collect();
            let words = words.map_err(|error| format!("names a channel that there is not ({error})"))?;
            Ok(Values::Texts(words.iter().map(|word| word.as_str().to_owned()).collect()))
        }
        _ => Ok(Values::Texts(texts)),
    }
}

fn moment(operator: Operator, text: &str) -> Result<Moment, String> {
    match operator {
        Operator::Contains | Operator::StartsWith => {
            return Err("is not how times are compared; use GREATER_THAN_OR_EQUAL_TO and LESS_THAN".to_owned());
        }
        // Rows are kept to the millisecond: what is not before a finer time is not before the next millisecond.
        Operator::GreaterThanOrEqualTo | Operator::LessThan => Moment::read_up(text),
        _ => text.parse(),
    }
    .map_err(|_| {
        "is not a time as RFC 3339 writes it, 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00 (+ is %2B in an address)"
            .to_owned()
    })
}

fn once(name: &str, first: bool) -> Result<(), SearchError> {
    if first { Ok(()) } else { Err(wrong(name, "is given more than once")) }
}

fn unknown(name: &str) -> SearchError {
    wrong(name, "is not known here; /openapi.json lists what is")
}

fn wrong(name: &str, rule: &str) -> SearchError {
    SearchError { parameter: name.chars().take(80).collect(), rule: rule.to_owned() }
}
