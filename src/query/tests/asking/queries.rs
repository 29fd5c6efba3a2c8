//! Queries that are wrong, that would change something, and the forms of answers.

use colltune_query::answer::{JsonRows, ParquetOut};
use colltune_query::{QueryError, open};

use crate::made::{complaint, csv, of_telemetry, rows};

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
    engine
        .ask(sql, &mut ParquetOut::new(&file, u64::MAX))
        .unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    let again = csv(&engine, "SELECT step, rank, phase, half, word FROM answers").unwrap();
    assert_eq!(again, text);
    let mut small = ParquetOut::new(&file, 1 << 10);
    let error = engine.ask(
        "SELECT a.* FROM answers a, answers b, answers c, answers d, answers e",
        &mut small,
    );
    assert!(matches!(error, Err(QueryError::Memory)), "{error:?}");
    let nowhere = folder.path().join("no/such/folder.parquet");
    let error = engine
        .ask(sql, &mut ParquetOut::new(&nowhere, u64::MAX))
        .unwrap_err();
    assert!(error.to_string().contains("folder.parquet"), "{error}");
}
