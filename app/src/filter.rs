//! The filter of a list of requests, as a page keeps it in its address.
//!
//! It is the grammar of the API with a few words more that a plain form can send: `label=key:value` and
//! `parameter=name:value`, several states one by one, and times that mean something else every day (`time=today`, the
//! days `from` and `to`, `ended_from` and `ended_to`), read in the `zone` that the address names. Fields that nobody filled
//! in are left out.

use domain::search::{self, Field, Operator, Search, SearchError};

/// When what is looked for was requested, reckoned from now on or in days of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// In the last hour.
    Hour,
    /// In the last 24 hours.
    Day,
    /// In the last 7 days, to the minute.
    Week,
    /// Today.
    Today,
    /// Yesterday.
    Yesterday,
    /// On the days of [`Filter::from`] to [`Filter::to`].
    Days,
}

impl Span {
    /// Every span.
    pub const ALL: [Self; 6] = [Self::Hour, Self::Day, Self::Week, Self::Today, Self::Yesterday, Self::Days];

    /// The span's word in an address.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Today => "today",
            Self::Yesterday => "yesterday",
            Self::Days => "days",
        }
    }

    /// The span as people read it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Hour => "the last hour",
            Self::Day => "the last 24 hours",
            Self::Week => "the last 7 days",
            Self::Today => "today",
            Self::Yesterday => "yesterday",
            Self::Days => "the days below",
        }
    }
}

/// A filter of a list of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// What does not depend on the day, and where the page begins.
    pub search: Search,
    /// When it was requested.
    pub span: Option<Span>,
    /// The first day, where days are asked for.
    pub from: Option<String>,
    /// The last day.
    pub to: Option<String>,
    /// The first day of its end.
    pub ended_from: Option<String>,
    /// The last day of its end.
    pub ended_to: Option<String>,
    /// The zone whose days they are.
    pub zone: Option<String>,
}

/// How many pairs of an address are read one by one.
const MOST_PAIRS: usize = 100;

/// A pair of an address that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// Its name.
    pub name: String,
    /// What was typed.
    pub value: String,
    /// The rule that it broke.
    pub rule: String,
}

/// One condition of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What is compared.
    pub what: String,
    /// With what.
    pub value: String,
    /// The filter without it, as an address spells it.
    pub without: String,
}

fn wrong(parameter: &str, rule: &str) -> SearchError {
    SearchError { parameter: parameter.to_owned(), rule: rule.to_owned() }
}

impl Filter {
    /// The filter that an address' query spells.
    pub fn read(query: &str) -> Result<Self, SearchError> {
        if let Some(part) = search::ill_encoded(query) {
            return Err(wrong(part, search::NOT_UTF8));
        }
        let mut filter = Self::default();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in search::decoded(query) {
            let value = value.trim().to_owned();
            if value.is_empty() {
                continue;
            }
            let days = match name.as_str() {
                "time" => {
                    let span = Span::ALL.into_iter().find(|span| span.as_str() == value);
                    filter.span =
                        Some(span.ok_or_else(|| wrong("time", "is none of the times to choose from"))?);
                    continue;
                }
                "from" => &mut filter.from,
                "to" => &mut filter.to,
                "ended_from" => &mut filter.ended_from,
                "ended_to" => &mut filter.ended_to,
                "zone" => &mut filter.zone,
                _ => {
                    Self::pair(&mut pairs, name, value)?;
                    continue;
                }
            };
            *days = Some(value);
        }
        if filter.from.is_some() || filter.to.is_some() {
            filter.span = filter.span.or(Some(Span::Days));
        }
        if filter.span != Some(Span::Days) {
            (filter.from, filter.to) = (None, None);
        }
        if !filter.needs_zone() {
            filter.zone = None;
        }
        filter.search = Search::read(pairs)?;
        Ok(filter)
    }

    /// What an address' query spells as far as it is understood, and the pairs that are not, with the rule that each broke: so
    /// that a form shows all of it again.
    #[must_use]
    pub fn read_apart(query: &str) -> (Self, Vec<Misread>) {
        if let Ok(filter) = Self::read(query) {
            return (filter, Vec::new());
        }
        let (mut understood, mut misread) = (Vec::new(), Vec::new());
        for (name, value) in search::decoded(query).into_iter().take(MOST_PAIRS) {
            let mut pairs = understood.clone();
            pairs.push((name.clone(), value.clone()));
            match Self::read(&search::encoded(&pairs)) {
                Ok(_) => understood = pairs,
                Err(SearchError { rule, .. }) => misread.push(Misread { name, value, rule }),
            }
        }
        (Self::read(&search::encoded(&understood)).unwrap_or_default(), misread)
    }

