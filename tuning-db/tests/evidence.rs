//! What a database keeps of its runs: for how long, in how many files, and what it keeps apart.

mod runs;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use colltune_core::collective::Collective;
use colltune_core::model::{Model, Source};
use colltune_core::settings::Settings;
use colltune_core::space::{Block, Cell, Space};
use colltune_db::evidence::{Said, Store};
use colltune_db::manage::check::{Level, check};
use colltune_db::manage::list::{self, State, Wanted};
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::train::LibraryReport;
use colltune_db::{DataKey, Database, Generation, TrainOptions, partition, train};
use colltune_models::evidence::Evidence;
use parquet::file::reader::{FileReader, SerializedFileReader};
use runs::{database, small, trained};
use serde_json::{Value, json};

fn counted(report: &LibraryReport) -> (u64, u64, u64) {
    (report.runs, report.records, report.calls)
}

fn said(db: &Database, key: impl Into<DataKey>) -> Said {
    let (key, mut warnings) = (key.into(), Vec::new());
    let store = Store::open(db, &key, &mut warnings).unwrap();
    let said = store.read(key.library, &mut warnings);
    assert_eq!(warnings, Vec::<String>::new());
    said
}

fn raw(db: &Database) -> usize {
    partition::list(&db.data(LIBRARY)).unwrap().len()
}

#[test]
fn raw_records_go_after_their_time_and_what_they_said_stays() {
    let (_folder, db) = database("keep_raw = \"30d\"\n");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    let before = said(&db, LIBRARY);
    assert_eq!(raw(&db), 1);
    let path = partition::list(&db.data(LIBRARY)).unwrap().remove(0);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let day = Duration::from_secs(86_400);
    file.set_modified(SystemTime::now() - 29 * day).unwrap();
    assert_eq!(trained(&db).libraries[0].partitions_removed, 0);
    file.set_modified(SystemTime::now() - 31 * day).unwrap();
    let report = trained(&db);
    assert_eq!((report.libraries[0].partitions_removed, raw(&db)), (1, 0));
    assert!(!report.libraries[0].published, "nothing is new");
    assert_eq!(said(&db, LIBRARY).evidence, before.evidence);
    small("b").write(&db.incoming()).unwrap();
    assert_eq!(counted(&trained(&db).libraries[0]), (2, 1200, 600));
}

/// Of short calls a job records few of many: their time is in what it accounts for.
#[test]
fn cells_have_the_share_of_the_time_that_programs_spend_and_not_of_what_was_recorded() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    let shares = || {
        let cells = Generation::load(&db, LIBRARY).unwrap().cells;
        let measured = cells.into_iter().filter(|cell| cell.samples() > 0);
        measured
            .map(|cell| (cell.cell, cell.time_share))
            .collect::<Vec<_>>()
    };
    let before = shares();
    let least = before.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (cell, share) = *least.expect("cells were measured");
    assert!(before.len() > 1 && share < 0.4, "{before:?}");
    let account = format!(
        r#"{{"schema":1,"job":"b","program":"solver","mode":"explore","library":"openmpi-4.1.4","machine":"testing",
        "generation":0,"ranks":8,"nodes":2,"started_unix_ms":0,"wall_s":2000,"collectives_s":{{"mean":1000,
        "max":1000}},"calls":900000,"passed":0,"tuned_share":0.0,"by_collective":[{{"collective":"{}","calls":900000,
        "tuned_share":0.0,"seconds":{{"mean":1000,"max":1000}},"waiting_share":null,"by_size":[{{"bytes":{},
        "calls":900000,"tuned_share":0.0,"seconds":1000,"waiting_share":null}}]}}],"waiting_share":null,
        "best_possible_gain":1.0,"refused":[]}}"#,
        cell.collective,
        cell.bytes.lo.max(8)
    );
    small("b").write(&db.incoming()).unwrap();
    fs::write(
        db.incoming().join("b.run"),
        account.replace('\n', "") + "\n",
    )
    .unwrap();
    let report = trained(&db);
    assert!(
        report.ingest.quarantined.is_empty() && report.ingest.warnings.is_empty(),
        "{report:?}"
    );
    let after = shares();
    let share = after
        .iter()
        .find(|(other, _)| *other == cell)
        .map(|(_, share)| *share);
    assert!(share > Some(0.9), "{before:?} {after:?}");
}

