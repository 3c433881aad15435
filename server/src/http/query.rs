//! Query parameters. Each one is understood or refused by name; none is silently dropped.

use super::problem::{Refusal, Result};
use axum::{extract::Query, http::Uri};
use domain::{
    problem::ProblemKind,
    search::{NOT_UTF8, ill_encoded},
};

/// The pairs of an address' query, decoded, in order.
pub(crate) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

/// The same, unless one of them is no text.
pub(crate) fn texts(uri: &Uri) -> Result<Vec<(String, String)>> {
    match uri.query().and_then(ill_encoded) {
        Some(part) => Err(wrong(part, NOT_UTF8)),
        None => Ok(pairs(uri)),
    }
}

/// The query parameters of a call that are not yet understood.
#[derive(Debug)]
pub(crate) struct Parameters {
    pairs: Vec<(String, String)>,
    /// One that is no text, as it was sent.
    ill: Option<String>,
}

impl Parameters {
    /// Those of this address.
    pub(crate) fn of(uri: &Uri) -> Self {
        Self { pairs: pairs(uri), ill: uri.query().and_then(ill_encoded).map(str::to_owned) }
    }

    /// All values of a parameter that may be repeated.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        self.pairs.extract_if(.., |(known, _)| known == name).map(|(_, value)| value).collect()
    }

    /// The value of a parameter that may be given once.
    pub(crate) fn one(&mut self, name: &str) -> Result<Option<String>> {
        let mut values = self.all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(wrong(name, "is given more than once")),
        }
    }

    /// The value of a parameter, read by its own rule.
    pub(crate) fn read<T: std::str::FromStr>(&mut self, name: &str, rule: &str) -> Result<Option<T>> {
        match self.one(name)? {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| wrong(name, rule)),
        }
    }

    /// Whether it is only asked what would come of the call.
    pub(crate) fn dry_run(&mut self) -> Result<bool> {
        Ok(self.read("dry_run", "is true or false")?.unwrap_or(false))
    }

    /// Refuses what is left over.
    pub(crate) fn done(self) -> Result<()> {
        if let Some(part) = self.ill {
            return Err(wrong(&part, NOT_UTF8));
        }
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(wrong(name, "is not known here; /openapi.json lists what is")),
        }
    }

    /// Refuses any parameter at all.
    pub(crate) fn none(uri: &Uri) -> Result<()> {
        Self::of(uri).done()
    }
}

/// A parameter that does not fit.
pub(crate) fn wrong(name: &str, rule: &str) -> Refusal {
    let shown: String = name.chars().take(80).collect();
    Refusal::new(ProblemKind::InvalidQuery, format!("The query parameter {shown:?} {rule}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters {
        Parameters::of(&format!("/x?{query}").parse().unwrap())
    }

    #[test]
    fn each_parameter_is_understood_or_refused_by_name() {
        let mut sent = parameters("size=5&labels=a:1&labels=b%3A2&odd=1");
        assert_eq!(sent.read::<u32>("size", "is a number").unwrap(), Some(5));
        assert_eq!(sent.all("labels"), ["a:1", "b:2"]);
        assert!(sent.done().unwrap_err().0.detail.contains("\"odd\""));
        assert!(parameters("size=5&size=5").one("size").is_err());
        assert!(parameters("size=x").read::<u32>("size", "is a number").is_err());
        assert!(parameters("").done().is_ok());
        let mut ill = parameters("labels=a:%ff");
        ill.all("labels");
        assert!(ill.done().unwrap_err().0.detail.contains("UTF-8"));
        assert!(parameters("%00%ff=%").done().is_err());
    }
}
