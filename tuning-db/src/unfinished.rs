//! What unfinished work is called.

/// What unfinished work is called; readers and [`crate::ingest`] know to ignore it.
pub const UNFINISHED: &str = ".unfinished-";
