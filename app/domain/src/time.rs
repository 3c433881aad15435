//! Moments, as the portal writes and keeps them: milliseconds since 1970 in UTC, RFC 3339 on the outside.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr, time::Duration};
use time::{
    OffsetDateTime, PrimitiveDateTime, format_description::well_known::Rfc3339, macros::format_description,
};

/// A moment in UTC, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// From milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The moment `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this moment; nothing if it is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// The text is not a time as RFC 3339 writes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time as RFC 3339 writes it")]
pub struct NotATime;

/// The last moment that RFC 3339 can write.
const LAST: i64 = 253_402_300_799_999;

impl Moment {
    /// Reads RFC 3339 in any offset; what is finer than a millisecond becomes the next one.
    pub fn read_up(text: &str) -> Result<Self, NotATime> {
        let nanos = nanos(text)?;
        let millis = nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0);
        i64::try_from(millis).map(|millis| Self(millis.min(LAST))).map_err(|_| NotATime)
    }

    /// Reads a time as HTTP's headers write it, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7: IMF-fixdate); nothing
    /// where it is another text.
    #[must_use]
    pub fn read_http(text: &str) -> Option<Self> {
        let shape = format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
        );
        let moment = PrimitiveDateTime::parse(text, shape).ok()?.assume_utc();
        i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok().map(Self)
    }
}

impl FromStr for Moment {
    type Err = NotATime;

    /// Reads RFC 3339 in any offset; what is finer than a millisecond is cut off.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        i64::try_from(nanos(text)?.div_euclid(1_000_000)).map(Self).map_err(|_| NotATime)
    }
}

fn nanos(text: &str) -> Result<i128, NotATime> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NotATime)?;
    Ok(moment.unix_timestamp_nanos())
}

impl fmt::Display for Moment {
    /// RFC 3339 in UTC with milliseconds, as `2026-01-31T12:00:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape =
            format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|moment| moment.format(shape).ok())
            .map_or(Err(fmt::Error), |text| f.write_str(&text))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Moment {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC, with milliseconds"))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Moment {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_as_it_was_written() {
        let moment = Moment::from_millis(1_700_000_000_042);
        assert_eq!(moment.to_string(), "2023-11-14T22:13:20.042Z");
        let text = serde_json::to_string(&moment).unwrap();
        assert_eq!(serde_json::from_str::<Moment>(&text).unwrap(), moment);
        let offset: Moment = serde_json::from_str("\"2023-11-15T00:13:20.042+02:00\"").unwrap();
        assert_eq!(offset, moment);
    }

    #[test]
    fn the_time_of_a_header_is_read_to_the_second_and_nothing_else_for_one() {
        let read = |text| Moment::read_http(text).map(Moment::millis);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for other in [
            "",
            "5",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
