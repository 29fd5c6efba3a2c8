//! Databases that something happened to: the page shows what is left, and nothing panics.

use std::path::{Path, PathBuf};

use colltune_db::test_support::{Damage, LIBRARY, Run};
use colltune_db::{Database, TrainOptions, train};
use colltune_report::{Question, page, read};

/// Two trainings on synthetic runs, a line of the ledger for each, and what is known of a lever.
fn database(folder: &Path) -> Database {
    std::fs::write(folder.join("colltune.toml"), "machine = \"testing\"\n").unwrap();
    let db = Database::create_or_open(folder).unwrap();
    for number in 0..2 {
        let run = Run {
            calls: 60,
            ..Run::new(&format!("job{number}"), number)
        };
        run.write(&db.incoming()).unwrap();
        let line = format!(
            r#"{{"schema":1,"job":"job{number}","program":"<i>solver</i>","mode":"explore","library":"{}","machine":"testing",
            "generation":0,"ranks":8,"nodes":4,"ppn":2,"started_unix_ms":{number},"wall_s":2.0,"collectives_s":{{"mean":0.5,
            "max":0.6}},"calls":9,"passed":0,"tuned_share":0.5,"by_collective":[],"waiting_share":null,
            "best_possible_gain":1.2,"refused":[]}}"#,
            LIBRARY
        );
        let file = db.incoming().join(format!("job{number}.run"));
        std::fs::write(file, line.replace('\n', "") + "\n").unwrap();
        train(&db, TrainOptions::default(), &|_| {}).unwrap();
    }
    let levers = format!(
        r#"{{"schema":2,"levers":[{{"program":"<i>solver</i>","library":"{LIBRARY}","lever":"when","class":3,"nodes":4,"ppn":2,
        "ranks":8,"best":"b","epochs":9,"is_settled":true,"arms":[{{"name":"a","probability":0.5,"gain":[1.0,1.0,1.0]}},
        {{"name":"b","probability":0.5,"gain":[1.2,1.1,1.3]}}]}}]}}"#
    );
    std::fs::write(folder.join("levers.json"), levers).unwrap();
    db
}

/// All files of a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all.sort();
    all
}

#[test]
fn every_file_in_turn_may_be_cut_off_or_damaged_and_what_is_left_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let whole = read(&db, &Question::default()).unwrap();
    assert_eq!(whole.warnings, Vec::<String>::new());
    assert_eq!((whole.head.generation, whole.head.runs.all), (2, 2));
    let mut damage = Damage::default();
    let mut told = 0;
    for file in files(folder.path()) {
        let bytes = std::fs::read(&file).unwrap();
        if bytes.is_empty() || file.ends_with("colltune.toml") {
            continue;
        }
        for round in 0..3 {
            let mut damaged = bytes.clone();
            match round {
                0 => damaged.truncate(bytes.len() / 2),
                1 => damaged.clear(),
                _ => damage.strike(&mut damaged, 3),
            }
            std::fs::write(&file, &damaged).unwrap();
            match read(&db, &Question::default()) {
                Ok(report) => {
                    let page = page::html(&report);
                    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("<i>solver"));
                    told += usize::from(!report.warnings.is_empty());
                }
                // A sentence that names what is wrong.
                Err(error) => assert!(error.to_string().len() > 20, "{}: {error}", file.display()),
            }
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert!(told > 10, "{told} warnings");
    let again = read(&db, &Question::default()).unwrap();
    assert_eq!(again.warnings, Vec::<String>::new());
}
