//! `colltune query` on a database and telemetry that real runs made: its answers beside DuckDB's.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use colltune_tests::{Mpi, colltune as command, folder, job, on_each_library, skip};
use serde_json::Value;

/// Some steps of a mesh that is refined.
const PROBLEM: &str = "--nx 4 --ny 4 --nz 4 --num_vars 3 --npx 2 --npy 1 --npz 1 --num_refine 1 --num_tsteps 4 \
    --stages_per_ts 2 --refine_freq 2 --checksum_freq 2 --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0";

fn query(arguments: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.env_remove("COLLTUNE_DB").arg("query");
    command.args(arguments).output().expect("it starts")
}

fn succeeds(arguments: &[&str]) -> String {
    let output = query(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn fails(arguments: &[&str], code: i32, says: &str) {
    let output = query(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), text.contains(says)),
        (Some(code), true),
        "{arguments:?}: {text}"
    );
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

/// The queries that `--examples` prints.
fn examples() -> Vec<String> {
    let text = succeeds(&["--examples"]);
    let parts = text.split(";\n").map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-9),
        _ => ours == theirs,
    }
}

/// Compares the rows of every example with DuckDB's over the same tables, where it can be had.
fn equal_duckdbs(asked: &[&str], examples: &[String]) {
    let tables = folder();
    for table in [
        "evidence", "runs", "cells", "variants", "calls", "phases", "messages",
    ] {
        let file = tables.path().join(format!("{table}.parquet"));
        let sql = format!("SELECT * FROM {table}");
        succeeds(&[asked, &["-o", path(&file), &sql]].concat());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/duckdb_answers.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(tables.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let queries = serde_json::to_vec(examples).expect("JSON");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(&queries).expect("it is read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let problem = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(1) && problem.contains("PyPI") {
        return skip(&format!("needs DuckDB: {problem}")).unwrap_or(());
    }
    assert!(output.status.success(), "{problem}");
    let theirs: Vec<Vec<Value>> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(theirs.len(), examples.len());
    for (example, theirs) in examples.iter().zip(theirs) {
        let ours = succeeds(&[asked, &["--json", example]].concat());
        let ours: Vec<serde_json::Map<String, Value>> =
            serde_json::from_str(&ours).expect("a list of objects");
        assert_eq!(ours.len(), theirs.len(), "{example}");
        for (row, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let theirs = theirs.as_array().expect("a row");
            let equal = ours.len() == theirs.len();
            // Objects of serde_json sort their names; the columns' order is that of the text.
            let mut ours: Vec<&Value> = ours.values().collect();
            let mut theirs: Vec<&Value> = theirs.iter().collect();
            let order = |one: &&Value| (one.is_string(), one.to_string());
            ours.sort_by_key(order);
            theirs.sort_by_key(order);
            let found = ours
                .iter()
                .all(|ours| theirs.iter().any(|theirs| same(ours, theirs)));
            assert!(
                equal && found,
                "{example}\nrow {row}: {ours:?} and {theirs:?}"
            );
        }
    }
}

on_each_library! {
    fn ten_queries_over_real_runs_are_answered_as_duckdb_does(mpi: Mpi) {
        let (db, telemetry) = (folder(), folder());
        for _ in 0..2 {
            for _ in 0..3 {
                let job = job(2).mpi(mpi).preload().db(db.path()).mode("explore").env("COLLTUNE_LEDGER", "1");
                job.run("frequent", &["200", "10"]).succeeds().prints("ok\n");
            }
            let trained = Command::new(command()).args(["train", "--db", path(db.path())]).output().expect("it starts");
            assert!(trained.status.success(), "{trained:?}");
        }
        let app = mpi.mini_app();
        let line = format!("{PROBLEM} --telemetry {}", path(telemetry.path()));
        let words: Vec<&str> = line.split_whitespace().collect();
        job(2).mpi(mpi).run(&app.to_string_lossy(), &words).succeeds();

        let asked = ["--db", path(db.path()), "--telemetry", path(telemetry.path())];
        let examples = examples();
        assert_eq!(examples.len(), 10);
        for example in &examples {
            let answer = succeeds(&[&asked[..], &["--csv", example]].concat());
            let may_be_empty = example.contains("over three times");
            assert!(may_be_empty || answer.lines().count() > 1, "{example}");
        }
        equal_duckdbs(&asked, &examples);
        what_is_damaged_is_named(mpi, db.path(), telemetry.path());
    }
}

/// Half a file of telemetry: the other tables, and what is said.
fn what_is_damaged_is_named(_: Mpi, db: &Path, telemetry: &Path) {
    let file = telemetry.join("messages.0000.parquet");
    let bytes = std::fs::read(&file).expect("it is there");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it can be written");
    let asked = ["--db", path(db), "--telemetry", path(telemetry)];
    let output = query(&[&asked[..], &["SELECT count(*) FROM messages"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("messages.0000.parquet") && said.contains("left out"),
        "{said}"
    );
    assert_eq!(
        succeeds(&[&asked[..], &["--csv", "SELECT count(*) > 0 FROM phases"]].concat()),
        "count(*) > 0\n1\n"
    );
}

#[test]
fn what_is_not_there_or_not_sql_is_told_in_a_sentence() {
    let db = folder();
    let db = path(db.path());
    fails(&["SELECT 1"], 2, "--db DIR");
    fails(
        &["--db", "/no/such/folder", "SELECT 1"],
        1,
        "there is no such folder",
    );
    fails(
        &["--telemetry", "/no/such/folder", "SELECT 1"],
        1,
        "there is no such folder",
    );
    fails(
        &["--db", db, "SELEKT 1"],
        2,
        "failed to understand the query: near \"SELEKT\": syntax error\n  SELEKT 1\n  ^",
    );
    fails(&["--db", db, "SELECT 1 FROM cell"], 2, "was cells meant?");
    fails(&["--db", db, "SELECT 1 FROM call"], 2, "was calls meant?");
    fails(&["--db", db, "SELECT 1 FROM phases"], 2, "--telemetry DIR");
    fails(&["--db", db, "DELETE FROM cells"], 2, "only reads");
    fails(
        &["--db", db, "-o", "/no/such/folder/x.parquet", "SELECT 1"],
        1,
        "x.parquet",
    );
    fails(&["--db", db], 2, "SQL");
    fails(&["--db", db, "--cvs"], 2, "unknown option --cvs");
    assert_eq!(
        succeeds(&["--db", db, "SELECT count(*) AS n FROM cells"]),
        "n\n0\n"
    );
    assert!(succeeds(&["--db", db, "--schema"]).contains("evidence: "));
}
