//! A program's log: standard error, line by line, bounded, with secrets masked.

use crate::hidden::texts;
use domain::view::Object;
use std::collections::BTreeSet;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::mpsc,
};

/// The longest line that is kept, in bytes; the rest of it is dropped.
pub(super) const MAX_LINE: usize = 4096;

/// How many lines of one run are kept; the rest are read and dropped.
pub(super) const MAX_LINES: usize = 2000;

/// What stands in a secret's place.
const MASK: &str = "***";

/// The texts that no log line may show.
#[derive(Debug, Default)]
pub(super) struct Masks {
    secrets: Vec<String>,
}

impl Masks {
    /// Masks the values of these outputs, and of a value with several lines each line.
    pub(super) fn of(outputs: &Object, secret: &BTreeSet<String>) -> Self {
        Self { secrets: texts(secret.iter().filter_map(|name| outputs.get(name))) }
    }

    fn longest(&self) -> usize {
        self.secrets.iter().map(String::len).max().unwrap_or(0)
    }

    /// The text up to `limit` bytes, with every secret that begins there masked as a whole.
    pub(super) fn masked(&self, text: &str, limit: usize) -> String {
        let mut places: Vec<(usize, usize)> = self
            .secrets
            .iter()
            .flat_map(|secret| text.match_indices(secret.as_str()).map(|(at, found)| (at, at + found.len())))
            .filter(|(start, _)| *start < limit)
            .collect();
        places.sort_unstable();
        let mut shown = String::new();
        let mut at = 0;
        for (start, end) in places {
            if start >= at {
                shown.push_str(text.get(at..start).unwrap_or_default());
                shown.push_str(MASK);
            }
            at = at.max(end);
        }
        let end = text.floor_char_boundary(limit);
        shown.push_str(text.get(at..end).unwrap_or_default());
        if end < text.len() && at < text.len() {
            shown.push('…');
        }
        shown
    }
}

/// Sends the lines of a program's standard error as they come, until it closes; answers with the last of them.
///
/// When nobody takes the lines any more they are still read, so that the program never waits for that.
pub(super) async fn stream(
    input: impl AsyncRead + Unpin,
    log: &mpsc::Sender<String>,
    masks: &Masks,
) -> Option<String> {
    let mut input = BufReader::new(input);
    let (room, mut line, mut sent, mut last, mut in_key) =
        (MAX_LINE + masks.longest(), Vec::new(), 0, None, false);
    loop {
        // A read error ends the log, not the run.
        let chunk = input.fill_buf().await.unwrap_or_default();
        if chunk.is_empty() && line.is_empty() {
            return last;
        }
        let (taken, whole) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (chunk.len(), chunk.is_empty()),
        };
        let free = room.saturating_sub(line.len());
        // One byte more than fits, so that a cut line is known as one.
        line.extend_from_slice(chunk.get(..taken.min(free + 1)).unwrap_or_default());
        input.consume(taken);
        if !whole {
            continue;
        }
        let text = readable(&line);
        line.clear();
        let hidden = in_key || (text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----"));
        in_key = hidden && !text.contains("-----END ");
        if text.is_empty() {
            continue;
        }
        let text = if hidden { MASK.to_owned() } else { masks.masked(&text, MAX_LINE) };
        sent += 1;
        if sent <= MAX_LINES {
            let _ = log.send(text.clone()).await;
        } else if sent == MAX_LINES + 1 {
            let _ = log.send(format!("only the first {MAX_LINES} lines of a run are kept")).await;
        }
        last = Some(text);
    }
}

/// The bytes as text without a line's end and control characters, which would act on a terminal.
fn readable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn masks(value: &Value) -> Masks {
        let outputs = Object::from_iter([("secret".to_owned(), value.clone())]);
        Masks::of(&outputs, &BTreeSet::from(["secret".to_owned()]))
    }

    async fn lines(bytes: &[u8], masks: &Masks) -> (Vec<String>, Option<String>) {
        let (log, mut taken) = mpsc::channel(10_000);
        let last = stream(bytes, &log, masks).await;
        drop(log);
        let mut lines = Vec::new();
        while let Some(line) = taken.recv().await {
            lines.push(line);
        }
        (lines, last)
    }

    #[tokio::test]
    async fn lines_come_one_by_one_without_what_acts_on_a_terminal() {
        let (lines, last) = lines(b"one\r\n\n\x1b[31mtwo\xff\nlast", &Masks::default()).await;
        assert_eq!(lines, ["one", "\u{fffd}[31mtwo\u{fffd}", "last"]);
        assert_eq!(last.as_deref(), Some("last"));
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_too_many_are_dropped() {
        let (long, _) = lines(&[b'x'; 3 * MAX_LINE], &Masks::default()).await;
        assert_eq!(long, [format!("{}…", "x".repeat(MAX_LINE))]);
        let (exact, _) = lines(&[b'x'; MAX_LINE], &Masks::default()).await;
        assert_eq!(exact, ["x".repeat(MAX_LINE)]);
        let (many, last) = lines("line\n".repeat(MAX_LINES + 50).as_bytes(), &Masks::default()).await;
        assert_eq!(many.len(), MAX_LINES + 1);
        assert_eq!(last.as_deref(), Some("line"));
    }

    #[tokio::test]
    async fn a_secret_is_masked_wherever_it_stands() {
        let masks = masks(&json!({"deep": ["s3cr3t", "line-one\nline-two"], "pin": 123_456}));
        let (lines, last) = lines(b"the s3cr3t and s3cr3ts3cr3t\nline-two 123456\n", &masks).await;
        assert_eq!(lines, ["the *** and ******", "*** ***"]);
        assert_eq!(last.as_deref(), Some("*** ***"));
        // Across the place where a long line is cut.
        for before in [MAX_LINE - 3, MAX_LINE - 1, MAX_LINE, MAX_LINE + 1] {
            let text = format!("{}s3cr3t{}", "x".repeat(before), "y".repeat(2 * MAX_LINE));
            let (cut, _) = self::lines(text.as_bytes(), &masks).await;
            assert!(!cut[0].contains('s'), "{before}");
        }
    }

    #[tokio::test]
    async fn a_private_key_is_never_shown_even_when_it_is_new() {
        let text = b"a\n-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\nb\n";
        assert_eq!(lines(text, &Masks::default()).await.0, ["a", "***", "***", "***", "b"]);
    }
}