    /// One pair of the API's grammar, or of what a form sends in its place.
    fn pair(pairs: &mut Vec<(String, String)>, name: String, value: String) -> Result<(), SearchError> {
        let split = |rule| {
            value.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(|| wrong(&name, rule))
        };
        let (name, value) = match name.as_str() {
            "label" => {
                let (key, value) = split("is written as key:value")?;
                (search::label(key.trim()), value.trim().to_owned())
            }
            "parameter" => {
                let (key, value) = split("is written as name:value")?;
                (search::parameter(key.trim()), value.trim().to_owned())
            }
            _ => (name, value),
        };
        // Boxes that are ticked come one by one.
        let before = pairs.iter_mut().find(|(known, _)| *known == name && name.ends_with("[IN]"));
        match before {
            Some((_, values)) => {
                values.push(',');
                values.push_str(&value);
            }
            None => pairs.push((name, value)),
        }
        Ok(())
    }

    /// Whether a form sent it, with what an address does without.
    #[must_use]
    pub fn is_cluttered(query: &str) -> bool {
        search::decoded(query)
            .iter()
            .any(|(name, value)| value.trim().is_empty() || name == "label" || name == "parameter")
    }

    /// Whether what it finds depends on a zone.
    #[must_use]
    pub fn needs_zone(&self) -> bool {
        matches!(self.span, Some(Span::Today | Span::Yesterday | Span::Days))
            || self.ended_from.is_some()
            || self.ended_to.is_some()
    }

    /// Whether the moments between which it looks are written in a zone.
    #[must_use]
    pub fn names_zone(&self) -> bool {
        self.needs_zone() || self.span.is_some()
    }

    /// Whether it lets everything through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs().is_empty()
    }

    /// The pairs of an address that spell it, without the page.
    #[must_use]
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs = self.search.pairs();
        pairs.retain(|(name, _)| name != "cursor" && name != "size");
        let days = [
            ("time", self.span.map(|span| span.as_str().to_owned())),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("ended_from", self.ended_from.clone()),
            ("ended_to", self.ended_to.clone()),
            ("zone", self.zone.clone()),
        ];
        pairs.extend(days.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        pairs
    }

    /// The filter as an address spells it, without the page.
    #[must_use]
    pub fn query(&self) -> String {
        search::encoded(&self.pairs())
    }

    /// The conditions, each with the filter that is left without it.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        let pairs = self.pairs();
        let without = |gone: &[&str]| {
            let left: Vec<_> =
                pairs.iter().filter(|(name, _)| !gone.contains(&name.as_str())).cloned().collect();
            // Without the days there may be nothing left that needs the zone.
            Self::read(&search::encoded(&left)).map(|filter| filter.query()).unwrap_or_default()
        };
        let said = pairs.iter().filter_map(|(name, value)| {
            let gone: &[&str] = match name.as_str() {
                "time" => &["time", "from", "to"],
                "from" | "to" | "zone" => return None,
                other => &[other],
            };
            let (what, value) = self.said(name, value);
            Some(Condition { what, value, without: without(gone) })
        });
        said.collect()
    }

    fn said(&self, name: &str, value: &str) -> (String, String) {
        let days = |from: &Option<String>, to: &Option<String>| match (from, to) {
            (Some(from), Some(to)) if from == to => from.clone(),
            (Some(from), Some(to)) => format!("{from} to {to}"),
            (Some(from), None) => format!("from {from}"),
            (None, Some(to)) => format!("to {to}"),
            (None, None) => "any day".to_owned(),
        };
        let value = match (name, self.span) {
            ("time", Some(Span::Days)) => days(&self.from, &self.to),
            ("time", Some(span)) => span.words().to_owned(),
            _ => value.to_owned(),
        };
        let what = match name {
            "q" => "holds".to_owned(),
            "time" => "requested".to_owned(),
            "ended_from" => "ended from".to_owned(),
            "ended_to" => "ended by".to_owned(),
            _ => compared(name),
        };
        (what, value)
    }
}

