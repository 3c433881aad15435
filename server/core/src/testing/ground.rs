//! The database that a house stands on: a file of its own, or a database of the tests' own PostgreSQL.

use crate::store::{Store, conformance::cluster::Cluster, postgres::Postgres, sqlite::Sqlite};
use sqlx::{AssertSqlSafe, ConnectOptions, sqlite::SqliteConnectOptions};
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Uuid;

/// Where a database is.
#[derive(Debug, Clone)]
pub(crate) enum Ground {
    /// In this folder.
    Sqlite(Arc<TempDir>),
    /// At this address.
    Postgres(String),
}

impl Ground {
    /// A new file.
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(Arc::new(tempfile::tempdir().unwrap()))
    }

    /// A new database in the cluster that all tests share.
    pub(crate) fn postgres() -> Self {
        Self::Postgres(Cluster::shared().database())
    }

    /// Opens the database, as one more server does.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(folder) => Arc::new(Sqlite::open(&folder.path().join("keyturn.db")).await.unwrap()),
            Self::Postgres(address) => Arc::new(Postgres::open(address).await.unwrap()),
        }
    }

    /// A connection to the file beside the portal's own.
    pub(crate) async fn file(&self) -> sqlx::SqliteConnection {
        let Self::Sqlite(folder) = self else { panic!("this house stands on PostgreSQL") };
        let options = SqliteConnectOptions::new().filename(folder.path().join("keyturn.db"));
        options.connect().await.unwrap()
    }

    /// A connection to the database beside the portal's own.
    pub(crate) async fn server(&self) -> sqlx::PgConnection {
        let Self::Postgres(address) = self else { panic!("this house stands on SQLite") };
        let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
        options.connect().await.unwrap()
    }

    /// Everything that lies on the disk.
    pub(crate) fn disk(&self) -> Vec<u8> {
        let Self::Sqlite(folder) = self else { panic!("this house stands on PostgreSQL") };
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Has the database do something behind the portal's back.
    pub(crate) async fn execute(&self, statements: &str) {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
        match self {
            Self::Sqlite(_) => statements.execute(&mut self.file().await).await.map(|_| ()),
            Self::Postgres(_) => statements.execute(&mut self.server().await).await.map(|_| ()),
        }
        .unwrap();
    }

    /// The one number that a query finds, if it finds any.
    pub(crate) async fn number(&self, query: &str) -> Option<i64> {
        let query = AssertSqlSafe(query.to_owned());
        match self {
            Self::Sqlite(_) => sqlx::query_scalar(query).fetch_optional(&mut self.file().await).await,
            Self::Postgres(_) => sqlx::query_scalar(query).fetch_optional(&mut self.server().await).await,
        }
        .unwrap()
    }

    /// An ID as a statement spells it.
    pub(crate) fn literal(&self, id: Uuid) -> String {
        match self {
            Self::Sqlite(_) => format!("x'{}'", id.simple()),
            Self::Postgres(_) => format!("'{id}'"),
        }
    }
}
