//! Searching among requests. One builder writes the conditions of page, count and export.
//!
//! A page is read in one of two ways, and which one is decided by looking rather than by guessing. Every condition that an
//! index knows is asked how many rows it lets through, up to [`FEW`]. If one of them lets through no more, those rows are
//! taken and looked at ("few"). Otherwise matches are frequent enough to walk through the requests in their order until
//! the page is full ("walk").

use super::{
    dialect::{Connection, Db, words},
    rows::{self, REQUEST, text},
};
use crate::store::{
    ListScope, RequestList, StoreResult,
    search::{folded, line_of_label, line_of_value},
};
use domain::{
    correlation::CORRELATION_LABEL,
    name::Name,
    search::{Cursor, Field, Filter, Operator, Search, Values},
    state::RequestState,
    view::{Page, RequestView},
};
use sqlx::{QueryBuilder, Row};

/// Up to where a total is counted.
pub(super) const COUNTED: i64 = 10_000;
/// How many rows are taken and sorted at the most, rather than walked through.
const FEW: i64 = 5_000;
/// How many teams are walked through side by side. Of more, the rows of all are walked through.
const BRANCHES: usize = 16;

/// States of what is not at its end.
const OPEN: [RequestState; 4] =
    [RequestState::PendingApproval, RequestState::Queued, RequestState::Running, RequestState::Unknown];
/// States of what ended otherwise than well.
const OTHERWISE: [RequestState; 3] = [RequestState::Failed, RequestState::Canceled, RequestState::Rejected];

/// A page of requests, newest first, and how many there are.
pub(super) async fn requests(
    connection: &mut Connection,
    list: &RequestList,
) -> StoreResult<Page<RequestView>> {
    let found = Found::look(connection, list).await?;
    let total = found.count(connection).await?;
    let (results, next) = found.page(connection).await?;
    Ok(Page {
        total: total.min(COUNTED),
        total_is: (total > COUNTED).then(|| "at_least".to_owned()),
        results,
        next: next.map(|cursor| cursor.to_string()),
    })
}

/// A page of requests without the count, and where the next one begins.
pub(super) async fn rows(
    connection: &mut Connection,
    list: &RequestList,
) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
    Found::look(connection, list).await?.page(connection).await
}

/// A condition that an index knows.
enum Source<'l> {
    /// Those that are, or that were asked for once more, under a correlation ID.
    Correlation(Operator, Vec<String>),
    /// Those that a column's index knows.
    Column(Filter<'l>),
    /// Those in one of these states: open ones, and ones that ended otherwise than well.
    States(Vec<RequestState>),
    /// Those with this text among their words.
    Words(String),
    /// Those in a span of time.
    Times(Field, &'l Search),
}

/// A list, and how its rows are read.
struct Found<'l> {
    list: &'l RequestList,
    sources: Vec<Source<'l>>,
    /// The source whose rows are few.
    few: Option<usize>,
}

impl<'l> Found<'l> {
    /// Decides how a list is read.
    async fn look(connection: &mut Connection, list: &'l RequestList) -> StoreResult<Self> {
        let sources = sources(connection, &list.search).await?;
        let mut found = Self { list, sources, few: None };
        if found.sources.is_empty() || found.nowhere() {
            return Ok(found);
        }
        let mut query = QueryBuilder::new("SELECT ");
        for (place, source) in found.sources.iter().enumerate() {
            query.push(if place == 0 { "(" } else { ", (" });
            query.push("SELECT count(*) FROM (SELECT 1 FROM (");
            source.look(&mut query);
            query.push(") AS source LIMIT ").push_bind(FEW + 1).push(format!(") AS up_to) AS n{place}"));
        }
        let row = query.build().persistent(false).fetch_one(connection).await?;
        let counts: Vec<i64> =
            (0..found.sources.len()).map(|place| row.try_get(place)).collect::<Result<_, _>>()?;
        found.few =
            (0..counts.len()).filter(|place| counts[*place] <= FEW).min_by_key(|place| counts[*place]);
        Ok(found)
    }

    /// Whether nothing can be seen at all.
    fn nowhere(&self) -> bool {
        matches!(&self.list.scope, ListScope::Teams(teams) if teams.is_empty())
    }

