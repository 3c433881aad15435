//! Searching among requests: what a store finds, and the words by which it finds a request.

use super::StoreResult;
use async_trait::async_trait;
use domain::{
    correlation::CORRELATION_LABEL,
    hidden,
    id::PrincipalId,
    name::Name,
    search::{Cursor, Field, Search, comparable, comparables},
    view::{Page, RequestView},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How much of one value is kept among the words of a request, in characters.
const KEPT: usize = 256;

/// Which requests a list is about.
#[derive(Debug, Clone)]
pub enum ListScope {
    /// All there are.
    All,
    /// One team's.
    Team(Name),
    /// Those of any of these teams.
    Teams(Vec<Name>),
    /// Those one principal asked for.
    RequestedBy(PrincipalId),
}

/// What a list of requests is to hold: the one object for list, count, page and export.
#[derive(Debug, Clone)]
pub struct RequestList {
    /// Which requests it is about.
    pub scope: ListScope,
    /// Which of those, and which page of them.
    pub search: Search,
}

/// Searching among requests.
#[async_trait]
pub trait Searching {
    /// A page of requests, newest first, and how many there are in all: exactly up to 10,000.
    async fn requests(&self, list: RequestList) -> StoreResult<Page<RequestView>>;
    /// The same page without the count, and where the next one begins.
    async fn request_rows(&self, list: RequestList) -> StoreResult<(Vec<RequestView>, Option<Cursor>)>;
    /// Brings the words of up to `limit` requests into their index, where the database does not do that by itself; how
    /// many. Until then they are found all the same, by looking through them.
    async fn index_words(&self, limit: u32) -> StoreResult<u64>;
}

/// A text as it is kept among words and looked for there.
#[must_use]
pub(super) fn folded(text: &str) -> String {
    text.replace('\0', "\u{fffd}").to_lowercase()
}

/// How much of a term is kept, in characters.
const TERM: usize = 96;

/// By what a request is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    /// Words, each on a line, as far as they are kept.
    pub(super) text: String,
    /// What searches compare whole and what never changes (labels, parameters, the team, who asked for what and by which
    /// door), each as one term, with a blank before and after.
    pub(super) terms: String,
}

impl Sought {
    fn new() -> Self {
        Self { text: "\n".into(), terms: " ".into() }
    }

    fn add(&mut self, word: &str) {
        self.text.extend(folded(word).chars().take(KEPT));
        self.text.push('\n');
    }

    fn add_label(&mut self, key: &str, value: &str) {
        self.text.push_str(&folded(&format!("{key}:{value}")));
        self.text.push('\n');
        self.add_term(&label_term(key, value));
    }

    fn add_term(&mut self, term: &str) {
        self.terms.push_str(term);
        self.terms.push(' ');
    }

    fn add_values(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.add_values(value)),
            Value::Object(members) => members.values().for_each(|value| self.add_values(value)),
            one => {
                if let Some(word) = comparable(one) {
                    self.add(&word);
                }
            }
        }
    }

    /// Of a request, with its first key where that is not written down by itself.
    pub(super) fn of(request: &RequestView, key: Option<&str>) -> Self {
        let mut sought = Self::new();
        sought.add_term(&team_term(request.team.as_str()));
        for (field, value) in [
            (Field::Offering, request.offering.as_str()),
            (Field::RequestedBy, &request.requested_by),
            (Field::Channel, request.channel.as_str()),
        ] {
            if let Some(term) = field_term(field, value) {
                sought.add_term(&term);
            }
        }
        sought.add(request.name.as_str());
        let id = request.id.to_string();
        sought.add(&id);
        sought.add(&request.requested_by);
        if let Some(key) = key {
            sought.add(key);
        }
        if request.correlation_id != id {
            sought.add(&request.correlation_id);
        }
        for (key, value) in request.labels.iter().filter(|(key, _)| *key != CORRELATION_LABEL) {
            sought.add_label(key, value);
        }
        // What stands for a secret tells nothing, so nobody looks for it.
        for (name, value) in request.parameters.iter().filter(|(_, value)| !hidden::is_mark(value)) {
            sought.add_values(value);
            for value in comparables(value) {
                sought.add_term(&parameter_term(name, &value));
            }
        }
        sought.closed()
    }

    /// Of a further key that is bound to a request. It has the request's own terms too, so that one that has all that is
    /// asked for is found by one look.
    pub(super) fn of_key(
        request: Option<&RequestView>,
        key: &str,
        correlation_id: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Self {
        let mut sought = Self::new();
        if let Some(request) = request {
            sought.terms = Self::of(request, None).terms;
        }
        sought.add_term(&further_term());
        sought.add(key);
        if let Some(correlation_id) = correlation_id {
            sought.add(correlation_id);
        }
        for (key, value) in labels {
            sought.add_label(key, value);
        }
        sought.closed()
    }

    /// Adds what is known once all words are there: two letters with something else than ASCII after them.
    fn closed(mut self) -> Self {
        if self.text.is_ascii() {
            return self;
        }
        let letters: Vec<char> = self.text.chars().collect();
        let wide = letters.windows(3).filter(|three| !three[2].is_ascii());
        let pairs: BTreeSet<String> = wide.map(|three| three[..2].iter().collect()).collect();
        for pair in pairs {
            self.add_term(&pair_term(&pair));
        }
        self
    }
}

