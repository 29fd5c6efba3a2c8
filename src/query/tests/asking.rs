//! Queries over files and databases: what they answer, what they read for it, and what they never do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use colltune_core::account::{JobFacts, JobSummary, KINDS, Together};
use colltune_db::test_support::Run;
use colltune_db::{Database, Generation, TrainOptions, calls, train};
use colltune_query::answer::{CsvLines, JsonRows, ParquetOut};
use colltune_query::{Engine, QueryError, examples, open, schema};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

const PHASES: &str = "message phases {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED INT64 time_ns (INTEGER(64, false));
}";
const MESSAGES: &str = "message messages {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY kind (UTF8);
    REQUIRED INT64 messages (INTEGER(64, false));
    REQUIRED INT64 bytes (INTEGER(64, false));
}";

/// One row of a file: numbers and a word, in the order of its columns.
type Row = (i64, i32, &'static str, Vec<i64>);

/// Writes a row group for each list of rows.
fn write(path: &Path, schema: &str, groups: &[Vec<Row>]) {
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

const STEPS_OF_GROUP: i64 = 4;

/// Four ranks, 16 steps: files of two groups of ranks, a row group for every four steps.
fn telemetry(folder: &Path) {
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

fn of_telemetry() -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    telemetry(folder.path());
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    (folder, engine)
}

fn csv(engine: &Engine, sql: &str) -> Result<String, QueryError> {
    let mut out = Vec::new();
    engine.ask(sql, &mut CsvLines::new(&mut out))?;
    Ok(String::from_utf8(out).unwrap())
}

/// Rows without the header.
fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    let text = csv(engine, sql).unwrap_or_else(|error| panic!("{sql}: failed to {error}"));
    text.lines().skip(1).map(str::to_owned).collect()
}

fn complaint(engine: &Engine, sql: &str) -> String {
    let error = csv(engine, sql).expect_err(sql);
    assert!(matches!(error, QueryError::Sql(_)), "{sql}: {error:?}");
    error.to_string()
}

/// Row groups read, left out, and columns read by a query.
fn read_by(engine: &Engine, sql: &str) -> (u64, u64, u64) {
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

#[test]
fn rows_of_all_files_are_grouped_and_joined() {
    let (_folder, engine) = of_telemetry();
    assert_eq!(
        rows(
            &engine,
            "SELECT phase, count(*), min(step), max(step), max(rank), sum(time_ns) FROM phases GROUP BY phase ORDER BY 1"
        ),
        ["compute,64,0,15,3,78848", "wait,64,0,15,3,78656"]
    );
    let joined =
        "SELECT count(*), sum(m.messages) FROM phases p JOIN messages m USING (folder, step, rank)
                  WHERE p.phase = 'wait' AND m.kind = 'flux'";
    let plain = rows(
        &engine,
        "SELECT count(*), sum(messages) FROM messages WHERE kind = 'flux'",
    );
    assert_eq!(rows(&engine, joined), plain);
    let either = "SELECT count(*) FROM phases WHERE step = 3 OR rank = 1 OR step = 3.0";
    assert_eq!(rows(&engine, either), ["38"]);
    let each = "SELECT step FROM phases WHERE step IN (3, 99, 12) AND rank = 0 AND phase = 'wait' ORDER BY 1";
    assert_eq!(rows(&engine, each), ["3", "12"]);
}

#[test]
fn only_row_groups_and_columns_that_are_needed_are_read() {
    let (_folder, engine) = of_telemetry();
    let all = "SELECT sum(time_ns) FROM phases";
    assert_eq!(read_by(&engine, all), (8, 0, 8));
    // Of each of two files one group of four.
    let one = "SELECT sum(time_ns) FROM phases WHERE step = 5";
    assert_eq!(read_by(&engine, one), (2, 6, 4));
    let range = "SELECT sum(time_ns) FROM phases WHERE step >= 4 AND step < 12 AND rank > 1";
    assert_eq!(read_by(&engine, range), (2, 6, 6));
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE time_ns > 5000"),
        (0, 8, 0)
    );
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE phase = 'zzz'"),
        (0, 8, 0)
    );
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE step IN (0, 15)").0,
        4
    );
    // Other comparisons leave nothing out.
    assert_eq!(
        read_by(
            &engine,
            "SELECT 1 FROM phases WHERE phase = 'WAIT' COLLATE NOCASE"
        )
        .0,
        8
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT count(*) FROM phases WHERE phase = 'WAIT' COLLATE NOCASE"
        ),
        ["64"]
    );
    assert_eq!(
        rows(&engine, "SELECT count(*) FROM phases WHERE step = '5'"),
        ["8"]
    );
}

