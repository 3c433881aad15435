//! Counts of duplicates. Arrivals that changed nothing are counted as they are written down or only counted, reports of
//! work elsewhere as they are met again; what was decided with a claim is counted where it is kept.

use super::{
    dialect::{Connection, Database, Db, DbRow},
    rows::{self, REQUEST},
};
use crate::store::{
    Arrived, StoreError, StoreResult,
    duplicates::{Duplicates, PeriodCount, SourceCount, slot},
};
use async_trait::async_trait;
use domain::{duplicates::Rule, name::Name, time::Moment, view::RequestView};
use sqlx::{AssertSqlSafe, QueryBuilder, Row as _};
use std::collections::BTreeMap;
use uuid::Uuid;

/// By what a duplicate is counted: the slot, the rule, and where it came from (channel, sender, token).
type Place = (i64, &'static str, &'static str, String, String);

fn place(at: Moment, rule: Rule, channel: &'static str, sent_by: &str, token_label: &str) -> Place {
    (slot(at), rule.as_str(), channel, rows::text(sent_by).into_owned(), rows::text(token_label).into_owned())
}

/// Counts one duplicate, in the transaction that finds it to be one.
pub(super) async fn count_one(
    connection: &mut Connection,
    at: Moment,
    rule: Rule,
    channel: &'static str,
    sent_by: &str,
) -> StoreResult<()> {
    add(connection, BTreeMap::from([(place(at, rule, channel, sent_by, ""), 1)])).await
}

/// Counts the duplicates among arrivals that changed nothing, each with how many like it there were, in the transaction
/// that writes them down.
pub(super) async fn count(
    connection: &mut Connection,
    arrivals: impl Iterator<Item = (&Arrived, u64)>,
) -> StoreResult<()> {
    // In one order, so that two servers that count at the same time never wait for each other.
    let mut counts = BTreeMap::new();
    for (arrived, times) in arrivals {
        let Some(rule) = Rule::of(arrived.outcome, arrived.problem) else { continue };
        let token_label = arrived.token_label.as_deref().unwrap_or_default();
        let place = place(arrived.at, rule, arrived.channel.as_str(), &arrived.sent_by, token_label);
        *counts.entry(place).or_default() += i64::try_from(times).unwrap_or(i64::MAX);
    }
    add(connection, counts).await
}

async fn add(connection: &mut Connection, counts: BTreeMap<Place, i64>) -> StoreResult<()> {
    if counts.is_empty() {
        return Ok(());
    }
    let meant = counts.len();
    let mut query = QueryBuilder::<Db>::new(
        "INSERT INTO duplicate_count (slot, rule, channel, sent_by, token_label, count) ",
    );
    query.push_values(counts, |mut row, ((slot, rule, channel, sent_by, token_label), count)| {
        row.push_bind(slot)
            .push_bind(rule)
            .push_bind(channel)
            .push_bind(sent_by)
            .push_bind(token_label)
            .push_bind(count);
    });
    query.push(
        " ON CONFLICT (slot, rule, channel, sent_by, token_label)
          DO UPDATE SET count = duplicate_count.count + excluded.count",
    );
    let met = query.build().execute(connection).await?.rows_affected();
    if u64::try_from(meant).is_ok_and(|meant| meant == met) {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!("duplicate_count: {met} rows instead of {meant}")))
    }
}

/// A table in which duplicates are counted.
struct Counted {
    /// The table, with the condition of the index that finds them.
    table: &'static str,
    which: &'static str,
    /// When they arrived.
    at: &'static str,
    rule: &'static str,
    sent_by: &'static str,
    token_label: &'static str,
    count: &'static str,
}

const COUNTED: [Counted; 3] = [
    Counted {
        table: "duplicate_count",
        which: "true",
        at: "slot",
        rule: "rule",
        sent_by: "sent_by",
        token_label: "token_label",
        count: "sum(count)",
    },
    Counted {
        table: "submission",
        which: "outcome = 'existing'",
        at: "at",
        rule: "'existing'",
        sent_by: "sent_by",
        token_label: "coalesce(token_label, '')",
        count: "count(*)",
    },
    Counted {
        table: "request",
        which: "duplicate_of IS NOT NULL",
        at: "created_at",
        rule: "CASE WHEN duplicate_reason IS NULL THEN 'recorded' ELSE 'confirmed' END",
        sent_by: "requested_by",
        token_label: "coalesce((SELECT submission.token_label FROM submission
                                  WHERE submission.request = request.id AND submission.outcome = 'first'
                                  ORDER BY submission.at, submission.id LIMIT 1), '')",
        count: "count(*)",
    },
];

