//! What a row of a list has to be: the one builder of conditions, for page, count and export.

use super::{
    dialect::{Db, words},
    rows::text,
};
use crate::store::{ListScope, RequestList, search::folded};
use domain::{
    correlation::CORRELATION_LABEL,
    name::Name,
    search::{Field, Filter, Operator, Values},
    time::Moment,
};
use sqlx::QueryBuilder;

/// How much later a request may seem to have been accepted than it was finished, in milliseconds: two servers' clocks.
const CLOCKS: i64 = 86_400_000;

/// Writes whose a row has to be: this team's, or anybody's in the scope.
pub(super) fn within(query: &mut QueryBuilder<Db>, list: &RequestList, team: Option<&Name>) {
    match (team, &list.scope) {
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
}

/// Writes what a row has to be, of this team or of the whole scope.
pub(super) fn conditions(query: &mut QueryBuilder<Db>, list: &RequestList, team: Option<&Name>) {
    within(query, list, team);
    for filter in list.search.filters() {
        query.push(" AND ");
        compared(query, filter);
    }
    for (key, value) in list.search.labels() {
        query.push(" AND ");
        labelled(query, key, value);
    }
    for (name, value) in list.search.parameters() {
        query.push(" AND ");
        words::member(query, "request.parameters", &text(name), &text(value));
    }
    if let Some(free) = list.search.text() {
        query
            .push(" AND EXISTS (SELECT 1 FROM sought WHERE sought.request = request.id AND ")
            .push(words::POSITION)
            .push("(sought.text, ")
            .push_bind(folded(free))
            .push(") > 0 LIMIT 1 OFFSET 0)");
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
    query.push(EACH);
}

/// The end of a look that is made for each row by an index. Without the bounds PostgreSQL would rather read all that was
/// ever sent again, once.
const EACH: &str = " LIMIT 1 OFFSET 0))";

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
            query.push(EACH);
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
        (Field::FinishedAt, Values::Moments(moments)) if filter.operator == Operator::LessThan => {
            compared_bare(query, filter, &format!("{}{column}", words::UNINDEXED));
            // So that the walk through the newest does not begin at today.
            accepted_before(query, "request", moments);
        }
        _ => compared_bare(query, filter, &format!("{}{column}", words::UNINDEXED)),
    }
}

/// Writes that a row was accepted before it was finished, which was before these.
pub(super) fn accepted_before(query: &mut QueryBuilder<Db>, table: &str, finished: &[Moment]) {
    for moment in finished {
        query.push(format!(" AND {table}.created_at < ")).push_bind(moment.millis().saturating_add(CLOCKS));
    }
}

/// The test of a filter on a column. What has no value is not any value, too.
pub(super) fn compared_bare(query: &mut QueryBuilder<Db>, filter: Filter<'_>, column: &str) {
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
pub(super) fn tested(query: &mut QueryBuilder<Db>, column: &str, operator: Operator, texts: &[String]) {
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
pub(super) fn listed<T>(query: &mut QueryBuilder<Db>, values: impl Iterator<Item = T>)
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