    /// How many there are, counted to just beyond [`COUNTED`].
    async fn count(&self, connection: &mut Connection) -> StoreResult<i64> {
        if self.nowhere() {
            return Ok(0);
        }
        // No order is needed, so the first of the sources is as good for many rows as for few.
        let source = self.few.or(if self.sources.is_empty() { None } else { Some(0) });
        let mut query = match source.map(|place| &self.sources[place]) {
            Some(source) => {
                let mut query = taken(source);
                query.push("SELECT count(*) FROM (SELECT 1 FROM taken CROSS JOIN request WHERE request.id = taken.found AND ");
                self.conditions(&mut query, None);
                query
            }
            None => {
                let mut query = QueryBuilder::new("SELECT count(*) FROM (");
                for (place, team) in self.branches().iter().enumerate() {
                    query.push(if place == 0 {
                        "SELECT 1 FROM request WHERE "
                    } else {
                        " UNION ALL SELECT 1 FROM request WHERE "
                    });
                    self.conditions(&mut query, *team);
                }
                query
            }
        };
        query.push(" LIMIT ").push_bind(COUNTED + 1).push(") AS counted");
        Ok(query.build_query_scalar().persistent(false).fetch_one(connection).await?)
    }

    /// The rows of the page.
    async fn page(&self, connection: &mut Connection) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        if self.nowhere() {
            return Ok((Vec::new(), None));
        }
        let size = self.list.search.size();
        let mut query = if let Some(place) = self.few {
            let mut query = taken(&self.sources[place]);
            query.push(format!(
                "SELECT {REQUEST} FROM taken CROSS JOIN request WHERE request.id = taken.found AND "
            ));
            self.conditions(&mut query, None);
            self.after(&mut query);
            in_order(&mut query, size);
            query
        } else {
            let branches = self.branches();
            let mut query = QueryBuilder::new("");
            for (place, team) in branches.iter().enumerate() {
                if branches.len() > 1 {
                    query.push(if place == 0 { "SELECT * FROM (" } else { " UNION ALL SELECT * FROM (" });
                }
                query.push(format!("SELECT {REQUEST} FROM request WHERE "));
                self.conditions(&mut query, *team);
                self.after(&mut query);
                in_order(&mut query, size);
                if branches.len() > 1 {
                    query.push(format!(") AS branch{place}"));
                }
            }
            if branches.len() > 1 {
                in_order(&mut query, size);
            }
            query
        };
        let found = query.build().persistent(false).fetch_all(connection).await?;
        let mut results = found
            .iter()
            .map(|row| rows::request(row).map(|one| one.view))
            .collect::<StoreResult<Vec<_>>>()?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let more = results.len() > size;
        results.truncate(size);
        let next = results.last().filter(|_| more).map(|last| Cursor { at: last.created_at, id: last.id.0 });
        Ok((results, next))
    }

    /// The teams whose rows are walked through side by side; one place without a team where the order is that of all.
    fn branches(&self) -> Vec<Option<&Name>> {
        match &self.list.scope {
            ListScope::Teams(teams) if teams.len() <= BRANCHES => teams.iter().map(Some).collect(),
            _ => vec![None],
        }
    }

    fn after(&self, query: &mut QueryBuilder<Db>) {
        if let Some(Cursor { at, id }) = self.list.search.cursor() {
            query.push(" AND (request.created_at, request.id) < (").push_bind(at.millis()).push(", ");
            query.push_bind(id).push(")");
        }
    }

    /// What a row has to be, of this team or of the whole scope.
    fn conditions(&self, query: &mut QueryBuilder<Db>, team: Option<&Name>) {
        match (team, &self.list.scope) {
            (Some(team), _) | (None, ListScope::Team(team)) => {
                query.push("request.team = ").push_bind(team.to_string());
            }
            (None, ListScope::All) => {
                query.push("true");
            }
            (None, ListScope::RequestedBy(principal)) => {
                query.push("request.principal = ").push_bind(principal.0);
            }
            (None, ListScope::Teams(teams)) => {
                query.push(words::UNINDEXED).push("request.team IN (");
                listed(query, teams.iter().map(ToString::to_string));
            }
        }
        let search = &self.list.search;
        for filter in search.filters() {
            query.push(" AND ");
            compared(query, filter);
        }
        for (key, value) in search.labels() {
            query.push(" AND ");
            labelled(query, key, value);
        }
        for (name, value) in search.parameters() {
            query.push(" AND ");
            words::member(query, "request.parameters", &text(name), &text(value));
        }
        if let Some(free) = search.text() {
            query
                .push(" AND EXISTS (SELECT 1 FROM sought WHERE sought.request = request.id AND ")
                .push(words::POSITION)
                .push("(sought.text, ")
                .push_bind(folded(free))
                .push(") > 0)");
        }
    }
}

/// The requests of a source, each once.
fn taken(source: &Source<'_>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("WITH taken (found) AS (SELECT DISTINCT source.id FROM (");
    source.look(&mut query);
    query.push(") AS source) ");
    query
}

fn in_order(query: &mut QueryBuilder<Db>, size: u32) {
    query.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(i64::from(size) + 1);
}

