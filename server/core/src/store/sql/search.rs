//! Searching among requests. One builder writes the conditions of page, count and export.
//!
//! A page is read in one of two ways, and which one is decided by looking rather than by guessing. Every condition that an
//! index knows is asked how many rows it lets through, unless it is known for many. If one of them lets through no more than
//! [`FEW`], those rows are taken and looked at ("few"). Otherwise matches are most often frequent enough to walk through the
//! requests in their order until the page is full ("walk"); where they all lie far back, the walk is given up.

use super::{
    conditions::{accepted_before, compared_bare, conditions, listed, within},
    dialect::{Connection, Db, DbRow, words},
    rows::{self, REQUEST},
    sources::{Source, left_out, sources, worded},
};
use crate::store::{ListScope, RequestList, StoreResult};
use domain::{
    name::Name,
    search::{Cursor, Field, Operator, Values},
    time::Moment,
    view::{Page, RequestView},
};
use sqlx::{QueryBuilder, Row};
use std::cmp::Reverse;
use uuid::Uuid;

/// Up to where a total is counted.
pub(super) const COUNTED: i64 = 10_000;
/// How many rows more are counted, since a request may have several.
const SPARE: i64 = COUNTED / 10;
/// How many rows are taken and sorted at the most, rather than walked through.
const FEW: i64 = 5_000;
/// How many rows found by words are kept for a second look, rather than looked for again.
const KEPT: usize = 500;
/// How many rows of a list's scope are walked through before what is sought is taken from a source.
const WALKED: i64 = 20_000;
/// How many teams are walked through side by side. Of more, the rows of all are walked through.
const BRANCHES: usize = 16;

/// A page of requests, newest first, and how many there are.
pub(super) async fn requests(
    connection: &mut Connection,
    list: &RequestList,
) -> StoreResult<Page<RequestView>> {
    let found = Found::look(connection, list, true).await?;
    let (total, (results, next)) = if let Some(few) = found.few {
        let places = found.places(connection, few).await?;
        let total = i64::try_from(places.len()).unwrap_or(i64::MAX);
        (total, found.page_of(connection, places).await?)
    } else {
        let total = found.count(connection).await?;
        let page = match found.farther() {
            _ if total == 0 => (Vec::new(), None),
            // Few in all, of whom nobody knows where they are.
            Some(source) if total <= FEW => {
                let places = found.places(connection, source).await?;
                found.page_of(connection, places).await?
            }
            _ => found.walk(connection).await?,
        };
        (total, page)
    };
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
    let found = Found::look(connection, list, false).await?;
    match found.few {
        Some(few) => {
            let places = found.places(connection, few).await?;
            found.page_of(connection, places).await
        }
        None => found.walk(connection).await,
    }
}

/// A list, and how its rows are read.
struct Found<'l> {
    list: &'l RequestList,
    /// Whether one wants to know how many it holds.
    counted: bool,
    sources: Vec<Source<'l>>,
    /// How many rows each source has, as far as they were counted.
    counts: Vec<Option<Count>>,
    /// The source whose rows are few.
    few: Option<usize>,
    /// Its requests, where they were found by words.
    ids: Option<Vec<Uuid>>,
}

/// How many rows a source has.
#[derive(Clone, Copy)]
struct Count {
    /// Those of requests, where they are told apart: to beyond [`FEW`], or to beyond [`COUNTED`] where they tell a total.
    own: i64,
    /// Those of further keys, where the former are few, to beyond [`FEW`].
    further: i64,
}

impl Count {
    fn few(self) -> Option<i64> {
        Some(self.own + self.further).filter(|rows| *rows <= FEW)
    }
}