#[test]
fn a_join_reads_its_inner_side_twice_at_most() {
    let (_folder, engine) = of_telemetry();
    let joined = "SELECT sum(p.time_ns) FROM messages m CROSS JOIN phases p ON p.step = m.step AND p.rank = m.rank";
    let (read, ..) = read_by(&engine, joined);
    assert!(read <= 8 + 2 * 8, "{read} row groups");
    let less = "SELECT count(*) FROM messages m CROSS JOIN phases p ON p.step < m.step";
    let (read, ..) = read_by(&engine, less);
    assert!(read <= 8 + 2 * 8, "{read} row groups");
    // The same rows, however the join goes.
    let counts = "SELECT count(*) FROM messages m CROSS JOIN phases p WHERE p.step + 0 = m.step AND p.rank + 0 = m.rank";
    let found = "SELECT count(*) FROM messages m CROSS JOIN phases p WHERE p.step = m.step AND p.rank = m.rank";
    assert_eq!(rows(&engine, counts), rows(&engine, found));
}

#[test]
fn statistics_of_groups_and_windows() {
    let (_folder, engine) = of_telemetry();
    let numbers =
        "WITH n(x, y) AS (VALUES (1, 1), (2, 8), (4, 64), (8, 512), (NULL, 3), (100, 10.5))";
    let statistics =
        "median(x), quantile(x, 0.25), mad(x), round(stddev(x), 6), round(geomean(x), 6),
                      round(corr(x, y), 6), round(spearman(x, y), 6)";
    assert_eq!(
        rows(&engine, &format!("{numbers} SELECT {statistics} FROM n")),
        ["4,2,3,43.127717,5.7708,-0.217045,0.7"]
    );
    let none = rows(
        &engine,
        &format!("{numbers} SELECT {statistics} FROM n WHERE x > 1000"),
    );
    assert_eq!(none, [",,,,,,"]);
    let moving = "WITH n(x) AS (VALUES (1), (9), (4), (7))
                  SELECT median(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM n";
    assert_eq!(rows(&engine, moving), ["1", "2.5", "5.5", "8"]);
    assert_eq!(
        rows(&engine, "SELECT sqrt(2.25), pow(2, 10), ln(1), floor(1.5)"),
        ["1.5,1024,0,1"]
    );
    let error = csv(&engine, "SELECT median(phase) FROM phases")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a function of numbers was given Text"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_cut_off_is_named_and_the_others_are_read() {
    let (folder, _) = of_telemetry();
    let file = folder.path().join("phases.0001.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    assert_eq!(
        rows(&engine, "SELECT count(*), max(rank) FROM phases"),
        ["64,1"]
    );
    let warnings = engine.journal.take_warnings();
    assert!(
        warnings.len() == 1
            && warnings[0].contains("phases.0001.parquet")
            && warnings[0].contains("left out"),
        "{warnings:?}"
    );
    let listed =
        "SELECT count(*), sum(problem IS NULL), sum(rows) FROM files WHERE holds = 'phases'";
    assert_eq!(rows(&engine, listed), ["2,1,64"]);
    // No file is left.
    let none = tempfile::tempdir().unwrap();
    std::fs::write(none.path().join("phases.0000.parquet"), &bytes[..100]).unwrap();
    let engine = open(None, &[none.path().to_owned()]).unwrap();
    assert_eq!(rows(&engine, "SELECT count(*) FROM phases"), ["0"]);
    let problem = complaint(&engine, "SELECT step FROM phases");
    assert!(problem.contains("no such column: step"), "{problem}");
    assert!(engine.journal.take_warnings()[0].contains("phases.0000.parquet"));
    // A page in the middle.
    let mut bytes = bytes;
    let middle = bytes.len() / 3;
    bytes[middle..middle + 40].fill(0xff);
    std::fs::write(&file, &bytes).unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    rows(
        &engine,
        "SELECT sum(time_ns), max(phase), max(step) FROM phases",
    );
    for warning in engine.journal.take_warnings() {
        assert!(warning.contains("phases.0001.parquet"), "{warning}");
    }
}

/// Bytes that are changed at random anywhere, the footer included: every table is still asked.
#[test]
fn no_damage_ends_a_query() {
    let (folder, _) = of_telemetry();
    let file = folder.path().join("phases.0001.parquet");
    let whole = std::fs::read(&file).unwrap();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 3 {
            let place = random(bytes.len());
            bytes[place] = random(256) as u8;
        }
        std::fs::write(&file, &bytes).unwrap();
        let engine = open(None, &[folder.path().to_owned()]).unwrap();
        for sql in [
            "SELECT * FROM phases",
            "SELECT sum(time_ns) FROM phases WHERE step > 3 AND phase = 'wait'",
        ] {
            // A column may have another name now.
            let _ = csv(&engine, sql);
        }
        let of_file = engine.journal.take_warnings();
        assert!(
            of_file.iter().all(|one| one.contains("phases")),
            "{of_file:?}"
        );
    }
}

