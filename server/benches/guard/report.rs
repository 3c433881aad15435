//! What was measured, as a table for the terminal and as a chart for a browser.

use crate::load::Seen;
use std::{fmt::Write, path::Path, time::Duration};

/// One line: what was done, how fast, and what it cost.
#[derive(Debug)]
pub(crate) struct Line {
    /// What was measured.
    pub(crate) what: String,
    /// Submissions a second.
    pub(crate) per_second: f64,
    p50: Duration,
    p99: Duration,
    /// Of the portal only: answers of 5xx, refusals for now, requests made per key, peak memory in MB, and processor
    /// time of the server per submission.
    served: Option<Served>,
}

/// What only a server can tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    /// Answers of 5xx.
    pub(crate) failed: u64,
    /// Refusals for now.
    pub(crate) refused: u64,
    /// Requests made per key sent, where that was counted.
    pub(crate) per_key: Option<f64>,
    /// The most memory that the server held so far, in MB.
    pub(crate) memory: u64,
    /// The server's processor time per call.
    pub(crate) processor: Duration,
}

impl Line {
    /// From what was seen within `measured`, `each` submissions a span.
    pub(crate) fn of(
        what: &str,
        mut seen: Seen,
        each: u32,
        measured: Duration,
        served: Option<Served>,
    ) -> Self {
        seen.spans.sort_unstable();
        let spans = &seen.spans;
        let at = |hundredths: usize| {
            spans
                .get((spans.len() * hundredths / 100).min(spans.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        let done = f64::from(u32::try_from(spans.len()).unwrap()) * f64::from(each);
        Self {
            what: what.to_owned(),
            per_second: done / measured.as_secs_f64(),
            p50: at(50),
            p99: at(99),
            served,
        }
    }

    /// From a program that measured by itself.
    pub(crate) fn told(what: &str, per_second: f64, p50: Duration, p99: Duration) -> Self {
        Self { what: what.to_owned(), per_second, p50, p99, served: None }
    }

    /// Notes how many requests were made of how many keys.
    #[expect(clippy::cast_precision_loss, reason = "counts of one run")]
    pub(crate) fn executed(&mut self, requests: i64, keys: u64) {
        if let Some(served) = &mut self.served {
            served.per_key = Some(requests as f64 / keys.max(1) as f64);
        }
    }

    /// How the rates and the waits compare with another line's.
    pub(crate) fn beside(&self, other: &Self) -> String {
        let waits = millis(self.p99) / millis(other.p99).max(0.001);
        let rate = self.per_second / other.per_second.max(0.001);
        format!("{:<34} {rate:>7.2} x the rate, {waits:>6.2} x the p99 of {}", self.what, other.what)
    }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

/// The table.
pub(crate) fn table(lines: &[Line]) -> String {
    let mut table = format!(
        "{:<50}{:>10}{:>10}{:>10}{:>6}{:>9}{:>9}{:>8}{:>9}\n",
        "", "per s", "p50 ms", "p99 ms", "5xx", "refused", "per key", "MB", "CPU µs"
    );
    for line in lines {
        let _ = write!(
            table,
            "{:<50}{:>10.0}{:>10.2}{:>10.2}",
            line.what,
            line.per_second,
            millis(line.p50),
            millis(line.p99)
        );
        if let Some(served) = line.served {
            let per_key = served.per_key.map_or_else(|| "-".to_owned(), |n| format!("{n:.4}"));
            let _ = write!(
                table,
                "{:>6}{:>9}{per_key:>9}{:>8}{:>9.0}",
                served.failed,
                served.refused,
                served.memory,
                served.processor.as_secs_f64() * 1e6
            );
        }
        table.push('\n');
    }
    table
}

/// Writes the rates as bars into an SVG file.
pub(crate) fn chart(file: &Path, title: &str, lines: &[Line]) {
    const ROW: usize = 30;
    const LEFT: f64 = 380.0;
    const WIDEST: f64 = 460.0;
    let most = lines.iter().map(|line| line.per_second).fold(1.0, f64::max);
    let height = 70 + ROW * lines.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"940\" height=\"{height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"16\" y=\"30\" font-size=\"16\" \
         font-weight=\"600\">{title}</text>\n<text x=\"16\" y=\"50\" fill=\"#555\">submissions a second, on a logarithmic \
         scale; the number is the rate, then the 99th percentile of the waits</text>\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let y = 64 + row * ROW;
        let width = (WIDEST * (line.per_second.max(1.0).ln() / most.ln())).max(1.0);
        let colour = if line.served.is_some() { "#2f6f4f" } else { "#9aa5b1" };
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LEFT:.0}\" y=\"{y}\" width=\"{width:.0}\" \
             height=\"20\" rx=\"3\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{}\">{:.0} · {:.1} ms</text>",
            LEFT - 10.0,
            y + 15,
            line.what,
            LEFT + width + 6.0,
            y + 15,
            line.per_second,
            millis(line.p99)
        );
    }
    svg.push_str("</svg>\n");
    std::fs::write(file, svg).unwrap();
}
