//! Why a store did not do what it was asked, and how a database's own words for it are understood.

/// Why a store did not do what it was asked. In every case nothing of it was kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, read or written.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The queue before the database is full; nothing was taken in.
    #[error("too many writes are waiting")]
    Busy,
    /// Others changed the same at the same moment, again and again; trying once more decides it.
    #[error("others change the same at this moment: {0}")]
    Contended(String),
    /// Another submission with the same key is being decided; once it is, this one can be.
    #[error("another with the same key is being decided")]
    KeyBusy,
    /// The database holds something that this version does not understand.
    #[error("the database holds something unexpected: {0}")]
    Corrupt(String),
}

/// What a store's calls give.
pub type StoreResult<T> = Result<T, StoreError>;

/// What PostgreSQL says (SQLSTATE) of a transaction that another one got in the way of.
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// The index by which two first submissions with one key meet.
const SCOPE_OF_KEYS: &str = "claim_scope";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => {
                Self::Corrupt(error.to_string())
            }
            sqlx::Error::Database(told)
                if matches!(
                    told.code().as_deref(),
                    Some(SERIALIZATION_FAILURE | DEADLOCK_DETECTED | LOCK_NOT_AVAILABLE)
                ) || (told.is_unique_violation() && told.constraint() == Some(SCOPE_OF_KEYS)) =>
            {
                Self::Contended(error.to_string())
            }
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
