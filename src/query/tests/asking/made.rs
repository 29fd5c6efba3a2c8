//! Files, folders and databases that are asked, and how.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use colltune_core::account::{JobFacts, JobSummary, KINDS, Together};
use colltune_db::test_support::Run;
use colltune_db::{Database, TrainOptions, train};
use colltune_query::answer::CsvLines;
use colltune_query::{Engine, QueryError, open};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

pub const PHASES: &str = "message phases {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED INT64 time_ns (INTEGER(64, false));
}";
pub const MESSAGES: &str = "message messages {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY kind (UTF8);
    REQUIRED INT64 messages (INTEGER(64, false));
    REQUIRED INT64 bytes (INTEGER(64, false));
}";

/// One row of a file: numbers and a word, in the order of its columns.
pub type Row = (i64, i32, &'static str, Vec<i64>);

/// Writes a row group for each list of rows.
pub fn write(path: &Path, schema: &str, groups: &[Vec<Row>]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut number = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            let long = |place: usize| -> Vec<i64> { rows.iter().map(|row| row.3[place]).collect() };
            match number {
                0 => {
                    let steps: Vec<i64> = rows.iter().map(|row| row.0).collect();
                    column.typed::<Int64Type>().write_batch(&steps, None, None)
                }
                1 => {
                    let ranks: Vec<i32> = rows.iter().map(|row| row.1).collect();
                    column.typed::<Int32Type>().write_batch(&ranks, None, None)
                }
                2 => {
                    let words: Vec<ByteArray> = rows.iter().map(|row| row.2.into()).collect();
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&words, None, None)
                }
                place => {
                    let values = long(place - 3);
                    column.typed::<Int64Type>().write_batch(&values, None, None)
                }
            }
            .unwrap();
            column.close().unwrap();
            number += 1;
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

pub const STEPS_OF_GROUP: i64 = 4;

/// Four ranks, 16 steps: files of two groups of ranks, a row group for every four steps.
pub fn telemetry(folder: &Path) {
    let phases = ["compute", "wait"];
    for group in 0..2 {
        let ranks = 2 * group..2 * group + 2;
        let groups = |row: &dyn Fn(i64, i32, &'static str) -> Row, words: [&'static str; 2]| {
            let of_group = |begin: i64| -> Vec<Row> {
                let steps = begin..begin + STEPS_OF_GROUP;
                let rows = steps.flat_map(|step| ranks.clone().map(move |rank| (step, rank)));
                rows.flat_map(|(step, rank)| words.map(|word| row(step, rank, word)))
                    .collect()
            };
            (0..4)
                .map(|group| of_group(STEPS_OF_GROUP * group))
                .collect::<Vec<_>>()
        };
        let time = |step: i64, rank: i32, phase: &'static str| -> Row {
            let time_ns = 1000 + 10 * step + 100 * i64::from(rank) + phase.len() as i64;
            (step, rank, phase, vec![time_ns])
        };
        let sent = |step: i64, rank: i32, kind: &'static str| -> Row {
            let messages = 3 + step * i64::from(rank) % 5;
            (step, rank, kind, vec![messages, 64 * messages])
        };
        let path = |name: &str| folder.join(format!("{name}.{group:04}.parquet"));
        write(&path("phases"), PHASES, &groups(&time, phases));
        write(
            &path("messages"),
            MESSAGES,
            &groups(&sent, ["flux", "local"]),
        );
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

/// Row groups read, left out, and columns read by a query.
pub fn read_by(engine: &Engine, sql: &str) -> (u64, u64, u64) {
    let journal = &engine.journal;
    let counters = || {
        let counters = [
            &journal.fragments_read,
            &journal.fragments_left_out,
            &journal.columns_read,
        ];
        counters.map(|counter| counter.load(Ordering::Relaxed))
    };
    let before = counters();
    rows(engine, sql);
    let [read, left_out, columns] = counters();
    (read - before[0], left_out - before[1], columns - before[2])
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
