//! Looks at a few rows of words here and there in the history, which tell how frequent something is in all of it.

use super::dialect::{Connection, Db, words::POSITION};
use crate::store::{StoreResult, search::Sampled};
use sqlx::{QueryBuilder, Row};

/// In how many places, and how many rows of words in each.
const PLACES: (i64, i64) = (7, 143);
/// How many of all of those rows have what is frequent; and in how many places how many do, since what is frequent somewhere
/// may be nowhere else.
const FREQUENT: (i64, usize, i64) = (100, 4, 7);
/// How many have what is rare, at the most.
const RARE: i64 = 2;
/// How many parts of a text are asked about, and how many letters of each.
const PARTS: (usize, usize) = (4, 6);

/// Begins a look at the sample. It ends with [`END`], and gives a row for each place.
pub(in crate::store) fn sample() -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("WITH sample AS (");
    let (places, rows) = PLACES;
    for place in 1..=places {
        query.push(format!(
            "SELECT {place} AS place, text, terms
               FROM (SELECT text, terms FROM sought WHERE id <= (SELECT max(id) * {place} / {places} FROM sought)
                      ORDER BY id DESC LIMIT {rows}) AS rows_{place}"
        ));
        query.push(if place < places { " UNION ALL " } else { ") SELECT " });
    }
    query
}

/// The end of a look at the sample.
pub(in crate::store) const END: &str = " FROM sample GROUP BY place";

/// Whether what so many rows of each place have is frequent.
pub(in crate::store) fn is_frequent(in_places: &[i64]) -> bool {
    let (all, places, each) = FREQUENT;
    in_places.iter().sum::<i64>() >= all
        && in_places.iter().filter(|having| **having >= each).count() >= places
}

/// How frequent a text is, and which part of it is rare.
pub(super) async fn sampled(connection: &mut Connection, text: &str) -> StoreResult<Sampled> {
    let parts = parts(text);
    let mut query = sample();
    for (place, text) in std::iter::once(text).chain(parts.iter().map(String::as_str)).enumerate() {
        query.push(if place == 0 { "" } else { ", " }).push("count(*) FILTER (WHERE ").push(POSITION);
        query.push("(text, ").push_bind(text.to_owned()).push(") > 0)");
    }
    query.push(END);
    let rows = query.build().persistent(false).fetch_all(connection).await?;
    let of = |place: usize| rows.iter().map(|row| row.try_get(place)).collect::<Result<Vec<i64>, _>>();
    let mut rare = None;
    for (place, part) in parts.into_iter().enumerate() {
        let having: i64 = of(place + 1)?.iter().sum();
        if having <= RARE && rare.as_ref().is_none_or(|(fewest, _)| having < *fewest) {
            rare = Some((having, part));
        }
    }
    Ok(Sampled { frequent: is_frequent(&of(0)?), rare: rare.map(|(_, part)| part) })
}

/// The ends of the longest words of a text, where it is more than such an end itself.
fn parts(text: &str) -> Vec<String> {
    let (most, letters) = PARTS;
    let mut words: Vec<Vec<char>> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .map(|word| word.chars().collect())
        .filter(|word: &Vec<char>| word.len() > 2)
        .collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let end = |word: Vec<char>| word[word.len().saturating_sub(letters)..].iter().collect();
    words.into_iter().take(most).map(end).filter(|part: &String| part != text).collect()
}
