//! Bytes as hexadecimal digits, for sealed things in hidden fields and sessions.

use std::fmt::Write;

/// The bytes as lower-case digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that the digits stand for; nothing if they are not digits, or an odd number of them.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_nothing_else_does() {
        assert_eq!(decode(&encode(&[0, 1, 0xab, 0xff])), Some(vec![0, 1, 0xab, 0xff]));
        for bad in ["0", "0g", "é0", "+1"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
