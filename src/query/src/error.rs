//! What can go wrong with a query.

use std::path::PathBuf;

use colltune_db::DbError;
use thiserror::Error;

/// What can go wrong; the messages read after "failed to".
#[derive(Debug, Error)]
pub enum QueryError {
    /// The query is at fault: what, where in it, and what would be right.
    #[error("{0}")]
    Sql(String),
    /// SQLite failed, such as for want of memory.
    #[error("answer the query: {0}")]
    Engine(String),
    #[error(
        "answer the query within the memory that it may take: name the columns that it needs instead of `*`, \
         or give it more with --memory GIB"
    )]
    Memory,
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("read the telemetry in {path}: there is no such folder", path = path.display())]
    NoTelemetry { path: PathBuf },
    #[error("write the answer: {0}")]
    Output(#[from] std::io::Error),
    #[error("write {path}: {problem}", path = path.display())]
    File { path: PathBuf, problem: String },
}
