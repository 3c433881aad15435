//! The conditions of a search that an index knows.

use super::{
    conditions::{compared_bare, listed, tested},
    dialect::{Connection, Db, words},
    rows::text,
};
use crate::store::{
    ListScope, RequestList, StoreResult,
    search::{folded, label_term, parameter_term},
};
use domain::{
    correlation::CORRELATION_LABEL,
    search::{Field, Filter, Operator, Search, Values},
    state::RequestState,
};
use sqlx::QueryBuilder;

/// States of what is not at its end.
const OPEN: [RequestState; 4] =
    [RequestState::PendingApproval, RequestState::Queued, RequestState::Running, RequestState::Unknown];
/// States of what ended otherwise than well.
const OTHERWISE: [RequestState; 3] = [RequestState::Failed, RequestState::Canceled, RequestState::Rejected];

/// A condition that an index knows.
pub(super) enum Source<'l> {
    /// Those that are, or that were asked for once more, under a correlation ID.
    Correlation(Operator, Vec<String>),
    /// Those that a column's index knows.
    Column(Filter<'l>),
    /// Those in one of these states, open ones and ones that ended otherwise than well; of these teams, if any are named.
    States(Vec<RequestState>, Vec<String>),
    /// Those with this label or parameter.
    Term(String),
    /// Those with this text among their words.
    Words(String),
    /// Those in a span of time.
    Times(Field, &'l Search),
}

/// The conditions of a search that an index knows, those that give their rows for the least first.
pub(super) async fn sources<'l>(
    connection: &mut Connection,
    list: &'l RequestList,
) -> StoreResult<Vec<Source<'l>>> {
    let search = &list.search;
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
                    let teams = match &list.scope {
                        ListScope::Team(team) => vec![team.to_string()],
                        ListScope::Teams(teams) => teams.iter().map(ToString::to_string).collect(),
                        ListScope::All | ListScope::RequestedBy(_) => Vec::new(),
                    };
                    sources.push(Source::States(states, teams));
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
            sources.push(Source::Term(label_term(key, value)));
        }
    }
    let parameters = search.parameters().iter();
    sources.extend(parameters.map(|(name, value)| Source::Term(parameter_term(name, value))));
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
    /// Whether this alone, in the scope of all there is, says what the whole search asks for, and each row once.
    pub(super) fn says_all(&self, search: &Search) -> bool {
        let alone = search.labels().is_empty() && search.parameters().is_empty() && search.text().is_none();
        alone
            && match self {
                Self::Column(filter) => {
                    search.filters().count() == 1 && filter.operator != Operator::StartsWith
                }
                Self::States(_, teams) => search.filters().count() == 1 && teams.is_empty(),
                Self::Times(field, _) => {
                    search.filters().all(|filter| filter.field == *field && bounds(filter.operator))
                }
                Self::Correlation(..) | Self::Term(_) | Self::Words(_) => false,
            }
    }

    /// Writes the look for its requests.
    pub(super) fn look(&self, query: &mut QueryBuilder<Db>) {
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
            Self::States(states, teams) => {
                let of = |known: &[RequestState]| -> Vec<String> {
                    states.iter().filter(|state| known.contains(state)).map(ToString::to_string).collect()
                };
                query.push("SELECT id FROM request WHERE finished_at IS NULL AND state IN (");
                listed(query, of(&OPEN).into_iter());
                query.push(
                    " UNION ALL SELECT id FROM request WHERE state IN ('failed', 'canceled', 'rejected') AND state IN (",
                );
                listed(query, of(&OTHERWISE).into_iter());
                if !teams.is_empty() {
                    query.push(" AND team IN (");
                    listed(query, teams.iter().cloned());
                }
            }
            Self::Term(term) => words::having_term(query, term),
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
