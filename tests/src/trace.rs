//! Traces that jobs left in a database.

use std::path::{Path, PathBuf};

use colltune_core::record::{Header, Record, read};

/// A trace, decoded by the reader that the trainer uses.
pub struct Trace {
    pub header: Header,
    pub records: Vec<Record>,
}

impl Trace {
    /// The name of a record's variant.
    pub fn variant(&self, record: &Record) -> &str {
        &self.header.variants[usize::from(record.variant)].1
    }
}

/// The finished traces of a database, by rank, of one job or of several.
pub fn traces(db: &Path) -> Vec<Trace> {
    let mut traces: Vec<_> = files(db, ".trace")
        .iter()
        .map(|file| read_trace(file))
        .collect();
    traces.sort_by(|a, b| (&a.header.job, a.header.rank).cmp(&(&b.header.job, b.header.rank)));
    traces
}

/// The traces of jobs that run, or were killed.
pub fn open_traces(db: &Path) -> Vec<PathBuf> {
    files(db, ".trace.open")
}

pub fn read_trace(file: &Path) -> Trace {
    let bytes = std::fs::read(file)
        .unwrap_or_else(|error| panic!("failed to read {}: {error}", file.display()));
    let (header, records) =
        read(&bytes).unwrap_or_else(|error| panic!("failed to {error}: {}", file.display()));
    Trace { header, records }
}

fn files(db: &Path, suffix: &str) -> Vec<PathBuf> {
    let incoming = std::fs::read_dir(db.join("incoming"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<_> = incoming
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
}
