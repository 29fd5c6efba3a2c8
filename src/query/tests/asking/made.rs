//! Files, folders and databases that are asked, and how.

use std::path::Path;

use colltune_core::account::{JobFacts, JobSummary, KINDS, Together};
use colltune_db::test_support::Run;
use colltune_db::{Database, TrainOptions, train};
use colltune_query::answer::{CsvLines, ParquetOut};
use colltune_query::{Engine, QueryError, open};
use tempfile::TempDir;

/// Writes what a query answers.
pub fn write(path: &Path, sql: &str) {
    let engine = open(None, &[]).unwrap();
    engine
        .ask(sql, &mut ParquetOut::new(path, u64::MAX))
        .unwrap();
}

/// Four ranks, 16 steps: files of two groups of ranks.
pub fn telemetry(folder: &Path) {
    for group in 0..2 {
        let rows = |name: &str, words: [&str; 2], columns: &str| {
            let [one, other] = words;
            let sql = format!(
                "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 63),
                 r AS (SELECT i / 4 AS step, 2 * {group} + i / 2 % 2 AS rank, iif(i % 2, '{other}', '{one}') AS word FROM n)
                 SELECT step, rank, {columns} FROM r"
            );
            write(&folder.join(format!("{name}.{group:04}.parquet")), &sql);
        };
        let time = "word AS phase, 1000 + 10 * step + 100 * rank + length(word) AS time_ns";
        rows("phases", ["compute", "wait"], time);
        let sent =
            "word AS kind, 3 + step * rank % 5 AS messages, 64 * (3 + step * rank % 5) AS bytes";
        rows("messages", ["flux", "local"], sent);
    }
}

pub fn of_telemetry() -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    telemetry(folder.path());
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    (folder, engine)
}

pub fn csv(engine: &Engine, sql: &str) -> Result<String, QueryError> {
    let mut out = Vec::new();
    engine.ask(sql, &mut CsvLines::new(&mut out))?;
    Ok(String::from_utf8(out).unwrap())
}

/// Rows without the header.
pub fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    let text = csv(engine, sql).unwrap_or_else(|error| panic!("{sql}: failed to {error}"));
    text.lines().skip(1).map(str::to_owned).collect()
}

pub fn complaint(engine: &Engine, sql: &str) -> String {
    let error = csv(engine, sql).expect_err(sql);
    assert!(matches!(error, QueryError::Sql(_)), "{sql}: {error:?}");
    error.to_string()
}

/// A database that was trained twice on synthetic runs, whose ledger knows their programs.
pub fn database() -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("colltune.toml"),
        "machine = \"testing\"\n",
    )
    .unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    for number in 0..4 {
        let job = format!("job{number}");
        let run = Run {
            calls: 300,
            sizes: vec![8, 65_536],
            ..Run::new(&job, number)
        };
        run.write(&db.incoming()).unwrap();
        let facts = JobFacts {
            job: job.clone(),
            program: ["solver", "fft"][number as usize % 2].to_owned(),
            mode: "explore".to_owned(),
            ranks: 8,
            nodes: 4,
            ppn: 2,
            started_unix_ms: number,
            wall_ns: 1_000_000_000 * (number + 1),
            ..JobFacts::default()
        };
        let line = JobSummary::new(facts, &[Together::default(); KINDS]).line();
        std::fs::write(db.incoming().join(format!("{job}.run")), line).unwrap();
        if number % 2 == 1 {
            train(&db, TrainOptions::default(), &|_| {}).unwrap();
        }
    }
    (folder, db)
}
