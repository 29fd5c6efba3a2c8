//! The tables of a database.

use colltune_db::{Database, Generation, calls};
use colltune_query::{OF_DATABASES, examples, open, schema};

use crate::made::{database, rows, telemetry};

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
    let variants: usize = generation
        .cells
        .iter()
        .map(|cell| cell.variants.len())
        .sum();
    assert_eq!(
        one("SELECT count(*) FROM variants WHERE generation = 2"),
        variants.to_string()
    );
    // Evidence: the calls of all runs, and whose they are; the copy repeats some.
    assert_eq!(
        one("SELECT sum(calls) FROM evidence WHERE variant <> 'default-copy'"),
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
    assert_eq!(engine.take_warnings(), Vec::<String>::new());
}

#[test]
fn the_examples_are_valid_and_answer() {
    let (folder, _) = database();
    let with = tempfile::tempdir().unwrap();
    telemetry(with.path());
    let engine = open(Some(folder.path()), &[with.path().to_owned()]).unwrap();
    for example in examples::all() {
        let answered = rows(&engine, example);
        let may_be_empty = example.contains("three times");
        assert!(may_be_empty || !answered.is_empty(), "{example}");
    }
    assert_eq!(examples::all().count(), 10);
    // What the tables are, in words: each column has a type.
    let text = schema::text(&engine);
    for table in OF_DATABASES.into_iter().chain(["phases", "messages"]) {
        assert!(
            text.contains(&format!("\n{table}: ")) || text.starts_with(&format!("{table}: ")),
            "{text}"
        );
    }
    assert!(text.contains("  duration_ns      integer  ns\n"), "{text}");
    assert_eq!(engine.take_warnings(), Vec::<String>::new());
}

#[test]
fn an_empty_database_has_all_tables_and_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    Database::create_or_open(folder.path()).unwrap();
    let engine = open(Some(folder.path()), &[]).unwrap();
    for table in OF_DATABASES {
        assert_eq!(
            rows(&engine, &format!("SELECT count(*) FROM {table}")),
            ["0"],
            "{table}"
        );
    }
    for example in examples::all().filter(|one| one.contains("(--db DIR)")) {
        assert_eq!(rows(&engine, example), Vec::<String>::new());
    }
    assert_eq!(engine.take_warnings(), Vec::<String>::new());
    let error = open(Some(&folder.path().join("none")), &[]).err().unwrap();
    assert!(error.to_string().contains("there is no such folder"));
    let error = open(None, &[folder.path().join("none")]).err().unwrap();
    assert!(error.to_string().contains("there is no such folder"));
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    assert!(engine.take_warnings()[0].contains("there is no telemetry in"));
}

/// A database keeps all its generations: those that were replaced are not even opened for what is asked most.
#[test]
fn what_is_in_force_is_read_without_what_was_before() {
    let (folder, db) = database();
    let key = db.keys().unwrap().remove(0);
    let old = db.generations(key).join("000001/cells.json");
    std::fs::write(&old, "{").unwrap();
    let engine = open(Some(folder.path()), &[]).unwrap();
    let warned = |sql: &str| {
        rows(&engine, sql);
        !engine.take_warnings().is_empty()
    };
    for today in [
        "SELECT count(*) FROM cells WHERE in_force = 1",
        "SELECT * FROM cells WHERE in_force = 1 AND gain > 0 ORDER BY gain",
        "SELECT count(*) FROM (SELECT * FROM variants WHERE in_force = 1 LIMIT 9) v
         JOIN cells c ON c.best = v.variant AND c.in_force = 1",
        "WITH t AS (SELECT * FROM variants WHERE in_force = 1) SELECT max(gain) FROM t GROUP BY collective",
    ] {
        assert!(!warned(today), "{today}");
    }
    for all in [
        "SELECT count(*) FROM cells",
        "SELECT count(*) FROM cells WHERE in_force = 1 OR gain > 0",
        "SELECT count(*) FROM cells WHERE in_force >= 0",
        "SELECT count(*) FROM cells WHERE in_force = 1 OR rowid = 3",
        "SELECT count(*) FROM cells a JOIN (SELECT * FROM cells LIMIT 9) WHERE a.in_force = 1",
        "SELECT in_force = 1, count(*) FROM cells GROUP BY 1",
        "SELECT (SELECT max(rowid) FROM cells) FROM cells WHERE in_force = 1",
    ] {
        assert!(warned(all), "{all}");
    }
}
