//! What a search asks of SQLite: JSON members, and the index of words by three letters.

use super::dialect::{Connection, Db};
use crate::store::{
    StoreError, StoreResult,
    search::{Of, Terms, further_term},
};
use sqlx::{QueryBuilder, Row};

/// Keeps an index from being chosen for a column, where another gives the rows in their order.
pub(in crate::store) const UNINDEXED: &str = "+";
/// The function that says where one text stands in another.
pub(in crate::store) const POSITION: &str = "instr";

/// Whether what is frequent is found sooner by looking through all than by an index, which gives its rows one by one here.
pub(in crate::store) const LOOKS_THROUGH: bool = false;
/// Whether the planner knows how many rows an index gives, and is trusted with the choice.
pub(in crate::store) const KNOWS_ROWS: bool = false;

/// Begins what reads first and writes then.
pub(in crate::store) const BEGIN: &str = "BEGIN IMMEDIATE";
/// How many bytes a row of words has.
pub(in crate::store) const BYTES: &str = "length(CAST(text AS BLOB))";

/// An ID as a text; without one there is no text that anything could be compared with.
pub(in crate::store) fn id_text(column: &str) -> String {
    format!(
        "iif({column} IS NULL, NULL, lower(substr(hex({column}), 1, 8) || '-' || substr(hex({column}), 9, 4) || '-' || substr(hex({column}), 13, 4)
               || '-' || substr(hex({column}), 17, 4) || '-' || substr(hex({column}), 21)))"
    )
}

/// Adds the test that a column's JSON object has this member, or has it in a list of this name, compared as text.
pub(in crate::store) fn member(query: &mut QueryBuilder<Db>, column: &str, name: &str, value: &str) {
    query
        .push("EXISTS (SELECT 1 FROM json_each(")
        .push(column)
        .push(") AS member WHERE member.key = ")
        .push_bind(name.to_owned())
        .push(" AND (");
    equal(query, "member", value);
    query.push(
        " OR member.type = 'array' AND EXISTS (SELECT 1 FROM json_each(member.value) AS element WHERE ",
    );
    equal(query, "element", value);
    query.push(")))");
}

/// Adds the test that what `json_each` gives is this text, or what has it as its one spelling.
fn equal(query: &mut QueryBuilder<Db>, row: &str, value: &str) {
    query.push(format!("({row}.type = 'text' AND {row}.value = ")).push_bind(value.to_owned());
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(serde_json::Value::Bool(_)) => {
            query.push(format!(" OR {row}.type = ")).push_bind(value.to_owned());
        }
        Ok(json @ serde_json::Value::Number(_)) => {
            // Only its one spelling is meant; others are texts.
            let spelled = domain::search::comparable(&json);
            if let (true, Some(number)) = (spelled.as_deref() == Some(value), json.as_f64()) {
                query
                    .push(format!(" OR {row}.type IN ('integer', 'real') AND {row}.value = "))
                    .push_bind(number);
            }
        }
        _ => {}
    }
    query.push(")");
}

/// Whether words like this are found by an index.
#[expect(clippy::unused_async, reason = "PostgreSQL may lack it")]
pub(in crate::store) async fn indexed(_: &mut Connection) -> StoreResult<bool> {
    Ok(true)
}

/// Whether an index by three letters finds this text: one of two letters begins a group of three, for there is a line's
/// end after every word.
pub(in crate::store) fn findable(text: &str) -> bool {
    text.chars().nth(1).is_some() && !text.ends_with('\n')
}

/// Whether terms and a text are found sooner by looking through all words than by an index.
#[expect(clippy::unused_async, reason = "PostgreSQL has to look")]
pub(in crate::store) async fn frequent(_: &mut Connection, _: &Terms, _: Option<&str>) -> StoreResult<bool> {
    Ok(false)
}

/// Adds a look for requests with these terms, and with this text among their words. It may give one more than once, unless
/// the terms are those of a request's own row.
pub(in crate::store) fn having_terms(query: &mut QueryBuilder<Db>, terms: &Terms, text: Option<&str>) {
    let with = |query: &mut QueryBuilder<Db>| {
        if let Some(text) = text {
            query.push(" AND instr(sought.text, ").push_bind(text.to_owned()).push(") > 0");
        }
    };
    query.push(
        "SELECT sought.request AS id FROM sought_term CROSS JOIN sought ON sought.id = sought_term.rowid
          WHERE sought_term MATCH ",
    );
    query.push_bind(matched(terms));
    with(query);
    query.push(" UNION ALL SELECT request FROM sought WHERE ");
    not_indexed(query, terms);
    with(query);
}

/// Adds a look for as many rows as words have these terms. It takes the index alone.
pub(in crate::store) fn rows_with_terms(query: &mut QueryBuilder<Db>, terms: &Terms) {
    query.push("SELECT 1 FROM sought_term WHERE sought_term MATCH ").push_bind(matched(terms));
    query.push(" UNION ALL SELECT 1 FROM sought WHERE ");
    not_indexed(query, terms);
}

/// Terms as their index is asked for them.
fn matched(terms: &Terms) -> String {
    let quoted = |terms: &[String]| terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>();
    let mut sought = quoted(&terms.all);
    if !terms.any.is_empty() {
        sought.push(format!("({})", quoted(&terms.any).join(" OR ")));
    }
    let sought = sought.join(" AND ");
    if terms.of == Of::Requests { format!("({sought}) NOT \"{}\"", further_term()) } else { sought }
}

