//! Databases of tests, and the runs in them.

use std::fs;

use colltune_db::test_support::Run;
use colltune_db::{Database, TrainOptions, TrainReport, train};
use tempfile::TempDir;

/// An empty one with these settings.
pub fn database(settings: &str) -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("machine = \"testing\"\n{settings}");
    fs::write(folder.path().join("colltune.toml"), settings).unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    (folder, db)
}

/// Two ranks that record 300 calls each.
pub fn small(job: &str) -> Run {
    Run {
        calls: 300,
        recording_ranks: 2,
        ..Run::new(job, 3)
    }
}

pub fn trained(db: &Database) -> TrainReport {
    train(db, TrainOptions::default(), &|_| {}).unwrap()
}
