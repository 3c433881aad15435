//! Lengths of time as people write them: `7d`, `76h`, `90m`, `5s`, `500ms`.

use std::{fmt, time::Duration};

/// Longer than anything that is kept.
pub(super) const DECADE: Duration = Duration::from_hours(3660 * 24);

/// A length of time in milliseconds, which may be negative.
pub(super) fn signed_millis(text: &str) -> Result<i64, String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    Ok(sign * millis(rest)?)
}

/// A length of time within bounds.
pub(super) fn between(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let span = Duration::from_millis(millis(text)?.unsigned_abs());
    if (least..=most).contains(&span) {
        Ok(span)
    } else {
        Err(format!("it must lie between {} and {}", Shown(least), Shown(most)))
    }
}

fn millis(text: &str) -> Result<i64, String> {
    const HOW: &str = "write a whole number and a unit, as 7d, 76h, 90m, 5s or 500ms";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(HOW.into()),
    };
    let number: i64 = number.parse().map_err(|_| HOW.to_owned())?;
    number
        .checked_mul(factor)
        .filter(|millis| u128::from(millis.unsigned_abs()) <= DECADE.as_millis())
        .ok_or_else(|| "that is longer than ten years".to_owned())
}

/// A length of time in the largest unit that says it exactly.
pub(super) struct Shown(pub(super) Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
            if millis.is_multiple_of(factor) && millis > 0 {
                return write!(f, "{}{unit}", millis / factor);
            }
        }
        write!(f, "{millis}ms")
    }
}