/// Adds the test of what is not in the index yet.
fn not_indexed(query: &mut QueryBuilder<Db>, Terms { all, any, of, .. }: &Terms) {
    query.push("id > (SELECT upto FROM sought_upto)");
    let has = |query: &mut QueryBuilder<Db>, term: &str| {
        query.push("instr(terms, ").push_bind(format!(" {term} ")).push(") > 0");
    };
    for term in all {
        query.push(" AND ");
        has(query, term);
    }
    for (place, term) in any.iter().enumerate() {
        query.push(if place == 0 { " AND (" } else { " OR " });
        has(query, term);
    }
    query.push(if any.is_empty() { "" } else { ")" });
    if *of == Of::Requests {
        query.push(" AND NOT ");
        has(query, &further_term());
    }
}

/// How many groups of three letters of a text are looked up, at the most. Each costs as much as it has rows; what they
/// find together is looked at as a whole.
const LOOKED_UP: usize = 8;

/// Adds a look for requests with this text among their words, which may give one more than once.
/// The index is asked for a part of it that is known to be rare, where there is one.
pub(in crate::store) fn having(query: &mut QueryBuilder<Db>, text: &str, rare: Option<&str>) {
    let letters: Vec<char> = rare.unwrap_or(text).chars().collect();
    query.push(
        "SELECT sought.request AS id FROM sought_trigram CROSS JOIN sought ON sought.id = sought_trigram.rowid
          WHERE sought_trigram MATCH ",
    );
    if letters.len() < 3 {
        // Every group of three that begins so, one after the other out of the index itself.
        query.push("(WITH RECURSIVE three (term) AS (SELECT (SELECT term FROM sought_three WHERE term >= ");
        query.push_bind(text.to_owned()).push(" AND term < ").push_bind(format!("{text}{}", char::MAX));
        query.push(
            " LIMIT 1) UNION ALL
                SELECT (SELECT term FROM sought_three WHERE term >= three.term || char(1) AND term < ",
        );
        query.push_bind(format!("{text}{}", char::MAX)).push(
            " LIMIT 1) FROM three WHERE three.term IS NOT NULL)
              SELECT coalesce(group_concat('\"' || replace(term, '\"', '\"\"') || '\"', ' OR '), '\"\"')
                FROM three WHERE term IS NOT NULL)",
        );
    } else {
        query.push_bind(spelled(&letters));
    }
    query
        .push(" AND instr(sought.text, ")
        .push_bind(text.to_owned())
        .push(
            ") > 0 UNION ALL SELECT request FROM sought
              WHERE id > (SELECT upto FROM sought_upto) AND instr(text, ",
        )
        .push_bind(text.to_owned())
        .push(") > 0");
}

/// Some of the groups of three letters of a text, as the index is asked for all of them.
fn spelled(letters: &[char]) -> String {
    let threes: Vec<String> = letters.windows(3).map(|three| three.iter().collect()).collect();
    let step = threes.len().div_ceil(LOOKED_UP).max(1);
    let spelled: Vec<String> = threes
        .iter()
        .rev()
        .step_by(step)
        .map(|three| format!("\"{}\"", three.replace('"', "\"\"")))
        .collect();
    spelled.join(" AND ")
}

/// Whether there are words that are not in the index yet.
pub(in crate::store) async fn behind(connection: &mut Connection) -> StoreResult<bool> {
    let newer = "SELECT EXISTS (SELECT 1 FROM sought WHERE id > (SELECT upto FROM sought_upto))";
    Ok(sqlx::query_scalar(newer).fetch_one(connection).await?)
}

/// Brings words into the index; how many rows.
pub(in crate::store) async fn index(connection: &mut Connection, limit: u32) -> StoreResult<u64> {
    let next = sqlx::query(
        "SELECT count(*) AS count, max(id) AS upto
           FROM (SELECT id FROM sought WHERE id > (SELECT upto FROM sought_upto) ORDER BY id LIMIT $1)",
    )
    .bind(i64::from(limit))
    .fetch_one(&mut *connection)
    .await?;
    let Some(upto) = next.try_get::<Option<i64>, _>("upto")? else { return Ok(0) };
    for statement in [
        "INSERT INTO sought_trigram (rowid, text)
         SELECT id, text FROM sought WHERE id > (SELECT upto FROM sought_upto) AND id <= $1 ORDER BY id",
        "INSERT INTO sought_term (rowid, terms)
         SELECT id, terms FROM sought WHERE id > (SELECT upto FROM sought_upto) AND id <= $1 ORDER BY id",
    ] {
        sqlx::query(statement).bind(upto).execute(&mut *connection).await?;
    }
    let done = sqlx::query("UPDATE sought_upto SET upto = $1 WHERE upto < $1")
        .bind(upto)
        .execute(connection)
        .await?;
    if done.rows_affected() != 1 {
        return Err(StoreError::Corrupt("sought_upto: the place of the index is lost".into()));
    }
    let count: i64 = next.try_get("count")?;
    Ok(count.unsigned_abs())
}

/// Writes other words in the place of these.
pub(in crate::store) async fn replace(
    connection: &mut Connection,
    id: i64,
    before: &str,
    after: &str,
) -> StoreResult<()> {
    // What is in the index stands there as it was.
    let indexed: bool =
        sqlx::query_scalar("SELECT $1 <= upto FROM sought_upto").bind(id).fetch_one(&mut *connection).await?;
    if indexed {
        sqlx::query("INSERT INTO sought_trigram (sought_trigram, rowid, text) VALUES ('delete', $1, $2)")
            .bind(id)
            .bind(before)
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO sought_trigram (rowid, text) VALUES ($1, $2)")
            .bind(id)
            .bind(after)
            .execute(&mut *connection)
            .await?;
    }
    let done = sqlx::query("UPDATE sought SET text = $2 WHERE id = $1")
        .bind(id)
        .bind(after)
        .execute(connection)
        .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::Corrupt(format!("sought: no row {id}"))) }
}
