//! Labels as they are sent: `key:value`, the correlation ID among them.

use domain::{
    correlation::{CORRELATION_LABEL, CorrelationId},
    label::{self, LabelError, Labels},
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
pub(super) fn read(
    pairs: Vec<(String, String)>,
    wrong: &mut Vec<FieldError>,
) -> (Labels, Option<CorrelationId>) {
    let (mut labels, mut correlation) = (Labels::default(), None::<CorrelationId>);
    for (key, value) in pairs {
        let added = if key == CORRELATION_LABEL {
            match CorrelationId::parse(&value) {
                Ok(id) if correlation.as_ref().is_some_and(|known| *known != id) => {
                    Err(LabelError::Contradiction)
                }
                Ok(id) => {
                    correlation = Some(id);
                    Ok(())
                }
                Err(error) => Err(error),
            }
        } else {
            labels.add(&key, &value)
        };
        if let Err(error) = added {
            wrong.push(wrong_label(error));
        }
    }
    (labels, correlation)
}