#[test]
fn folders_of_several_versions_are_one_table_and_told_apart() {
    let (new, _) = of_telemetry();
    let old = tempfile::tempdir().unwrap();
    let older = PHASES.replace("    REQUIRED INT64 time_ns (INTEGER(64, false));\n", "");
    let rows_of = vec![vec![(1, 0, "wait", vec![]), (2, 0, "wait", vec![])]];
    write(&old.path().join("phases.0000.parquet"), &older, &rows_of);
    let later = PHASES.replace("time_ns", "block");
    let high = vec![vec![(1, 0, "wait", vec![-2]), (1, 1, "wait", vec![-2])]];
    write(&old.path().join("extras.parquet"), &later, &high);
    let folders: Vec<PathBuf> = [&old, &new].map(|one| one.path().to_owned()).into();
    let engine = open(None, &folders).unwrap();
    let sql = "SELECT count(*), count(time_ns) FROM phases GROUP BY folder ORDER BY 1";
    assert_eq!(rows(&engine, sql), ["2,0", "128,128"]);
    // Another kind of file is another table, and what is above 2^63 stays the same as itself.
    let sql = "SELECT count(DISTINCT block), max(block = -2) FROM extras WHERE block < 0";
    assert_eq!(rows(&engine, sql), ["1,1"]);
}

#[test]
fn what_is_wrong_with_a_query_is_said_with_its_place() {
    let (_folder, engine) = of_telemetry();
    let says = |sql: &str, parts: &[&str]| {
        let text = complaint(&engine, sql);
        for part in parts {
            assert!(text.contains(part), "{sql}: {text}");
        }
    };
    says(
        "SELECT step FORM phases",
        &[
            "near \"phases\": syntax error",
            "\n  SELECT step FORM phases\n                   ^",
        ],
    );
    says(
        "SELECT 1 FROM phase",
        &[
            "no such table: phase",
            "was phases meant?",
            "\n                ^",
        ],
    );
    says("SELECT 1 FROM cells", &["--db DIR"]);
    says("SELECT 1 FROM windows", &["no files windows.*.parquet"]);
    says(
        "SELECT stap FROM phases",
        &["no such column: stap", "the nearest: step"],
    );
    says("SELECT medain(step) FROM phases", &["was median meant?"]);
    says("SELECT 1; SELECT 2", &["more than one query"]);
    says("", &["find a query"]);
    says("-- nothing", &["find a query"]);
    says("SELECT ?", &["parameters"]);
    says(
        "SELECT\n  step,\n  raenk\nFROM phases",
        &["\n    raenk\n    ^"],
    );
    says("SELECT 'ä', stap FROM phases", &["\n              ^"]);
}