#[test]
fn where_evidence_cannot_be_written_nothing_is_lost() {
    let (_folder, db) = database("keep_raw = \"0\"\n");
    small("a").write(&db.incoming()).unwrap();
    fs::create_dir_all(db.library(LIBRARY)).unwrap();
    fs::write(db.evidence(LIBRARY), "in the way").unwrap();
    train(&db, TrainOptions::default(), &|_| {}).unwrap_err();
    fs::remove_file(db.evidence(LIBRARY)).unwrap();
    assert_eq!(counted(&trained(&db).libraries[0]), (1, 600, 300));
    assert_eq!(raw(&db), 0);
}

#[test]
fn traces_that_come_late_are_counted_once_whether_or_not_the_first_are_still_there() {
    for (settings, calls) in [("", 300), ("keep_raw = \"0\"\n", 600)] {
        let (_folder, db) = database(settings);
        let paths = small("a").write(&db.incoming()).unwrap();
        let copies: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        fs::remove_file(&paths[1]).unwrap();
        assert_eq!(counted(&trained(&db).libraries[0]), (1, 300, 300));
        // The other rank's, and the first again.
        for (path, bytes) in paths.iter().zip(&copies) {
            fs::write(path, bytes).unwrap();
        }
        // Together they are the same calls; apart, where the first are gone, each counts as a call.
        assert_eq!(
            counted(&trained(&db).libraries[0]),
            (1, 600, calls),
            "{settings}"
        );
        for (path, bytes) in paths.iter().zip(&copies) {
            fs::write(path, bytes).unwrap();
        }
        let report = trained(&db);
        assert!(!report.libraries[0].published, "{settings}");
        assert_eq!(counted(&report.libraries[0]), (1, 600, calls), "{settings}");
    }
}

#[test]
fn many_trainings_leave_few_files_that_say_what_one_training_says() {
    let run = |number: u64| Run {
        calls: 60,
        seed: number,
        ..small(&format!("job{number}"))
    };
    let (_folder, one) = database("");
    let (_other, many) = database("keep_raw = \"0\"\n");
    for number in 0..40 {
        run(number).write(&one.incoming()).unwrap();
        run(number).write(&many.incoming()).unwrap();
        trained(&many);
    }
    trained(&one);
    let files = partition::list(&many.evidence(LIBRARY)).unwrap().len();
    assert!(files <= 17, "{files} files");
    let (one, many) = (said(&one, LIBRARY), said(&many, LIBRARY));
    assert_eq!((one.n_runs(), many.n_runs()), (40, 40));
    assert_eq!(one.evidence, many.evidence);
}

