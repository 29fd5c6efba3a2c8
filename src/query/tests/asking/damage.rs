//! What is damaged, of another version, or newer is named, and the rest is shown.

use std::path::PathBuf;

use colltune_db::test_support::Damage;
use colltune_query::open;

use crate::made::{complaint, csv, database, of_telemetry, rows, write};

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
    let warnings = engine.take_warnings();
    assert!(
        warnings.len() == 1
            && warnings[0].contains("phases.0001.parquet")
            && warnings[0].contains("left out"),
        "{warnings:?}"
    );
    // No file is left.
    let none = tempfile::tempdir().unwrap();
    std::fs::write(none.path().join("phases.0000.parquet"), &bytes[..100]).unwrap();
    let engine = open(None, &[none.path().to_owned()]).unwrap();
    assert_eq!(rows(&engine, "SELECT count(*) FROM phases"), ["0"]);
    let problem = complaint(&engine, "SELECT step FROM phases");
    assert!(problem.contains("no such column: step"), "{problem}");
    assert!(engine.take_warnings()[0].contains("phases.0000.parquet"));
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
    for warning in engine.take_warnings() {
        assert!(warning.contains("phases.0001.parquet"), "{warning}");
    }
}

/// Bytes that are changed at random anywhere, the footer included: every table is still asked.
#[test]
fn no_damage_ends_a_query() {
    let (folder, _) = of_telemetry();
    let file = folder.path().join("phases.0001.parquet");
    let whole = std::fs::read(&file).unwrap();
    let mut damage = Damage::default();
    for round in 0..400 {
        let mut bytes = whole.clone();
        damage.strike(&mut bytes, 1 + round % 3);
        std::fs::write(&file, &bytes).unwrap();
        let engine = open(None, &[folder.path().to_owned()]).unwrap();
        for sql in [
            "SELECT * FROM phases",
            "SELECT sum(time_ns) FROM phases WHERE step > 3 AND phase = 'wait'",
        ] {
            // A column may have another name now.
            let _ = csv(&engine, sql);
        }
        let of_file = engine.take_warnings();
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
    let older = "SELECT 1 AS Step, 0 AS rank, 'wait' AS phase UNION ALL SELECT 2, 0, 'wait'";
    write(&old.path().join("phases.0000.parquet"), older);
    let high = "SELECT 1 AS step, -2 AS block UNION ALL SELECT 1, -2";
    write(&old.path().join("extras.parquet"), high);
    // Names that SQL keeps for itself.
    write(
        &old.path().join("order.parquet"),
        "SELECT 7 AS \"group \"\"by\"\"\"",
    );
    let folders: Vec<PathBuf> = [&old, &new].map(|one| one.path().to_owned()).into();
    let engine = open(None, &folders).unwrap();
    let sql = "SELECT count(*), count(time_ns) FROM phases GROUP BY folder ORDER BY 1";
    assert_eq!(rows(&engine, sql), ["2,0", "128,128"]);
    // Another kind of file is another table, and what is above 2^63 stays the same as itself.
    let sql = "SELECT count(DISTINCT block), max(block = -2) FROM extras WHERE block < 0";
    assert_eq!(rows(&engine, sql), ["1,1"]);
    assert_eq!(
        rows(&engine, "SELECT * FROM \"order\"")[0],
        format!("{},7", old.path().display())
    );
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
    let warnings = engine.take_warnings();
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
