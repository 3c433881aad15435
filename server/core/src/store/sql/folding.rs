//! Words that migrations wrote out of earlier rows, in lower case: a database folds the letters of ASCII alone, so the
//! others are folded here, once.

use super::dialect::{Connection, words};
use crate::store::{StoreResult, search::folded};
use sqlx::{AssertSqlSafe, Connection as _, Row};

/// The setting that says that it is done.
const DONE: &str = "words_folded";
/// How many rows are read at once.
const ROWS: i64 = 1000;

/// Folds what is not folded yet, unless that was done before. It changes nothing where another server does it meanwhile.
pub(in crate::store) async fn fold(connection: &mut Connection) -> StoreResult<()> {
    let done: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM setting WHERE name = $1)")
        .bind(DONE)
        .fetch_one(&mut *connection)
        .await?;
    if done {
        return Ok(());
    }
    let mut transaction = connection.begin_with(words::BEGIN).await?;
    let wide = format!(
        "SELECT id, text FROM sought WHERE id > $1 AND {} <> length(text) ORDER BY id LIMIT {ROWS}",
        words::BYTES
    );
    let mut last = i64::MIN;
    loop {
        let rows = sqlx::query(AssertSqlSafe(wide.as_str())).bind(last).fetch_all(&mut *transaction).await?;
        for row in &rows {
            let text: String = row.try_get("text")?;
            last = row.try_get("id")?;
            let fold = folded(&text);
            if fold != text {
                words::replace(&mut transaction, last, &text, &fold).await?;
            }
        }
        if rows.is_empty() {
            break;
        }
    }
    // Whoever else did it has said so, too.
    sqlx::query("INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(DONE)
        .bind(b"yes".as_slice())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}
