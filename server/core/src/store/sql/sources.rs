//! The conditions of a search that an index knows.

use super::{
    conditions::{compared_bare, conditions, listed, tested},
    dialect::{Connection, Db, words},
    rows::text,
    samples,
};
use crate::store::{
    ListScope, RequestList, StoreResult,
    search::{
        Of, Sampled, Terms, field_term, folded, further_term, is_whole, label_term, parameter_term, team_term,
    },
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
    /// Those with one of these actions, none of which is a create; of these teams, if any are named.
    Actions(Filter<'l>, Vec<String>),
    /// Those in one of these states, open ones and ones that ended otherwise than well; of these teams, if any are named.
    States(Vec<RequestState>, Vec<String>),
    /// Those with these terms.
    Terms(Terms),
    /// Of those the ones with this text among their words.
    Worded(Terms, String),
    /// Those with this text among their words.
    Words(String, Sampled),
    /// The same by looking through all words.
    Scan(String, Sampled),
    /// Those in the scope of the list.
    Scope(&'l ListScope),
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
    for mut terms in terms(list) {
        terms.frequent = words::frequent(connection, &terms, None).await?;
        sources.push(Source::Terms(terms));
    }
    let mut sought = Vec::new();
    for filter in search.filters() {
        match (filter.field, filter.operator, filter.values) {
            (Field::CorrelationId, Operator::Equals | Operator::In, Values::Texts(texts)) => {
                sources.push(Source::Correlation(filter.operator, texts.clone()));
            }
            // A beginning is a span of the column's index, and no other finds it sooner.
            (Field::ParentId, Operator::Equals | Operator::In, Values::Ids(_))
            | (
                Field::Name | Field::Offering | Field::RequestedBy,
                Operator::Equals | Operator::In | Operator::StartsWith,
                _,
            ) => sources.push(Source::Column(filter)),
            (Field::Action, Operator::Equals | Operator::In, Values::Texts(texts))
                if texts.iter().all(|action| action != domain::action::CREATE) =>
            {
                sources.push(Source::Actions(filter, teams(&list.scope)));
            }
            (Field::State, ..) => {
                let states = filter.states();
                if !states.contains(&RequestState::Succeeded) {
                    sources.push(Source::States(states, teams(&list.scope)));
                }
            }
            (
                Field::Name | Field::RequestedBy | Field::CorrelationId,
                Operator::Contains,
                Values::Texts(texts),
            )
            | (Field::CorrelationId, Operator::StartsWith, Values::Texts(texts)) => {
                sought.extend(texts.iter().map(|text| folded(text)));
            }
            _ => {}
        }
    }
    for (key, value) in search.labels() {
        if key == CORRELATION_LABEL {
            sources.push(Source::Correlation(Operator::Equals, vec![value.clone()]));
        }
    }
    sought.extend(search.text().map(folded));
    let mut scanned = Vec::new();
    let indexed = !sought.is_empty() && words::indexed(connection).await?;
    for text in sought {
        let sampled = samples::sampled(connection, &text).await?;
        if indexed && words::findable(&text) && !(words::LOOKS_THROUGH && sampled.frequent) {
            sources.push(Source::Words(text, sampled));
        } else {
            scanned.push((text, sampled));
        }
    }
    for field in [Field::FinishedAt, Field::CreatedAt] {
        if search.filters().any(|filter| filter.field == field && bounds(filter.operator)) {
            sources.push(Source::Times(field, search));
        }
    }
    // One by one as they stand there, which is faster than in the order of requests.
    if let (true, Some((text, sampled))) = (sources.is_empty(), scanned.pop()) {
        sources.push(Source::Scan(text, sampled));
    }
    let everything = search.filters().next().is_none()
        && search.labels().is_empty()
        && search.parameters().is_empty()
        && search.text().is_none();
    if !everything && !matches!(list.scope, ListScope::All) {
        sources.push(Source::Scope(&list.scope));
    }
    Ok(sources)
}

/// The teams of a scope, where it is one of teams.
fn teams(scope: &ListScope) -> Vec<String> {
    match scope {
        ListScope::Team(team) => vec![team.to_string()],
        ListScope::Teams(teams) => teams.iter().map(ToString::to_string).collect(),
        ListScope::All | ListScope::RequestedBy(_) => Vec::new(),
    }
}

/// Adds that it is one of these teams', if any are named.
fn of_teams(query: &mut QueryBuilder<Db>, unindexed: &str, teams: &[String]) {
    if !teams.is_empty() {
        query.push(format!(" AND {unindexed}team IN ("));
        listed(query, teams.iter().cloned());
    }
}

/// What a search asks for in terms that every row of words of a request has.
fn own_terms(search: &Search) -> Vec<String> {
    let of_field = |filter: Filter<'_>| match (filter.operator, filter.values) {
        (Operator::Equals, Values::Texts(texts)) => field_term(filter.field, &texts.concat()),
        _ => None,
    };
    let fields = search.filters().filter_map(of_field);
    fields.chain(search.parameters().iter().map(|(name, value)| parameter_term(name, value))).collect()
}

/// These terms, and those of the teams.
fn scoped(mut all: Vec<String>, scope: &ListScope) -> Terms {
    let mut any = Vec::new();
    match scope {
        ListScope::Team(team) => all.push(team_term(team.as_str())),
        ListScope::Teams(teams) => any.extend(teams.iter().map(|team| team_term(team.as_str()))),
        ListScope::All | ListScope::RequestedBy(_) => {}
    }
    Terms { all, any, of: Of::Either, frequent: false }
}

/// What a search asks for in terms. A label may have come with any key of a request, so each is looked for by itself,
/// together with all that every row of words has.
fn terms(list: &RequestList) -> Vec<Terms> {
    let search = &list.search;
    let own = own_terms(search);
    let labels = search.labels().iter().filter(|(key, _)| *key != CORRELATION_LABEL);
    let labels: Vec<String> = labels.map(|(key, value)| label_term(key, value)).collect();
    // One that a column's own index knows needs no other.
    let everywhere = matches!(list.scope, ListScope::All);
    let known = |filter: Filter<'_>| matches!(filter.field, Field::Offering | Field::RequestedBy);
    let is_known = everywhere && search.parameters().is_empty() && search.filters().any(known);
    if labels.is_empty() && (own.is_empty() || own.len() == 1 && is_known) {
        return Vec::new();
    }
    let terms = scoped(own, &list.scope);
    if labels.is_empty() {
        return vec![terms.of_requests()];
    }
    let with =
        |label: String| Terms { all: terms.all.iter().cloned().chain([label]).collect(), ..terms.clone() };
    labels.into_iter().map(with).collect()
}

/// The free text within the teams of a list, for a count: teams are far fewer rows than all, even where the text is frequent.
pub(super) async fn worded<'l>(
    connection: &mut Connection,
    list: &'l RequestList,
) -> StoreResult<Option<Source<'l>>> {
    let of_teams = matches!(list.scope, ListScope::Team(_) | ListScope::Teams(_));
    let text = list.search.text().filter(|_| of_teams && list.search.labels().is_empty());
    let Some(text) = text.map(folded) else { return Ok(None) };
    let mut terms = scoped(own_terms(&list.search), &list.scope);
    terms.frequent = words::frequent(connection, &terms, Some(&text)).await?;
    Ok(Some(Source::Worded(terms, text)))
}

