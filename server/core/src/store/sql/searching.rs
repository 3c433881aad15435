//! Searching, each promise as a piece of work on one connection.

use super::{
    dialect::{Database, words},
    search,
};
use crate::store::{RequestList, Searching, StoreResult};
use async_trait::async_trait;
use domain::{
    search::Cursor,
    view::{Page, RequestView},
};

#[async_trait]
impl Searching for Database {
    async fn requests(&self, list: RequestList) -> StoreResult<Page<RequestView>> {
        // Rows and counts are of the same moment.
        self.snapshot(list, |list, connection| Box::pin(search::requests(connection, list))).await
    }

    async fn request_rows(&self, list: RequestList) -> StoreResult<(Vec<RequestView>, Option<Cursor>)> {
        self.snapshot(list, |list, connection| Box::pin(search::rows(connection, list))).await
    }

    async fn index_words(&self, limit: u32) -> StoreResult<u64> {
        // The writer is not troubled where there is nothing to do.
        if !self.read((), |(), connection| Box::pin(words::behind(connection))).await? {
            return Ok(0);
        }
        self.write(limit, |limit, connection| Box::pin(words::index(connection, *limit))).await
    }
}