#[test]
fn a_query_changes_nothing_and_opens_nothing() {
    let (folder, engine) = of_telemetry();
    let other = folder.path().join("other.db");
    for sql in [
        "INSERT INTO phases VALUES (1)",
        "DELETE FROM phases",
        "UPDATE phases SET step = 1",
        "CREATE TABLE t(x)",
        "CREATE TEMP TABLE t(x)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE phases",
        "PRAGMA temp_store = FILE",
        "SELECT load_extension('x')",
        "BEGIN",
        "VACUUM",
        &format!("VACUUM INTO '{}'", other.display()),
        &format!("ATTACH '{}' AS other", other.display()),
    ] {
        let error = csv(&engine, sql).expect_err(sql);
        assert!(matches!(error, QueryError::Sql(_)), "{sql}: {error:?}");
    }
    assert!(!other.exists());
    assert_eq!(
        rows(&engine, "EXPLAIN QUERY PLAN SELECT 1 FROM phases").len(),
        1
    );
}

#[test]
fn answers_are_csv_json_and_parquet() {
    let (folder, engine) = of_telemetry();
    let sql = "SELECT step, rank, phase, time_ns / 2.0 AS half, CASE WHEN rank = 0 THEN 'a,\"b' END AS word
               FROM phases WHERE step = 2 AND rank < 2 AND phase = 'wait' ORDER BY rank";
    let text = csv(&engine, sql).unwrap();
    assert_eq!(
        text,
        "step,rank,phase,half,word\n2,0,wait,512,\"a,\"\"b\"\n2,1,wait,562,\n"
    );
    let mut out = Vec::new();
    engine.ask(sql, &mut JsonRows::new(&mut out)).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let expected = serde_json::json!([
        {"step": 2, "rank": 0, "phase": "wait", "half": 512.0, "word": "a,\"b"},
        {"step": 2, "rank": 1, "phase": "wait", "half": 562.0, "word": null}
    ]);
    assert_eq!(json, expected);
    // What was written is read again.
    let file = folder.path().join("answers.parquet");
    engine.ask(sql, &mut ParquetOut::new(&file)).unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    let again = csv(&engine, "SELECT step, rank, phase, half, word FROM answers").unwrap();
    assert_eq!(again, text);
    let nowhere = folder.path().join("no/such/folder.parquet");
    let error = engine.ask(sql, &mut ParquetOut::new(&nowhere)).unwrap_err();
    assert!(error.to_string().contains("folder.parquet"), "{error}");
}

