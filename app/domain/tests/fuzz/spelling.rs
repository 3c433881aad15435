//! The many spellings of one JSON value: member order, white space, escapes, and where a number has its point.

use serde_json::{Number, Value};

/// Chance, a byte at a time.
pub(crate) type Chance<'a> = &'a mut dyn FnMut() -> u8;

/// The value in one of its spellings.
pub(crate) fn spelled(value: &Value, chance: Chance<'_>) -> String {
    let mut text = String::new();
    blank(&mut text, chance);
    write(&mut text, value, chance);
    blank(&mut text, chance);
    text
}

fn write(text: &mut String, value: &Value, chance: Chance<'_>) {
    match value {
        Value::Null | Value::Bool(_) => text.push_str(&value.to_string()),
        Value::Number(value) => text.push_str(&number(value, chance)),
        Value::String(value) => string(text, value, chance),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                blank(text, chance);
                write(text, item, chance);
                blank(text, chance);
            }
            blank(text, chance);
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for place in (1..members.len()).rev() {
                members.swap(place, usize::from(chance()) % (place + 1));
            }
            text.push('{');
            for (place, (name, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                blank(text, chance);
                string(text, name, chance);
                blank(text, chance);
                text.push(':');
                blank(text, chance);
                write(text, value, chance);
                blank(text, chance);
            }
            text.push('}');
        }
    }
}

fn blank(text: &mut String, chance: Chance<'_>) {
    text.push_str([" ", "\n", "\r\n\t", "", "", "", "", ""][usize::from(chance() % 8)]);
}

fn string(text: &mut String, value: &str, chance: Chance<'_>) {
    text.push('"');
    for character in value.chars() {
        let short = match character {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            _ => None,
        };
        let must = matches!(character, '"' | '\\' | '\0'..' ');
        match (short, chance() % 4) {
            (Some(short), 0 | 1) => text.push_str(short),
            (_, 2) => units(text, character, |unit| format!("\\u{unit:04x}")),
            (_, 3) => units(text, character, |unit| format!("\\u{unit:04X}")),
            _ if must => units(text, character, |unit| format!("\\u{unit:04x}")),
            _ => text.push(character),
        }
    }
    text.push('"');
}

fn units(text: &mut String, character: char, spell: impl Fn(u16) -> String) {
    text.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| spell(*unit)));
}

/// A number with its point moved, and as many digits taken into its exponent.
fn number(value: &Number, chance: Chance<'_>) -> String {
    let plain = value.to_string();
    let (sign, magnitude) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The value is digits times ten to the power of scale.
    let mut digits = format!("{whole}{fraction}");
    let mut scale = exponent.parse::<i64>().unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
    let zeros = usize::from(chance() % 4);
    digits.push_str(&"0".repeat(zeros));
    scale -= i64::try_from(zeros).unwrap_or(0);
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let e = ['e', 'E'][usize::from(chance() % 2)];
    match chance() % 4 {
        0 => plain,
        1 => format!("{sign}{digits}{e}{scale}"),
        2 => {
            let at = 1 + usize::from(chance()) % digits.len();
            let moved = scale + i64::try_from(digits.len() - at).unwrap_or(0);
            let fraction = if at < digits.len() { format!(".{}", &digits[at..]) } else { String::new() };
            format!("{sign}{}{fraction}{e}{moved:+}", &digits[..at])
        }
        _ => {
            let leading = usize::from(chance() % 4);
            let moved = scale + i64::try_from(digits.len() + leading).unwrap_or(0);
            format!("{sign}0.{}{digits}{e}{moved}", "0".repeat(leading))
        }
    }
}