impl<'l> Found<'l> {
    /// Decides how a list is read.
    async fn look(connection: &mut Connection, list: &'l RequestList, counted: bool) -> StoreResult<Self> {
        let sources = sources(connection, list).await?;
        let counts = vec![None; sources.len()];
        let mut found = Self { list, counted, sources, counts, few: None, ids: None };
        if found.nowhere() {
            return Ok(found);
        }
        let counted: Vec<(usize, i64)> = found
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| !source.is_frequent() && !source.is_of_words())
            .map(|(place, source)| (place, found.up_to(source)))
            .collect();
        let looks = counted.iter().map(|(place, up_to)| (&found.sources[*place], *up_to));
        let counts = rows_of(connection, looks.collect()).await?;
        counted
            .iter()
            .zip(counts)
            .for_each(|((place, _), own)| found.counts[*place] = Some(Count { own, further: 0 }));
        found.count_further(connection).await?;
        // A span of the order in which the list is anyway is walked through, however short.
        let in_order = |place: &usize| {
            let source = &found.sources[*place];
            source.is_in_order() && source.says_all(list)
        };
        found.few = (0..found.sources.len())
            .filter_map(|place| Some((found.counts[place]?.few()?, place)))
            .min_by_key(|(rows, _)| *rows)
            .map(|(_, place)| place)
            .filter(|place| !in_order(place));
        found.look_for_words(connection).await?;
        Ok(found)
    }

    /// Up to where the rows of a source are counted.
    fn up_to(&self, source: &Source<'_>) -> i64 {
        let tells =
            self.counted && source.says_all(self.list) && (source.is_once() || source.further().is_some());
        if tells { COUNTED + 1 } else { FEW + 1 }
    }

    /// Counts the rows of further keys: few requests that have it themselves are not few if those brought it to many more.
    async fn count_further(&mut self, connection: &mut Connection) -> StoreResult<()> {
        let few = |place: &usize| self.counts[*place].is_some_and(|count| count.few().is_some());
        let further: Vec<(usize, Source<'_>)> = (0..self.sources.len())
            .filter(few)
            .filter_map(|place| Some((place, self.sources[place].further()?)))
            .collect();
        let counts =
            rows_of(connection, further.iter().map(|(_, source)| (source, FEW + 1)).collect()).await?;
        for ((place, _), count) in further.iter().zip(counts) {
            self.counts[*place] = self.counts[*place].map(|of| Count { further: count, ..of });
        }
        Ok(())
    }

    /// Looks for what has the words that are asked for, as long as nothing else is as few.
    async fn look_for_words(&mut self, connection: &mut Connection) -> StoreResult<()> {
        let of_words = |(_, source): &(usize, &Source<'_>)| source.is_of_words() && !source.is_frequent();
        for (place, source) in self.sources.iter().enumerate().filter(of_words) {
            let fewest = self.few.and_then(|few| self.counts[few]?.few());
            if fewest.is_some_and(|fewest| usize::try_from(fewest).is_ok_and(|fewest| fewest <= KEPT)) {
                break;
            }
            let mut query = QueryBuilder::new("SELECT id FROM (");
            source.look(&mut query);
            query.push(") AS source LIMIT ").push_bind(FEW + 1);
            let ids: Vec<Uuid> =
                query.build_query_scalar().persistent(false).fetch_all(&mut *connection).await?;
            let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
            self.counts[place] = Some(Count { own: count, further: 0 });
            if count <= FEW && fewest.is_none_or(|fewest| count < fewest) {
                self.few = Some(place);
                self.ids = (ids.len() <= KEPT).then_some(ids);
            }
        }
        Ok(())
    }

    /// Whether nothing can be seen at all.
    fn nowhere(&self) -> bool {
        matches!(&self.list.scope, ListScope::Teams(teams) if teams.is_empty())
    }

    /// The places of all there are, newest first, where they are among few: those of a source.
    async fn places(&self, connection: &mut Connection, place: usize) -> StoreResult<Vec<Cursor>> {
        let source = &self.sources[place];
        let mut query = if self.is_direct(source) {
            let mut query = QueryBuilder::new("");
            source.select(&mut query, "created_at, id", self.other_than(source));
            query
        } else if let (true, Some(ids)) = (self.few == Some(place), &self.ids) {
            let mut query = QueryBuilder::new("SELECT created_at, id FROM request WHERE id IN (");
            listed(&mut query, ids.iter().copied());
            self.and_other(&mut query, source);
            query
        } else {
            let mut query = taken(source);
            query.push(
                "SELECT request.created_at, request.id FROM taken CROSS JOIN request WHERE request.id = taken.found",
            );
            self.and_other(&mut query, source);
            query
        };
        let found = query.build().persistent(false).fetch_all(connection).await?;
        let place = |row: &DbRow| -> StoreResult<Cursor> {
            Ok(Cursor { at: Moment::from_millis(row.try_get(0)?), id: row.try_get(1)? })
        };
        let mut places = found.iter().map(place).collect::<StoreResult<Vec<_>>>()?;
        places.sort_unstable_by_key(|place| Reverse((place.at, place.id)));
        Ok(places)
    }

    /// Whether a source of requests is asked for what else the list asks for in one look.
    fn is_direct(&self, source: &Source<'_>) -> bool {
        source.is_of_requests() && (words::KNOWS_ROWS || source.says_all(self.list))
    }

    /// The list, where it asks for more than a source says.
    fn other_than(&self, source: &Source<'_>) -> Option<&'l RequestList> {
        (!source.says_all(self.list)).then_some(self.list)
    }

    /// The page out of the places of all.
    async fn page_of(
        &self,
        connection: &mut Connection,
        mut places: Vec<Cursor>,
    ) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        if let Some(after) = self.list.search.cursor() {
            places.retain(|place| (place.at, place.id) < (after.at, after.id));
        }
        let more = places.len() > self.size();
        places.truncate(self.size());
        if places.is_empty() {
            return Ok((Vec::new(), None));
        }
        let mut query = QueryBuilder::new(format!("SELECT {REQUEST} FROM request WHERE id IN ("));
        listed(&mut query, places.iter().map(|place| place.id));
        let rows = query.build().persistent(false).fetch_all(connection).await?;
        let mut results = views(&rows)?;
        results.sort_unstable_by_key(|one| Reverse((one.created_at, one.id)));
        Ok((results, places.last().copied().filter(|_| more)))
    }

    /// Adds what else the list asks for; and always in whose scope a request is, whatever words say of that.
    fn and_other(&self, query: &mut QueryBuilder<Db>, source: &Source<'_>) {
        query.push(" AND ");
        match self.other_than(source) {
            Some(list) => conditions(query, list, None),
            None => within(query, self.list, None),
        }
    }

    /// How many there are, counted to just beyond [`COUNTED`], where they are not few.
    async fn count(&self, connection: &mut Connection) -> StoreResult<i64> {
        if self.nowhere() {
            return Ok(0);
        }
        if let Some(place) = (0..self.sources.len()).find(|place| self.sources[*place].says_all(self.list)) {
            return self.count_all(connection, place).await;
        }
        if let Some(counted) = self.count_without(connection).await? {
            return Ok(counted);
        }
        // What did not end well is little beside all else.
        if let Some(source) = self.sources.iter().find(|source| source.is_uncommon(&self.list.scope)) {
            return self.count_of(connection, source).await;
        }
        if let Some(source) = worded(connection, self.list).await? {
            return self.count_of(connection, &source).await;
        }
        // No order is needed, so a source is as good for many rows as for few, unless most of them are others'.
        if let Some(source) = self.sources.iter().find(|source| source.is_of(&self.list.scope)) {
            return self.count_of(connection, source).await;
        }
        let mut query = QueryBuilder::new("SELECT count(*) FROM (");
        for (place, team) in self.branches().iter().enumerate() {
            query.push(if place == 0 { "" } else { " UNION ALL " }).push("SELECT 1 FROM request WHERE ");
            conditions(&mut query, self.list, *team);
        }
        query.push(" LIMIT ").push_bind(COUNTED + 1).push(") AS counted");
        Ok(query.build_query_scalar().persistent(false).fetch_one(connection).await?)
    }

    /// How many requests a source has that says all that the list asks for.
    async fn count_all(&self, connection: &mut Connection, place: usize) -> StoreResult<i64> {
        let source = &self.sources[place];
        let further = source.further();
        if !source.is_once() && further.is_none() {
            // What is frequent is most often so in more requests than are counted, and those need no comparing.
            let mut query = QueryBuilder::new("SELECT count(*) FROM (");
            if source.in_own_words(&mut query) {
                query.push(" LIMIT ").push_bind(COUNTED + 1).push(") AS own");
                let own: i64 =
                    query.build_query_scalar().persistent(false).fetch_one(&mut *connection).await?;
                if own > COUNTED {
                    return Ok(own);
                }
            }
            return self.count_of(connection, source).await;
        }
        let own = match self.counts[place] {
            Some(counted) => counted.own,
            None => rows_of(connection, vec![(source, COUNTED + 1)]).await?.into_iter().sum(),
        };
        let Some(further) = further.filter(|_| own <= COUNTED) else { return Ok(own) };
        // A further key has what never changes of its request, but labels of its own.
        match rows_of(connection, vec![(&further, 1)]).await?.as_slice() {
            [0] => Ok(own),
            _ => self.count_of(connection, source).await,
        }
    }

    /// How many there are of all in the scope without those that the list leaves out, where these are few: the indexes know
    /// both without a look at the requests.
    async fn count_without(&self, connection: &mut Connection) -> StoreResult<Option<i64>> {
        let Some(others) = left_out(self.list) else { return Ok(None) };
        let others: i64 = rows_of(connection, vec![(&others, FEW + 1)]).await?.into_iter().sum();
        if others > FEW {
            return Ok(None);
        }
        let all = Source::Scope(&self.list.scope);
        let all: i64 = rows_of(connection, vec![(&all, COUNTED + 1 + others)]).await?.into_iter().sum();
        Ok(Some(all - others))
    }

    /// How many requests of a source the list holds.
    async fn count_of(&self, connection: &mut Connection, source: &Source<'_>) -> StoreResult<i64> {
        // Few come twice, so that a few more than are counted are enough; and those are read one by one, where all of
        // them would have to be sorted.
        let once = source.is_once();
        let enough = if once { COUNTED + 1 } else { COUNTED + SPARE };
        let counted = if once { "count(*)" } else { "count(DISTINCT id)" };
        let mut query = QueryBuilder::new(format!("SELECT count(*), {counted} FROM ("));
        self.met(&mut query, source, "");
        query.push(" LIMIT ").push_bind(enough).push(") AS met");
        let row = query.build().persistent(false).fetch_one(&mut *connection).await?;
        let (met, counted): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if met < enough || counted > COUNTED {
            return Ok(counted);
        }
        let mut query = QueryBuilder::new("SELECT count(*) FROM (");
        self.met(&mut query, source, "DISTINCT ");
        query.push(" LIMIT ").push_bind(COUNTED + 1).push(") AS met");
        Ok(query.build_query_scalar().persistent(false).fetch_one(connection).await?)
    }

    /// Writes a look for what the list holds of a source.
    fn met(&self, query: &mut QueryBuilder<Db>, source: &Source<'_>, distinct: &str) {
        if self.is_direct(source) {
            source.select(query, "id", self.other_than(source));
            return;
        }
        query.push(format!("SELECT {distinct}source.id FROM ("));
        source.look(query);
        query.push(") AS source");
        if self.other_than(source).is_some() {
            query.push(" CROSS JOIN request WHERE request.id = source.id");
            self.and_other(query, source);
        }
    }

    /// The page, out of the rows in their order. Where the newest of them do not fill it, what is sought may lie far back,
    /// so that it is better taken from a source and sorted.
    async fn walk(&self, connection: &mut Connection) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        if self.nowhere() {
            return Ok((Vec::new(), None));
        }
        let Some(source) = self.farther().map(|place| &self.sources[place]) else {
            return self.walk_through(connection, None).await;
        };
        let (results, next) = self.walk_through(connection, Some(WALKED)).await?;
        if next.is_some() {
            return Ok((results, next));
        }
        let mut query = if source.says_all(self.list) && source.is_of_requests() {
            // Its index knows the order too, or the place in it, so that only the page itself is read.
            let mut query = QueryBuilder::new(format!(
                "SELECT {REQUEST} FROM request WHERE id IN (SELECT id FROM (SELECT source.created_at, source.id FROM ("
            ));
            if source.is_span() {
                // All of them are sorted; the order of all requests would be walked through for what may lie far back.
                query.push("WITH span AS MATERIALIZED (");
                source.select(&mut query, "created_at, id", None);
                query.push(") SELECT created_at, id FROM span");
            } else {
                source.select(&mut query, "created_at, id", None);
            }
            query.push(") AS source WHERE true");
            self.after(&mut query, "source");
            self.in_order(&mut query);
            query.push(") AS newest)");
            query
        } else {
            let mut query = taken(source);
            query.push(format!(
                "SELECT {REQUEST} FROM taken CROSS JOIN request WHERE request.id = taken.found"
            ));
            self.and_other(&mut query, source);
            self.after(&mut query, "request");
            query
        };
        self.in_order(&mut query);
        self.page(connection, query).await
    }

    /// The source that finds what lies far back.
    fn farther(&self) -> Option<usize> {
        let scope = &self.list.scope;
        let of_states = self.sources.iter().position(|source| source.is_uncommon(scope));
        of_states
            .or_else(|| self.sources.iter().position(|source| source.is_of(scope) && !source.is_in_order()))
    }

    /// The page, out of so many of the rows in their order, or of all of them.
    async fn walk_through(
        &self,
        connection: &mut Connection,
        bound: Option<i64>,
    ) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        let branches = self.branches();
        let several = branches.len() > 1;
        let mut query = QueryBuilder::new("");
        for (place, team) in branches.iter().enumerate() {
            if several {
                query.push(if place == 0 { "" } else { " UNION ALL " }).push("SELECT * FROM (");
            }
            query.push(format!("SELECT {REQUEST} FROM request WHERE "));
            conditions(&mut query, self.list, *team);
            self.after(&mut query, "request");
            if let Some(bound) = bound {
                self.not_beyond(&mut query, *team, bound);
            }
            self.in_order(&mut query);
            if several {
                query.push(format!(") AS branch{place}"));
            }
        }
        if several {
            self.in_order(&mut query);
        }
        self.page(connection, query).await
    }

    /// Leaves out what comes after so many rows of the list's scope, whatever else is asked for.
    fn not_beyond(&self, query: &mut QueryBuilder<Db>, team: Option<&Name>, bound: i64) {
        query.push(" AND request.created_at >= coalesce((SELECT created_at FROM request AS last WHERE ");
        match (team, &self.list.scope) {
            (Some(team), _) | (None, ListScope::Team(team)) => {
                query.push("last.team = ").push_bind(team.to_string());
            }
            (None, ListScope::RequestedBy(principal)) => {
                query.push("last.principal = ").push_bind(principal.0);
            }
            (None, _) => {
                query.push("true");
            }
        }
        for filter in self.list.search.filters() {
            match (filter.field, filter.operator, filter.values) {
                (Field::CreatedAt, ..) => {
                    query.push(" AND ");
                    compared_bare(query, filter, "last.created_at");
                }
                (Field::FinishedAt, Operator::LessThan, Values::Moments(moments)) => {
                    accepted_before(query, "last", moments);
                }
                _ => {}
            }
        }
        self.after(query, "last");
        query.push(" ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ").push_bind(bound).push("), 0)");
    }

    /// The rows of a page that holds one more where there is another after it.
    async fn page(
        &self,
        connection: &mut Connection,
        mut query: QueryBuilder<Db>,
    ) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        let rows = query.build().persistent(false).fetch_all(connection).await?;
        let mut results = views(&rows)?;
        let more = results.len() > self.size();
        results.truncate(self.size());
        let next = results.last().filter(|_| more).map(|last| Cursor { at: last.created_at, id: last.id.0 });
        Ok((results, next))
    }

    fn size(&self) -> usize {
        usize::try_from(self.list.search.size()).unwrap_or(usize::MAX)
    }

    /// One row more than the page holds tells whether there is another page.
    fn in_order(&self, query: &mut QueryBuilder<Db>) {
        query.push(" ORDER BY created_at DESC, id DESC LIMIT ");
        query.push_bind(i64::from(self.list.search.size()) + 1);
    }

    /// The teams whose rows are walked through side by side; one place without a team where the order is that of all.
    fn branches(&self) -> Vec<Option<&Name>> {
        match &self.list.scope {
            ListScope::Teams(teams) if teams.len() <= BRANCHES => teams.iter().map(Some).collect(),
            _ => vec![None],
        }
    }

    fn after(&self, query: &mut QueryBuilder<Db>, table: &str) {
        if let Some(Cursor { at, id }) = self.list.search.cursor() {
            query.push(format!(" AND ({table}.created_at, {table}.id) < ("));
            query.push_bind(at.millis()).push(", ").push_bind(id).push(")");
        }
    }
}

/// How many rows each of these sources has, counted to so many. Those of further keys are left out where they are told
/// apart.
async fn rows_of(connection: &mut Connection, sources: Vec<(&Source<'_>, i64)>) -> StoreResult<Vec<i64>> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new("SELECT ");
    for (place, (source, up_to)) in sources.iter().enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.push("SELECT count(*) FROM (SELECT 1 FROM (");
        source.count(&mut query);
        query.push(") AS source LIMIT ").push_bind(*up_to).push(format!(") AS up_to) AS n{place}"));
    }
    let row = query.build().persistent(false).fetch_one(connection).await?;
    Ok((0..sources.len()).map(|place| row.try_get(place)).collect::<Result<_, _>>()?)
}

/// The requests of a source, each once.
fn taken(source: &Source<'_>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("WITH taken (found) AS (SELECT DISTINCT source.id FROM (");
    source.look(&mut query);
    query.push(") AS source) ");
    query
}

fn views(rows: &[DbRow]) -> StoreResult<Vec<RequestView>> {
    rows.iter().map(|row| rows::request(row).map(|one| one.view)).collect()
}
