//! What a search asks of PostgreSQL: JSON members, and the index of words by three letters, which it keeps by itself.

use super::{
    dialect::{Connection, Db},
    sql::samples::{END, is_frequent, sample},
};
use crate::store::{
    StoreError, StoreResult,
    search::{Of, Terms, further_term, pair_term},
};
use sqlx::QueryBuilder;

/// Keeps an index from being chosen for a column; the planner here knows the rows and chooses by itself.
pub(in crate::store) const UNINDEXED: &str = "";
/// The function that says where one text stands in another.
pub(in crate::store) const POSITION: &str = "strpos";

/// Whether what is frequent is found sooner by looking through all than by an index, which has to read all the places that it
/// knows before it gives the first.
pub(in crate::store) const LOOKS_THROUGH: bool = true;
/// Whether the planner knows how many rows an index gives, and is trusted with the choice.
pub(in crate::store) const KNOWS_ROWS: bool = true;

/// Begins what reads first and writes then.
pub(in crate::store) const BEGIN: &str = "BEGIN";
/// How many bytes a row of words has.
pub(in crate::store) const BYTES: &str = "octet_length(text)";

/// An ID as a text.
pub(in crate::store) fn id_text(column: &str) -> String {
    format!("{column}::text")
}

/// Adds the test that a column's JSON object has this member, or has it in a list of this name, compared as text.
pub(in crate::store) fn member(query: &mut QueryBuilder<Db>, column: &str, name: &str, value: &str) {
    let spelled = serde_json::from_str(value).ok().filter(|json: &serde_json::Value| {
        let is_plain = json.is_boolean() || json.is_number();
        is_plain && domain::search::comparable(json).as_deref() == Some(value)
    });
    let text = serde_json::Value::String(value.to_owned());
    let meant: Vec<String> = [Some(text), spelled].iter().flatten().map(canonical).collect();
    // The column holds canonical JSON, so that equal values are equal texts. No JSON with a NUL is taken apart here, which is
    // spelled like no text with a backslash: that has two.
    query
        .push("CASE WHEN strpos(")
        .push(column)
        .push(", '\\u0000') > 0 AND ")
        .push(column)
        .push(" ~ '(^|[^\\\\])(\\\\\\\\)*\\\\u0000' THEN false ELSE EXISTS (SELECT 1 FROM (SELECT ")
        .push(column)
        .push("::json -> ")
        .push_bind(name.to_owned())
        .push(
            " AS value) AS member
               WHERE value::text = ANY (",
        )
        .push_bind(meant.clone())
        .push(
            ") OR EXISTS (SELECT 1 FROM json_array_elements(CASE json_typeof(value) WHEN 'array' THEN value END) AS element
                           WHERE element::text = ANY (",
        )
        .push_bind(meant)
        .push("))) END");
}

fn canonical(value: &serde_json::Value) -> String {
    String::from_utf8(domain::json::canonical(value)).unwrap_or_default()
}

/// Adds a look for requests with these terms, and with this text among their words. It may give one more than once, unless
/// the terms are those of a request's own row.
pub(in crate::store) fn having_terms(query: &mut QueryBuilder<Db>, terms: &Terms, text: Option<&str>) {
    let conditions = |query: &mut QueryBuilder<Db>| {
        with_terms(query, terms);
        if let Some(text) = text {
            query.push(" AND strpos(text, ").push_bind(text.to_owned()).push(") > 0");
        }
    };
    if terms.frequent {
        query.push("SELECT request AS id FROM sought WHERE ");
        conditions(query);
    } else {
        by_index(query, conditions);
    }
}

/// Adds a look for as many rows as words have these terms.
pub(in crate::store) fn rows_with_terms(query: &mut QueryBuilder<Db>, terms: &Terms) {
    having_terms(query, terms, None);
}

/// Adds a look for requests by an index of words. By itself, for a bound on how many are wanted would have the planner hope
/// to find them soon without: it takes terms that often come together for ones that seldom do.
fn by_index(query: &mut QueryBuilder<Db>, conditions: impl FnOnce(&mut QueryBuilder<Db>)) {
    query.push("WITH met AS MATERIALIZED (SELECT request AS id FROM sought WHERE ");
    conditions(query);
    query.push(") SELECT id FROM met");
}

fn with_terms(query: &mut QueryBuilder<Db>, terms: &Terms) {
    if terms.frequent {
        looked_through(query, terms);
    } else {
        let mut each = query.separated(" AND ");
        for (operator, terms_of) in [("@>", &terms.all), ("&&", &terms.any)] {
            if !terms_of.is_empty() {
                each.push(format!("string_to_array(terms, ' ') {operator} "))
                    .push_bind_unseparated(terms_of.clone());
            }
        }
    }
    if terms.of == Of::Requests {
        query.push(" AND strpos(terms, ").push_bind(format!(" {} ", further_term())).push(") = 0");
    }
}

/// Adds the test that a row has these terms, for many rows: without taking them apart, and by no index.
fn looked_through(query: &mut QueryBuilder<Db>, terms: &Terms) {
    query.push("true");
    let has = |query: &mut QueryBuilder<Db>, term: &str| {
        query.push("strpos(terms, ").push_bind(format!(" {term} ")).push(") > 0");
    };
    for term in &terms.all {
        query.push(" AND ");
        has(query, term);
    }
    for (place, term) in terms.any.iter().enumerate() {
        query.push(if place == 0 { " AND (" } else { " OR " });
        has(query, term);
    }
    query.push(if terms.any.is_empty() { "" } else { ")" });
}

/// Whether words are found by an index: it takes an extension that may be missing.
pub(in crate::store) async fn indexed(connection: &mut Connection) -> StoreResult<bool> {
    let there = "SELECT to_regclass('sought_trigram') IS NOT NULL";
    Ok(sqlx::query_scalar(there).fetch_one(connection).await?)
}

/// Whether an index by three letters finds this text: it knows letters and digits only.
pub(in crate::store) fn findable(text: &str) -> bool {
    has_three(text) || ends_in_two(text)
}

fn has_three(text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word.chars().nth(2).is_some())
}

fn ends_in_two(text: &str) -> bool {
    let mut letters = text.chars().rev();
    letters.next().is_some_and(char::is_alphanumeric) && letters.next().is_some_and(char::is_alphanumeric)
}

/// Whether so many rows have these terms, and this text where there is one, that they are found sooner by looking through
/// all than by an index.
pub(in crate::store) async fn frequent(
    connection: &mut Connection,
    terms: &Terms,
    text: Option<&str>,
) -> StoreResult<bool> {
    let mut query = sample();
    query.push("count(*) FILTER (WHERE ");
    looked_through(&mut query, terms);
    if let Some(text) = text {
        query.push(" AND strpos(text, ").push_bind(text.to_owned()).push(") > 0");
    }
    query.push(")").push(END);
    let having: Vec<i64> = query.build_query_scalar().persistent(false).fetch_all(connection).await?;
    Ok(is_frequent(&having))
}

/// Adds a look for requests with this text among their words, which may give one more than once. The index is asked for a
/// part of it that is known to be rare, where there is one: every group of three letters that it is asked for takes as long
/// as that is frequent.
pub(in crate::store) fn having(query: &mut QueryBuilder<Db>, text: &str, rare: Option<&str>) {
    if let Some(rare) = rare {
        by_index(query, |query| {
            query.push("text LIKE ").push_bind(format!("%{rare}%"));
            query.push(" AND strpos(text, ").push_bind(text.to_owned()).push(") > 0");
        });
        return;
    }
    if !has_three(text) {
        // Two letters and whatever follows are three; there is a line's end after every word. The index can be asked for
        // every letter of ASCII at once; where another follows, the row has a term.
        let mut pattern = String::new();
        for letter in text.chars() {
            if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern.push_str("[\\u0001-\\u007f]");
        let before = text.chars().count().saturating_sub(2);
        let pair: String = text.chars().skip(before).collect();
        by_index(query, |query| {
            query.push("(text ~ ").push_bind(pattern);
            query.push(" OR string_to_array(terms, ' ') @> ").push_bind(vec![pair_term(&pair)]);
            query.push(" AND strpos(text, ").push_bind(text.to_owned()).push(") > 0)");
        });
        return;
    }
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    by_index(query, |query| {
        query.push("text LIKE ").push_bind(pattern);
    });
}

/// Whether there are words that are not in the index yet; there are none.
#[expect(clippy::unused_async, reason = "SQLite has to look")]
pub(in crate::store) async fn behind(_: &mut Connection) -> StoreResult<bool> {
    Ok(false)
}

/// Brings words into the index, which PostgreSQL has done already.
#[expect(clippy::unused_async, reason = "SQLite has to do it")]
pub(in crate::store) async fn index(_: &mut Connection, _: u32) -> StoreResult<u64> {
    Ok(0)
}

/// Writes other words in the place of these.
pub(in crate::store) async fn replace(
    connection: &mut Connection,
    id: i64,
    _: &str,
    after: &str,
) -> StoreResult<()> {
    let done = sqlx::query("UPDATE sought SET text = $2 WHERE id = $1")
        .bind(id)
        .bind(after)
        .execute(connection)
        .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::Corrupt(format!("sought: no row {id}"))) }
}