/// Its name and what its records were stay known when its rows are gone.
#[test]
fn a_run_that_is_thinned_out_is_not_learned_from_again_while_its_records_are_there() {
    let run = |number: u64| Run {
        calls: 6,
        recording_ranks: 1,
        ..Run::new(&format!("job{number}"), number)
    };
    let (_folder, db) = database("");
    (0..800).for_each(|number| drop(run(number).write(&db.incoming()).unwrap()));
    let first = counted(&trained(&db).libraries[0]).0;
    assert!((128..500).contains(&first), "{first} runs of 800");
    let states = || {
        let runs = list::runs(&db, &Wanted::default(), &mut Vec::new()).unwrap();
        let thinned = runs.iter().filter(|run| run.state == State::Thinned);
        (runs.len() as u64, thinned.count() as u64)
    };
    assert_eq!(states(), (800, 800 - first));
    let rows: i64 = partition::list(&db.evidence(LIBRARY))
        .unwrap()
        .iter()
        .map(|path| {
            let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            file.metadata().file_metadata().num_rows()
        })
        .sum();
    // Six calls are six rows at most, and copies of the default's.
    assert!(rows as u64 <= 8 * first, "{rows} rows of {first} runs");
    // The raw records of all are there, traces of the first come back, and something is new.
    (0..3).for_each(|number| drop(run(number).write(&db.incoming()).unwrap()));
    run(800).write(&db.incoming()).unwrap();
    let reduced = RefCell::new(Vec::new());
    train(&db, TrainOptions::default(), &|step| {
        if step.contains("reducing") {
            reduced.borrow_mut().push(step.to_owned());
        }
    })
    .unwrap();
    assert_eq!(
        reduced.take(),
        ["openmpi-4.1.4: reducing the records of 1 runs"]
    );
    assert_eq!(states().0, 801);
    let faults = faults(&db);
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn two_transports_in_one_batch_are_two_data_sets() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    let tcp = Run {
        transport: "ob1+tcp,vader".to_owned(),
        ..small("b")
    };
    tcp.write(&db.incoming()).unwrap();
    let report = trained(&db);
    let key: DataKey = format!("{LIBRARY}@ob1+tcp,vader").parse().unwrap();
    assert_eq!(db.keys().unwrap(), [DataKey::from(LIBRARY), key.clone()]);
    for library in &report.libraries {
        assert_eq!(counted(library), (1, 600, 300), "{}", library.library);
    }
    let jobs = |key: &DataKey| {
        said(&db, key)
            .runs
            .iter()
            .map(|run| run.job.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (jobs(&LIBRARY.into()), jobs(&key)),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    assert_eq!(Generation::load(&db, &key).unwrap().number, 1);
    assert_eq!(db.libraries().unwrap(), [LIBRARY]);
}

#[test]
fn runs_whose_library_was_told_its_algorithms_are_another_data_set() {
    let (_folder, db) = database("");
    let told = |job: &str, word: &str| Run {
        context: vec![("told".to_owned(), word.to_owned())],
        ..small(job)
    };
    small("a").write(&db.incoming()).unwrap();
    told("b", "told-00c0ffee").write(&db.incoming()).unwrap();
    told("c", "told-tea").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!(report.ingest.quarantined.len(), 2, "{report:?}");
    let key: DataKey = format!("{LIBRARY}@default@told-00c0ffee").parse().unwrap();
    assert_eq!(db.keys().unwrap(), [DataKey::from(LIBRARY), key.clone()]);
    for library in &report.libraries {
        assert_eq!(counted(library), (1, 600, 300), "{}", library.library);
    }
    let warned = |text: &&String| text.contains("no tables are made of them");
    assert_eq!(
        report.ingest.warnings.iter().filter(warned).count(),
        1,
        "{report:?}"
    );
    assert_eq!(key.untold(), DataKey::from(LIBRARY));
}

#[test]
fn traces_that_name_no_possible_transport_are_refused() {
    let (_folder, db) = database("");
    let spoilt = Run {
        transport: "../../etc".to_owned(),
        ..small("a")
    };
    spoilt.write(&db.incoming()).unwrap();
    assert_eq!(trained(&db).ingest.quarantined.len(), 2);
    assert_eq!(db.keys().unwrap(), []);
}

#[test]
fn runs_on_different_settings_of_the_library_are_learned_from_and_somebody_is_told() {
    let (_folder, db) = database("");
    for (job, settings) in [("a", ""), ("b", "OMPI_MCA_coll_hcoll_enable=0")] {
        let run = Run {
            context: vec![("settings".to_owned(), settings.to_owned())],
            ..small(job)
        };
        run.write(&db.incoming()).unwrap();
    }
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (2, 1200, 600));
    let warned = report
        .ingest
        .warnings
        .iter()
        .filter(|text| text.contains("hcoll"));
    assert_eq!(warned.count(), 1, "{report:?}");
}

#[test]
fn a_generation_says_whose_the_librarys_own_choice_was_in_the_last_run_that_tells() {
    let (_folder, db) = database("");
    let of = || {
        let generation = Generation::load(&db, LIBRARY).unwrap();
        generation.meta.expect("it is trained").component
    };
    for (job, seed, told, component) in [
        ("a", 1, "", ""),
        ("b", 2, "han", "han"),
        ("c", 3, "", "han"),
    ] {
        let run = Run {
            seed,
            context: vec![("component".to_owned(), told.to_owned())],
            ..small(job)
        };
        run.write(&db.incoming()).unwrap();
        trained(&db);
        assert_eq!(of(), component, "{job}");
    }
}

#[test]
fn whatever_shapes_a_training_makes_another_one_and_nothing_else_does() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    assert!(trained(&db).libraries[0].published);
    assert!(!trained(&db).libraries[0].published);
    let settings = [
        "families = [\"native\"]\n",
        "families = [\"native\"]\nhopeless_factor = 3.0\n",
        "families = [\"native\"]\nhopeless_factor = 3.0\nreproducible = \"strict\"\n",
    ];
    for text in settings {
        fs::write(db.settings_path(), format!("machine = \"testing\"\n{text}")).unwrap();
        assert!(trained(&db).libraries[0].published, "{text}");
        assert!(!trained(&db).libraries[0].published, "{text}");
    }
    fs::write(db.calibration(LIBRARY), "schema = 1\n").unwrap();
    assert!(trained(&db).libraries[0].published, "the calibration");
    assert!(!trained(&db).libraries[0].published);
}

