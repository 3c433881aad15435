//! Places in a list, as they travel: opaque to clients, stable while rows arrive.

use domain::{search::Cursor, time::Moment};
use uuid::Uuid;

/// The place after the row of this creation time and ID.
#[must_use]
pub fn write(at: Moment, id: Uuid) -> String {
    Cursor { at, id }.to_string()
}

/// The place that was written; nothing if it was not written by [`write()`].
#[must_use]
pub fn read(text: &str) -> Option<(Moment, Uuid)> {
    text.parse().ok().map(|Cursor { at, id }| (at, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nonsense_does_not() {
        let place = (Moment::from_millis(1_700_000_000_000), Uuid::from_u128(7));
        assert_eq!(read(&write(place.0, place.1)), Some(place));
        for bad in ["", "-", "x-y", "12", "zz-00000000000000000000000000000007"] {
            assert_eq!(read(bad), None);
        }
    }
}