/// The conditions of a search that an index knows, those that give their rows for the least first.
async fn sources<'l>(connection: &mut Connection, search: &'l Search) -> StoreResult<Vec<Source<'l>>> {
    let mut sources = Vec::new();
    let mut sought = Vec::new();
    for filter in search.filters() {
        match (filter.field, filter.operator, filter.values) {
            (Field::CorrelationId, Operator::Equals | Operator::In, Values::Texts(texts)) => {
                sources.push(Source::Correlation(filter.operator, texts.clone()));
            }
            (Field::ParentId, Operator::Equals | Operator::In, Values::Ids(_))
            | (
                Field::Name | Field::Offering | Field::RequestedBy,
                Operator::Equals | Operator::In | Operator::StartsWith,
                _,
            ) => sources.push(Source::Column(filter)),
            (Field::Action, Operator::Equals | Operator::In, Values::Texts(texts))
                if texts.iter().all(|action| action != domain::action::CREATE) =>
            {
                sources.push(Source::Column(filter));
            }
            (Field::State, ..) => {
                let states = filter.states();
                if !states.contains(&RequestState::Succeeded) {
                    sources.push(Source::States(states));
                }
            }
            (
                Field::Name | Field::RequestedBy | Field::CorrelationId,
                Operator::Contains | Operator::StartsWith,
                Values::Texts(texts),
            ) => sought.extend(texts.iter().map(|text| folded(text))),
            _ => {}
        }
    }
    for (key, value) in search.labels() {
        if key == CORRELATION_LABEL {
            sources.push(Source::Correlation(Operator::Equals, vec![value.clone()]));
        } else {
            sought.push(line_of_label(key, value));
        }
    }
    sought.extend(search.parameters().values().map(|value| line_of_value(value)));
    sought.extend(search.text().map(folded));
    sought.retain(|text| words::findable(text));
    if !sought.is_empty() && words::indexed(connection).await? {
        sources.extend(sought.into_iter().map(Source::Words));
    }
    for field in [Field::FinishedAt, Field::CreatedAt] {
        if search.filters().any(|filter| filter.field == field && bounds(filter.operator)) {
            sources.push(Source::Times(field, search));
        }
    }
    Ok(sources)
}

/// Whether an operator bounds a span of time.
fn bounds(operator: Operator) -> bool {
    matches!(operator, Operator::Equals | Operator::GreaterThanOrEqualTo | Operator::LessThan)
}

impl Source<'_> {
    /// Writes the look for its requests.
    fn look(&self, query: &mut QueryBuilder<Db>) {
        match self {
            Self::Correlation(operator, texts) => {
                query.push("SELECT id FROM request WHERE ");
                tested(query, "correlation_id", *operator, texts);
                query.push(" UNION ALL SELECT request FROM submission WHERE outcome = 'existing' AND request IS NOT NULL AND ");
                tested(query, "correlation_id", *operator, texts);
            }
            Self::Column(filter) => {
                query.push("SELECT id FROM request WHERE ");
                let column = filter.field.as_str();
                match (filter.values, filter.operator) {
                    (Values::Texts(texts), Operator::StartsWith) => {
                        let from: String = texts.iter().map(|part| text(part).into_owned()).collect();
                        let upto = format!("{from}{}", char::MAX);
                        query.push(format!("{column} >= ")).push_bind(from);
                        query.push(format!(" AND {column} < ")).push_bind(upto);
                    }
                    (Values::Texts(texts), operator) => {
                        tested(query, column, operator, texts);
                        if filter.field == Field::Action {
                            query.push(" AND action <> 'create'");
                        }
                    }
                    _ => compared_bare(query, *filter, column),
                }
            }
            Self::States(states) => {
                let of = |known: &[RequestState]| -> Vec<String> {
                    states.iter().filter(|state| known.contains(state)).map(ToString::to_string).collect()
                };
                query.push("SELECT id FROM request WHERE finished_at IS NULL AND state IN (");
                listed(query, of(&OPEN).into_iter());
                query.push(
                    " UNION ALL SELECT id FROM request WHERE state IN ('failed', 'canceled', 'rejected') AND state IN (",
                );
                listed(query, of(&OTHERWISE).into_iter());
            }
            Self::Words(text) => words::having(query, text),
            Self::Times(field, search) => {
                query.push(format!("SELECT id FROM request WHERE {field} IS NOT NULL"));
                for filter in search.filters().filter(|one| one.field == *field && bounds(one.operator)) {
                    query.push(" AND ");
                    compared_bare(query, filter, field.as_str());
                }
            }
        }
    }
}

/// A request's label, or one that came with a further key of it.
fn labelled(query: &mut QueryBuilder<Db>, key: &str, value: &str) {
    if key == CORRELATION_LABEL {
        let sent = Values::Texts(vec![value.to_owned()]);
        compared(query, Filter { field: Field::CorrelationId, operator: Operator::Equals, values: &sent });
        return;
    }
    query.push("(");
    words::member(query, "request.labels", key, &text(value));
    existing(query);
    words::member(query, "again.labels", key, &text(value));
    query.push("))");
}

