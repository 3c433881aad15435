//! What a search asks of PostgreSQL: JSON members, and the index of words by three letters, which it keeps by itself.

use super::dialect::{Connection, Db};
use crate::store::{StoreError, StoreResult, search::pair_term};
use sqlx::QueryBuilder;

/// Keeps an index from being chosen for a column; the planner here knows the rows and chooses by itself.
pub(in crate::store) const UNINDEXED: &str = "";
/// The function that says where one text stands in another.
pub(in crate::store) const POSITION: &str = "strpos";

/// Begins what reads first and writes then.
pub(in crate::store) const BEGIN: &str = "BEGIN";
/// How many bytes a row of words has.
pub(in crate::store) const BYTES: &str = "octet_length(text)";

/// An ID as a text.
pub(in crate::store) fn id_text(column: &str) -> String {
    format!("{column}::text")
}

/// Adds the test that a column's JSON object has this member, compared as text.
pub(in crate::store) fn member(query: &mut QueryBuilder<Db>, column: &str, name: &str, value: &str) {
    // The column holds canonical JSON, so that equal values are equal texts. No JSON with a NUL is taken apart here.
    query
        .push("CASE WHEN strpos(")
        .push(column)
        .push(", '\\u0000') > 0 THEN false ELSE coalesce((")
        .push(column)
        .push("::json -> ")
        .push_bind(name.to_owned())
        .push(")::text IN (")
        .push_bind(canonical(&serde_json::Value::String(value.to_owned())));
    if let Ok(json @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_))) =
        serde_json::from_str(value)
        && domain::search::comparable(&json).as_deref() == Some(value)
    {
        query.push(", ").push_bind(value.to_owned());
    }
    query.push("), false) END");
}

fn canonical(value: &serde_json::Value) -> String {
    String::from_utf8(domain::json::canonical(value)).unwrap_or_default()
}

/// Adds a look for requests with all of these terms, with any of the others where there are any, and with this text among
/// their words. It may give one more than once.
pub(in crate::store) fn having_terms(
    query: &mut QueryBuilder<Db>,
    all: &[String],
    any: &[String],
    text: Option<&str>,
) {
    query.push("SELECT request AS id FROM sought WHERE ");
    with_terms(query, all, any, text);
}

/// Adds a look for as many rows as words have all of these terms, with any of the others where there are any. It takes the
/// index alone, as far as nothing changed of late.
pub(in crate::store) fn rows_with_terms(query: &mut QueryBuilder<Db>, all: &[String], any: &[String]) {
    query.push("SELECT 1 FROM sought WHERE ");
    with_terms(query, all, any, None);
}

fn with_terms(query: &mut QueryBuilder<Db>, all: &[String], any: &[String], text: Option<&str>) {
    let mut terms = query.separated(" AND ");
    for (operator, terms_of) in [("@>", all), ("&&", any)] {
        if !terms_of.is_empty() {
            terms
                .push(format!("string_to_array(terms, ' ') {operator} "))
                .push_bind_unseparated(terms_of.to_vec());
        }
    }
    if let Some(text) = text {
        terms.push("strpos(text, ").push_bind_unseparated(text.to_owned()).push_unseparated(") > 0");
    }
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

/// How many of the newest rows of words tell whether a text is frequent, and how many of those have it then.
const NEWEST: (i64, i64) = (1000, 100);

/// Whether so many rows have this text that they are found sooner by looking through all than by the index: it reads the
/// places of every group of three letters that begins with two before it gives the first.
pub(in crate::store) async fn frequent(connection: &mut Connection, text: &str) -> StoreResult<bool> {
    if has_three(text) {
        return Ok(false);
    }
    let having = "SELECT count(*) FROM (SELECT text FROM sought ORDER BY id DESC LIMIT $1) AS newest
                   WHERE strpos(text, $2) > 0";
    let (looked_at, enough) = NEWEST;
    let having: i64 = sqlx::query_scalar(having).bind(looked_at).bind(text).fetch_one(connection).await?;
    Ok(having >= enough)
}

/// Adds a look for requests with this text among their words, which may give one more than once.
pub(in crate::store) fn having(query: &mut QueryBuilder<Db>, text: &str) {
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
        query.push("SELECT request AS id FROM sought WHERE (text ~ ").push_bind(pattern);
        query.push(" OR string_to_array(terms, ' ') @> ").push_bind(vec![pair_term(&pair)]);
        query.push(" AND strpos(text, ").push_bind(text.to_owned()).push(") > 0)");
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
    query.push("SELECT request AS id FROM sought WHERE text LIKE ").push_bind(pattern);
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
