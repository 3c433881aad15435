//! Labels as they are sent: `key:value`, the correlation ID among them.

use domain::{
    label::{self, SentLabels},
    problem::FieldError,
};

fn wrong_label(error: impl std::fmt::Display) -> FieldError {
    FieldError { pointer: "/labels".to_owned(), detail: error.to_string() }
}

/// Texts of the form `key:value`, taken apart.
pub(super) fn split(texts: &[String], wrong: &mut Vec<FieldError>) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for text in texts {
        match label::split(text) {
            Ok((key, value)) => pairs.push((key.to_owned(), value.to_owned())),
            Err(error) => wrong.push(wrong_label(error)),
        }
    }
    pairs
}

/// Labels and correlation ID out of pairs of key and value.
pub(super) fn read(pairs: Vec<(String, String)>, wrong: &mut Vec<FieldError>) -> SentLabels {
    let mut sent = SentLabels::default();
    for (key, value) in pairs {
        if let Err(error) = sent.add(&key, &value) {
            wrong.push(wrong_label(error));
        }
    }
    sent
}