#[test]
fn clocks_that_jump_and_impossible_times_leave_a_sound_model() {
    let (_folder, db) = database("");
    const HOUR_NS: u64 = 3_600_000_000_000;
    let jumping = Run {
        spoil: Some(|number, record| {
            record.start_ns = match number % 3 {
                0 => u64::MAX - number,
                1 => 0,
                _ => record.start_ns,
            };
            record.duration_ns = match number % 5 {
                0 => 0,
                1 => 2 * HOUR_NS,
                _ => record.duration_ns,
            };
        }),
        ..small("a")
    };
    jumping.write(&db.incoming()).unwrap();
    small("b").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (2, 1200, 600));
    let both = said(&db, LIBRARY);
    assert_eq!(both.evidence.iter().map(|one| one.calls).sum::<u64>(), 600);
    assert_eq!(both.unknown, 0);
    for one in &both.evidence {
        assert!(one.level_ns.is_finite() && one.level_ns > 0.0, "{one:?}");
        // Of stalls alone, and of what met nothing else, there is no mean.
        assert!(one.time.mean.is_finite(), "{one:?}");
        assert_eq!(one.time.mean > 0.0, one.time.n > 0, "{one:?}");
    }
    let generation = Generation::load(&db, LIBRARY).unwrap();
    assert_eq!(generation.model.check(LIBRARY), Ok(()));
    // The sound job says what it says alone.
    let (_other, alone) = database("");
    small("b").write(&alone.incoming()).unwrap();
    trained(&alone);
    let place = both.jobs.iter().position(|job| job == "b").unwrap() as u32;
    let of_sound = both.evidence.iter().filter(|one| one.run == place);
    let of_sound: Vec<Evidence> = of_sound.map(|one| Evidence { run: 0, ..*one }).collect();
    assert_eq!(of_sound, said(&alone, LIBRARY).evidence);
}

#[test]
fn what_cannot_be_quarantined_is_left_with_a_warning_and_the_rest_goes_on() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    fs::write(db.incoming().join("README"), "hello").unwrap();
    // As root no permission stands in the way; a file does.
    fs::write(db.quarantine(), "in the way").unwrap();
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (1, 600, 300));
    assert!(
        report
            .ingest
            .warnings
            .iter()
            .any(|text| text.contains("README")),
        "{report:?}"
    );
    assert!(db.incoming().join("README").exists());
}

