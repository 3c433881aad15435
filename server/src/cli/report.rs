//! How a command reports: its answer on standard output, its failure on standard error, both for people or as JSON.

use crate::{config::ConfigError, http::problem::Refusal, open::OpenFailure};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// What a command answers.
#[derive(Debug)]
pub(super) struct Said {
    text: String,
    json: Value,
    good: bool,
}

impl Said {
    /// An answer for people and for programs.
    pub(super) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, good: true }
    }

    /// An answer that is bad news.
    pub(super) fn bad(text: impl Into<String>, json: Value) -> Self {
        Self { good: false, ..Self::new(text, json) }
    }

    /// No answer.
    pub(super) fn nothing() -> Self {
        Self::new("", Value::Null)
    }

    pub(super) fn print(&self, as_json: bool) -> ExitCode {
        let text = if as_json && !self.json.is_null() { self.json.to_string() } else { self.text.clone() };
        if !text.is_empty() {
            line(&text);
        }
        if self.good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Writes a line to standard output; a reader that went away is no failure.
pub(super) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(super) struct Failure {
    text: String,
    json: Value,
}

impl Failure {
    /// A failure that one sentence explains.
    pub(super) fn plain(detail: impl Into<String>) -> Self {
        Self::titled("The command failed", detail.into(), None)
    }

    /// A command line that is not understood.
    pub(super) fn usage(detail: impl Into<String>) -> Self {
        Self::titled("The command line is not understood", detail.into(), None)
    }

    fn titled(title: &str, detail: String, setting: Option<&str>) -> Self {
        let mut json = json!({ "type": "about:blank", "title": title, "detail": detail });
        if let Some(setting) = setting {
            json["setting"] = setting.into();
        }
        Self { text: detail, json }
    }

    pub(super) fn print(&self, as_json: bool) -> ExitCode {
        let text = if as_json { self.json.to_string() } else { format!("keyturn: {}", self.text) };
        let _ = writeln!(io::stderr().lock(), "{text}");
        ExitCode::FAILURE
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::titled("A setting cannot be used", error.to_string(), Some(&error.setting))
    }
}

impl From<OpenFailure> for Failure {
    fn from(failure: OpenFailure) -> Self {
        Self::titled("The portal did not open", failure.to_string(), Some(failure.setting))
    }
}

impl From<portal::Error> for Failure {
    fn from(error: portal::Error) -> Self {
        let text = match &error.context {
            Some(context) => format!("{} ({context})", error.detail),
            None => error.detail.clone(),
        };
        let json = serde_json::to_value(Refusal(error).problem()).unwrap_or_default();
        Self { text, json }
    }
}
