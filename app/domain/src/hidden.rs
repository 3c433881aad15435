//! What stands for a secret wherever parameters are kept or shown: a mark that is the same for the same secret of one team
//! and offering, and tells nothing of it.

use serde_json::Value;
use std::fmt::Write as _;

/// The keyword by which an offering marks a parameter as a secret (JSON Schema's own word).
pub const WRITE_ONLY: &str = "writeOnly";

/// How a mark begins.
const BEGINS: &str = "secret:";
/// How many bytes of a keyed hash it holds, as hexadecimal digits.
const BYTES: usize = 16;

/// The mark with the first bytes of this keyed hash.
#[must_use]
pub fn mark(hash: &[u8; 32]) -> String {
    let mut mark = BEGINS.to_owned();
    for byte in &hash[..BYTES] {
        let _ = write!(mark, "{byte:02x}");
    }
    mark
}

/// Whether this looks like a mark.
#[must_use]
pub fn is_mark(value: &Value) -> bool {
    value.as_str().and_then(|text| text.strip_prefix(BEGINS)).is_some_and(|digits| {
        digits.len() == 2 * BYTES && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether the parameter of this schema is a secret.
#[must_use]
pub fn is_write_only(property: &Value) -> bool {
    property.get(WRITE_ONLY) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mark_is_known_by_its_looks() {
        let mark = mark(&[0xab; 32]);
        assert_eq!(mark, format!("secret:{}", "ab".repeat(16)));
        assert!(is_mark(&json!(mark)));
        for other in
            [json!("secret:"), json!(format!("{mark}0")), json!(mark.to_uppercase()), json!(1), json!([mark])]
        {
            assert!(!is_mark(&other), "{other}");
        }
    }
}