#[test]
fn names_that_this_catalogue_lacks_are_kept_for_one_that_has_them() {
    let (_folder, db) = database("");
    let later = Run {
        rename: Some(("native:ring", "native:quantum")),
        ..small("a")
    };
    later.write(&db.incoming()).unwrap();
    small("b").write(&db.incoming()).unwrap();
    trained(&db);
    let mut rows = Vec::new();
    for path in partition::list(&db.evidence(LIBRARY)).unwrap() {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        let text = reader.into_iter().map(|row| row.unwrap().to_string());
        rows.extend(text);
    }
    assert!(
        rows.iter().any(|row| row.contains("\"native:quantum\"")),
        "{}",
        rows[0]
    );
    assert!(said(&db, LIBRARY).unknown > 0);
}

/// Puts generation 1 in force as the first layout has it: without what came later, and with what was removed since.
/// Returns its model, and the one cell that it measured.
fn publish_in_the_first_layout(db: &Database) -> (Model, Cell) {
    // The space of that time was cut otherwise.
    let block = |collective| Block {
        nodes: vec![Some(1), Some(2), None],
        ppn: vec![Some(1), None],
        ..Space::default_block(collective)
    };
    let blocks: Vec<Block> = Collective::ALL.into_iter().map(block).collect();
    let bounds = |block: &Block| json!({ "collective": block.collective, "bytes": block.bytes, "nodes": block.nodes, "ppn": block.ppn });
    let space: Vec<Value> = blocks.iter().map(bounds).collect();
    let settings = Settings {
        space: Space { blocks },
        ..Settings::default()
    };
    let mut model = Model {
        generation: 1,
        ..Model::initial(&settings, LIBRARY, "vm")
    };
    let mut entries = model.cells.iter_mut();
    let entry = entries.find(|entry| entry.variants.len() > 1);
    let entry = entry.expect("variants are drawn");
    entry.source = Source::Measured;
    entry.best = entry.variants[1].name.clone();
    let (cell, best) = (entry.cell, entry.best.clone());
    let variant = |name: &str, samples: u64| {
        let time_ns = json!({ "median": 3e4, "lo": 2e4, "hi": 4e4 });
        json!({ "name": name, "samples": samples, "probability": 0.5, "time_ns": time_ns })
    };
    let variants = [variant("default", 60), variant(&best, 40)];
    let known = json!({
        "collective": cell.collective, "bytes": cell.bytes, "nodes": cell.nodes, "ppn": cell.ppn,
        "source": "measured", "best": best, "gain": 1.5, "variants": variants,
    });
    let cells = json!({ "schema": 1, "generation": 1, "space": space, "cells": [known] });
    let meta = r#"{ "schema": 1, "generation": 1, "library": "openmpi-4.1.4", "machine": "vm",
        "colltune_version": "0.1.0", "created_unix_ms": 1700000000000, "seed": 1, "runs": 3, "records": 360,
        "calls": 180, "cells_measured": 1, "jobs": ["synthetic-0", "synthetic-1", "synthetic-2"],
        "partitions": ["001700000000000-4711070c5ae03d0d.parquet"], "passed": [],
        "settings": "machine vm; explore_total 0.1; exclude []", "learn_ms": 1, "checks": {} }"#;
    let folder = db.generations(LIBRARY).join("000001");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("probabilities.json"), model.to_json()).unwrap();
    fs::write(folder.join("cells.json"), cells.to_string()).unwrap();
    fs::write(folder.join("meta.json"), meta).unwrap();
    fs::write(db.current(LIBRARY), "000001\n").unwrap();
    (model, cell)
}

