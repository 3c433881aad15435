//! How many duplicates the guard stopped, and where they come from; and what another window would have asked about. For
//! administrators.

mod rehearsal;

use super::Portal;
use crate::{
    Caller, Error, Result,
    store::duplicates::{PeriodCount, SLOT, SourceCount},
    zone::Zone,
};
use domain::{
    duplicates::{DuplicatesView, Interval, Period, Rule, Source},
    problem::ProblemKind,
    time::Moment,
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// The most periods of one count: a year of days, or two weeks of hours.
const MOST_PERIODS: usize = 370;
/// How many sources are shown, and how many groups of duplicates they are found among.
const SOURCES: usize = 100;
const GROUPS: u32 = 2_000;
const HOUR: i64 = 3_600_000;

/// Which duplicates are counted, and how.
#[derive(Debug, Clone, Default)]
pub struct DuplicatesQuery {
    /// From when on; seven days before the end without it.
    pub from: Option<Moment>,
    /// Until when; now without it.
    pub to: Option<Moment>,
    /// The length of the periods.
    pub by: Interval,
    /// The zone whose days they are; UTC without it.
    pub zone: Option<String>,
}

impl Portal {
    /// How many duplicates there were, over time and by source. For administrators.
    pub async fn duplicates(&self, caller: &Caller, query: DuplicatesQuery) -> Result<DuplicatesView> {
        administrators_only(caller)?;
        let zone = Zone::read(query.zone.as_deref())?;
        let slot = millis(SLOT);
        let now = self.0.clock.now();
        let to = query.to.unwrap_or(now);
        let to =
            Moment::from_millis(to.millis().saturating_add(slot - 1).div_euclid(slot).saturating_mul(slot));
        let week = millis(Duration::from_hours(7 * 24));
        let from = query.from.unwrap_or_else(|| Moment::from_millis(to.millis().saturating_sub(week)));
        let from = Moment::from_millis(from.millis().div_euclid(slot).saturating_mul(slot));
        let edges = edges(from, to, query.by, &zone)?;
        let (periods, sources) = self.0.store.duplicates(edges.clone(), GROUPS).await?;
        Ok(summed(&edges, query.by, &zone, periods, sources))
    }
}

/// Refuses everybody but administrators.
fn administrators_only(caller: &Caller) -> Result<()> {
    if caller.is_admin() {
        return Ok(());
    }
    Err(Error::new(ProblemKind::Forbidden, "The history of all teams is for administrators."))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The moments between which the periods lie: the hours or days of the zone, cut off at both ends.
fn edges(from: Moment, to: Moment, by: Interval, zone: &Zone) -> Result<Vec<Moment>> {
    if from >= to {
        return Err(Error::new(ProblemKind::InvalidQuery, "from: must lie before to"));
    }
    let mut edges = vec![from];
    let mut last = from;
    // An hour of a zone begins at a full slot, as its days do: its difference to UTC is a number of slots.
    let into_hour = |at: Moment| (at.millis() - zone.begin(zone.day_of(at)).millis()).rem_euclid(HOUR);
    loop {
        let next = match by {
            Interval::Hour => Moment::from_millis(last.millis() + HOUR - into_hour(last)),
            Interval::Day => zone.begin(zone.day_of(last).plus(1)),
        };
        if next >= to || next <= last {
            edges.push(to);
            return Ok(edges);
        }
        if edges.len() >= MOST_PERIODS {
            return Err(Error::new(
                ProblemKind::InvalidQuery,
                format!(
                    "from: these are more than {MOST_PERIODS} periods; ask for a shorter time, or by day"
                ),
            ));
        }
        edges.push(next);
        last = next;
    }
}

type Counts = BTreeMap<String, i64>;

fn add(counts: &mut Counts, word: &str, count: i64) {
    *counts.entry(word.to_owned()).or_default() += count;
}

fn summed(
    edges: &[Moment],
    by: Interval,
    zone: &Zone,
    counts: Vec<PeriodCount>,
    groups: Vec<SourceCount>,
) -> DuplicatesView {
    let period = |edges: &[Moment]| Period {
        from: edges[0],
        to: edges[1],
        stopped: 0,
        rules: Counts::new(),
        channels: Counts::new(),
    };
    let mut periods: Vec<Period> = edges.windows(2).map(period).collect();
    let (mut rules, mut channels) = (Counts::new(), Counts::new());
    for PeriodCount { place, rule, channel, count } in counts {
        let Some(period) = periods.get_mut(place) else { continue };
        for rules in [&mut rules, &mut period.rules] {
            add(rules, rule.as_str(), count);
        }
        if rule.stops() {
            period.stopped += count;
            for channels in [&mut channels, &mut period.channels] {
                add(channels, &channel, count);
            }
        }
    }
    let (sources, more_sources) = sources(groups);
    let all = |stops: bool| {
        let of = |rule: &Rule| rules.get(rule.as_str()).copied().unwrap_or_default();
        Rule::ALL.iter().filter(|rule| rule.stops() == stops).map(of).sum()
    };
    DuplicatesView {
        from: edges.first().copied().unwrap_or(Moment::from_millis(0)),
        to: edges.last().copied().unwrap_or(Moment::from_millis(0)),
        by,
        zone: zone.name().to_owned(),
        stopped: all(true),
        let_through: all(false),
        rules,
        channels,
        periods,
        sources,
        more_sources,
    }
}

fn sources(groups: Vec<SourceCount>) -> (Vec<Source>, u64) {
    let mut by_source: HashMap<(String, String, String), Source> = HashMap::new();
    for SourceCount { rule, channel, sent_by, token_label, count } in groups {
        let source = by_source.entry((channel, sent_by, token_label)).or_insert_with_key(|key| Source {
            channel: key.0.clone(),
            sent_by: key.1.clone(),
            token: (!key.2.is_empty()).then(|| key.2.clone()),
            stopped: 0,
            rules: Counts::new(),
        });
        add(&mut source.rules, rule.as_str(), count);
        if rule.stops() {
            source.stopped += count;
        }
    }
    let mut sources: Vec<Source> = by_source.into_values().collect();
    sources.sort_by(|one, other| {
        let names = |source: &Source| (source.channel.clone(), source.sent_by.clone(), source.token.clone());
        other.stopped.cmp(&one.stopped).then_with(|| names(one).cmp(&names(other)))
    });
    let more = sources.len().saturating_sub(SOURCES);
    sources.truncate(SOURCES);
    (sources, u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        serde_json::from_value(text.into()).unwrap()
    }

    fn cut(from: &str, to: &str, by: Interval, zone: &str) -> Vec<String> {
        let zone = Zone::read(Some(zone)).unwrap();
        let edges = edges(moment(from), moment(to), by, &zone).unwrap();
        edges.iter().map(|edge| zone.written(*edge)).collect()
    }

    #[test]
    fn periods_are_the_days_and_hours_of_the_zone() {
        assert_eq!(
            cut("2026-11-28T00:00:00Z", "2026-11-30T00:00:00Z", Interval::Day, "Asia/Kolkata"),
            [
                "2026-11-28 05:30 +05:30",
                "2026-11-29 00:00 +05:30",
                "2026-11-30 00:00 +05:30",
                "2026-11-30 05:30 +05:30"
            ]
        );
        assert_eq!(
            cut("2026-11-28T00:00:00Z", "2026-11-28T02:00:00Z", Interval::Hour, "Asia/Kathmandu"),
            [
                "2026-11-28 05:45 +05:45",
                "2026-11-28 06:00 +05:45",
                "2026-11-28 07:00 +05:45",
                "2026-11-28 07:45 +05:45"
            ]
        );
        // The hour that comes twice is two periods.
        assert_eq!(
            cut("2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z", Interval::Hour, "Europe/Berlin"),
            [
                "2026-10-25 02:00 +02:00",
                "2026-10-25 02:00 +01:00",
                "2026-10-25 03:00 +01:00",
                "2026-10-25 04:00 +01:00"
            ]
        );
    }

    #[test]
    fn a_count_has_a_bounded_number_of_periods() {
        let (from, to) = (moment("2026-01-01T00:00:00Z"), moment("2027-01-01T00:00:00Z"));
        assert_eq!(edges(from, to, Interval::Day, &Zone::utc()).unwrap().len(), 366);
        assert!(edges(from, to, Interval::Hour, &Zone::utc()).is_err());
        assert!(edges(from, from, Interval::Day, &Zone::utc()).is_err());
    }
}