async fn periods(connection: &mut Connection, edges: &[Moment]) -> StoreResult<Vec<PeriodCount>> {
    let mut found = Vec::new();
    for Counted { table, which, at, rule, count, .. } in &COUNTED {
        let mut query = QueryBuilder::<Db>::new("WITH edge (place, low, high) AS (");
        let places = edges.windows(2).enumerate();
        query.push_values(places, |mut row, (place, edges)| {
            row.push_bind(i64::try_from(place).unwrap_or(i64::MAX))
                .push_bind(edges[0].millis())
                .push_bind(edges[1].millis());
        });
        // A cross join is done in the order in which it stands: for each period a look into the index.
        query.push(format!(
            ") SELECT edge.place AS place, {rule} AS rule, channel, CAST({count} AS BIGINT) AS found
                FROM edge CROSS JOIN {table}
               WHERE {which} AND {at} >= edge.low AND {at} < edge.high
               GROUP BY 1, 2, 3"
        ));
        for row in query.build().fetch_all(&mut *connection).await? {
            let place: i64 = row.try_get("place")?;
            let place = usize::try_from(place).map_err(|error| StoreError::Corrupt(error.to_string()))?;
            found.push(PeriodCount {
                place,
                rule: ruled(&row)?,
                channel: row.try_get("channel")?,
                count: row.try_get("found")?,
            });
        }
    }
    Ok(found)
}

async fn sources(
    connection: &mut Connection,
    (from, to): (Moment, Moment),
    limit: u32,
) -> StoreResult<Vec<SourceCount>> {
    let mut found = Vec::new();
    for Counted { table, which, at, rule, sent_by, token_label, count } in &COUNTED {
        let rows = sqlx::query(AssertSqlSafe(format!(
            "SELECT {rule} AS rule, channel, {sent_by} AS sent_by, {token_label} AS token_label,
                    CAST({count} AS BIGINT) AS found
               FROM {table} WHERE {which} AND {at} >= $1 AND {at} < $2
              GROUP BY 1, 2, 3, 4 ORDER BY found DESC, 1, 2, 3, 4 LIMIT $3"
        )))
        .bind(from.millis())
        .bind(to.millis())
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await?;
        for row in rows {
            found.push(SourceCount {
                rule: ruled(&row)?,
                channel: row.try_get("channel")?,
                sent_by: row.try_get("sent_by")?,
                token_label: row.try_get("token_label")?,
                count: row.try_get("found")?,
            });
        }
    }
    Ok(found)
}

fn ruled(row: &DbRow) -> StoreResult<Rule> {
    let word: String = row.try_get("rule")?;
    word.parse().map_err(StoreError::Corrupt)
}

async fn creates_of(
    connection: &mut Connection,
    offering: &str,
    since: Moment,
    after: Option<(Moment, Uuid)>,
    limit: u32,
) -> StoreResult<Vec<RequestView>> {
    let (at, id) = after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.millis(), id));
    let found = sqlx::query(AssertSqlSafe(format!(
        "SELECT {REQUEST} FROM request
          WHERE offering = $1 AND action = 'create' AND created_at >= $2 AND (created_at, id) < ($3, $4)
          ORDER BY created_at DESC, id DESC LIMIT $5"
    )))
    .bind(offering)
    .bind(since.millis())
    .bind(at)
    .bind(id)
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| rows::request(row).map(|request| request.view)).collect()
}

#[async_trait]
impl Duplicates for Database {
    async fn duplicates(
        &self,
        edges: Vec<Moment>,
        limit: u32,
    ) -> StoreResult<(Vec<PeriodCount>, Vec<SourceCount>)> {
        self.snapshot((edges, limit), |(edges, limit), connection| {
            Box::pin(async move {
                let (Some(from), Some(to)) = (edges.first(), edges.last()) else {
                    return Ok((Vec::new(), Vec::new()));
                };
                let periods = periods(connection, edges).await?;
                Ok((periods, sources(connection, (*from, *to), *limit).await?))
            })
        })
        .await
    }

    async fn creates_of(
        &self,
        offering: &Name,
        since: Moment,
        after: Option<(Moment, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<RequestView>> {
        self.read((offering, since, after, limit), |(offering, since, after, limit), connection| {
            Box::pin(creates_of(connection, offering.as_str(), *since, *after, *limit))
        })
        .await
    }
}