/// A database that was trained twice on made-up runs, whose ledger knows their programs.
fn database() -> (TempDir, Database) {
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

#[test]
fn tables_of_a_database_say_what_its_own_code_says() {
    let (folder, db) = database();
    let engine = open(Some(folder.path()), &[]).unwrap();
    let one = |sql: &str| rows(&engine, sql).join("|");
    let key = db.keys().unwrap().remove(0);
    // Calls, as the learner puts them together.
    let recorded = calls::recorded(&db, &key, |_| true, &mut Vec::new())
        .unwrap()
        .calls;
    let sum: f64 = recorded.iter().map(|call| call.time_ns).sum();
    assert_eq!(
        one("SELECT count(*) FROM calls"),
        recorded.len().to_string()
    );
    let found: f64 = one("SELECT sum(mean_time_ns) FROM calls").parse().unwrap();
    assert!((found / sum - 1.0).abs() < 1e-9, "{found} {sum}");
    let slower = "SELECT count(*), sum(time_ns < mean_time_ns) FROM calls";
    assert_eq!(one(slower), format!("{},0", recorded.len()));
    // Generations and cells.
    let generation = Generation::load(&db, key.clone()).unwrap();
    let meta = generation.meta.clone().unwrap();
    assert_eq!(
        one("SELECT generation, in_force, records, calls FROM generations ORDER BY 1"),
        format!(
            "1,0,{},{}|2,1,{},{}",
            meta.records / 2,
            Generation::load_number(&db, key, 1)
                .unwrap()
                .meta
                .unwrap()
                .calls,
            meta.records,
            meta.calls
        )
    );
    let cells = generation.cells.len();
    let measured = generation
        .cells
        .iter()
        .filter(|cell| cell.samples() > 0)
        .count();
    let sql = "SELECT count(*), sum(samples > 0) FROM cells WHERE in_force = 1";
    assert_eq!(one(sql), format!("{cells},{measured}"));
    assert_eq!(
        read_by(&engine, sql).0,
        1,
        "the other generation is left alone"
    );
    let variants: usize = generation
        .cells
        .iter()
        .map(|cell| cell.variants.len())
        .sum();
    assert_eq!(
        one("SELECT count(*) FROM variants WHERE generation = 2"),
        variants.to_string()
    );
    // Evidence: the calls of all runs, and whose they are.
    assert_eq!(
        one("SELECT sum(calls) FROM evidence"),
        recorded.len().to_string()
    );
    assert_eq!(
        one("SELECT program, count(*), sum(wall_s) FROM runs GROUP BY program ORDER BY 1"),
        "fft,2,6|solver,2,4"
    );
    assert_eq!(
        one("SELECT DISTINCT library, machine FROM records"),
        format!("{},testing", generation.library)
    );
    assert_eq!(engine.journal.take_warnings(), Vec::<String>::new());
}

#[test]
fn the_examples_are_valid_and_answer() {
    let (folder, _) = database();
    let with = tempfile::tempdir().unwrap();
    telemetry(with.path());
    let engine = open(Some(folder.path()), &[with.path().to_owned()]).unwrap();
    for example in examples::ALL {
        let answered = rows(&engine, example.sql);
        let may_be_empty = example.question.contains("three times");
        assert!(may_be_empty || !answered.is_empty(), "{}", example.question);
    }
    assert_eq!(examples::text().matches(";\n").count(), examples::ALL.len());
    // What the tables are, in words: each column has a type.
    let text = schema::text(&engine).unwrap();
    for table in [
        "records",
        "calls",
        "evidence",
        "runs",
        "generations",
        "cells",
        "variants",
        "passed",
        "phases",
        "messages",
        "files",
    ] {
        assert!(
            text.contains(&format!("\n{table}: ")) || text.starts_with(&format!("{table}: ")),
            "{text}"
        );
    }
    assert!(text.contains("  duration_ns      integer  ns\n"), "{text}");
    assert_eq!(engine.journal.take_warnings(), Vec::<String>::new());
}

#[test]
fn an_empty_database_has_all_tables_and_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    Database::create_or_open(folder.path()).unwrap();
    let engine = open(Some(folder.path()), &[]).unwrap();
    for table in [
        "records",
        "calls",
        "evidence",
        "runs",
        "generations",
        "cells",
        "variants",
        "passed",
        "files",
    ] {
        assert_eq!(
            rows(&engine, &format!("SELECT count(*) FROM {table}")),
            ["0"],
            "{table}"
        );
    }
    for example in examples::ALL
        .iter()
        .filter(|one| one.of == examples::Of::Database)
    {
        assert_eq!(rows(&engine, example.sql), Vec::<String>::new());
    }
    assert_eq!(engine.journal.take_warnings(), Vec::<String>::new());
    let error = open(Some(&folder.path().join("none")), &[]).err().unwrap();
    assert!(error.to_string().contains("there is no such folder"));
    let error = open(None, &[folder.path().join("none")]).err().unwrap();
    assert!(error.to_string().contains("there is no such folder"));
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    assert!(engine.journal.take_warnings()[0].contains("there is no telemetry in"));
}

#[test]
fn what_is_damaged_or_newer_is_named_and_the_rest_is_shown() {
    let (folder, db) = database();
    let key = db.keys().unwrap().remove(0);
    let generation = db.generations(key.clone()).join("000001/cells.json");
    let text = std::fs::read_to_string(&generation).unwrap();
    std::fs::write(
        &generation,
        text.replacen("\"schema\":2", "\"schema\":99", 1),
    )
    .unwrap();
    let mut partitions: Vec<PathBuf> = std::fs::read_dir(db.data(key))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    partitions.sort();
    let bytes = std::fs::read(&partitions[0]).unwrap();
    std::fs::write(&partitions[0], &bytes[..bytes.len() - 9]).unwrap();
    let engine = open(Some(folder.path()), &[]).unwrap();
    assert_eq!(
        rows(&engine, "SELECT DISTINCT generation FROM cells"),
        ["2"]
    );
    let jobs: u64 = rows(&engine, "SELECT count(DISTINCT job) FROM records")[0]
        .parse()
        .unwrap();
    assert!(jobs < 4, "{jobs}");
    let warnings = engine.journal.take_warnings();
    assert!(
        warnings
            .iter()
            .any(|one| one.contains("version 99") && one.contains("cells.json")),
        "{warnings:?}"
    );
    let name = partitions[0]
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(
        warnings.iter().any(|one| one.contains(&name)),
        "{warnings:?}"
    );
}