/// Or what was sent for what was there already.
fn existing(query: &mut QueryBuilder<Db>) {
    query.push(
        " OR EXISTS (SELECT 1 FROM submission AS again
                      WHERE again.request = request.id AND again.outcome = 'existing' AND ",
    );
}

/// The test of a filter on a row of `request`.
fn compared(query: &mut QueryBuilder<Db>, filter: Filter<'_>) {
    let column = format!("request.{}", filter.field);
    match (filter.field, filter.values) {
        (Field::State, _) => {
            query.push(words::UNINDEXED).push("request.state IN (");
            listed(query, filter.states().iter().map(ToString::to_string));
        }
        (Field::CorrelationId, Values::Texts(texts))
            if !matches!(filter.operator, Operator::NotEquals | Operator::NotIn) =>
        {
            query.push("(");
            tested(query, &column, filter.operator, texts);
            existing(query);
            tested(query, "again.correlation_id", filter.operator, texts);
            query.push("))");
        }
        (Field::ParentId, Values::Texts(texts)) => {
            tested(query, &words::id_text(&column), filter.operator, texts);
        }
        (Field::Offering | Field::RequestedBy | Field::Name, Values::Texts(texts))
            if filter.operator == Operator::Equals =>
        {
            // The index of each has the order of the list.
            tested(query, &column, filter.operator, texts);
        }
        (Field::CreatedAt, _) => compared_bare(query, filter, &column),
        _ => compared_bare(query, filter, &format!("{}{column}", words::UNINDEXED)),
    }
}

/// The test of a filter on a column. What has no value is not any value, too.
fn compared_bare(query: &mut QueryBuilder<Db>, filter: Filter<'_>, column: &str) {
    let not = matches!(filter.operator, Operator::NotEquals | Operator::NotIn);
    let optional = not && matches!(filter.field, Field::ParentId | Field::FinishedAt);
    if optional {
        query.push(format!("({column} IS NULL OR "));
    }
    match filter.values {
        Values::Texts(texts) => tested(query, column, filter.operator, texts),
        Values::States(states) => {
            let texts: Vec<String> = states.iter().map(ToString::to_string).collect();
            tested(query, column, filter.operator, &texts);
        }
        Values::Ids(ids) => {
            query.push(column).push(if not { " NOT IN (" } else { " IN (" });
            listed(query, ids.iter().map(|id| id.0));
        }
        Values::Moments(moments) => {
            let sign = match filter.operator {
                Operator::GreaterThanOrEqualTo => " >= ",
                Operator::LessThan => " < ",
                Operator::NotEquals | Operator::NotIn => " NOT IN (",
                _ => " IN (",
            };
            query.push(column).push(sign);
            let millis = moments.iter().map(|moment| moment.millis());
            if sign.ends_with('(') {
                listed(query, millis);
            } else {
                millis.for_each(|millis| {
                    query.push_bind(millis);
                });
            }
        }
    }
    if optional {
        query.push(")");
    }
}

/// The test of a text. No character in it means anything but itself.
fn tested(query: &mut QueryBuilder<Db>, column: &str, operator: Operator, texts: &[String]) {
    let mut texts = texts.iter().map(|given| text(given).into_owned());
    if operator.takes_several() {
        query.push(column).push(if operator == Operator::In { " IN (" } else { " NOT IN (" });
        listed(query, texts);
        return;
    }
    let one = texts.next().unwrap_or_default();
    match operator {
        Operator::Contains => {
            query.push(words::POSITION).push("(").push(column).push(", ").push_bind(one).push(") > 0");
        }
        Operator::StartsWith => {
            query.push("substr(").push(column).push(", 1, length(").push_bind(one.clone()).push(")) = ");
            query.push_bind(one);
        }
        _ => {
            let sign = match operator {
                Operator::NotEquals => " <> ",
                Operator::GreaterThanOrEqualTo => " >= ",
                Operator::LessThan => " < ",
                _ => " = ",
            };
            query.push(column).push(sign).push_bind(one);
        }
    }
}

/// The rest of a list in parentheses; an empty one is none, in a dialect that knows no empty lists.
fn listed<T>(query: &mut QueryBuilder<Db>, values: impl Iterator<Item = T>)
where
    T: for<'q> sqlx::Encode<'q, Db> + sqlx::Type<Db> + Send + 'static,
{
    let mut listed = query.separated(", ");
    let mut none = true;
    for value in values {
        listed.push_bind(value);
        none = false;
    }
    query.push(if none { "NULL)" } else { ")" });
}