/// A comparison in words, as `name holds`.
fn compared(name: &str) -> String {
    let inner = name.strip_prefix("filters[").and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let mut parts = inner.split("][");
    let field = parts.next().unwrap_or_default();
    let operator: Option<Operator> = parts.next().and_then(|word| word.parse().ok());
    if let ("labels" | "parameters", Some(key)) = (field, parts.next()) {
        let kind = if field == "labels" { "label" } else { "parameter" };
        return format!("{kind} {key}:");
    }
    let field = field.replace('_', " ");
    match operator {
        None | Some(Operator::Equals | Operator::In) => format!("{field}:"),
        Some(Operator::NotEquals | Operator::NotIn) => format!("{field} is not"),
        Some(Operator::Contains) => format!("{field} holds"),
        Some(Operator::StartsWith) => format!("{field} begins with"),
        Some(Operator::GreaterThanOrEqualTo) => format!("{field} from"),
        Some(Operator::LessThan) => format!("{field} before"),
    }
}

/// The parameter of an address that a field of the form is named after.
#[must_use]
pub fn equal(field: Field) -> String {
    field.compared(Operator::Equals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Filter {
        Filter::read(query).unwrap()
    }

    #[test]
    fn a_mistake_takes_nothing_else_out_of_the_form() {
        let sent = "filters[state][IN]=failed&filters[state][IN]=unknown&label=env%3Dprod&filters[name][CONTAINS]=n1\
                    &time=never&parameter=size:large";
        let (filter, misread) = Filter::read_apart(sent);
        assert_eq!(
            filter,
            read("filters[state][IN]=failed,unknown&filters[name][CONTAINS]=n1&parameter=size:large")
        );
        let told: Vec<_> = misread.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
        assert_eq!(told, [("label", "env=prod"), ("time", "never")]);
        assert_eq!(misread[0].rule, "is written as key:value");
        assert_eq!(Filter::read_apart("q=x"), (read("q=x"), Vec::new()));
    }

    #[test]
    fn a_form_and_an_address_say_the_same() {
        let sent = "q=&filters[state][IN]=failed&filters[state][IN]=unknown&filters[offering][EQUALS]=vm&label=env%3Aprod\
                    &parameter=size:large&filters[name][CONTAINS]=&time=&from=&to=&zone=Asia/Kolkata";
        let filter = read(sent);
        let query = filter.query();
        assert_eq!(read(&query), filter);
        assert!(Filter::is_cluttered(sent) && !Filter::is_cluttered(&query));
        let pairs = filter.pairs();
        let names: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            names,
            [
                "filters[state][IN]=failed,unknown",
                "filters[offering][EQUALS]=vm",
                "filters[labels][EQUALS][env]=prod",
                "filters[parameters][EQUALS][size]=large",
            ],
            "a zone that nothing needs is left out"
        );
        assert!(read("a=&b=").is_empty());
    }

    #[test]
    fn each_condition_can_be_taken_away_alone() {
        let filter = read(
            "q=shop&time=days&from=2026-11-28&to=2026-11-29&zone=Asia/Kolkata&label=env:prod&cursor=1-01890a5dac96774bbcceb302099a8057",
        );
        let conditions = filter.conditions();
        let said: Vec<_> = conditions.iter().map(|one| format!("{} {}", one.what, one.value)).collect();
        assert_eq!(said, ["holds shop", "label env: prod", "requested 2026-11-28 to 2026-11-29"]);
        assert_eq!(conditions[2].without, "q=shop&filters%5Blabels%5D%5BEQUALS%5D%5Benv%5D=prod");
        assert!(conditions[0].without.contains("from=2026-11-28") && !conditions[0].without.contains("q="));
        assert!(
            conditions.iter().all(|one| !one.without.contains("cursor")),
            "another list begins at its beginning"
        );
    }

    #[test]
    fn days_stand_for_themselves_and_other_times_do_without_them() {
        assert_eq!(read("from=2026-11-28").span, Some(Span::Days));
        let hour = read("time=1h&from=2026-11-28&zone=Asia/Kolkata");
        assert_eq!((hour.span, hour.from, hour.zone), (Some(Span::Hour), None, None));
        assert!(read("time=today").needs_zone() && !read("time=24h").needs_zone());
        for bad in [
            "time=soon",
            "label=x",
            "parameter=:x",
            "colour=red",
            "filters[name][LIKE]=x",
            "filters[state][IN]=done",
        ] {
            assert!(Filter::read(bad).is_err(), "{bad}");
        }
    }
}