/// The states that a list leaves out, where it asks for nothing else and they are few beside those that it asks for; of the
/// teams of its scope, if it is one of teams.
pub(super) fn left_out(list: &RequestList) -> Option<Source<'_>> {
    let search = &list.search;
    let alone = search.labels().is_empty() && search.parameters().is_empty() && search.text().is_none();
    let mut filters = search.filters();
    let (Some(filter), None, true) = (filters.next(), filters.next(), alone) else { return None };
    let states = if filter.field == Field::State { filter.states() } else { Vec::new() };
    if matches!(list.scope, ListScope::RequestedBy(_)) || !states.contains(&RequestState::Succeeded) {
        return None;
    }
    let others = OPEN.into_iter().chain(OTHERWISE).filter(|state| !states.contains(state)).collect();
    Some(Source::States(others, teams(&list.scope)))
}

/// Whether an operator bounds a span of time.
fn bounds(operator: Operator) -> bool {
    matches!(operator, Operator::Equals | Operator::GreaterThanOrEqualTo | Operator::LessThan)
}

impl Source<'_> {
    /// Whether this alone says what the whole list asks for.
    pub(super) fn says_all(&self, list: &RequestList) -> bool {
        let search = &list.search;
        let everywhere = matches!(list.scope, ListScope::All);
        let compared = search.filters().count();
        let alone = search.labels().is_empty() && search.parameters().is_empty() && search.text().is_none();
        match self {
            Self::Column(_) => everywhere && alone && compared == 1,
            Self::Actions(_, teams) | Self::States(_, teams) => {
                everywhere == teams.is_empty() && alone && compared == 1 && self.is_of(&list.scope)
            }
            Self::Times(field, _) => {
                everywhere
                    && alone
                    && search.filters().all(|filter| filter.field == *field && bounds(filter.operator))
            }
            Self::Terms(Terms { all, any, .. }) | Self::Worded(Terms { all, any, .. }, _) => {
                let asked = compared + search.parameters().len() + search.labels().len();
                let scope = usize::from(matches!(list.scope, ListScope::Team(_)));
                let scoped = !matches!(list.scope, ListScope::RequestedBy(_));
                scoped
                    && search.text().is_some() == matches!(self, Self::Worded(..))
                    && search.labels().len() <= 1
                    && all.len() == asked + scope
                    && all.iter().chain(any).all(|term| is_whole(term))
            }
            Self::Words(..) | Self::Scan(..) => {
                let text = search.labels().is_empty() && search.parameters().is_empty();
                everywhere && text && compared == 0 && search.text().is_some()
            }
            Self::Correlation(..) | Self::Scope(_) => false,
        }
    }

    /// Whether it is about what few do or how few end, and all that it gives is in the scope.
    pub(super) fn is_uncommon(&self, scope: &ListScope) -> bool {
        matches!(self, Self::Actions(..) | Self::States(..)) && self.is_of(scope)
    }

    /// Whether it is a span of the order in which lists are.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self, Self::Times(Field::CreatedAt, _))
    }

    /// Whether all that it gives is in the scope.
    pub(super) fn is_of(&self, scope: &ListScope) -> bool {
        match (scope, self) {
            (ListScope::All, _)
            | (ListScope::Team(_) | ListScope::Teams(_), Self::Terms(..) | Self::Worded(..)) => true,
            (_, Self::Actions(_, teams) | Self::States(_, teams)) => !teams.is_empty(),
            _ => false,
        }
    }

    /// Whether it is a span of its index, which is in another order than lists are.
    pub(super) fn is_span(&self) -> bool {
        matches!(self, Self::Column(filter) if filter.operator == Operator::StartsWith)
    }

    /// Whether it is read out of requests themselves, each of which it gives once.
    pub(super) fn is_of_requests(&self) -> bool {
        !matches!(
            self,
            Self::Correlation(..) | Self::Terms(..) | Self::Worded(..) | Self::Words(..) | Self::Scan(..)
        )
    }

    /// Whether it gives every request once.
    pub(super) fn is_once(&self) -> bool {
        matches!(self, Self::Terms(Terms { of: Of::Requests, .. })) || self.is_of_requests()
    }

    /// Whether it is known to have many, without a look.
    pub(super) fn is_frequent(&self) -> bool {
        match self {
            Self::Terms(terms) => terms.frequent,
            Self::Words(_, sampled) | Self::Scan(_, sampled) => sampled.frequent,
            _ => false,
        }
    }

    /// Whether its rows are of texts, found by an index that takes its time.
    pub(super) fn is_of_words(&self) -> bool {
        matches!(self, Self::Words(..))
    }

    /// Writes the look for so many rows as it has, if that is less to do than the look for its requests; without those of
    /// further keys, where they are told apart.
    pub(super) fn count(&self, query: &mut QueryBuilder<Db>) {
        match self {
            Self::Terms(terms) if terms.of == Of::Either => {
                words::rows_with_terms(query, &terms.of_requests());
            }
            Self::Terms(terms) => words::rows_with_terms(query, terms),
            _ => self.look(query),
        }
    }

    /// Where the rows of further keys may be of other requests than those that were counted: those rows.
    pub(super) fn further(&self) -> Option<Self> {
        match self {
            Self::Terms(terms) if terms.of == Of::Either => Some(Self::Terms(terms.of_further_keys())),
            _ => None,
        }
    }

    /// The same of a frequent text that is looked for in all words: requests with it in their own, without those that have it
    /// in a further key's only.
    pub(super) fn in_own_words(&self, query: &mut QueryBuilder<Db>) -> bool {
        let own = matches!(self, Self::Scan(..)) && self.is_frequent();
        if own {
            self.look(query);
            query.push(" AND ").push(words::POSITION).push("(terms, ");
            query.push_bind(format!(" {} ", further_term())).push(") = 0");
        }
        own
    }

    /// Writes the look for its requests.
    pub(super) fn look(&self, query: &mut QueryBuilder<Db>) {
        self.select(query, "id", None);
    }

    /// Writes the look for these columns of its requests, of those that such a list holds where there is one; what is not
    /// read out of requests has no other column than `id`, and knows no list.
    pub(super) fn select(&self, query: &mut QueryBuilder<Db>, columns: &str, list: Option<&RequestList>) {
        let held = |query: &mut QueryBuilder<Db>| {
            if let Some(list) = list {
                query.push(" AND ");
                conditions(query, list, None);
            }
        };
        match self {
            Self::Correlation(operator, texts) => {
                query.push("SELECT id FROM request WHERE ");
                tested(query, "correlation_id", *operator, texts);
                query.push(" UNION ALL SELECT request FROM submission WHERE outcome = 'existing' AND request IS NOT NULL AND ");
                tested(query, "correlation_id", *operator, texts);
            }
            Self::Column(filter) => {
                query.push(format!("SELECT {columns} FROM request WHERE "));
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
                    }
                    _ => compared_bare(query, *filter, column),
                }
                held(query);
            }
            Self::Actions(filter, teams) => {
                query.push(format!("SELECT {columns} FROM request WHERE action <> 'create' AND "));
                compared_bare(query, *filter, "action");
                of_teams(query, "", teams);
                held(query);
            }
            Self::States(states, teams) => {
                let of = |known: &[RequestState]| -> Vec<String> {
                    states.iter().filter(|state| known.contains(state)).map(ToString::to_string).collect()
                };
                // Few are open, of whichever team.
                for (union, kind, known, unindexed) in [
                    ("", "finished_at IS NULL", &OPEN[..], words::UNINDEXED),
                    (" UNION ALL ", "state IN ('failed', 'canceled', 'rejected')", &OTHERWISE, ""),
                ] {
                    query.push(format!("{union}SELECT {columns} FROM request WHERE {kind} AND state IN ("));
                    listed(query, of(known).into_iter());
                    of_teams(query, unindexed, teams);
                    held(query);
                }
            }
            Self::Terms(terms) => words::having_terms(query, terms, None),
            Self::Worded(terms, text) => words::having_terms(query, terms, Some(text)),
            Self::Words(text, sampled) => words::having(query, text, sampled.rare.as_deref()),
            Self::Scan(text, _) => {
                query.push("SELECT request AS id FROM sought WHERE ").push(words::POSITION).push("(text, ");
                query.push_bind(text.clone()).push(") > 0");
            }
            Self::Scope(scope) => {
                query.push(format!("SELECT {columns} FROM request WHERE "));
                match scope {
                    ListScope::All => {
                        query.push("true");
                    }
                    ListScope::Team(team) => {
                        query.push("team = ").push_bind(team.to_string());
                    }
                    ListScope::Teams(teams) => {
                        query.push("team IN (");
                        listed(query, teams.iter().map(ToString::to_string));
                    }
                    ListScope::RequestedBy(principal) => {
                        query.push("principal = ").push_bind(principal.0);
                    }
                }
                held(query);
            }
            Self::Times(field, search) => {
                query.push(format!("SELECT {columns} FROM request WHERE {field} IS NOT NULL"));
                for filter in search.filters().filter(|one| one.field == *field && bounds(one.operator)) {
                    query.push(" AND ");
                    compared_bare(query, filter, field.as_str());
                }
                held(query);
            }
        }
    }
}