/// Terms that a row of words is looked for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// It has all of these.
    pub(super) all: Vec<String>,
    /// And any of these, where there are any.
    pub(super) any: Vec<String>,
    /// And is one of these.
    pub(super) of: Of,
    /// Whether so many rows have them that they are found sooner by looking through all than by an index.
    pub(super) frequent: bool,
}

/// Whose words a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A request's or a further key's.
    Either,
    /// A request's own, of which each has one. They lack the term of further keys.
    Requests,
    /// Those of a further key that is bound to a request. That is among the terms.
    FurtherKeys,
}

impl Terms {
    /// The same in a request's own words.
    pub(super) fn of_requests(&self) -> Self {
        Self { of: Of::Requests, ..self.clone() }
    }

    /// The same in those of further keys.
    pub(super) fn of_further_keys(&self) -> Self {
        let all = self.all.iter().cloned().chain([further_term()]).collect();
        Self { all, any: self.any.clone(), of: Of::FurtherKeys, frequent: false }
    }
}

/// What is known of a text that is looked for among words.
#[derive(Debug, Clone, Default)]
pub(super) struct Sampled {
    /// Whether so many rows have it that they are found sooner by looking through all than by an index.
    pub(super) frequent: bool,
    /// A part of it that few rows have: letters and digits only.
    pub(super) rare: Option<String>,
}

/// The term of every request that has this label.
pub(super) fn label_term(key: &str, value: &str) -> String {
    term('l', key, value)
}

/// The term of every request that has a parameter of this name and value, or a list with this value.
pub(super) fn parameter_term(name: &str, value: &str) -> String {
    term('p', name, value)
}

/// The term of every request of this team.
pub(super) fn team_term(team: &str) -> String {
    term('t', "", team)
}

/// The term of every request of which this field is this; of the fields that have terms.
pub(super) fn field_term(field: Field, value: &str) -> Option<String> {
    let kind = match field {
        Field::Offering => 'o',
        Field::RequestedBy => 'b',
        Field::Channel => 'c',
        _ => return None,
    };
    Some(term(kind, "", value))
}

/// The term of the words of every further key that is bound to a request, which are not the request's own.
pub(super) fn further_term() -> String {
    term('k', "", "")
}

/// The term of every row of words in which something else than ASCII follows these two letters.
pub(super) fn pair_term(pair: &str) -> String {
    term('2', "", pair)
}

/// Whether a term is all of what it stands for, and nothing was cut off.
pub(super) fn is_whole(term: &str) -> bool {
    // Two digits a byte, and no more characters than bytes.
    term.len() / 2 < TERM
}

fn term(kind: char, key: &str, value: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let kept: String = format!("{kind}{key}={value}").replace('\0', "\u{fffd}").chars().take(TERM).collect();
    kept.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}
