//! Why telemetry cannot be analysed.

use std::path::PathBuf;

use thiserror::Error;

/// The message reads after "failed to".
#[derive(Debug, Error)]
pub enum FolderError {
    #[error("read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("find {table}.*.parquet in {}: {hint}", folder.display())]
    Missing {
        folder: PathBuf,
        table: &'static str,
        hint: &'static str,
    },
    #[error(
        "analyse {}: its numbers contradict each other, so it is damaged, or another version or program wrote it",
        folder.display()
    )]
    Nonsense { folder: PathBuf },
    #[error("analyse {}: {reason}", folder.display())]
    TooLittle { folder: PathBuf, reason: String },
}
