//! Counters in Prometheus' text format. They tell how much came and what became of it, never of whom.

use super::problem::Refused;
use axum::response::Response;
use portal::Answered;
use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts since the start of this server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    exchanges: [AtomicU64; 5],
    submissions: [AtomicU64; 3],
    refused: AtomicU64,
    in_progress: Arc<AtomicU64>,
}

/// An exchange that has begun; it is over when this goes, also where its caller hung up.
#[derive(Debug)]
pub(crate) struct InProgress(Arc<AtomicU64>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const OUTCOMES: [&str; 3] = ["first", "replayed", "existing"];

impl Counters {
    /// A guarded call got this answer.
    pub(crate) fn answered(&self, answered: &Answered) {
        let outcome = if answered.replayed { 1 } else { usize::from(answered.existing) * 2 };
        self.submissions[outcome].fetch_add(1, Ordering::Relaxed);
    }

    /// An exchange begins.
    pub(crate) fn began(&self) -> InProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(Arc::clone(&self.in_progress))
    }

    /// An exchange ended with this response.
    pub(crate) fn responded(&self, response: &Response) {
        let class = usize::from(response.status().as_u16() / 100).clamp(1, 5) - 1;
        self.exchanges[class].fetch_add(1, Ordering::Relaxed);
        if response.extensions().get::<Refused>().is_some() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of them as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, &AtomicU64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, count) in rows {
                let _ = writeln!(text, "{name}{labels} {}", count.load(Ordering::Relaxed));
            }
        };
        let exchanges: Vec<_> = (1..=5)
            .zip(&self.exchanges)
            .map(|(class, count)| (format!("{{class=\"{class}xx\"}}"), count))
            .collect();
        family("keyturn_http_responses_total", "counter", "Responses by class of status.", &exchanges);
        let submissions: Vec<_> = OUTCOMES
            .iter()
            .zip(&self.submissions)
            .map(|(outcome, count)| (format!("{{outcome=\"{outcome}\"}}"), count))
            .collect();
        family(
            "keyturn_submissions_total",
            "counter",
            "Guarded submissions that were answered, by outcome.",
            &submissions,
        );
        family(
            "keyturn_refusals_total",
            "counter",
            "Calls that were answered with a problem.",
            &[(String::new(), &self.refused)],
        );
        family(
            "keyturn_http_requests_in_progress",
            "gauge",
            "Calls that have begun and are not answered yet, this one among them.",
            &[(String::new(), &self.in_progress)],
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{http::StatusCode, response::IntoResponse};

    #[test]
    fn counters_are_prometheus_text() {
        let counters = Counters::default();
        counters.responded(&StatusCode::NOT_FOUND.into_response());
        let text = counters.text();
        assert!(text.contains("keyturn_http_responses_total{class=\"4xx\"} 1\n"), "{text}");
        assert!(text.contains("# TYPE keyturn_submissions_total counter\n"), "{text}");
    }
}
