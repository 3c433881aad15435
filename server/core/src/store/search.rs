//! Searching among requests: what a store finds, and the words by which it finds a request.

use super::StoreResult;
use async_trait::async_trait;
use domain::{
    correlation::CORRELATION_LABEL,
    id::PrincipalId,
    name::Name,
    search::{Cursor, Search, comparable},
    view::{Page, RequestView},
};
use serde_json::Value;
use std::collections::BTreeMap;

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

/// Words, each on a line.
struct Words(String);

impl Words {
    fn new() -> Self {
        Self("\n".into())
    }

    fn add(&mut self, word: &str) {
        self.0.extend(folded(word).chars().take(KEPT));
        self.0.push('\n');
    }

    fn add_label(&mut self, key: &str, value: &str) {
        self.0.push_str(&folded(&label_word(key, value)));
        self.0.push('\n');
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
}

fn label_word(key: &str, value: &str) -> String {
    format!("{key}:{value}")
}

/// The words by which a request is found, with its first key where that is not written down by itself.
pub(super) fn words_of(request: &RequestView, key: Option<&str>) -> String {
    let mut words = Words::new();
    words.add(request.name.as_str());
    let id = request.id.to_string();
    words.add(&id);
    words.add(&request.requested_by);
    if let Some(key) = key {
        words.add(key);
    }
    if request.correlation_id != id {
        words.add(&request.correlation_id);
    }
    for (key, value) in request.labels.iter().filter(|(key, _)| *key != CORRELATION_LABEL) {
        words.add_label(key, value);
    }
    request.parameters.values().for_each(|value| words.add_values(value));
    words.0
}

/// The words of a further key that is bound to a request.
pub(super) fn words_of_key(
    key: &str,
    correlation_id: Option<&str>,
    labels: &BTreeMap<String, String>,
) -> String {
    let mut words = Words::new();
    words.add(key);
    if let Some(correlation_id) = correlation_id {
        words.add(correlation_id);
    }
    for (key, value) in labels {
        words.add_label(key, value);
    }
    words.0
}

/// What stands among the words of every request that has this label.
pub(super) fn line_of_label(key: &str, value: &str) -> String {
    format!("\n{}\n", folded(&label_word(key, value)))
}

/// What stands among the words of every request that has this value.
pub(super) fn line_of_value(value: &str) -> String {
    let folded = folded(value);
    let kept: String = folded.chars().take(KEPT).collect();
    if kept.len() == folded.len() { format!("\n{kept}\n") } else { format!("\n{kept}") }
}
