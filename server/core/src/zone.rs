//! Time zones: where a reader's day begins. A day is turned into two moments here and nowhere else, so that every row
//! lies in exactly one day, also where the clock changes.

use crate::{Error, Result};
use domain::{problem::ProblemKind, time::Moment};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use std::fmt;

/// The name of the zone where nobody said otherwise.
const UTC: &str = "UTC";

/// A time zone by its name in the IANA database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// UTC, where nobody said otherwise.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: UTC.into(), rules: TimeZone::UTC }
    }

    /// The zone of this name; UTC without one.
    pub fn read(name: Option<&str>) -> Result<Self> {
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(Self::utc());
        };
        let rules = TimeZone::get(name).map_err(|_| {
            wrong(format!("zone: there is no time zone {:?}; name one as Europe/Berlin or UTC", shown(name)))
        })?;
        let name = rules.iana_name().unwrap_or(name).to_owned();
        Ok(Self { name, rules })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The day in which a moment lies.
    #[must_use]
    pub fn day_of(&self, moment: Moment) -> Day {
        let stamp = Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
        Day(self.rules.to_datetime(stamp).date())
    }

    /// The first moment of a day. Where the clock jumps over midnight that is when it goes on.
    #[must_use]
    pub fn begin(&self, day: Day) -> Moment {
        let stamp = self.rules.to_ambiguous_zoned_datetime(day.0.at(0, 0, 0, 0)).compatible();
        let begun = stamp.and_then(|stamp| stamp.start_of_day());
        Moment::from_millis(begun.map_or(i64::MAX, |stamp| stamp.timestamp().as_millisecond()))
    }

    /// A moment as people of the zone write it, with the difference to UTC: `2026-03-29 00:00 +01:00`.
    #[must_use]
    pub fn written(&self, moment: Moment) -> String {
        let stamp = Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
        stamp.to_zoned_datetime(self.rules.clone()).strftime("%Y-%m-%d %H:%M %:z").to_string()
    }

    /// A moment to the millisecond, as RFC 3339 writes it in the zone: `2026-03-29T00:00:00.000+01:00`, in UTC with a `Z`.
    #[must_use]
    pub fn exact(&self, moment: Moment) -> String {
        if self.name == UTC {
            return moment.to_string();
        }
        let stamp = Timestamp::from_millisecond(moment.millis()).unwrap_or_default();
        stamp.to_zoned_datetime(self.rules.clone()).strftime("%Y-%m-%dT%H:%M:%S.%3f%:z").to_string()
    }
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

impl Day {
    /// A day as browsers write it: `2026-03-29`.
    pub fn read(name: &str, text: &str) -> Result<Self> {
        let text = text.trim();
        let read = text.parse::<Date>().ok().filter(|day| (1970..=9998).contains(&day.year()));
        let read = read.filter(|_| text.len() == "2026-03-29".len());
        read.map(Self).ok_or_else(|| wrong(format!("{name}: write a day as 2026-03-29")))
    }

    /// The day so many days later.
    #[must_use]
    pub fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(i64::from(days).days()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn wrong(detail: String) -> Error {
    Error::new(ProblemKind::InvalidQuery, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::read(Some(name)).unwrap()
    }

    fn moment(text: &str) -> Moment {
        serde_json::from_value(text.into()).unwrap()
    }

    fn day(text: &str) -> Day {
        Day::read("from", text).unwrap()
    }

    #[test]
    fn each_moment_lies_in_exactly_one_day_of_every_zone() {
        for (name, begins) in [
            ("UTC", "2026-11-29T00:00:00.000Z"),
            ("Pacific/Kiritimati", "2026-11-28T10:00:00.000Z"),
            ("Pacific/Pago_Pago", "2026-11-29T11:00:00.000Z"),
            ("Asia/Kolkata", "2026-11-28T18:30:00.000Z"),
        ] {
            let (zone, today) = (zone(name), day("2026-11-29"));
            assert_eq!(zone.begin(today).to_string(), begins, "{name}");
            let first = moment(begins);
            let before = Moment::from_millis(first.millis() - 1);
            assert_eq!((zone.day_of(first), zone.day_of(before)), (today, today.plus(-1)), "{name}");
        }
    }

    #[test]
    fn a_day_on_which_the_clock_changes_is_as_long_as_it_is() {
        let hours = |name: &str, text: &str| {
            let (zone, today) = (zone(name), day(text));
            (zone.begin(today.plus(1)).millis() - zone.begin(today).millis()) / 3_600_000
        };
        assert_eq!(hours("Europe/Berlin", "2026-03-29"), 23);
        assert_eq!(hours("Europe/Berlin", "2026-10-25"), 25);
        assert_eq!(hours("Europe/Berlin", "2026-10-26"), 24);
        // There the clock jumps over midnight itself.
        let beirut = zone("Asia/Beirut");
        assert_eq!(beirut.written(beirut.begin(day("2026-03-29"))), "2026-03-29 01:00 +03:00");
    }

    #[test]
    fn a_moment_is_written_exactly_and_the_hour_that_comes_twice_is_told_apart() {
        let berlin = zone("Europe/Berlin");
        for (at, written) in [
            ("2026-10-25T00:30:00.007Z", "2026-10-25T02:30:00.007+02:00"),
            ("2026-10-25T01:30:00.007Z", "2026-10-25T02:30:00.007+01:00"),
        ] {
            assert_eq!(berlin.exact(moment(at)), written);
            assert_eq!(written.parse::<Moment>().unwrap(), moment(at));
            assert_eq!(Zone::utc().exact(moment(at)), at);
        }
    }

    #[test]
    fn unknown_zones_and_days_are_refused_by_name() {
        assert_eq!(Zone::read(None).unwrap().name(), "UTC");
        assert_eq!(Zone::read(Some(" ")).unwrap(), Zone::utc());
        for bad in ["Middle-earth/Shire", "../../etc/passwd", "+05:30"] {
            assert!(Zone::read(Some(bad)).unwrap_err().detail.starts_with("zone"), "{bad}");
        }
        for bad in ["2026-02-30", "yesterday", "29.11.2026", "2026-11-29T00:00", "0001-01-01"] {
            assert!(Day::read("from", bad).unwrap_err().detail.starts_with("from"), "{bad}");
        }
    }
}