#[test]
fn a_database_of_the_first_layout_is_taken_over_and_nothing_is_lost() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/layout-1");
    let (_folder, db) = database("keep_raw = \"inf\"\n");
    // The machine that wrote it was called so.
    fs::write(db.settings_path(), "machine = \"vm\"\n").unwrap();
    fs::create_dir_all(db.data(LIBRARY)).unwrap();
    for (from, to) in [("data", db.data(LIBRARY)), ("incoming", db.incoming())] {
        for entry in fs::read_dir(golden.join(from)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let (model, cell) = publish_in_the_first_layout(&db);
    let first = Generation::load(&db, LIBRARY).unwrap();
    assert!(first.number == 1 && first.model == model);
    let measured = first.cells.iter().filter(|one| one.samples() > 0);
    let measured: Vec<_> = measured
        .map(|one| (one.cell, one.samples(), one.gain))
        .collect();
    assert_eq!(measured, [(cell, 100, 1.5)]);
    assert_eq!(first.cells.len(), model.cells.len());
    assert_eq!(first.meta.as_ref().map(|meta| meta.runs), Some(3));
    let report = trained(&db);
    let of_library = &report.libraries[0];
    assert_eq!((of_library.generation, of_library.published), (2, true));
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 2);
    assert!(Generation::load_number(&db, LIBRARY, 1).unwrap() == first);
    // Three runs in a partition, and the fourth in traces of the first two versions: 240 calls, eleven of which ran
    // broadcasts that write into the root's buffer, from which nothing is learned any more.
    assert_eq!(counted(&report.libraries[0]), (4, 458, 229));
    assert_eq!(report.ingest.warnings, Vec::<String>::new());
    assert_eq!(report.ingest.quarantined, []);
    let said = said(&db, LIBRARY);
    let jobs: BTreeSet<&str> = said.runs.iter().map(|run| run.job.as_str()).collect();
    let expected = ["synthetic-0", "synthetic-1", "synthetic-2", "synthetic-3"];
    assert_eq!(jobs, expected.into());
    // 25 calls ran variants that this version has no longer; they stay in the files.
    let known = said.evidence.iter().map(|one| one.calls).sum::<u64>();
    assert_eq!((known, said.unknown), (204, 25));
    assert!(
        said.evidence.iter().all(|one| one.shift.n == 0),
        "nobody timed what follows"
    );
    assert!(
        !trained(&db).libraries[0].published,
        "it is taken over once"
    );
}

/// Each fault names its file and what to do; doing that leaves none.
#[test]
fn a_check_finds_what_cannot_be_read_and_its_way_out_is_one() {
    for (part, way) in [
        ("data", "remove it"),
        ("evidence", "left out"),
        ("generations", "colltune train --db"),
    ] {
        let (_folder, db) = database("");
        small("a").write(&db.incoming()).unwrap();
        trained(&db);
        assert_eq!(faults(&db), Vec::<String>::new());
        let path = match part {
            "data" => partition::list(&db.data(LIBRARY)).unwrap().remove(0),
            "evidence" => partition::list(&db.evidence(LIBRARY)).unwrap().remove(0),
            _ => db.generations(LIBRARY).join("000001/cells.json"),
        };
        fs::write(&path, "junk").unwrap();
        let found = faults(&db);
        let named =
            |fault: &String| fault.contains(&path.display().to_string()) && fault.contains(way);
        assert!(found.len() == 1 && found.iter().all(named), "{found:?}");
        match part {
            "data" => fs::remove_file(&path).unwrap(),
            _ => {
                trained(&db);
            }
        }
        assert_eq!(faults(&db), Vec::<String>::new(), "{part}");
        assert!(!Generation::load(&db, LIBRARY).unwrap().cells.is_empty());
    }
}

fn faults(db: &Database) -> Vec<String> {
    let findings = check(db).unwrap().findings.into_iter();
    let faults = findings.filter(|one| one.level == Level::Fault);
    faults.map(|one| one.says).collect()
}
