//! What the library would only find while it works something out, found when a mapping is saved.

use super::{FILTERS, TESTS};

/// The expressions of a template; or why it may not be one.
pub(super) fn template(text: &str) -> Result<Vec<&str>, String> {
    if text.contains("{%") {
        return Err("only {{ expressions }} are known here, no {% statements %}".into());
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find("{{") {
        let inner = &rest[begin + 2..];
        let Some(end) = end_of(inner) else {
            return Err("{{ has no }} after it".into());
        };
        let expression = &inner[..end];
        let expression = expression.strip_prefix(['-', '+']).unwrap_or(expression);
        found.push(expression.strip_suffix(['-', '+']).unwrap_or(expression));
        rest = &inner[end + 2..];
    }
    Ok(found)
}

/// Where an expression ends that `}}` closes, outside of its quoted texts and brackets.
fn end_of(inner: &str) -> Option<usize> {
    let bytes = inner.as_bytes();
    let mut quoted = Quotes::default();
    let mut open = 0_usize;
    for (place, byte) in bytes.iter().enumerate() {
        if quoted.holds(*byte) {
            continue;
        }
        match byte {
            b'{' => open += 1,
            b'}' if open > 0 => open -= 1,
            b'}' if bytes.get(place + 1) == Some(&b'}') => return Some(place),
            _ => {}
        }
    }
    None
}

/// Refuses filters, tests and operators that there are not.
pub(super) fn expression(text: &str) -> Result<(), String> {
    let mut quoted = Quotes::default();
    let mut bare = String::with_capacity(text.len());
    for byte in text.bytes() {
        // What is quoted is of no interest here, nor is what is not ASCII.
        bare.push(if quoted.holds(byte) { '"' } else { char::from(byte) });
    }
    if bare.contains('*') {
        return Err("multiply with the filter times, as in {{ payload.gib | times(1024) }}".into());
    }
    let words: Vec<&str> = words(&bare);
    for pair in words.windows(2) {
        if pair[0] == "|" && !FILTERS.contains(&pair[1]) {
            return Err(format!("there is no filter {:?}; known filters: {}", pair[1], FILTERS.join(", ")));
        }
    }
    for (place, word) in words.iter().enumerate().filter(|(_, word)| **word == "is") {
        // A member may be called so too.
        let is_member = place > 0 && words[place - 1] == ".";
        let after = words.get(place + 1).filter(|next| **next != "not").or_else(|| words.get(place + 2));
        if let Some(test) = after.filter(|test| !is_member && !TESTS.contains(*test)) {
            return Err(format!(
                "there is no test {test:?} after {word:?}; known tests: {}",
                TESTS.join(", ")
            ));
        }
    }
    Ok(())
}

/// Names, and every other character by itself.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length =
            if is_name(first) { rest.find(|c| !is_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

/// Whether one stands in a quoted text.
#[derive(Default)]
struct Quotes {
    by: Option<u8>,
    escaped: bool,
}

impl Quotes {
    /// Whether this byte, the next one, is quoted or a quote.
    fn holds(&mut self, byte: u8) -> bool {
        match self.by {
            None if byte == b'"' || byte == b'\'' => self.by = Some(byte),
            None => return false,
            Some(_) if self.escaped => self.escaped = false,
            Some(_) if byte == b'\\' => self.escaped = true,
            Some(by) if by == byte => self.by = None,
            Some(_) => {}
        }
        true
    }
}
