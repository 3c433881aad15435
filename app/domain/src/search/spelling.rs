//! How values travel: the pairs of an address' query, and lists within one value.

use std::fmt::Write;

/// The pairs of an address' query, decoded, in order. What is not well encoded is taken as it stands.
#[must_use]
pub fn decoded(query: &str) -> Vec<(String, String)> {
    let pairs = query.strip_prefix('?').unwrap_or(query).split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (part_decoded(name), part_decoded(value))
        })
        .collect()
}

/// The first pair of an address' query that is no UTF-8 once it is decoded, as it stands there. It would stand for other
/// characters than were sent.
#[must_use]
pub fn ill_encoded(query: &str) -> Option<&str> {
    let mut pairs = query.strip_prefix('?').unwrap_or(query).split('&');
    pairs.find(|pair| pair.contains('%') && String::from_utf8(bytes_decoded(pair)).is_err())
}

/// Pairs as an address' query spells them.
#[must_use]
pub fn encoded(pairs: &[(String, String)]) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        part_encoded(&mut query, name);
        query.push('=');
        part_encoded(&mut query, value);
    }
    query
}

fn part_encoded(query: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            // A text takes whatever is written into it.
            let _ = write!(query, "%{byte:02X}");
        }
    }
}

fn part_decoded(part: &str) -> String {
    String::from_utf8_lossy(&bytes_decoded(part)).into_owned()
}

fn bytes_decoded(part: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digit = |place: usize| after.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = &after[2..];
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Values with commas between; those that would not read back stand in quotation marks.
pub(super) fn list(values: &[String]) -> String {
    let spelled: Vec<String> = values
        .iter()
        .map(|value| {
            if value.contains(',') || value.starts_with('"') {
                format!("\"{}\"", value.replace('"', "\"\""))
            } else {
                value.clone()
            }
        })
        .collect();
    spelled.join(",")
}

/// The values of a list.
pub(super) fn listed(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let after;
        if let Some(quoted) = rest.strip_prefix('"') {
            let (value, end) = unquoted(quoted)?;
            values.push(value);
            after = &quoted[end..];
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            values.push(rest[..end].to_owned());
            after = &rest[end..];
        }
        if after.is_empty() {
            return Ok(values);
        }
        rest = after.strip_prefix(',').ok_or("has a quotation mark that ends before its value does")?;
    }
}

/// A value after its opening quotation mark, and where what comes after the closing one begins.
fn unquoted(text: &str) -> Result<(String, usize), String> {
    let mut value = String::new();
    let mut at = 0;
    loop {
        let end = text[at..].find('"').ok_or("has a quotation mark that is not closed")? + at;
        value.push_str(&text[at..end]);
        at = end + 1;
        if !text[at..].starts_with('"') {
            return Ok((value, at));
        }
        value.push('"');
        at += 1;
    }
}
